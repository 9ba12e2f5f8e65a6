"""Where operations run; what several devices take is loaded where there are several."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
