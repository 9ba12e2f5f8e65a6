"""Elements in another order: Transpose, InvertPermutation, Roll, Reverse, ReverseV2, ReverseSequence.

Source: TensorFlow core/ops/array_ops.cc, core/ops/manip_ops.cc, core/kernels/transpose_op.cc, roll_op.cc,
reverse_op.cc, reverse_sequence_op.cc.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape, unchanged_shape_with_rank, unknown_shape
from opkernel.opdef.shapes.shape_handles import ShapeHandle
from opkernel.ops.input_checks import (
    require,
    require_equal,
    require_rank_at_least,
    require_rank_at_most,
    require_vector,
)
from opkernel.ops.registration import ALL, COMPLEX, FLOAT8, INDEX, POD_OR_STRING, register_kernel


def transpose_shape(c: InferenceContext) -> None:
    """Dimension i of the output is dimension `perm[i]` of the input."""
    tensor, perm_shape = c.input(0), c.input(1)
    perm = c.input_tensor(1)
    count = c.num_elements(perm_shape)
    if tensor.dims is None and not c.value_known(count) and perm is None:
        c.set_output(0, c.unknown_shape())
        return
    rank = _transposed_rank(c, tensor, perm)
    if tensor.dims is None and rank < 2:  # a scalar or a vector: unchanged in either case
        c.set_output(0, tensor)
        return
    tensor = c.with_rank(tensor, rank)
    c.with_rank(perm_shape, 1)
    c.with_value(count, rank)
    if perm is None:
        c.set_output(0, c.unknown_shape_of_rank(rank))
        return
    for axis in perm.tolist():
        require(-rank <= axis < rank, f"perm dim {axis} is out of range of input rank {rank}")
    c.set_output(0, c.make_shape([c.dim(tensor, axis) for axis in perm.tolist()]))


def _transposed_rank(c: InferenceContext, tensor: ShapeHandle, perm: Any) -> int:
    if tensor.dims is not None:
        return len(tensor.dims)
    count = c.value(c.num_elements(c.input(1)))
    return count if count >= 0 else int(perm.size)


def _declare(name: str, doc: str, traits: str) -> OpHandle:
    return register_op(
        f"{name}(x: T, perm: Tperm) -> y: T",
        attrs=["T: type", "Tperm: {int32, int64} = DT_INT32"],
        shape_fn=transpose_shape,
        traits=traits,
        doc=doc,
    )


TRANSPOSE = _declare(
    "Transpose",
    "`x` with dimension `perm[i]` as its dimension i.",
    "cannot_fail value_rule=transpose cost=linear row_rule=turned function_gradient=yes",
)
CONJUGATE_TRANSPOSE = _declare(
    "ConjugateTranspose",
    "The conjugate of `x` with dimension `perm[i]` as its dimension i.",
    "cannot_fail mostly_copies function_gradient=yes",
)

_TRANSPOSE_TYPES = (*ALL, *FLOAT8)


@register_kernel(TRANSPOSE, types={"T": _TRANSPOSE_TYPES}, host_memory=["perm"], kind="view")
def transpose(x: Any, perm: Any) -> Any:
    """A view: matrix products take transposed matrices as fast as copies of them."""
    require_vector(perm, "perm must be rank 1, got shape {}")
    try:
        return x.transpose(perm.tolist())
    except (ValueError, TypeError):
        raise _transpose_error(x, perm) from None


def _transpose_error(x: Any, perm: Any) -> InvalidArgumentError:
    rank = x.ndim
    if len(perm) != rank:
        return InvalidArgumentError(
            f"transpose expects a vector of size {rank}. But input(1) is a vector of size {len(perm)}"
        )
    axes = perm.tolist()
    for axis in axes:
        if not -rank <= axis < rank:
            return InvalidArgumentError(f"{axis} is out of range [0 .. {rank})")
    missing = min(set(range(rank)) - {axis % rank for axis in axes})
    return InvalidArgumentError(f"{missing} is missing from {{{','.join(map(str, axes))}}}.")


@register_kernel(CONJUGATE_TRANSPOSE, types={"T": COMPLEX}, host_memory=["perm"])
def conjugate_transpose(x: Any, perm: Any, *, xp: Any) -> Any:
    return xp.conj(transpose(x, perm))


register_kernel(
    CONJUGATE_TRANSPOSE,
    types={"T": tuple(dtype for dtype in _TRANSPOSE_TYPES if dtype not in COMPLEX)},
    host_memory=["perm"],
    kind="view",
)(transpose)

INVERT_PERMUTATION = register_op(
    "InvertPermutation(x: T) -> y: T",
    attrs=["T: {int32, int64} = DT_INT32"],
    shape_fn=unchanged_shape_with_rank(1),
    doc="The permutation that undoes the permutation `x`: `y[x[i]] = i`.",
    traits="cost=linear int32_on_host",
)


@register_kernel(INVERT_PERMUTATION, types={"T": INDEX})
def invert_permutation(x: Any) -> Any:
    require_vector(x, "invert_permutation expects a 1D vector.")
    count = len(x)
    outside = (x < 0) | (x >= count)
    if outside.any():
        raise InvalidArgumentError(f"{x[outside][0]} is not between 0 and {count}")
    inverse = np.full(count, -1, x.dtype)
    inverse[x] = np.arange(count, dtype=x.dtype)
    if (inverse < 0).any():
        values, counts = np.unique(x, return_counts=True)
        raise InvalidArgumentError(f"{values[counts > 1][0]} is duplicated in the input.")
    return inverse


@g.register_gradient("Transpose")
def transpose_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.Transpose(grad, g.nodes.InvertPermutation(op.inputs[1])), None


@g.register_gradient("ConjugateTranspose")
def conjugate_transpose_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.ConjugateTranspose(grad, g.nodes.InvertPermutation(op.inputs[1])), None


def roll_shape(c: InferenceContext) -> None:
    """The shape of the input."""
    c.with_rank_at_least(c.input(0), 1)
    c.merge(c.with_rank_at_most(c.input(1), 1), c.with_rank_at_most(c.input(2), 1))
    unchanged_shape(c)


ROLL = register_op(
    "Roll(input: T, shift: Tshift, axis: Taxis) -> output: T",
    attrs=["T: type", "Tshift: {int32, int64}", "Taxis: {int32, int64}"],
    shape_fn=roll_shape,
    traits="cost=linear",
    doc="`input` with its elements moved by `shift[i]` along dimension `axis[i]`, around the ends.",
)


@register_kernel(
    ROLL, types={"T": ALL, "Tshift": INDEX, "Taxis": INDEX}, host_memory=["shift", "axis"]
)
def roll(tensor: Any, shift: Any, axis: Any, *, xp: Any) -> Any:
    require_rank_at_least(tensor, 1, "input must be 1-D or higher")
    for name, given in (("shift", shift), ("axis", axis)):
        require_rank_at_most(given, 1, f"{name} must be a scalar or a 1-D vector. Found: {{}}")
    require_equal(shift.shape, axis.shape, "shift and axis must have the same size")
    axes = axis.reshape(-1).tolist()
    for dim in axes:
        require(-tensor.ndim <= dim < tensor.ndim, f"axis {dim} is out of range")
    shifts = shift.reshape(-1)
    return xp.roll(tensor, tuple(shifts.tolist()) if xp is np else shifts, axis=tuple(axes))


@g.register_gradient("Roll")
def roll_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, shift, axis = op.inputs
    return g.nodes.Roll(grad, g.nodes.Neg(shift), axis), None, None


_MAX_RANK = 8


def reverse_shape(c: InferenceContext) -> None:
    """The shape of the tensor, whose rank is the length of `dims`."""
    tensor, length = c.input(0), c.dim(c.with_rank(c.input(1), 1), 0)
    if c.value_known(length):
        tensor = c.with_rank(tensor, c.value(length))
    _check_rank(c.rank(tensor))
    c.set_output(0, tensor)


def _check_rank(rank: int) -> None:
    require(rank <= _MAX_RANK, "reverse does not work on tensors with more than 8 dimensions")


def reverse_v2_shape(c: InferenceContext) -> None:
    """The shape of the tensor."""
    tensor = c.input(0)
    c.with_rank(c.input(1), 1)
    _check_rank(c.rank(tensor))
    axis = c.input_tensor(1)
    if axis is not None and tensor.dims is not None:
        _checked_axes(axis.tolist(), len(tensor.dims))
    c.set_output(0, tensor)


def _checked_axes(axes: Iterable[int], rank: int) -> set[int]:
    """The axes, from the front."""
    found: set[int] = set()
    for i, axis in enumerate(axes):
        require(-rank <= axis < rank, f"'axis'[{i}] = {axis} is out of valid range [0, {rank - 1}")
        require(axis % rank not in found, f"axis {axis % rank} specified more than once.")
        found.add(axis % rank)
    return found


REVERSE = register_op(
    "Reverse(tensor: T, dims: bool) -> output: T",
    attrs=[
        "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, complex64, complex128, string}"
    ],
    shape_fn=reverse_shape,
    doc="`tensor` with the order reversed along each dimension i for which `dims[i]` is true.",
    traits="cost=linear function_gradient=yes",
)

REVERSE_V2 = register_op(
    "ReverseV2(tensor: T, axis: Tidx) -> output: T",
    attrs=[
        "Tidx: {int32, int64} = DT_INT32",
        "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, complex64, complex128, string}",
    ],
    shape_fn=reverse_v2_shape,
    traits="value_rule=reverse cost=linear function_gradient=yes",
    doc="`tensor` with the order reversed along the dimensions `axis`.",
)


@register_kernel(REVERSE, types={"T": POD_OR_STRING}, host_memory=["dims"], kind="view")
def reverse(tensor: Any, dims: Any) -> Any:
    if tensor.ndim == 0:
        return tensor
    require(len(tensor), "Invalid input first dimension. Found 0.")
    require_vector(dims, f"'dims' must be 1-dimension, not {dims.ndim}")
    if tensor.ndim != len(dims):
        raise InvalidArgumentError(
            "'dims' must have the same number of values as 'input' has dimensions. 'input' has "
            f"{tensor.ndim}'dims' has {len(dims)} values"
        )
    return _flipped(tensor, np.flatnonzero(dims).tolist())


@register_kernel(
    REVERSE_V2, types={"T": POD_OR_STRING, "Tidx": INDEX}, host_memory=["axis"], kind="view"
)
def reverse_v2(tensor: Any, axis: Any) -> Any:
    if tensor.ndim == 0 or tensor.size == 0:
        return tensor
    require_vector(axis, f"'dims' must be 1-dimension, not {axis.ndim}")
    return _flipped(tensor, _checked_axes(axis.tolist(), tensor.ndim))


def _flipped(tensor: Any, axes: Iterable[int]) -> Any:
    if tensor.ndim > _MAX_RANK:
        raise UnimplementedError("reverse is not implemented for tensors of rank > 8.")
    index: list[Any] = [slice(None)] * tensor.ndim
    for axis in axes:
        index[axis] = slice(None, None, -1)
    return tensor[(*index, ...)]


def reverse_sequence_shape(c: InferenceContext) -> None:
    """The shape of the input, whose batch is as long as `seq_lengths`."""
    tensor, lengths = c.input(0), c.with_rank(c.input(1), 1)
    if tensor.dims is None:
        unknown_shape(c)
        return
    rank = len(tensor.dims)
    for name in ("batch_dim", "seq_dim"):
        if c.get_attr(name) >= rank:
            raise InvalidArgumentError(
                f"{name} must be < input rank: {c.get_attr(name)} vs. {rank}"
            )
    batch_dim = c.get_attr("batch_dim")
    require(batch_dim >= 0, f"batch_dim must be >=0, got {batch_dim}")
    batch = c.merge(tensor.dims[batch_dim], c.dim(lengths, 0))
    c.set_output(0, c.replace_dim(tensor, batch_dim, batch))


REVERSE_SEQUENCE = register_op(
    "ReverseSequence(input: T, seq_lengths: Tlen) -> output: T",
    attrs=["seq_dim: int", "batch_dim: int = 0", "T: type", "Tlen: {int32, int64} = DT_INT64"],
    shape_fn=reverse_sequence_shape,
    doc="`input`, of each slice of the batch the first `seq_lengths[i]` elements reversed.",
    traits="cost=linear",
)


@register_kernel(REVERSE_SEQUENCE, types={"T": POD_OR_STRING, "Tlen": INDEX})
def reverse_sequence(
    tensor: Any, seq_lengths: Any, *, seq_dim: int, batch_dim: int, xp: Any
) -> Any:
    _check_sequences(tensor, seq_lengths, seq_dim, batch_dim)
    if xp is np:  # where only a trace is made there are no values to check
        _check_lengths(seq_lengths, tensor.shape[seq_dim], seq_dim)
    place = xp.arange(tensor.shape[seq_dim])
    length = seq_lengths[:, None]
    source = xp.where(place < length, length - 1 - place, place)
    shape = [1] * tensor.ndim
    shape[batch_dim], shape[seq_dim] = source.shape
    if batch_dim > seq_dim:
        source = source.T
    return xp.take_along_axis(tensor, source.reshape(shape), axis=seq_dim)


def _check_sequences(tensor: Any, seq_lengths: Any, seq_dim: int, batch_dim: int) -> None:
    rank = tensor.ndim
    require_vector(seq_lengths, f"seq_lengths must be 1-dim, not {seq_lengths.ndim}")
    for name, dim in (("batch_dim", batch_dim), ("seq_dim", seq_dim)):
        require(dim >= 0, f"Invalid {name} {dim}")
        require(dim < rank, f"{name} must be < input rank ( {dim} vs. {rank})")
    require(batch_dim != seq_dim, f"batch_dim == seq_dim == {seq_dim}")
    if len(seq_lengths) != tensor.shape[batch_dim]:
        raise InvalidArgumentError(
            f"Length of seq_lengths != input.dims({batch_dim}), ({len(seq_lengths)} vs. {tensor.shape[batch_dim]})"
        )


def _check_lengths(seq_lengths: Any, limit: int, seq_dim: int) -> None:
    for i, length in enumerate(seq_lengths.tolist()):
        if length < 0:
            raise InvalidArgumentError(f"seq_lens({i}) < 0")
        if length > limit:
            raise InvalidArgumentError(f"seq_lens({i}) > input.dims({seq_dim})")


g.register_gradient("Reverse")(g.by_op("Reverse"))
g.register_gradient("ReverseV2")(g.by_op("ReverseV2"))
g.register_gradient("ReverseSequence")(g.by_op("ReverseSequence", "batch_dim", "seq_dim"))
