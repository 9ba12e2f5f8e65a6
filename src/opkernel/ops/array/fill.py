"""Tensors made from a few numbers: Fill, ZerosLike, OnesLike, Empty, Range, LinSpace, OneHot.

Source: TensorFlow core/ops/array_ops.cc, core/ops/math_ops.cc, core/kernels/constant_op.cc, sequence_ops.cc,
inplace_ops.cc, one_hot_op.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import random_shape, unchanged_shape
from opkernel.opdef.common_shapes.elementwise import keep_contents
from opkernel.ops.input_checks import require, require_rank_at_most, require_scalar, require_vector
from opkernel.ops.registration import (
    ALL,
    ALL_QUANTIZED,
    FLOATS,
    INDEX,
    NARROW_FLOATS,
    POD,
    POD_OR_STRING,
    WIDE_FLOATS,
    register_kernel,
)
from opkernel.types import (
    Array,
    DataType,
    OpaqueVariant,
    ResourceHandle,
    TensorShape,
    object_scalar,
)

_ZEROS_OF_OBJECTS: dict[DataType, Callable[[], object]] = {
    DataType.DT_STRING: bytes,
    DataType.DT_RESOURCE: ResourceHandle,
    DataType.DT_VARIANT: OpaqueVariant,
}


_ONES_TYPES = (
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, "
    "complex64, complex128, bool}"
)


def zeros(shape: Sequence[int], dtype: DataType) -> Array:
    """An array of zeros; of empty strings or handles for the types that have no zero."""
    array = np.zeros(shape, dtype.numpy_dtype)
    if dtype in _ZEROS_OF_OBJECTS:
        array.fill(_ZEROS_OF_OBJECTS[dtype]())
    return array


ZEROS_LIKE = register_op(
    "ZerosLike(x: T) -> y: T",
    attrs=["T: type"],
    shape_fn=unchanged_shape,
    traits="value_rule=zeros_like cost=linear int32_on_host function_gradient=none",
    doc="Zeros of the shape and type of `x`.",
)

ONES_LIKE = register_op(
    "OnesLike(x: T) -> y: T",
    attrs=[_ONES_TYPES],
    shape_fn=unchanged_shape,
    traits="value_rule=ones_like cost=linear int32_on_host function_gradient=none",
    doc="Ones of the shape and type of `x`.",
)


@register_kernel(ZEROS_LIKE, types={"T": POD})
def zeros_like(x: Any, *, xp: Any) -> Any:
    return xp.zeros_like(x)


@register_kernel(ZEROS_LIKE, types={"T": DataType.DT_STRING})
def empty_strings_like(x: Any) -> Any:
    return zeros(x.shape, DataType.DT_STRING)


@register_kernel(ZEROS_LIKE, types={"T": DataType.DT_VARIANT})
def variant_zeros_like(x: Any) -> Any:
    """Variant types that have a zero say so by a method `zeros_like`."""
    require(x.ndim == 0, "ZerosLike non-scalar Tensor with dtype=DT_VARIANT is not supported.")
    return object_scalar(_variant_zero(x.item()))


def _variant_zero(value: object) -> object:
    zero = getattr(value, "zeros_like", None)
    if zero is None:
        raise InternalError(
            "No unary variant unary_op function found for op ZEROS_LIKE Variant type_name: "
            f"{getattr(value, 'type_name', type(value).__name__)}"
        )
    return zero()


@register_kernel(ONES_LIKE, types={"T": POD})
def ones_like(x: Any, *, xp: Any) -> Any:
    return xp.ones_like(x)


_INT64_MAX = 2**63 - 1
_SCALAR_SHAPES = ((), (1,))  # old graphs write a scalar as a vector


def fill_shape(c: InferenceContext) -> None:
    """The value of `dims`."""
    c.with_rank(c.input(0), 1)
    c.with_rank(c.input(1), 0)
    dims = c.input_tensor(0)
    if dims is not None and any(size < 0 for size in dims.reshape(-1).tolist()):
        raise InvalidArgumentError("Fill dimensions must be >= 0")
    c.set_output(0, c.make_shape_from_shape_tensor(0))
    keep_contents(c, source=1)


FILL = register_op(
    "Fill(dims: index_type, value: T) -> output: T",
    attrs=["T: type", "index_type: {int32, int64} = DT_INT32"],
    shape_fn=fill_shape,
    traits="value_rule=fill cost=linear int32_on_host function_gradient=yes",
    doc="A tensor of shape `dims` with `value` everywhere.",
)


@register_kernel(
    FILL,
    types={"T": (*ALL, *ALL_QUANTIZED, DataType.DT_INT4, DataType.DT_UINT4), "index_type": INDEX},
    host_memory=["dims"],
)
def fill(dims: Any, value: Any, *, T: DataType, xp: Any) -> Any:
    # old graphs write one size without brackets
    require_rank_at_most(dims, 1, "dims must represent a vector, got shape {}")
    if value.shape not in _SCALAR_SHAPES:
        raise InvalidArgumentError(
            f"value must represent a scalar, got shape {TensorShape(value.shape)}"
        )
    shape = check_allocation(dims.reshape(-1).tolist(), T)
    if xp is not np:
        return xp.full(shape, value)
    output = np.empty(shape, T.numpy_dtype)
    output[...] = value
    return output


def range_shape(c: InferenceContext) -> None:
    """As many elements as lie between `start` and `limit`."""
    _check_scalars(c, "start", "limit", "delta")
    values = [c.input_tensor(i) for i in range(3)]
    is_known = all(value is not None for value in values)
    c.set_output(0, c.vector(range_size(*values) if is_known else None))


def _check_scalars(c: InferenceContext, *names: str) -> None:
    for i, name in enumerate(names):
        try:
            c.with_rank(c.input(i), 0)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{error.message} for '{name}'") from error


def range_size(start: Any, limit: Any, delta: Any) -> int:
    """The number of elements of a Range.

    Raises:
        InvalidArgumentError: `delta` is 0 or leads away from `limit`.
    """
    start, limit, delta = (_number(value) for value in (start, limit, delta))
    if delta == 0:
        raise InvalidArgumentError(f"Requires delta != 0: {delta}")
    if delta > 0 and not start <= limit:
        raise InvalidArgumentError(f"Requires start <= limit when delta > 0: {start}/{limit}")
    if not delta > 0 and not start >= limit:
        raise InvalidArgumentError(f"Requires start >= limit when delta < 0: {start}/{limit}")
    if isinstance(delta, int):
        size: float = -(-abs(limit - start) // abs(delta))
    else:
        size = float(np.ceil(np.abs((limit - start) / delta)))
    if not size <= _INT64_MAX:
        raise InvalidArgumentError(f"Requires ((limit - start) / delta) <= {_INT64_MAX}")
    return int(size)


def _number(value: Any) -> Any:
    """An int for an integer scalar, whose arithmetic cannot overflow."""
    return value.item() if value.dtype.kind in "iu" else value.reshape(())[()]


RANGE = register_op(
    "Range(start: Tidx, limit: Tidx, delta: Tidx) -> output: Tidx",
    attrs=[
        "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = DT_INT32"
    ],
    shape_fn=range_shape,
    traits="value_rule=range cost=linear int32_on_host function_gradient=none",
    doc="The numbers from `start` up to, not including, `limit` in steps of `delta`.",
)


@register_kernel(RANGE, types={"Tidx": (*FLOATS, *INDEX)}, host_memory=["start", "limit", "delta"])
def range_of(start: Any, limit: Any, delta: Any, *, Tidx: DataType, xp: Any) -> Any:
    for name, value in (("start", start), ("limit", limit), ("delta", delta)):
        if value.shape not in _SCALAR_SHAPES:
            raise InvalidArgumentError(
                f"{name} must be a scalar, not shape {TensorShape(value.shape)}"
            )
    (size,) = check_allocation([range_size(start, limit, delta)], Tidx)
    if xp is not np or Tidx in NARROW_FLOATS:
        return start + xp.arange(size).astype(Tidx.numpy_dtype) * delta
    numbers = np.arange(size, dtype=Tidx.numpy_dtype)
    if delta != 1:
        numbers *= delta
    if start != 0 or Tidx.is_floating:  # which makes 0 of -0
        numbers += start
    return numbers


def lin_space_shape(c: InferenceContext) -> None:
    """`num` elements."""
    _check_scalars(c, "start", "stop", "num")
    num = c.input_tensor(2)
    c.set_output(0, c.vector(None if num is None else checked_count(num)))


def checked_count(num: Any) -> int:
    """The value of an input `num`; raises InvalidArgumentError unless it is positive."""
    count: int = num.item()
    require(count > 0, f"Requires num > 0: {count}")
    return count


LIN_SPACE = register_op(
    "LinSpace(start: T, stop: T, num: Tidx) -> output: T",
    attrs=["T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32"],
    shape_fn=lin_space_shape,
    doc="`num` numbers from `start` to `stop`, both included, at equal distances.",
    traits="cost=linear function_gradient=none",
)


@register_kernel(
    LIN_SPACE,
    types={"T": WIDE_FLOATS, "Tidx": INDEX},
    host_memory=["start", "stop", "num", "output"],
    factory=True,
)
def lin_space(*, T: DataType) -> Callable[[Any, Any, Any], Any]:
    def numbers(start: Any, stop: Any, num: Any) -> Any:
        for name, value in (("start", start), ("stop", stop), ("num", num)):
            require_scalar(value, f"{name} must be a scalar, not shape {{}}")
        (size,) = check_allocation([checked_count(num)], T)
        step = (stop - start) / T.numpy_dtype.type(max(size - 1, 1))
        output = start + step * np.arange(size, dtype=T.numpy_dtype)
        output[0] = start
        if size > 1:
            output[-1] = stop
        return output

    return numbers


@g.register_gradient("Fill")
def fill_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return None, g.nodes.Sum(grad, g.nodes.Range(0, g.nodes.Rank(grad), 1))


EMPTY = register_op(
    "Empty(shape: int32) -> output: dtype",
    attrs=["dtype: type", "init: bool = false"],
    is_stateful=True,
    shape_fn=random_shape,
    doc="A tensor of a shape. Its elements are zeros; in TensorFlow they may be anything without `init`.",
)


@register_kernel(EMPTY, types={"dtype": POD_OR_STRING}, host_memory=["shape"])
def empty(shape: Any, *, dtype: DataType) -> Any:
    require_vector(shape, "shape must be a vector of int32, got shape {}")
    return zeros(check_allocation(shape.tolist(), dtype), dtype)


def one_hot_shape(c: InferenceContext) -> None:
    """The shape of `indices` with a dimension of size `depth` at `axis`."""
    axis: int = c.get_attr("axis")
    require(axis >= -1, "axis must be >= -1")
    depth = c.make_dim_for_scalar_input(1)
    indices = c.input(0)
    if indices.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    rank = len(indices.dims) + 1
    at = (axis + rank) % rank
    front, back = c.subshape(indices, 0, at), c.subshape(indices, at)
    c.set_output(0, c.concatenate(c.concatenate(front, c.vector(depth)), back))


ONE_HOT = register_op(
    "OneHot(indices: TI, depth: int32, on_value: T, off_value: T) -> output: T",
    attrs=["axis: int = -1", "T: type", "TI: {uint8, int8, int32, int64} = DT_INT64"],
    shape_fn=one_hot_shape,
    doc="""`off_value` everywhere but at the places along `axis` that `indices` name: `on_value`.

    The dimension `axis` is new and of size `depth`; -1 makes it the last.""",
    traits="cost=linear",
)


@register_kernel(
    ONE_HOT,
    types={"T": ALL, "TI": (DataType.DT_UINT8, DataType.DT_INT8, *INDEX)},
    host_memory=["depth"],
)
def one_hot(
    indices: Any, depth: Any, on_value: Any, off_value: Any, *, axis: int, T: DataType, xp: Any
) -> Any:
    rank = indices.ndim
    require(
        -1 <= axis <= rank, f"Expected axis to be -1 or between [0, {rank}].  But received: {axis}"
    )
    scalars = {"depth": depth, "on_value": on_value, "off_value": off_value}
    for name, value in scalars.items():
        require_scalar(value, f"{name} must be a scalar, but got: {{}}")
    size = depth.item()
    require(size >= 0, f"depth must be non-negative, got: {size}")
    at = rank if axis == -1 else axis
    shape = check_allocation((*indices.shape[:at], size, *indices.shape[at:]), T)
    if xp is np:
        return _filled(indices, shape, at, (on_value, off_value))
    places = xp.arange(size).reshape((size, *[1] * (rank - at)))
    return xp.where(xp.expand_dims(indices, at) == places, on_value, off_value)


def _filled(indices: Any, shape: tuple[int, ...], at: int, values: tuple[Any, Any]) -> Any:
    """The output, by setting only the elements that are on; indices out of range set nothing."""
    on_value, off_value = values
    output = np.empty(shape, on_value.dtype)
    output[...] = off_value
    blocks = output.reshape((math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :])))
    places = indices.reshape((blocks.shape[0], blocks.shape[2]))
    before, after = np.nonzero((places >= 0) & (places < shape[at]))
    blocks[before, places[before, after], after] = on_value
    return output
