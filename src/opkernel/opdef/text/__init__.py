"""Values, nodes and ops as text; what only messages need is loaded for them."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
