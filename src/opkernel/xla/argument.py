"""XlaArgument: what is known of an argument when a function is compiled.

Source: TensorFlow compiler/tf2xla/xla_argument.h.
"""

from opkernel.runtime.engines.engine import ClusterArgument as XlaArgument

__all__ = ["XlaArgument"]
