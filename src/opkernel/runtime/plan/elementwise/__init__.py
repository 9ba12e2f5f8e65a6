"""Element-wise chains on big arrays, computed tile by tile.

A plan computes a group of element-wise kernels together if nobody else needs the results between them.
It takes a tile of each array at a time, small enough for the processor's cache, on the threads that
kernels may use. Only the results of the group take new memory.

`groups` finds such nodes, `pointwise` gives the form of their kernels on tiles, `layout` cuts arrays of
certain shapes into tiles, and `tiled` computes. The plan computes all else node by node, such as small
arrays. So it does after an error, in order to find the node.
"""

from opkernel.lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
