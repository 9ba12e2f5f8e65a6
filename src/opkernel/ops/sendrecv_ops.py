"""Sending tensors from one part of a graph to another, through the rendezvous of the step.

Source: TensorFlow core/ops/sendrecv_ops.cc, core/kernels/sendrecv_ops.cc.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from opkernel.errors import InternalError, OpError, as_op_error
from opkernel.kernel import (
    AsyncOpKernel,
    FrameAndIter,
    MemoryType,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    ParsedKey,
    Rendezvous,
    RendezvousArgs,
    create_key,
    parse_key,
)
from opkernel.opdef import no_outputs, register_op, unknown_shape
from opkernel.ops.registration import ASKS_FOR_CALL, register_kernel
from opkernel.records import replace

_ROOT = FrameAndIter()


class _Key:
    """The key under which a node sends or receives, in each iteration another."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        get_attr = construction.get_attr
        names = ("send_device", "send_device_incarnation", "recv_device", "tensor_name")
        self._full_key: Callable[..., str] = partial(create_key, *map(get_attr, names))
        self._outside_loops = parse_key(self._full_key())
        # A copy between memories happens within one call of a function, others between steps.
        self._is_of_call = construction.has_attr("_hostmem_sendrecv") and bool(
            get_attr("_hostmem_sendrecv")
        )

    def at(self, ctx: OpKernelContext) -> ParsedKey:
        """The key of this computation."""
        frame_iter = ctx.frame_iter
        if self._is_of_call and ctx.call_frame is not None:
            frame_iter = FrameAndIter(id(ctx.call_frame), 0)
        if frame_iter == _ROOT:
            return self._outside_loops
        return replace(self._outside_loops, full_key=self._full_key(frame_iter))


def _rendezvous(ctx: OpKernelContext) -> Rendezvous:
    if ctx.rendezvous is None:
        raise InternalError("Op kernel context needs to provide a rendezvous.")
    return ctx.rendezvous


class Send(OpKernel):
    """Hands its input over, dead or alive; does not wait for the receiver."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._key = _Key(construction)

    def compute(self, ctx: OpKernelContext) -> None:
        args = RendezvousArgs(ctx.op_device_context, ctx.input_alloc_attr(0))
        value = ctx.input(0) if ctx.has_input(0) else None
        if value is not None and ctx.input_memory_type(0) != MemoryType.HOST_MEMORY:
            value = ctx.device.to_host(value)
        _rendezvous(ctx).send(self._key.at(ctx), args, value, ctx.is_input_dead)


class Recv(AsyncOpKernel):
    """Gives the tensor that was sent, once it is there; leaves the output unset if it is dead."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._key = _Key(construction)

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        def receive(
            error: OpError | None, _: RendezvousArgs, __: RendezvousArgs, value: Any, is_dead: bool
        ) -> None:
            try:
                if error is None and not is_dead:
                    on_host = ctx.output_memory_type(0) == MemoryType.HOST_MEMORY
                    ctx.set_output(0, value if on_host else ctx.device.to_device(value))
            except (
                Exception
            ) as wrong:  # the receiver's mistake, or that of its device: not the sender's
                error = as_op_error(wrong)
            if error is not None:
                ctx.set_status(error)
            done()

        args = RendezvousArgs(
            ctx.op_device_context, ctx.output_alloc_attr(0), ctx.cancellation_manager
        )
        _rendezvous(ctx).recv_async(self._key.at(ctx), args, receive)


_ATTRS = (
    "tensor_name: string",
    "send_device: string",
    "send_device_incarnation: int",
    "recv_device: string",
    "client_terminated: bool = false",
)

for _prefix, _on_host in (("", ()), ("_", ()), ("_Host", ("tensor",))):
    register_op(
        f"{_prefix}Send(tensor: T)",
        attrs=["T: type", *_ATTRS],
        shape_fn=no_outputs,
        is_stateful=True,
        system=_prefix == "_",
        doc="Hands a tensor over to the node that receives it.",
    )
    register_op(
        f"{_prefix}Recv() -> tensor: tensor_type",
        attrs=["tensor_type: type", *_ATTRS],
        shape_fn=unknown_shape,
        traits="any_order" if _prefix != "_Host" else "",
        is_stateful=True,
        is_distributed_communication=True,
        system=_prefix == "_",
        doc="Gives the tensor that another node sends.",
    )
    for _name, _kernel in ((f"{_prefix}Send", Send), (f"{_prefix}Recv", Recv)):
        register_kernel(_name, contract=ASKS_FOR_CALL, system=True)(_kernel)
        register_kernel(
            _name, device="DEFAULT", host_memory=_on_host, contract=ASKS_FOR_CALL, system=True
        )(_kernel)
