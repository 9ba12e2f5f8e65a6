"""Devices: their factories, their memory, the threads within a kernel.

Source: TensorFlow framework/device*, device_factory, allocator, common_runtime/device_mgr.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
