"""Execution: from a graph to numbers.

Source: TensorFlow core/common_runtime.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
