"""Graphs: operations and tensors, GraphDefs in and out, functions, shapes.

Source: TensorFlow core/graph, python/framework/ops.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
