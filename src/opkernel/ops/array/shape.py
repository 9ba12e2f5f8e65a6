"""Shapes and other shapes of tensors: Shape, ShapeN, Size, Rank, Reshape, Squeeze, ExpandDims, EnsureShape.

UnravelIndex gives places in a flat tensor as indices along its dimensions. Reshaped tensors are views, never copies of
an array whose elements lie in order.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/shape_ops.h, reshape_op.h, unravel_index_op.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import allocate
from opkernel.opdef import InferenceContext, full_type, register_op
from opkernel.opdef.common_shapes import scalar_shape
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.opdef.full_type import FullTypeId
from opkernel.opdef.shapes.shape_handles import DimensionHandle, ShapeHandle
from opkernel.ops.input_checks import require, require_equal, require_rank_at_most, require_vector
from opkernel.ops.registration import INDEX, register_kernel
from opkernel.types import MAX_DIMENSIONS, DataType, PartialTensorShape, TensorShape, as_dtype

_OUT_TYPE = "out_type: {int32, int64} = DT_INT32"


def shape_shape(c: InferenceContext) -> None:
    """Each output is a vector as long as the rank of its input."""
    set_outputs(c, [c.vector(c.rank(c.input(i))) for i in range(c.num_inputs())])


SHAPE = register_op(
    "Shape(input: T) -> output: out_type",
    attrs=["T: type", _OUT_TYPE],
    shape_fn=shape_shape,
    traits="reads_shapes_only value_rule=sizes function_gradient=none",
    type_constructor=full_type.unary(FullTypeId.TFT_SHAPE_TENSOR, "out_type"),
    doc="The shape of `input`, as a vector.",
)

SHAPE_N = register_op(
    "ShapeN(input: N * T) -> output: N * out_type",
    attrs=["N: int >= 1", "T: type", _OUT_TYPE],
    shape_fn=shape_shape,
    traits="reads_shapes_only value_rule=sizes",
    doc="The shape of each tensor of `input`, as a vector.",
)

SIZE = register_op(
    "Size(input: T) -> output: out_type",
    attrs=["T: type", _OUT_TYPE],
    shape_fn=scalar_shape,
    traits="reads_shapes_only value_rule=count function_gradient=none",
    doc="The number of elements of `input`.",
)

RANK = register_op(
    "Rank(input: T) -> output: int32",
    attrs=["T: type"],
    shape_fn=scalar_shape,
    traits="reads_shapes_only value_rule=rank function_gradient=none",
    doc="The number of dimensions of `input`.",
)


@register_kernel(SHAPE, types={"out_type": INDEX}, host_memory=["output"], factory=True)
def shape(*, out_type: DataType) -> Callable[[Any], Any]:
    dtype = out_type.numpy_dtype

    def shape_of(tensor: Any) -> Any:
        try:
            return np.array(tensor.shape, dtype)
        except OverflowError:
            index, size = max(enumerate(tensor.shape), key=lambda item: item[1])
            raise InvalidArgumentError(
                f"Shape output type is 32-bit  but dim {index} is {size}"
            ) from None

    return shape_of


@register_kernel(SHAPE_N, types={"out_type": INDEX}, host_memory=["output"], factory=True)
def shape_n(*, out_type: DataType) -> Callable[[list[Any]], list[Any]]:
    shape_of = shape(out_type=out_type)
    return lambda tensors: [shape_of(tensor) for tensor in tensors]


@register_kernel(SIZE, types={"out_type": INDEX}, host_memory=["output"], factory=True)
def size(*, out_type: DataType) -> Callable[[Any], Any]:
    scalar = out_type.numpy_dtype.type

    def size_of(tensor: Any) -> Any:
        try:
            return scalar(tensor.size)
        except OverflowError:
            raise InvalidArgumentError(
                f"Number of elements was larger than representable by 32-bit output type: {tensor.size}"
            ) from None

    return size_of


@register_kernel(RANK, host_memory=["output"])
def rank(tensor: Any) -> Any:
    return np.int32(tensor.ndim)


_CACHED_SHAPES = 64


def reshape_shape(c: InferenceContext) -> None:
    """The value of `shape`; one unknown size follows from the number of elements."""
    out = c.make_shape_from_shape_tensor(1)
    tensor = c.input(0)
    if c.rank_known(out) and c.rank_known(tensor):
        out = _with_inferred_dim(c, tensor, out)
    c.set_output(0, out)


def _with_inferred_dim(c: InferenceContext, tensor: ShapeHandle, out: ShapeHandle) -> ShapeHandle:
    """`out` with its unknown dimension filled in, if it has one and that follows."""
    known_out, unknown_out = _known_elements(c, out)
    known_in, unknown_in = _known_elements(c, tensor)
    have, want = known_in.value, known_out.value
    if len(unknown_in) > 1 or len(unknown_out) > 1:
        return out
    if not unknown_in and not unknown_out:
        if have != want:
            raise InvalidArgumentError(
                f"Cannot reshape a tensor with {have} elements to shape {c.debug_string(out)} ({want} elements)"
            )
    elif not unknown_in:
        if want > 0:
            return c.replace_dim(out, unknown_out[0], c.divide(known_in, want, True))
    elif not unknown_out:
        if have != 0:
            c.merge(c.dim(tensor, unknown_in[0]), c.divide(known_out, have, True))
    elif have == want:
        return c.replace_dim(out, unknown_out[0], c.dim(tensor, unknown_in[0]))
    return out


def _known_elements(c: InferenceContext, shape: ShapeHandle) -> tuple[DimensionHandle, list[int]]:
    """The product of the known dimensions, and which are unknown; none is if the product is 0."""
    total = c.num_elements(shape)
    if c.value_known(total):
        return total, []
    dims = shape.dims or ()
    unknown = [i for i, dim in enumerate(dims) if not c.value_known(dim)]
    product = c.make_dim(1)
    for dim in dims:
        product = c.multiply(product, dim) if c.value_known(dim) else product
    return product, unknown


RESHAPE = register_op(
    "Reshape(tensor: T, shape: Tshape) -> output: T",
    attrs=["T: type", "Tshape: {int32, int64} = DT_INT32"],
    shape_fn=reshape_shape,
    traits="reshapes cannot_fail value_rule=reshape row_rule=reshaped int32_on_host function_gradient=yes",
    doc="The elements of `tensor`, in order, in a tensor of `shape`; one size may be -1.",
)


@register_kernel(RESHAPE, types={"Tshape": INDEX}, host_memory=["shape"], kind="view")
def reshape(tensor: Any, shape: Any) -> Any:
    if shape.size > MAX_DIMENSIONS:  # one too many is as wrong as a million
        shape = shape[: MAX_DIMENSIONS + 1]
    sizes = shape.tolist()
    if shape.ndim == 0:  # old graphs write one size without brackets
        sizes = [sizes]
    try:
        if not sizes or min(sizes) >= -1:
            return tensor.reshape(sizes)
    except (ValueError, TypeError):
        pass
    require_rank_at_most(shape, 1, "sizes input must be 1-D, not {}")
    return _reshape_with_care(tensor, sizes)


def _reshape_with_care(tensor: Any, sizes: list[int]) -> Any:
    """Reshape where NumPy refuses: TensorFlow's rule for empty tensors, or its error.

    Where one of the given sizes is 0, zeros count neither among them nor in the shape of the
    tensor when the size that is -1 is worked out.
    """
    at = _unknown_size(sizes)
    TensorShape(size for size in sizes if size >= 0)  # too many dimensions or elements
    known = math.prod(size for size in sizes if size > 0)
    if at is not None:
        has_zero = 0 in sizes
        count = math.prod(n for n in tensor.shape if n) if has_zero else tensor.size
        if count % known and not has_zero:
            raise InvalidArgumentError(
                f"Input to reshape is a tensor with {count} values, but the requested shape "
                f"requires a multiple of {known}"
            )
        sizes[at] = count // known
    if math.prod(sizes) != tensor.size:
        raise InvalidArgumentError(
            f"Input to reshape is a tensor with {tensor.size} values, but the requested shape has {math.prod(sizes)}"
        )
    return tensor.reshape(sizes)


def _unknown_size(sizes: list[int]) -> int | None:
    """Where the one -1 is, if there is one."""
    at = None
    for i, size in enumerate(sizes):
        if size < -1:
            raise InvalidArgumentError(f"Size {i} must be non-negative, not {size}")
        if size == -1:
            if at is not None:
                raise InvalidArgumentError(f"Only one input size may be -1, not both {at} and {i}")
            at = i
    return at


def squeeze_shape(c: InferenceContext) -> None:
    """Without the dimensions of `squeeze_dims`, which must be 1; without any 1 if that is empty."""
    dims = c.input(0).dims
    if dims is None:
        c.set_output(0, c.unknown_shape())
        return
    chosen = _squeezed_axes(c.get_attr("squeeze_dims"), len(dims))
    kept = []
    for i, dim in enumerate(dims):
        if not chosen and not c.value_known(dim):
            c.set_output(0, c.unknown_shape())
            return
        if chosen and i in chosen and c.value_known(dim) and dim.value != 1:
            raise InvalidArgumentError(
                f"Can not squeeze dim[{i}], expected a dimension of 1, got {dim.value}"
            )
        if i not in chosen if chosen else dim.value != 1:
            kept.append(dim)
    c.set_output(0, c.make_shape(kept))


def _squeezed_axes(squeeze_dims: Sequence[int], rank: int) -> frozenset[int]:
    for i, dim in enumerate(squeeze_dims):
        require(-rank <= dim < rank, f"squeeze_dims[{i}] not in [{-rank},{rank}).")
    return frozenset(dim + rank if dim < 0 else dim for dim in squeeze_dims)


SQUEEZE = register_op(
    "Squeeze(input: T) -> output: T",
    attrs=["T: type", "squeeze_dims: list(int) >= 0 = []"],
    shape_fn=squeeze_shape,
    traits="reshapes cannot_fail value_rule=squeeze int32_on_host function_gradient=yes",
    doc="`input` without the dimensions `squeeze_dims`, or without all dimensions of size 1.",
)


@register_kernel(SQUEEZE, kind="view", factory=True)
def squeeze(*, squeeze_dims: list[int], T: DataType) -> Callable[[Any], Any]:
    require(T != DataType.DT_VARIANT, "Squeeze on Variant not supported")
    if not squeeze_dims:
        return lambda tensor: tensor.reshape([size for size in tensor.shape if size != 1])

    @lru_cache(maxsize=_CACHED_SHAPES)
    def rest_of(sizes: tuple[int, ...]) -> tuple[int, ...]:
        shape: list[int | None] = list(sizes)
        rank = len(shape)
        for dim in squeeze_dims:
            if not -rank <= dim < rank:
                raise InvalidArgumentError(
                    f"Tried to squeeze dim index {dim} for tensor with {rank} dimensions."
                )
            if shape[dim] not in (1, None):
                raise InvalidArgumentError(
                    f"Can not squeeze dim[{dim % rank}], expected a dimension of 1, got {shape[dim]}"
                )
            shape[dim] = None
        return tuple(size for size in shape if size is not None)

    return lambda tensor: tensor.reshape(rest_of(tensor.shape))


def expand_dims_shape(c: InferenceContext) -> None:
    """With a dimension of size 1 before dimension `dim`."""
    tensor = c.input(0)
    dim = c.input_tensor(1)
    require(dim is None or dim.size == 1, "'dim' input must be a tensor with a single value")
    if dim is None or tensor.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    axis, rank = int(dim.item()), len(tensor.dims)
    require(-rank - 1 <= axis <= rank, f"dim {axis} not in the interval [{-rank - 1}, {rank}].")
    axis += rank + 1 if axis < 0 else 0
    c.set_output(0, c.make_shape((*tensor.dims[:axis], 1, *tensor.dims[axis:])))


EXPAND_DIMS = register_op(
    "ExpandDims(input: T, dim: Tdim) -> output: T",
    attrs=["T: type", "Tdim: {int32, int64} = DT_INT32"],
    shape_fn=expand_dims_shape,
    traits="reshapes cannot_fail value_rule=expand_dims row_rule=with_axis int32_on_host function_gradient=yes",
    doc="`input` with a dimension of size 1 before dimension `dim`; from the end if negative.",
)


@register_kernel(EXPAND_DIMS, types={"Tdim": INDEX}, host_memory=["dim"], kind="view")
def expand_dims(tensor: Any, dim: Any, *, T: DataType) -> Any:
    require(T != DataType.DT_VARIANT, "ExpandDims on Variant not supported")
    require_equal(dim.size, 1, "'dim' must be a tensor with a single value")
    axis, rank = dim.item(), tensor.ndim
    if not -rank - 1 <= axis <= rank:
        raise InvalidArgumentError(
            f"Tried to expand dim index {axis} for tensor with {rank} dimensions."
        )
    axis += rank + 1 if axis < 0 else 0
    shape = tensor.shape
    return tensor.reshape((*shape[:axis], 1, *shape[axis:]))


g.register_gradient("Reshape", "ExpandDims")(lambda op, grad: (_as_input(op, grad), None))
g.register_gradient("Squeeze")(lambda op, grad: _as_input(op, grad))
g.register_gradient("EnsureShape")(lambda op, grad: grad)


def _as_input(op: g.Operation, grad: g.Tensor) -> Any:
    """The gradient in the shape of the input."""
    x = op.inputs[0]
    dims = x.shape.dims
    if dims is not None and dims.count(None) == 1 and 0 not in dims:
        return g.nodes.Reshape(grad, [-1 if size is None else size for size in dims])
    return g.nodes.Reshape(grad, g.shape_of(x))


def ensure_shape_shape(c: InferenceContext) -> None:
    """The shape of `input`, with the facts of the attr `shape`."""
    wanted = c.make_shape_from_partial_shape(c.get_attr("shape"))
    c.set_output(0, c.merge(wanted, c.with_rank(c.input(0), c.rank(wanted))))


ENSURE_SHAPE = register_op(
    "EnsureShape(input: T) -> output: T",
    attrs=["shape: shape", "T: type"],
    shape_fn=ensure_shape_shape,
    traits="value_rule=forward int32_on_host",
    doc="`input`, which must have a shape that agrees with `shape`.",
)


@register_kernel(ENSURE_SHAPE, kind="view")
def ensure_shape(tensor: Any, *, shape: PartialTensorShape) -> Any:
    actual = TensorShape(tensor.shape)
    if not shape.is_compatible_with(actual):
        raise InvalidArgumentError(
            f"Shape of tensor input {actual} is not compatible with expected shape {shape}."
        )
    return tensor


def unravel_index_shape(c: InferenceContext) -> None:
    """A row for each dimension: a scalar for a scalar index, else as many as there are indices."""
    indices, dims = c.input(0), c.with_rank(c.input(1), 1)
    if not c.rank_known(indices):
        c.set_output(0, c.unknown_shape())
    elif c.rank(indices) == 0:
        c.set_output(0, c.vector(c.dim(dims, 0)))
    else:
        c.set_output(0, c.matrix(c.dim(dims, 0), c.num_elements(indices)))


UNRAVEL_INDEX = register_op(
    "UnravelIndex(indices: Tidx, dims: Tidx) -> output: Tidx",
    attrs=["Tidx: {int32, int64} = DT_INT32"],
    shape_fn=unravel_index_shape,
    doc="For each of the `indices` into the elements of a tensor of shape `dims` its coordinates.",
)


_AT_ONCE = 1 << 18
"""So many coordinates are computed at once."""


@register_kernel(UNRAVEL_INDEX, types={"Tidx": INDEX})
def unravel_index(indices: Any, dims: Any) -> Any:
    _check_unravelled(indices, dims)
    parts = _sizes_of_parts(dims)
    require(not (indices >= parts[0]).any(), "index is out of bound as with dims")
    parts = parts.reshape(-1, *(1 for _ in indices.shape))
    output = allocate((dims.size, *indices.shape), as_dtype(dims.dtype))
    step = max(_AT_ONCE // indices.size, 1)
    for start in in_time(range(0, dims.size, step), SLOW):
        some = slice(start, start + step)
        whole, stride = parts[:-1][some], parts[1:][some]
        # Negative indices divide as in C++, towards zero.
        output[some] = (np.fmod(indices, whole) - np.fmod(indices, stride)) // stride
    return output


def _sizes_of_parts(dims: Any) -> Any:
    """How many elements there are, and then in a part of each dimension."""
    limit = np.iinfo(dims.dtype).max
    parts = [1]
    for size in reversed(dims.tolist()):
        parts.append(parts[-1] * size)
        if parts[-1] > limit:
            raise InvalidArgumentError(
                f"Input dims product is causing integer overflow: {dims.tolist()}"
            )
    return np.array(parts[::-1], dims.dtype)


def _check_unravelled(indices: Any, dims: Any) -> None:
    require_rank_at_most(indices, 1, 'The indices can only be scalar or vector, got "{}"')
    require(indices.size, "received empty tensor indices")
    require_vector(dims, 'The indices can only be 1-D, got "{}"')
    for i, size in enumerate(dims.tolist()):
        if size == 0:
            raise InvalidArgumentError(
                f"Input dims cannot contain a dim of zero, but dims contains zero at index {i}"
            )
        require(size >= 0, f"Input dims cannot be negative. Got dim = {size} at index {i}")
