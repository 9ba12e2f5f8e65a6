"""Shapes of the elements of lists, as the ops of lists take them."""

from __future__ import annotations

from typing import Any

import opkernel.gradients as g
from opkernel.types import DataType


def element_shape(handle: g.Tensor) -> Any:
    """The shape that a list knows of its elements."""
    return g.nodes.TensorListElementShape(handle, shape_type=DataType.DT_INT32)


def row_shape(tensor: g.Tensor) -> Any:
    """The shape of the rows of a tensor."""
    return g.nodes.StridedSlice(g.nodes.Shape(tensor), [1], [0], [1], end_mask=1)
