"""The cross product of vectors of three elements.

Source: TensorFlow core/ops/math_ops.cc, core/kernels/cross_op.cc.
"""

from __future__ import annotations

from typing import Any

import opkernel.gradients as g
from opkernel.errors import FailedPreconditionError
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.input_checks import require_equal, require_rank_at_least
from opkernel.ops.kernel_types import REAL_NUMBERS
from opkernel.ops.registration import register_kernel


def cross_shape(c: InferenceContext) -> None:
    """Two inputs [..., 3] of one shape, which is the result's."""
    a = c.with_rank_at_least(c.input(0), 1)
    b = c.with_rank_at_least(c.input(1), 1)
    both = c.merge(a, b)
    if c.rank_known(both):
        c.with_value(c.dim(both, -1), 3)
    c.set_output(0, both)


CROSS = register_op(
    "Cross",
    inputs=["a: T", "b: T"],
    outputs=["product: T"],
    attrs=["T: realnumbertype"],
    shape_fn=cross_shape,
    doc="The cross products of the vectors in the last dimension, of size 3, of `a` and `b`.",
)


@register_kernel(CROSS, types={"T": REAL_NUMBERS})
def cross(a: Any, b: Any, *, xp: Any) -> Any:
    require_equal(a.shape, b.shape, "Both inputs must be of same shape: {} vs. {}")
    require_rank_at_least(a, 1, "Input must be at least 1D{}")
    if a.shape[-1] != 3:
        raise FailedPreconditionError("Cross-products are only defined for 3-element vectors.")
    (a0, a1, a2), (b0, b1, b2) = ([v[..., i] for i in range(3)] for v in (a, b))
    return xp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


@g.register_gradient("Cross")
def cross_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    a, b = op.inputs
    return g.nodes.Cross(b, grad), g.nodes.Cross(grad, a)
