"""StridedSlice, StridedSliceGrad, TensorStridedSliceUpdate, and gradients; the meaning of a strided slice.

A spec (begin, end, strides and masks) has one entry for each index as Python writes it, `x[..., 2, :, None]`. The
entry's bits in the masks tell an ellipsis, a new axis, a single index (shrink), and open ends. The dense spec has one
range for each dimension of the tensor.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/strided_slice_op.cc; ValidateStridedSliceOp in
core/util/strided_slice_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction, check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import random_shape, unchanged_shape
from opkernel.opdef.common_shapes.elementwise import keep_contents
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import int32_attr, require, require_vector
from opkernel.ops.registration import ALL, FLOAT8, QUANTIZED, register_kernel
from opkernel.state.lasting_values import lasting_value
from opkernel.types import DataType, PartialTensorShape, TensorShape

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


class _Axis(NamedTuple):
    """What a spec says of one dimension of the tensor."""

    begin: int
    end: int
    stride: int
    open_begin: bool
    open_end: bool
    shrink: bool


_DenseSpec = list[_Axis | None]
"""The dimensions in order, with None for each new axis between them."""

_WHOLE = _Axis(0, 0, 1, True, True, False)


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
        got = f"got shapes {TensorShape(begin)}, {TensorShape(end)}, and {TensorShape(strides)} instead."
    raise InvalidArgumentError(
        f"Expected begin, end, and strides to be 1D equal size tensors, but {got}"
    )


def strided_slice(spec: SparseSpec, shape: Sequence[int]) -> StridedSlice:
    """Apply a spec to a shape (-1 for an unknown size).

    Raises:
        InvalidArgumentError: several ellipses, more indices than dimensions, a stride of 0, or a
            single index that is out of bounds.
    """
    values_known = spec.begin is not None and spec.end is not None
    index: list[Any] = []
    final_shape = []
    sizes = enumerate(shape)
    for axis in _dense_spec(spec, len(shape)):
        if axis is None:
            index.append(None)
            final_shape.append(1)
            continue
        found = _range_of(axis, *next(sizes), values_known)
        if axis.shrink:
            index.append(found.start if found else 0)
        else:
            index.append(_as_slice(found))
            final_shape.append(_UNKNOWN if found is None else len(found))
    return StridedSlice((*index, ...), final_shape)


def entries_of_single_indices(strides: Sequence[int], masks: Masks, rank: int) -> list[int | None]:
    """For each part of the `array_index` of a slice the entry of the spec that it is, if that is a single index."""
    entries = range(len(strides))
    dense = _dense_spec(SparseSpec(entries, entries, strides, masks), rank)
    return [None if axis is None or not axis.shrink else axis.begin for axis in dense]


def _range_of(axis: _Axis, number: int, size: int, values_known: bool) -> range | None:
    """The range of a dimension; None where it is not known."""
    if axis.stride == 0:
        raise InvalidArgumentError(f"strides[{number}] must be non-zero")
    if size == _UNKNOWN:
        return None
    require(not axis.shrink or axis.stride > 0, "only stride 1 allowed on non-range indexing.")
    whole = axis.open_begin and axis.open_end and not axis.shrink
    if not (values_known or whole):
        return None
    if not axis.shrink:
        return _bounded_range(axis, size)
    index = axis.begin + size if axis.begin < 0 else axis.begin
    if not 0 <= index < size:
        raise InvalidArgumentError(f"slice index {index} of dimension {number} out of bounds.")
    return range(index, index + 1)


def _bounded_range(axis: _Axis, size: int) -> range:
    """The range of a dimension, cut to its bounds."""
    lowest, highest = (0, size) if axis.stride > 0 else (-1, size - 1)
    first, last = (lowest, highest) if axis.stride > 0 else (highest, lowest)

    def bounded(value: int) -> int:
        return min(max(value + size if value < 0 else value, lowest), highest)

    begin = first if axis.open_begin else bounded(axis.begin)
    end = last if axis.open_end else bounded(axis.end)
    return range(begin, end, axis.stride)


def _as_slice(found: range | None) -> slice:
    """The slice that takes the same elements; -1 would count from the end."""
    if not found:
        return slice(0, 0)
    return slice(found.start, None if found.stop < 0 else found.stop, found.step)


def _dense_spec(spec: SparseSpec, rank: int) -> _DenseSpec:
    """The spec without ellipsis."""
    masks, count = spec.masks, len(spec.strides)
    if masks.ellipsis & (masks.ellipsis - 1):
        raise InvalidArgumentError("Multiple ellipses in slice spec not allowed")
    ellipsis = masks.ellipsis.bit_length() - 1
    if not 0 <= ellipsis < count:
        ellipsis = count  # none is written: one at the end
    dense: _DenseSpec = []
    taken = 0
    for i in range(count):
        if i == ellipsis:
            indices_after = sum(not masks.new_axis >> j & 1 for j in range(i + 1, count))
            missing = max(rank - indices_after - taken, 0)
            dense += [_WHOLE] * missing
            taken += missing
        elif masks.new_axis >> i & 1:
            dense.append(None)
        else:
            dense.append(_index(spec, i, taken, rank))
            taken += 1
    return dense + [_WHOLE] * (rank - taken)


def _index(spec: SparseSpec, i: int, axis: int, rank: int) -> _Axis:
    """What entry `i` of the spec says of a dimension."""
    if axis == rank:
        require(rank != 0, "Attempting to slice scalar input.")
        raise InvalidArgumentError(
            f"Index out of range using input dim {axis}; input has only {rank} dims"
        )
    begin, end, strides, masks = spec
    bits = (masks.begin, masks.end, masks.shrink_axis)
    first, last = 0 if begin is None else begin[i], 0 if end is None else end[i]
    return _Axis(first, last, strides[i], *(bool(mask >> i & 1) for mask in bits))


_MASKS = tuple(f"{field}_mask" for field in Masks._fields)
MASK_ATTRS = [f"{name}: int = 0" for name in _MASKS]
SLICE_TYPES = (*ALL, *FLOAT8, *QUANTIZED)
_CACHED_SPECS = 64

_Vector = tuple[int, ...]
_Apply = Callable[[bytes, bytes, bytes, _Vector], StridedSlice]


def strided_slice_shape(c: InferenceContext) -> None:
    """The slice of the known part of the shape; needs the values of `strides`."""
    count = c.with_rank(c.input(1), 1)
    for i in (2, 3):
        count = c.merge(count, c.with_rank(c.input(i), 1))
    strides = c.input_tensor(3)
    dims = c.input(0).dims
    if dims is None or not c.value_known(c.dim(count, 0)) or strides is None:
        c.set_output(0, c.unknown_shape())
        return
    begin, end = c.input_tensor(1), c.input_tensor(2)
    check_vectors(
        None if begin is None else begin.shape, None if end is None else end.shape, strides.shape
    )
    spec = SparseSpec(_values(begin), _values(end), strides.tolist(), masks_of(c))
    sliced = strided_slice(spec, [dim.value for dim in dims])
    c.set_output(0, c.make_shape_from_partial_shape(PartialTensorShape(sliced.final_shape)))
    keep_contents(c)


def _values(vector: Any) -> list[int] | None:
    return None if vector is None else [int(value) for value in vector]


def masks_of(node: InferenceContext | OpKernelConstruction) -> Masks:
    """The masks of a node."""
    return Masks(*(int32_attr(name, node.get_attr(name)) for name in _MASKS))


STRIDED_SLICE = register_op(
    "StridedSlice(input: T, begin: Index, end: Index, strides: Index) -> output: T",
    attrs=["T: type", "Index: {int16, int32, int64}", *MASK_ATTRS],
    shape_fn=strided_slice_shape,
    traits="value_rule=strided_slice cost=linear int32_on_host function_gradient=yes",
    doc="`input[begin:end:strides]`, one entry an index; the masks have one bit an entry.",
)


def _cached_spec(construction: OpKernelConstruction) -> _Apply:
    """Applies specs of a node to shapes, and remembers the last ones."""
    masks, dtype = masks_of(construction), construction.get_attr("Index").numpy_dtype

    @lru_cache(maxsize=_CACHED_SPECS)
    def apply(begin: bytes, end: bytes, strides: bytes, shape: _Vector) -> StridedSlice:
        vectors = [np.frombuffer(vector, dtype) for vector in (begin, end, strides)]
        check_vectors(*(vector.shape for vector in vectors))
        first, last, step = (vector.tolist() for vector in vectors)
        return strided_slice(SparseSpec(first, last, step, masks), shape)

    return apply


def _applied(apply: _Apply, begin: Any, end: Any, strides: Any, shape: _Vector) -> StridedSlice:
    if not begin.ndim == end.ndim == strides.ndim == 1:
        check_vectors(begin.shape, end.shape, strides.shape)
    return apply(begin.tobytes(), end.tobytes(), strides.tobytes(), shape)


@register_kernel(
    STRIDED_SLICE,
    types={"T": SLICE_TYPES},
    host_memory=["begin", "end", "strides"],
    kind="view",
    factory=True,
)
def strided_slice_kernel(
    *, construction: OpKernelConstruction
) -> Callable[[Any, Any, Any, Any], Any]:
    """The index of the last call stays: mostly the next one has the same constants and shape."""
    apply = _cached_spec(construction)
    last: tuple[Any, ...] = (None,) * 5

    def slice_of(tensor: Any, begin: Any, end: Any, strides: Any) -> Any:
        nonlocal last
        known_begin, known_end, known_strides, shape, index = last
        if (
            begin is not known_begin
            or end is not known_end
            or strides is not known_strides
            or tensor.shape != shape
        ):
            index = _applied(apply, begin, end, strides, tensor.shape).array_index
            if None not in map(lasting_value, (begin, end, strides)):
                last = begin, end, strides, tensor.shape, index
        return tensor[index]

    return slice_of


STRIDED_SLICE_GRAD = register_op(
    "StridedSliceGrad(shape: Index, begin: Index, end: Index, strides: Index, dy: T) -> output: T",
    attrs=["T: type", "Index: {int32, int64}", *MASK_ATTRS],
    shape_fn=random_shape,
    doc="Zeros of `shape` with `dy` where StridedSlice takes its result from.",
    traits="function_gradient=yes",
)


@register_kernel(
    STRIDED_SLICE_GRAD,
    types={"T": SLICE_TYPES},
    host_memory=["shape", "begin", "end", "strides"],
    factory=True,
)
def strided_slice_grad(
    *, T: DataType, construction: OpKernelConstruction
) -> Callable[[Any, Any, Any, Any, Any], Any]:
    apply = _cached_spec(construction)

    def grad(shape: Any, begin: Any, end: Any, strides: Any, dy: Any) -> Any:
        require_vector(shape, "shape must be 1-D, got shape.shape = {}")
        sizes = check_allocation(shape.tolist(), T)
        index, expected = _applied(apply, begin, end, strides, sizes)
        if list(dy.shape) != expected:
            raise InvalidArgumentError(
                f"shape of dy was {TensorShape(dy.shape)} instead of {TensorShape(expected)}"
            )
        output = zeros(sizes, T)
        output[index] = dy
        return output

    return grad


TENSOR_STRIDED_SLICE_UPDATE = register_op(
    "TensorStridedSliceUpdate(input: T, begin: Index, end: Index, strides: Index, value: T) -> output: T",
    attrs=["T: type", "Index: {int32, int64}", *MASK_ATTRS],
    shape_fn=unchanged_shape,
    doc="`input` with `value`, broadcast, where StridedSlice takes its result from.",
)


def slice_assigner(
    T: DataType, construction: OpKernelConstruction
) -> Callable[[Any, Any, Any, Any, Any], None]:
    """For the masks of a node, what writes a value to where StridedSlice takes its result from.

    The function takes the array to write to, begin, end, strides and the value. It raises
    InvalidArgumentError where the value cannot be broadcast, or the type is not supported.
    """
    apply = _cached_spec(construction)

    def assign(output: Any, begin: Any, end: Any, strides: Any, value: Any) -> None:
        index, expected = _applied(apply, begin, end, strides, output.shape)
        if T in FLOAT8 or T in QUANTIZED:
            raise InvalidArgumentError(f"Unsupported data type: {T.string}")
        if 0 in expected:
            return
        try:
            output[index] = value
        except ValueError:
            raise InvalidArgumentError(
                f"Cannot broadcast input shape {TensorShape(value.shape)} into final shape {TensorShape(expected)}"
            ) from None

    return assign


@register_kernel(
    TENSOR_STRIDED_SLICE_UPDATE,
    types={"T": SLICE_TYPES},
    host_memory=["begin", "end", "strides"],
    factory=True,
)
def tensor_strided_slice_update(
    *, T: DataType, construction: OpKernelConstruction
) -> Callable[[Any, Any, Any, Any, Any], Any]:
    assign = slice_assigner(T, construction)

    def update(tensor: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
        output = np.array(tensor)
        assign(output, begin, end, strides, value)
        return output

    return update


@g.register_gradient("StridedSlice")
def strided_slice_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    x, *place = op.inputs
    shape = g.nodes.Shape(x, out_type=place[0].dtype)
    of_x = g.nodes.StridedSliceGrad(shape, *place, grad, **g.attrs_of(op, *_MASKS))
    return of_x, None, None, None


@g.register_gradient("StridedSliceGrad")
def strided_slice_grad_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, *place, _ = op.inputs
    return None, None, None, None, g.nodes.StridedSlice(grad, *place, **g.attrs_of(op, *_MASKS))


@g.register_gradient("TensorStridedSliceUpdate")
def tensor_strided_slice_update_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, *place, value = op.inputs
    of_part = g.nodes.StridedSlice(grad, *place, **g.attrs_of(op, *_MASKS))
    of_rest = g.nodes.TensorStridedSliceUpdate(
        grad, *place, g.zeros_like(of_part), **g.attrs_of(op, *_MASKS)
    )
    _, of_value = g.sum_to_operands(of_part, value, None, of_part)
    return of_rest, None, None, None, of_value
