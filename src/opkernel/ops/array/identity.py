"""Ops that pass their inputs on.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/identity_op.h, identity_n_op.cc,
snapshot_op.h, inplace_ops.cc; EnsureShape: core/kernels/shape_ops.h.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import forward_input
from opkernel.opdef import (
    InferenceContext,
    OpHandle,
    TypeInferenceFn,
    full_type,
    register_op,
)
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.common_shapes.elementwise import keep_contents
from opkernel.ops.kernel_types import POD
from opkernel.ops.registration import register_kernel
from opkernel.types import PartialTensorShape, TensorShape

if TYPE_CHECKING:
    from opkernel.opdef.core.op_def_builder import FunctionTypeInferrer
    from opkernel.proto import FullTypeDef

_PASSES_ON = "passes_on"


def _type_of_input(types: Sequence[FullTypeDef], infer: FunctionTypeInferrer) -> FullTypeDef:
    return full_type.replicate_input()(types, infer)


def _declare(
    name: str,
    doc: str,
    *attrs: str,
    is_stateful: bool = False,
    forward_type_fn: TypeInferenceFn | None = None,
    traits: str = _PASSES_ON,
) -> OpHandle:
    """An op of one input and one output that are the same tensor."""
    return register_op(
        name,
        inputs=["input: T"],
        outputs=["output: T"],
        attrs=["T: type", *attrs],
        shape_fn=unchanged_shape,
        is_stateful=is_stateful,
        forward_type_fn=forward_type_fn,
        traits=traits,
        doc=doc,
    )


IDENTITY = _declare(
    "Identity",
    "`input`, unchanged.",
    forward_type_fn=_type_of_input,
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
DEBUG_GRADIENT_IDENTITY = register_op(
    "DebugGradientIdentity",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["T: type"],
    shape_fn=unchanged_shape,
    traits="passes_on",
    allows_uninitialized_input=True,
    doc="`input`; marks where a debugger watches the gradient.",
)

for _op in (IDENTITY, STOP_GRADIENT, PREVENT_GRADIENT, GUARANTEE_CONST, DEBUG_GRADIENT_IDENTITY):
    register_kernel(_op, kind="view")(forward_input)


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
    "IdentityN",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["T: list(type) >= 1"],
    shape_fn=identity_n_shape,
    traits="value_rule=identity_n",
    doc="The tensors of `input`, unchanged.",
)

register_kernel(IDENTITY_N, device="DEFAULT", kind="view")(forward_input)


DEEP_COPY = register_op(
    "DeepCopy",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=["T: type"],
    shape_fn=unchanged_shape,
    is_stateful=True,
    doc="A copy of `x` that shares no memory with it.",
)

register_kernel(DEEP_COPY)(copy_of)


def ensure_shape_shape(c: InferenceContext) -> None:
    """The shape of `input`, with the facts of the attr `shape`."""
    wanted = c.make_shape_from_partial_shape(c.get_attr("shape"))
    c.set_output(0, c.merge(wanted, c.with_rank(c.input(0), c.rank(wanted))))


ENSURE_SHAPE = register_op(
    "EnsureShape",
    inputs=["input: T"],
    outputs=["output: T"],
    attrs=["shape: shape", "T: type"],
    shape_fn=ensure_shape_shape,
    traits="value_rule=forward int32_on_host",
    doc="`input`, which must have a shape that agrees with `shape`.",
)


@register_kernel(ENSURE_SHAPE, kind="view", factory=True)
def ensure_shape(*, shape: PartialTensorShape) -> Callable[[Any], Any]:
    def ensure(tensor: Any) -> Any:
        actual = TensorShape(tensor.shape)
        if not shape.is_compatible_with(actual):
            raise InvalidArgumentError(
                f"Shape of tensor input {actual} is not compatible with expected shape {shape}."
            )
        return tensor

    return ensure


@g.register_gradient("DebugGradientIdentity", "EnsureShape", "Identity")
def identity_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    return grad


@g.register_gradient("IdentityN")
def identity_n_gradient(op: g.Operation, *grads: g.Gradient) -> g.Gradients:
    return grads


@g.register_gradient("PreventGradient")
def prevent_gradient_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    reason = op.get_attr("message").decode()
    raise InvalidArgumentError(f"Gradient explicitly disabled. Reason: {reason}")
