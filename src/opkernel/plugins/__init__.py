"""Kernel libraries: packages and folders whose ops and kernels are found when they are needed."""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
