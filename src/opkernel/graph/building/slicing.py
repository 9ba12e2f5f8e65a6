"""SlicePlan: the key of `x[...]` as the inputs and attrs of StridedSlice.

Source: TensorFlow python/ops/array_ops.py (_slice_helper).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from opkernel.graph.core.graph import Graph
from opkernel.graph.core.tensor import Tensor
from opkernel.messages import short_repr
from opkernel.types import DataType

_INT_TYPES = (DataType.DT_INT32, DataType.DT_INT64)
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class SlicePlan:
    """The parts of a slice.

    Attributes:
        mask: the tensor or array of bools that chooses elements, where the key is one.
        masks: the attrs of StridedSlice.
        tensors: the tensors among the bounds.
    """

    def __init__(self, key: Any) -> None:
        """Read a key.

        Raises:
            TypeError: a part of the key is no index.
        """
        self.mask = key if _is_mask(key) else None
        self.masks = dict.fromkeys(_MASKS, 0)
        self._begin: list[Any] = []
        self._end: list[Any] = []
        self._strides: list[Any] = []
        if self.mask is None:
            for part in key if isinstance(key, tuple) else (key,):
                self._add(part)
        bounds = [self.mask, *self._begin, *self._end, *self._strides]
        self.tensors: list[Tensor] = [bound for bound in bounds if isinstance(bound, Tensor)]

    def bounds(self, graph: Graph) -> list[Any]:
        """`begin`, `end` and `strides`, for a graph in whose name scope they are packed."""
        parts = (self._begin, self._end, self._strides)
        wide = any(_is_wide(bound) for part in parts for bound in part)
        wanted = DataType.DT_INT64 if wide else DataType.DT_INT32
        names = ("stack", "stack_1", "stack_2")
        return [_packed(graph, name, part, wanted) for name, part in zip(names, parts, strict=True)]

    def _add(self, part: Any) -> None:
        bit = 1 << len(self._begin)
        begin, end, stride = 0, 0, 1
        if isinstance(part, slice):
            begin, end, stride = (
                default if bound is None else _index(bound)
                for bound, default in ((part.start, 0), (part.stop, 0), (part.step, 1))
            )
            self.masks["begin_mask"] |= bit * (part.start is None)
            self.masks["end_mask"] |= bit * (part.stop is None)
        elif part is Ellipsis:
            self.masks["ellipsis_mask"] |= bit
        elif part is None:
            self.masks["new_axis_mask"] |= bit
        else:
            begin = _index(part)
            end = begin + 1
            self.masks["shrink_axis_mask"] |= bit
        self._begin.append(begin)
        self._end.append(end)
        self._strides.append(stride)


def _is_mask(key: Any) -> bool:
    if isinstance(key, Tensor):
        return key.dtype.base == DataType.DT_BOOL
    return isinstance(key, np.ndarray) and key.dtype == np.bool_


def _index(value: Any) -> Any:
    """An index as a tensor or an int."""
    if isinstance(value, Tensor) and value.dtype.base in _INT_TYPES:
        return value
    if not isinstance(value, Tensor) and not isinstance(value, bool | np.bool_):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(
        f"Only integers, slices (`:`), ellipsis (`...`), None, scalar int32 or int64 tensors and "
        f"masks are valid indices, got {short_repr(value)}; opkernel.raw_ops.GatherV2 takes lists of indices"
    )


def _is_wide(bound: Any) -> bool:
    if isinstance(bound, Tensor):
        return bound.dtype.base == DataType.DT_INT64
    return not -(2**31) <= bound < 2**31


def _packed(graph: Graph, name: str, bounds: list[Any], dtype: DataType) -> Any:
    """Bounds as one constant; bounds with tensors among them are packed."""
    if not any(isinstance(bound, Tensor) for bound in bounds):
        value = np.array(bounds, dtype.numpy_dtype)
        attrs = {"dtype": dtype, "value": value}
        return graph.create_op("Const", name=name, attrs=attrs).outputs[0]
    items = [_of_type(graph, bound, dtype) for bound in bounds]
    return graph.create_op("Pack", [items], name=name).outputs[0]


def _of_type(graph: Graph, bound: Any, dtype: DataType) -> Any:
    if not isinstance(bound, Tensor):
        return dtype.numpy_dtype.type(bound)
    if bound.dtype.base == dtype:
        return bound
    return graph.create_op("Cast", [bound], name="Cast", attrs={"DstT": dtype}).outputs[0]
