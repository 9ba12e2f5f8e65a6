"""IndexedSlices: the gradient of a tensor of which only some rows were used.

Source: TensorFlow python/framework/indexed_slices.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opkernel.graph import Graph, Tensor, apply_op
from opkernel.types import DataType, PartialTensorShape


class IndexedSlicesValue(NamedTuple):
    """The value of a fetched IndexedSlices.

    Attributes:
        values: the rows.
        indices: where each row belongs.
        dense_shape: the shape of the whole tensor, if it is known.
    """

    values: Any
    indices: Any
    dense_shape: Any


@dataclass(slots=True, eq=False)
class IndexedSlices:
    """Some rows of a tensor; all other rows are zero, and rows of equal index add up.

    Attributes:
        values: the rows: of shape `[n, ...]`.
        indices: where each row belongs: int32 or int64, of shape `[n]`.
        dense_shape: the shape of the whole tensor, if known: integers, of shape `[rank]`.
    """

    values: Tensor
    indices: Tensor
    dense_shape: Tensor | None = None
    _dense: Tensor | None = field(default=None, init=False, repr=False)

    @property
    def dtype(self) -> DataType:
        """The type of its elements."""
        return self.values.dtype

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self.values.graph

    @property
    def name(self) -> str:
        """The name of its values."""
        return self.values.name

    @property
    def shape(self) -> PartialTensorShape:
        """The known part of the shape of the whole tensor."""
        rows = self.values.shape
        if rows.rank is None:
            return rows
        return PartialTensorShape([None, *rows.as_list()[1:]])

    def to_tensor(self) -> Tensor:
        """The whole tensor; the same one at every call.

        Raises:
            ValueError: the dense shape is not known.
        """
        if self._dense is None:
            if self.dense_shape is None:
                raise ValueError(
                    f"IndexedSlices of '{self.name}' cannot become a dense tensor: they lack dense_shape"
                )
            size = apply_op("StridedSlice", **_first_element(self.dense_shape))
            self._dense = apply_op(
                "UnsortedSegmentSum",
                data=self.values,
                segment_ids=self.indices,
                num_segments=size,
            )
        return self._dense

    def _fetched_parts(self) -> IndexedSlicesValue:
        """The parts that a session fetches, in the form of the answer."""
        return IndexedSlicesValue(self.values, self.indices, self.dense_shape)


Gradient = Tensor | IndexedSlices
"""The forms of a gradient."""


def as_dense(value: Any) -> Any:
    """The dense tensor of IndexedSlices, also inside a list; every other value as it is."""
    if isinstance(value, IndexedSlices):
        return value.to_tensor()
    if isinstance(value, list | tuple):
        return [as_dense(item) for item in value]
    return value


def sum_of_slices(gradients: Sequence[IndexedSlices]) -> IndexedSlices:
    """IndexedSlices with the rows of all of them."""
    first = gradients[0]
    return IndexedSlices(
        _concat([slices.values for slices in gradients]),
        _concat(_of_one_type([slices.indices for slices in gradients])),
        first.dense_shape,
    )


def _of_one_type(indices: Sequence[Tensor]) -> list[Tensor]:
    """The indices as they are, or all as int64 where their types differ."""
    if len({tensor.dtype for tensor in indices}) == 1:
        return list(indices)
    wide = DataType.DT_INT64
    return [t if t.dtype == wide else apply_op("Cast", x=t, DstT=wide) for t in indices]


def _concat(tensors: list[Tensor]) -> Tensor:
    joined: Tensor = apply_op("ConcatV2", values=tensors, axis=0)
    return joined


def _first_element(vector: Tensor) -> dict[str, Any]:
    return {"input": vector, "begin": [0], "end": [1], "strides": [1], "shrink_axis_mask": 1}
