"""Other shapes of the same elements: Reshape, Squeeze, ExpandDims.

They are views, never copies of an array whose elements lie in order.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/reshape_op.h, shape_ops.h.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.shapes.shape_handles import DimensionHandle, ShapeHandle
from opkernel.ops.input_checks import require_equal, require_rank_at_most
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.registration import register_kernel
from opkernel.types import MAX_DIMENSIONS, TensorShape

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
                f"Cannot reshape a tensor with {have} elements to shape {c.debug_string(out)} "
                f"({want} elements)"
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
    "Reshape",
    inputs=["tensor: T", "shape: Tshape"],
    outputs=["output: T"],
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
            f"Input to reshape is a tensor with {tensor.size} values, but the requested shape "
            f"has {math.prod(sizes)}"
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
        if not -rank <= dim < rank:
            raise InvalidArgumentError(f"squeeze_dims[{i}] not in [{-rank},{rank}).")
    return frozenset(dim + rank if dim < 0 else dim for dim in squeeze_dims)


SQUEEZE = register_op(
    "Squeeze",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["T: type", "squeeze_dims: list(int) >= 0 = []"],
    shape_fn=squeeze_shape,
    traits="reshapes cannot_fail value_rule=squeeze int32_on_host function_gradient=yes",
    doc="`input` without the dimensions `squeeze_dims`, or without all dimensions of size 1.",
)


@register_kernel(SQUEEZE, kind="view", factory=True)
def squeeze(*, squeeze_dims: list[int]) -> Callable[[Any], Any]:
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
                    f"Can not squeeze dim[{dim % rank}], expected a dimension of 1, "
                    f"got {shape[dim]}"
                )
            shape[dim] = None
        return tuple(size for size in shape if size is not None)

    return lambda tensor: tensor.reshape(rest_of(tensor.shape))


def expand_dims_shape(c: InferenceContext) -> None:
    """With a dimension of size 1 before dimension `dim`."""
    tensor = c.input(0)
    dim = c.input_tensor(1)
    if dim is not None and dim.size != 1:
        raise InvalidArgumentError("'dim' input must be a tensor with a single value")
    if dim is None or tensor.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    axis, rank = int(dim.item()), len(tensor.dims)
    if not -rank - 1 <= axis <= rank:
        raise InvalidArgumentError(f"dim {axis} not in the interval [{-rank - 1}, {rank}].")
    axis += rank + 1 if axis < 0 else 0
    c.set_output(0, c.make_shape((*tensor.dims[:axis], 1, *tensor.dims[axis:])))


EXPAND_DIMS = register_op(
    "ExpandDims",
    inputs=["input: T", "dim: Tdim"],
    outputs=["output: T"],
    attrs=["T: type", "Tdim: {int32, int64} = DT_INT32"],
    shape_fn=expand_dims_shape,
    traits="reshapes cannot_fail value_rule=expand_dims row_rule=with_axis int32_on_host function_gradient=yes",
    doc="`input` with a dimension of size 1 before dimension `dim`; from the end if negative.",
)


@register_kernel(EXPAND_DIMS, types={"Tdim": INDEX}, host_memory=["dim"], kind="view")
def expand_dims(tensor: Any, dim: Any) -> Any:
    require_equal(dim.size, 1, "'dim' must be a tensor with a single value")
    axis, rank = dim.item(), tensor.ndim
    if not -rank - 1 <= axis <= rank:
        raise InvalidArgumentError(
            f"Tried to expand dim index {axis} for tensor with {rank} dimensions."
        )
    axis += rank + 1 if axis < 0 else 0
    shape = tensor.shape
    return tensor.reshape((*shape[:axis], 1, *shape[axis:]))


@g.register_gradient("Reshape", "ExpandDims")
def reshape_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return _as_input(op, grad), None


@g.register_gradient("Squeeze")
def squeeze_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return _as_input(op, grad)


def _as_input(op: g.Operation, grad: g.Tensor) -> Any:
    """The gradient in the shape of the input."""
    x = op.inputs[0]
    dims = x.shape.dims
    if dims is not None and dims.count(None) == 1 and 0 not in dims:
        return g.nodes.Reshape(grad, [-1 if size is None else size for size in dims])
    return g.nodes.Reshape(grad, g.shape_of(x))
