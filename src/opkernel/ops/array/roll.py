"""Roll: elements shifted along dimensions, those that fall off one end put in at the other.

Source: TensorFlow core/ops/manip_ops.cc, core/kernels/roll_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.kernel_types import ALL, INDEX
from opkernel.ops.registration import register_kernel
from opkernel.types import TensorShape


def roll_shape(c: InferenceContext) -> None:
    """The shape of the input."""
    c.with_rank_at_least(c.input(0), 1)
    c.merge(c.with_rank_at_most(c.input(1), 1), c.with_rank_at_most(c.input(2), 1))
    unchanged_shape(c)


ROLL = register_op(
    "Roll",
    inputs=["input: T", "shift: Tshift", "axis: Taxis"],
    outputs=["output: T"],
    attrs=["T: type", "Tshift: {int32, int64}", "Taxis: {int32, int64}"],
    shape_fn=roll_shape,
    doc="`input` with its elements moved by `shift[i]` along dimension `axis[i]`, around the ends.",
    traits="cost=linear",
)


@register_kernel(
    ROLL,
    device="CPU",
    types={"T": ALL, "Tshift": INDEX, "Taxis": INDEX},
    host_memory=["shift", "axis"],
)
def roll(tensor: Any, shift: Any, axis: Any, *, xp: Any) -> Any:
    if tensor.ndim < 1:
        raise InvalidArgumentError("input must be 1-D or higher")
    for name, given in (("shift", shift), ("axis", axis)):
        if given.ndim > 1:
            raise InvalidArgumentError(
                f"{name} must be a scalar or a 1-D vector. Found: {TensorShape(given.shape)}"
            )
    if shift.shape != axis.shape:
        raise InvalidArgumentError("shift and axis must have the same size")
    axes = axis.reshape(-1).tolist()
    for dim in axes:
        if not -tensor.ndim <= dim < tensor.ndim:
            raise InvalidArgumentError(f"axis {dim} is out of range")
    shifts = shift.reshape(-1)
    return xp.roll(tensor, tuple(shifts.tolist()) if xp is np else shifts, axis=tuple(axes))


@g.register_gradient("Roll")
def roll_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    _, shift, axis = op.inputs
    return g.nodes.Roll(grad, g.nodes.Neg(shift), axis), None, None
