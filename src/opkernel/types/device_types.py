"""The types of devices that kernels are registered for, under TensorFlow's names.

A device type is a string, which any code may choose; these are the types that TensorFlow names.

Source: TensorFlow core/framework/types.h.
"""

from typing import Final

DEVICE_DEFAULT: Final = "DEFAULT"
"""The type of kernels for every device type without kernels of its own."""

DEVICE_CPU: Final = "CPU"
DEVICE_GPU: Final = "GPU"
DEVICE_TPU: Final = "TPU"
DEVICE_TPU_SYSTEM: Final = "TPU_SYSTEM"
