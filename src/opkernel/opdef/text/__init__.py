"""Values, nodes and ops as text; code that only messages need is loaded with the first message."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
