"""Values, nodes and ops as text; parts that only messages need are loaded with the first one."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
