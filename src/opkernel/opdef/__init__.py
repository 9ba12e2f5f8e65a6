"""Ops: their declarations, their registry, their nodes, and the shapes of their outputs.

Source: TensorFlow framework/op*, node_def_*, shape_inference, full_type_*.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
