"""Tensors that a session keeps from one step to the next, by handle.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/session_ops.cc.
"""

from dataclasses import replace

from opkernel.errors import FailedPreconditionError
from opkernel.kernel import (
    TENSOR_HANDLE,
    OpKernelContext,
    ResourceBase,
    SessionState,
    TensorAndKey,
    make_resource_handle,
    tensor_of_handle,
)
from opkernel.opdef import register_op, scalar_shape
from opkernel.opdef.common_shapes.rules import checked_no_outputs, checked_unknown
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import names_tensor
from opkernel.ops.step_resources import InexpensiveKernel
from opkernel.ops.variables.var import owned_input
from opkernel.types import DataType

for _name, _handle in (("GetSessionHandle", "string"), ("GetSessionHandleV2", "resource")):
    register_op(
        _name,
        inputs=["value: T"],
        outputs=[f"handle: {_handle}"],
        attrs=["T: type"],
        shape_fn=scalar_shape,
        is_stateful=True,
        doc="Has the session keep a tensor; the output is its handle.",
    )
register_op(
    "GetSessionTensor",
    inputs=["handle: string"],
    outputs=["value: dtype"],
    attrs=["dtype: type"],
    shape_fn=checked_unknown("0"),
    is_stateful=True,
    doc="The tensor that the session keeps under a handle.",
)
register_op(
    "DeleteSessionTensor",
    inputs=["handle: string"],
    shape_fn=checked_no_outputs("0"),
    is_stateful=True,
    doc="Has the session forget a tensor.",
)


class SessionTensor(ResourceBase):
    """The type of the resource handles to session tensors; there are no resources of it."""


def _session_state(ctx: OpKernelContext, what: str) -> SessionState:
    if ctx.session_state is None:
        raise FailedPreconditionError(f"{what} called on null session state")
    state: SessionState = ctx.session_state
    return state


def _handle_of(ctx: OpKernelContext) -> str:
    handle = ctx.input(0)
    require_scalar(handle, "handle must be scalar, but has shape {}")
    text: str = handle[()].decode(errors="surrogateescape")
    return text


@register_kernel("GetSessionHandle", "GetSessionHandleV2")
class GetSessionHandle(InexpensiveKernel):
    """Leaves a tensor to the session."""

    forwards_inputs = True

    def compute(self, ctx: OpKernelContext) -> None:
        new_id = _session_state(ctx, "GetSessionHandle").get_new_id()
        kept = TensorAndKey(owned_input(ctx, 0), new_id, ctx.device.name)
        ctx.tensor_store.add_tensor(self.name, kept)
        name = kept.get_handle(self.name)
        if self.output_types[0] == DataType.DT_RESOURCE:
            handle = make_resource_handle(TENSOR_HANDLE, name, ctx.device, SessionTensor)
            ctx.set_output(0, tensor_of_handle(replace(handle, maybe_type_name=TENSOR_HANDLE)))
        else:
            ctx.set_output(0, names_tensor(name).reshape(()))


@register_kernel("GetSessionTensor")
class GetSessionTensor(InexpensiveKernel):
    """Gives a tensor of the session."""

    def compute(self, ctx: OpKernelContext) -> None:
        handle = _handle_of(ctx)
        ctx.set_output(0, _session_state(ctx, "GetSessionTensor").get_tensor(handle))


@register_kernel("DeleteSessionTensor")
class DeleteSessionTensor(InexpensiveKernel):
    """Has the session forget a tensor."""

    def compute(self, ctx: OpKernelContext) -> None:
        handle = _handle_of(ctx)
        _session_state(ctx, "DeleteSessionTensor").delete_tensor(handle)
