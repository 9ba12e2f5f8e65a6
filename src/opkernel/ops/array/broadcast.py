"""Repetition of tensors to larger shapes, and the rules of broadcasting.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/tile_ops.cc, broadcast_to_op.cc, bcast_ops.cc,
core/util/bcast.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unknown_shape
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require_vector
from opkernel.ops.registration import ALL, FLOAT8, INDEX, POD_OR_STRING, register_kernel
from opkernel.types import DataType, TensorShape


def tile_shape(c: InferenceContext) -> None:
    """Each dimension times its multiple."""
    tensor, multiples = c.input(0), c.make_shape_from_shape_tensor(1)
    if tensor.dims is not None:
        rank = len(tensor.dims)
        multiples = c.with_rank(multiples, rank)
        c.merge(c.input(1), c.vector(rank))
    if multiples.dims is None:
        unknown_shape(c)
        return
    tensor = c.with_rank(tensor, len(multiples.dims))
    pairs = zip(tensor.dims or (), multiples.dims, strict=True)
    c.set_output(0, c.make_shape([c.multiply(dim, multiple) for dim, multiple in pairs]))


TILE = register_op(
    "Tile(input: T, multiples: Tmultiples) -> output: T",
    attrs=["T: type", "Tmultiples: {int32, int64} = DT_INT32"],
    shape_fn=tile_shape,
    traits="value_rule=tile cost=linear int32_on_host",
    doc="`input` repeated `multiples[i]` times along dimension i.",
)

_TILE_TYPES = {*POD_OR_STRING, DataType.DT_VARIANT} - {DataType.DT_UINT16}
"""The kernel is registered for every type, and refuses the others when it has to repeat."""


@register_kernel(TILE, types={"Tmultiples": INDEX}, host_memory=["multiples"])
def tile(tensor: Any, multiples: Any, *, T: DataType, xp: Any) -> Any:
    shape = tensor.shape
    counts = _checked_multiples(shape, multiples)
    sizes = [size * count for size, count in zip(shape, counts, strict=True)]
    check_allocation(sizes, T)
    if all(count == 1 for count in counts):
        return tensor.copy()
    if 0 in sizes:
        return zeros(sizes, T)
    if T not in _TILE_TYPES:
        raise UnimplementedError(
            f"TileOp : The input data type is not supported, DataType : {T.string}, Dimension : {len(shape)}"
        )
    blocks = tensor.reshape([n for size in shape for n in (1, size)])
    repeated = [n for pair in zip(counts, shape, strict=True) for n in pair]
    result = xp.reshape(xp.broadcast_to(blocks, repeated), sizes)
    is_view = all(count == 1 or size == 1 for count, size in zip(counts, shape, strict=True))
    return xp.asarray(result, copy=True) if is_view else result


def _checked_multiples(shape: Sequence[int], multiples: Any) -> list[int]:
    require_vector(multiples, "Expected multiples to be 1-D, but got shape {}")
    if len(multiples) != len(shape):
        raise InvalidArgumentError(
            f"Expected multiples argument to be a vector of length {len(shape)} but got length {len(multiples)}"
        )
    counts: list[int] = multiples.tolist()
    for i, count in enumerate(counts):
        if count < 0:
            raise InvalidArgumentError(f"Expected multiples[{i}] >= 0, but got {count}")
    return counts


TILE_GRAD = register_op(
    "TileGrad(input: T, multiples: int32) -> output: T",
    attrs=["T: type"],
    shape_fn=unknown_shape,
    deprecated=(3, "TileGrad has been replaced with reduce_sum"),
    doc="The sum of the parts that Tile repeats.",
)


@register_kernel(TILE_GRAD, types={"Tmultiples": INDEX}, host_memory=["multiples"])
def tile_grad(tensor: Any, multiples: Any) -> Any:
    """As in TensorFlow no node finds this kernel: it is constrained on an attr that none has."""
    counts = _checked_multiples(tensor.shape, multiples)
    pairs = zip(counts, tensor.shape, strict=True)
    blocks = tensor.reshape([n for count, size in pairs for n in (count, size // count)])
    return blocks.sum(axis=tuple(range(0, blocks.ndim, 2)), dtype=tensor.dtype)


def broadcast_to_shape(c: InferenceContext) -> None:
    """The value of `shape`; where it is unknown, sizes of the input that are greater than 1."""
    c.with_rank(c.input(1), 1)
    out, tensor = c.make_shape_from_shape_tensor(1), c.input(0)
    if out.dims is None or tensor.dims is None:
        c.set_output(0, out)
        return
    tensor = c.with_rank_at_most(tensor, len(out.dims))
    for i, dim in enumerate(reversed(tensor.dims or ()), 1):
        if c.value(dim) > 1:
            out = c.replace_dim(out, -i, c.merge(dim, c.dim(out, -i)))
    c.set_output(0, out)


BROADCAST_TO = register_op(
    "BroadcastTo(input: T, shape: Tidx) -> output: T",
    attrs=["T: type", "Tidx: {int32, int64} = DT_INT32"],
    shape_fn=broadcast_to_shape,
    traits="value_rule=broadcast_to cost=linear function_gradient=yes",
    doc="`input` repeated along its dimensions of size 1, and new ones before them, to `shape`.",
)


@register_kernel(BROADCAST_TO, types={"T": (*ALL, *FLOAT8)}, kind="view")
def broadcast_to(tensor: Any, shape: Any, *, T: DataType, xp: Any) -> Any:
    require_vector(shape, "shape must be a vector of {int32,int64}, got shape {}")
    if tensor.ndim > len(shape):
        raise InvalidArgumentError(
            f"Rank of input ({tensor.ndim}) must be no greater than rank of output shape ({len(shape)})."
        )
    sizes = check_allocation(shape.tolist(), T)
    try:
        return xp.broadcast_to(tensor, sizes)
    except ValueError:
        raise InvalidArgumentError(
            f"Incompatible shapes: {TensorShape(tensor.shape)} vs. {TensorShape(sizes)}"
        ) from None


def broadcast_args_shape(c: InferenceContext) -> None:
    """As long as the longer of the two."""
    lengths = [c.value(c.dim(c.with_rank(c.input(i), 1), 0)) for i in (0, 1)]
    c.set_output(0, c.vector(None if -1 in lengths else max(lengths)))


BROADCAST_ARGS = register_op(
    "BroadcastArgs(s0: T, s1: T) -> r0: T",
    attrs=["T: {int32, int64} = DT_INT32"],
    shape_fn=broadcast_args_shape,
    traits="value_rule=broadcast_args cost=linear",
    doc="The shape that tensors of shapes `s0` and `s1` are broadcast to.",
)


BROADCAST_GRADIENT_ARGS = register_op(
    "BroadcastGradientArgs(s0: T, s1: T) -> r0: T, r1: T",
    attrs=["T: {int32, int64} = DT_INT32"],
    shape_fn=shape_rule("[?], [?] -> [?], [?]"),
    doc="Along which dimensions the gradient of a broadcast tensor of shape s0, or s1, is summed.",
)


@register_kernel(BROADCAST_ARGS, types={"T": INDEX}, host_memory=["s0", "s1", "r0"])
def broadcast_args(s0: Any, s1: Any) -> Any:
    first, second = _aligned(s0, s1)
    return np.where(first == 1, second, first)


@register_kernel(BROADCAST_GRADIENT_ARGS, types={"T": INDEX}, host_memory=["s0", "s1", "r0", "r1"])
def broadcast_gradient_args(s0: Any, s1: Any) -> tuple[Any, Any]:
    first, second = _aligned(s0, s1)
    if s0.shape == s1.shape and (first == second).all():
        return np.zeros(0, s0.dtype), np.zeros(0, s0.dtype)
    found = (np.flatnonzero(one == 1).astype(s0.dtype) for one in (first, second))
    return next(found), next(found)


def _aligned(s0: Any, s1: Any) -> tuple[Any, Any]:
    """Two shapes as vectors of one length, with ones before the shorter."""
    for i, shape in enumerate((s0, s1)):
        require_vector(shape, f"In[{i}] must be a vector.{{}}")
    rank = max(len(s0), len(s1))
    ones = (np.ones(rank - len(sizes), s0.dtype) for sizes in (s0, s1))
    first, second = (np.append(one, sizes) for one, sizes in zip(ones, (s0, s1), strict=True))
    if ((first != second) & (first != 1) & (second != 1)).any():
        shown = " vs. ".join(f"[{','.join(map(str, sizes.tolist()))}]" for sizes in (s0, s1))
        raise InvalidArgumentError(f"Incompatible shapes: {shown}")
    return first, second


@g.register_gradient("BroadcastTo")
def broadcast_to_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    for_input, _ = g.sum_to_operands(op.inputs[0], op.outputs[0], grad, None)
    return for_input, None


@g.register_gradient("Tile")
def tile_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """Each axis is split into repetitions and elements."""
    x, multiples = op.inputs
    shape = g.nodes.Shape(x, out_type=multiples.dtype)
    split = g.nodes.Reshape(g.nodes.Pack([multiples, shape], axis=1), [-1])
    axes = g.nodes.Range(0, g.nodes.Size(split), 2)
    return g.nodes.Reshape(g.nodes.Sum(g.nodes.Reshape(grad, split), axes), g.shape_of(x)), None
