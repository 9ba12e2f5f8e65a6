"""XLA: functions and graphs as compiled programs, through JAX (extra `opkernel[xla]`).

Source: TensorFlow's compiler/tf2xla.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
