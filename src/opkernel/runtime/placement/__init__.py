"""Where operations run; the code for several devices is loaded only if there are several."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
