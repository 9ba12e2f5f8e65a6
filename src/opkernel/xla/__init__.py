"""XLA: functions and graphs as compiled programs, through JAX (extra `opkernel[xla]`).

Source: TensorFlow compiler/tf2xla, compiler/jit.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
