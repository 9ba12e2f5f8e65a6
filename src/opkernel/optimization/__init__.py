"""Optimisation: passes that edit a graph so that it computes the same with less work.

Source: TensorFlow common_runtime/optimization_registry, constant_folding, core/grappler, compiler/jit.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
