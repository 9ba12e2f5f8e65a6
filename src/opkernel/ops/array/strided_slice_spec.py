"""The meaning of a strided slice: from begin, end, strides and masks to ranges and shapes.

A spec has one entry for each index as Python writes it, `x[..., 2, :, None]`. The entry's bits in the
masks tell an ellipsis, a new axis, a single index (shrink), and open ends. The dense spec has one range
for each dimension of the tensor.

Source: ValidateStridedSliceOp, TensorFlow core/util/strided_slice_op.cc.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opkernel.errors import InvalidArgumentError
from opkernel.types import TensorShape

_MAX_INDICES = 32
"""The masks have 32 bits."""

_UNKNOWN = -1


class Masks(NamedTuple):
    """The masks of a spec; bit i speaks of its entry i."""

    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink_axis: int


class SparseSpec(NamedTuple):
    """A spec as it is written; `begin` or `end` is None where the values are not known."""

    begin: Sequence[int] | None
    end: Sequence[int] | None
    strides: Sequence[int]
    masks: Masks


class StridedSlice(NamedTuple):
    """A spec applied to a shape.

    Attributes:
        array_index: the index that takes the slice from an array, if all is known.
        final_shape: the shape of the result, -1 where unknown.
    """

    array_index: tuple[Any, ...]
    final_shape: list[int]


@dataclass(slots=True)
class _DenseSpec:
    """One range a dimension of the tensor."""

    begin: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    strides: list[int] = field(default_factory=list)
    open_begin: list[bool] = field(default_factory=list)
    open_end: list[bool] = field(default_factory=list)
    shrink: list[bool] = field(default_factory=list)
    layout: list[int | None] = field(default_factory=list)
    """The dimensions in order, with None for each new axis between them."""

    def add(
        self, begin: int, end: int, stride: int, *, is_open: tuple[bool, bool], shrink: bool
    ) -> None:
        self.layout.append(len(self.begin))
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(stride)
        self.open_begin.append(is_open[0])
        self.open_end.append(is_open[1])
        self.shrink.append(shrink)


def check_vectors(
    begin: Sequence[int] | None, end: Sequence[int] | None, strides: Sequence[int]
) -> None:
    """Check the shapes of begin, end (None where their values are unknown) and strides.

    Raises:
        InvalidArgumentError: they are not vectors of one length below 32.
    """
    if (
        len(strides) == 1
        and begin in (None, strides)
        and end in (None, strides)
        and (strides[0] < _MAX_INDICES or begin is end is None)
    ):
        return
    if begin is None or end is None:
        got = f"got shape {TensorShape(strides)} for strides."
    else:
        got = (
            f"got shapes {TensorShape(begin)}, {TensorShape(end)}, and {TensorShape(strides)} "
            "instead."
        )
    raise InvalidArgumentError(
        f"Expected begin, end, and strides to be 1D equal size tensors, but {got}"
    )


def strided_slice(spec: SparseSpec, shape: Sequence[int]) -> StridedSlice:
    """Apply a spec to a shape (-1 for an unknown size).

    Raises:
        InvalidArgumentError: several ellipses, more indices than dimensions, a stride of 0, or a
            single index that is out of bounds.
    """
    dense = _dense_spec(spec, len(shape))
    values_known = spec.begin is not None and spec.end is not None
    ranges = [_range_of(dense, axis, size, values_known) for axis, size in enumerate(shape)]
    index: list[Any] = []
    final_shape = []
    for axis in dense.layout:
        if axis is None:
            index.append(None)
            final_shape.append(1)
        elif dense.shrink[axis]:
            index.append(_first(ranges[axis]))
        else:
            index.append(_as_slice(ranges[axis]))
            final_shape.append(_length(ranges[axis]))
    return StridedSlice((*index, ...), final_shape)


def entries_of_single_indices(strides: Sequence[int], masks: Masks, rank: int) -> list[int | None]:
    """For each part of the `array_index` of a slice the entry of the spec that it is, if that is a single index."""
    entries = range(len(strides))
    dense = _dense_spec(SparseSpec(entries, entries, strides, masks), rank)
    return [
        dense.begin[axis] if axis is not None and dense.shrink[axis] else None
        for axis in dense.layout
    ]


def _range_of(dense: _DenseSpec, axis: int, size: int, values_known: bool) -> range | None:
    """The range of a dimension; None where it is not known."""
    stride, shrink = dense.strides[axis], dense.shrink[axis]
    if stride == 0:
        raise InvalidArgumentError(f"strides[{axis}] must be non-zero")
    if size == _UNKNOWN:
        return None
    if shrink and stride <= 0:
        raise InvalidArgumentError("only stride 1 allowed on non-range indexing.")
    whole = dense.open_begin[axis] and dense.open_end[axis] and not shrink
    if not (values_known or whole):
        return None
    return _single_index(dense, axis, size) if shrink else _bounded_range(dense, axis, size)


def _single_index(dense: _DenseSpec, axis: int, size: int) -> range:
    begin = dense.begin[axis]
    index = begin + size if begin < 0 else begin
    if not 0 <= index < size:
        raise InvalidArgumentError(f"slice index {index} of dimension {axis} out of bounds.")
    return range(index, index + 1)


def _bounded_range(dense: _DenseSpec, axis: int, size: int) -> range:
    """The range of a dimension, cut to its bounds."""
    stride = dense.strides[axis]
    lowest, highest = (0, size) if stride > 0 else (-1, size - 1)
    first, last = (lowest, highest) if stride > 0 else (highest, lowest)

    def bounded(value: int) -> int:
        return min(max(value + size if value < 0 else value, lowest), highest)

    begin = first if dense.open_begin[axis] else bounded(dense.begin[axis])
    end = last if dense.open_end[axis] else bounded(dense.end[axis])
    return range(begin, end, stride)


def _as_slice(found: range | None) -> slice:
    """The slice that takes the same elements; -1 would count from the end."""
    if not found:
        return slice(0, 0)
    return slice(found.start, None if found.stop < 0 else found.stop, found.step)


def _first(found: range | None) -> int:
    return found.start if found else 0


def _length(found: range | None) -> int:
    return _UNKNOWN if found is None else len(found)


def _dense_spec(spec: SparseSpec, rank: int) -> _DenseSpec:
    """The spec without ellipsis."""
    masks, count = spec.masks, len(spec.strides)
    if masks.ellipsis & (masks.ellipsis - 1):
        raise InvalidArgumentError("Multiple ellipses in slice spec not allowed")
    ellipsis = masks.ellipsis.bit_length() - 1
    if not 0 <= ellipsis < count:
        ellipsis = count  # none is written: one at the end
    dense = _DenseSpec()
    for i in range(count):
        if i == ellipsis:
            indices_after = sum(not masks.new_axis >> j & 1 for j in range(i + 1, count))
            _expand_ellipsis(dense, rank - indices_after)
        elif masks.new_axis >> i & 1:
            dense.layout.append(None)
        else:
            _add_index(dense, spec, i, rank)
    _expand_ellipsis(dense, rank)
    return dense


def _expand_ellipsis(dense: _DenseSpec, stop: int) -> None:
    """Take the dimensions up to `stop` as they are."""
    for _ in range(len(dense.begin), stop):
        dense.add(0, 0, 1, is_open=(True, True), shrink=False)


def _add_index(dense: _DenseSpec, spec: SparseSpec, i: int, rank: int) -> None:
    """Let entry `i` of the spec speak of the next dimension."""
    axis = len(dense.begin)
    if axis == rank:
        if rank == 0:
            raise InvalidArgumentError("Attempting to slice scalar input.")
        raise InvalidArgumentError(
            f"Index out of range using input dim {axis}; input has only {rank} dims"
        )
    begin, end, strides, masks = spec
    dense.add(
        0 if begin is None else begin[i],
        0 if end is None else end[i],
        strides[i],
        is_open=(bool(masks.begin >> i & 1), bool(masks.end >> i & 1)),
        shrink=bool(masks.shrink_axis >> i & 1),
    )
