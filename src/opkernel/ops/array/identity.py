"""Ops that pass their inputs on.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/identity_op.h, identity_n_op.cc, snapshot_op.h, inplace_ops.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import forward_input
from opkernel.opdef import InferenceContext, OpHandle, full_type, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.common_shapes.elementwise import keep_contents
from opkernel.ops.input_checks import require
from opkernel.ops.registration import POD, register_kernel
from opkernel.types import DataType

_PASSES_ON = "passes_on"


def _declare(name: str, doc: str, *attrs: str, traits: str = _PASSES_ON, **rules: Any) -> OpHandle:
    """An op of one input and one output that are the same tensor."""
    return register_op(
        f"{name}(input: T) -> output: T",
        attrs=["T: type", *attrs],
        shape_fn=unchanged_shape,
        traits=traits,
        doc=doc,
        **rules,
    )


IDENTITY = _declare(
    "Identity",
    "`input`, unchanged.",
    forward_type_fn=lambda types, infer: full_type.replicate_input()(types, infer),
    traits=f"{_PASSES_ON} int32_on_host function_gradient=yes",
)
STOP_GRADIENT = _declare(
    "StopGradient",
    "`input`; gradients take it for a constant.",
    traits=f"{_PASSES_ON} int32_on_host function_gradient=none",
)
PREVENT_GRADIENT = _declare(
    "PreventGradient", "`input`; asking for its gradient is an error.", "message: string = ''"
)
GUARANTEE_CONST = _declare(
    "GuaranteeConst",
    "`input`, which the caller says is constant.",
    is_stateful=True,
    traits="has_no_effect",
)
SNAPSHOT = _declare("Snapshot", "A copy of `input`.")
DEBUG_GRADIENT_IDENTITY = _declare(
    "DebugGradientIdentity",
    "`input`; marks where a debugger watches the gradient.",
    allows_uninitialized_input=True,
)

EAGER_CONST = _declare("_EagerConst", "`input`, a constant of an eager call.")

for _op in (
    IDENTITY,
    STOP_GRADIENT,
    PREVENT_GRADIENT,
    DEBUG_GRADIENT_IDENTITY,
    EAGER_CONST,
):
    register_kernel(_op, kind="view")(forward_input)


@register_kernel(GUARANTEE_CONST, kind="view", factory=True)
def guarantee_const(*, T: DataType) -> Callable[..., Any]:
    message = "Input tensor cannot be a resource variable handle."
    require(T != DataType.DT_RESOURCE, message)
    return forward_input


@register_kernel(SNAPSHOT, types={"T": POD})
def copy_of(tensor: Any) -> Any:
    """New memory with the values of `tensor`."""
    return tensor.copy()


def identity_n_shape(c: InferenceContext) -> None:
    """Each output has the shape of its input, and the same contents."""
    for i in range(c.num_inputs()):
        c.set_output(i, c.input(i))
        keep_contents(c, i, i)


IDENTITY_N = register_op(
    "IdentityN(input: T) -> output: T",
    attrs=["T: list(type) >= 1"],
    shape_fn=identity_n_shape,
    traits="value_rule=identity_n",
    doc="The tensors of `input`, unchanged.",
)

register_kernel(IDENTITY_N, device="DEFAULT", kind="view")(forward_input)


DEEP_COPY = register_op(
    "DeepCopy(x: T) -> y: T",
    attrs=["T: type"],
    shape_fn=unchanged_shape,
    is_stateful=True,
    doc="A copy of `x` that shares no memory with it.",
)


@register_kernel(DEEP_COPY, factory=True)
def deep_copy(*, T: DataType) -> Callable[[Any], Any]:
    is_handle = T in (DataType.DT_VARIANT, DataType.DT_RESOURCE)
    require(not is_handle, f"Unsupported data type: {T.string}")
    return copy_of


g.register_gradient("DebugGradientIdentity", "Identity")(lambda op, grad: grad)
g.register_gradient("IdentityN")(lambda op, *grads: grads)


@g.register_gradient("PreventGradient")
def prevent_gradient_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    reason = op.get_attr("message").decode()
    raise InvalidArgumentError(f"Gradient explicitly disabled. Reason: {reason}")
