"""Permutations of dimensions: Transpose, ConjugateTranspose, InvertPermutation.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/transpose_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape_with_rank
from opkernel.opdef.shapes.shape_handles import ShapeHandle
from opkernel.ops.input_checks import require_vector
from opkernel.ops.kernel_types import ALL, COMPLEX, FLOAT8, INDEX
from opkernel.ops.registration import register_kernel


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
        if not -rank <= axis < rank:
            raise InvalidArgumentError(f"perm dim {axis} is out of range of input rank {rank}")
    c.set_output(0, c.make_shape([c.dim(tensor, axis) for axis in perm.tolist()]))


def _transposed_rank(c: InferenceContext, tensor: ShapeHandle, perm: Any) -> int:
    if tensor.dims is not None:
        return len(tensor.dims)
    count = c.value(c.num_elements(c.input(1)))
    return count if count >= 0 else int(perm.size)


def _declare(name: str, doc: str, traits: str) -> OpHandle:
    return register_op(
        name,
        inputs=["x: T", "perm: Tperm"],
        outputs=["y: T"],
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
            f"transpose expects a vector of size {rank}. But input(1) is a vector of size "
            f"{len(perm)}"
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
    "InvertPermutation",
    inputs=["x: T"],
    outputs=["y: T"],
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
