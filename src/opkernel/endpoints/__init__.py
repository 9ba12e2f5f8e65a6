"""TensorFlow's Python names for everyday work: `opkernel.nn.relu(x)`, `opkernel.math.reduce_mean(x, axis=-1)`.

A module of this room has the functions of TensorFlow's module of that name, with its parameters and defaults; `array`
has those that stand in no module there. What is one op is a line of `table.txt`; the rest is composed of ops here. All
take arrays and give arrays; with tensors of a graph, and where a function is traced, they add nodes, as `raw_ops` do.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
