"""Element-wise chains on big arrays, computed tile by tile.

Where kernels that work element by element follow on each other and nobody else needs what is between
them, a plan computes them together: a tile of each array at a time, small enough to stay in the
processor's cache, on the threads that kernels may use, and with new memory for the results only.

`groups` finds such nodes, `pointwise` says what their kernels are on tiles, `layout` how arrays of
certain shapes are cut into tiles, `tiled` does it. Whatever does not fit, small arrays first of all,
the plan computes node by node, as ever; so do errors find their node.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
