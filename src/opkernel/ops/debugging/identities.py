"""Debug nodes that pass their input on: DebugIdentity and its later versions, Copy and CopyHost; and CheckPinned.

With a circular buffer, DebugIdentityV2 leaves it to TensorFlow's debugger in Python when tensors are written, and so
does not write here.

Source: TensorFlow core/ops/debug_ops.cc, core/kernels/debug_ops.{h,cc}, core/ops/array_ops.cc (Copy, CopyHost),
core/kernels/check_pinned_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g
from opkernel.errors import FailedPreconditionError, InternalError, UnimplementedError
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    check_allocation,
)
from opkernel.opdef import InferenceContext, OpHandle, OpShapeInferenceFn, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.debugging.debug_events import WatchedOutput, write_trace
from opkernel.ops.debugging.publishing import FILE_URL, DebugKernel, is_closed
from opkernel.ops.parsing.tensors import serialized
from opkernel.ops.registration import register_kernel
from opkernel.records import replace
from opkernel.types import DataType

_URLS = "debug_urls: list(string) = []"


def debug_identity_shape(c: InferenceContext) -> None:
    """Unchanged; [0] if nothing is computed."""
    if is_closed(c.get_attr("gated_grpc"), c.get_attr("debug_urls")):
        c.set_output(0, c.vector(0))
    else:
        unchanged_shape(c)


def _declare(
    version: str, *attrs: str, shape_fn: OpShapeInferenceFn = debug_identity_shape, **declared: Any
) -> OpHandle:
    return register_op(
        f"DebugIdentity{version}(input: T) -> output: T",
        attrs=["T: type", *attrs],
        shape_fn=shape_fn,
        doc="`input`, which a debugger may be shown.",
        traits="writes_files file_attr=debug_urls",
        **declared,
    )


DEBUG_IDENTITY = _declare(
    "",
    "device_name: string = ''",
    "tensor_name: string = ''",
    _URLS,
    "gated_grpc: bool = false",
    allows_uninitialized_input=True,
)
DEBUG_IDENTITY_V2 = _declare(
    "V2",
    "tfdbg_context_id: string = ''",
    "op_name: string = ''",
    "output_slot: int = -1",
    "tensor_debug_mode: int = -1",
    _URLS,
    "circular_buffer_size: int = 1000",
    "tfdbg_run_id: string = ''",
    shape_fn=unchanged_shape,
    is_stateful=True,
)
DEBUG_IDENTITY_V3 = _declare(
    "V3",
    "device_name: string = ''",
    "tensor_name: string = ''",
    "io_of_node: string = ''",
    "is_input: bool = false",
    "io_index: int = -1",
    _URLS,
    "gated_grpc: bool = false",
    is_stateful=True,
    allows_uninitialized_input=True,
)


@register_kernel(DEBUG_IDENTITY)
class DebugIdentity(DebugKernel):
    """Publishes its input, and passes it on; nothing of it if only servers could ask for it."""

    def compute(self, ctx: OpKernelContext) -> None:
        tensor = ctx.input(0)
        if self.is_closed:
            ctx.set_output(0, tensor.reshape(-1)[:0].copy())
            return
        self.publish(ctx, tensor, self.input_types[0])
        ctx.set_output(0, tensor)


@register_kernel(DEBUG_IDENTITY_V3, device="DEFAULT", host_memory=["input", "output"])
class DebugIdentityV3(DebugIdentity):
    """Its files are named by an input or output of a node, if the node tells it."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get, index = construction.get_attr, construction.get_attr("io_index", "int32")
        if node := get("io_of_node"):
            io = f"{node}:{'in' if get('is_input') else 'out'}:{index}"
            self.watched = replace(self.watched, io=io)


@register_kernel(DEBUG_IDENTITY_V2)
class DebugIdentityV2(OpKernel):
    """Appends its input to the event files of directories, and passes it on."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        urls: list[str] = get("debug_urls")
        for url in urls:
            if not url.startswith(FILE_URL):
                raise InternalError(f"Unsupported debug URL schema in: {url}")
        if urls and get("circular_buffer_size") > 0:
            raise UnimplementedError(
                f"DebugIdentityV2 cannot write to {urls}: with a circular_buffer_size above 0 it keeps "
                "tensors in memory until TensorFlow's debugger in Python writes them. Set the size to 0"
            )
        self._roots = [url.removeprefix(FILE_URL) for url in urls]
        self._watched = WatchedOutput(
            get("tfdbg_context_id"),
            get("op_name"),
            get("output_slot", "int32"),
            get("tensor_debug_mode", "int32"),
            get("tfdbg_run_id"),
        )

    def compute(self, ctx: OpKernelContext) -> None:
        tensor, device = ctx.input(0), ctx.device.name
        for root in self._roots:
            content = serialized(tensor, self.input_types[0])
            write_trace(ctx.permissions, root, self._watched, content, device)
        ctx.set_output(0, tensor)


@g.register_gradient("DebugIdentityV2")
def debug_identity_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    return grad


COPY, COPY_HOST = (
    register_op(
        f"{name}(input: T) -> output: T",
        attrs=["T: type", "tensor_name: string = ''", "debug_ops_spec: list(string) = []"],
        shape_fn=unchanged_shape,
        allows_uninitialized_input=True,
        doc="A copy of `input` for debug nodes; strings, resources and variants are passed on.",
    )
    for name in ("Copy", "CopyHost")
)


@register_kernel(COPY, COPY_HOST, kind="view", factory=True)
def copy(*, debug_ops_spec: list[str], T: DataType) -> Callable[[Any], Any]:
    for spec in debug_ops_spec:
        if spec.count(";") != 2:
            raise InternalError(
                f"Unexpected number of semicolons in debug_ops_spec element: {spec}"
            )

    def copied(tensor: Any) -> Any:
        if tensor.dtype == object or not debug_ops_spec:  # as TensorFlow: nobody looks at a copy
            return tensor
        check_allocation(tensor.shape, T)
        return tensor.copy()

    return copied


CHECK_PINNED = register_op(
    "CheckPinned(tensor: T) -> output: T",
    attrs=["T: type"],
    shape_fn=unchanged_shape,
    doc="`tensor`, if its memory is pinned for a GPU; a FailedPreconditionError without CUDA.",
)


@register_kernel(CHECK_PINNED)
def check_pinned(tensor: Any) -> Any:
    raise FailedPreconditionError("Memory can only be pinned for a GPU, and there is no CUDA")
