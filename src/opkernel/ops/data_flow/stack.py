"""Tensors kept for later: stacks, which live for one step, and what a session keeps by handle.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/stack.cc, core/kernels/session_ops.cc.
"""

import itertools
import threading
from dataclasses import replace
from functools import partial
from typing import Any

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.kernel import (
    TENSOR_HANDLE,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    SessionState,
    TensorAndKey,
    make_resource_handle,
    tensor_of_handle,
)
from opkernel.opdef import register_op, scalar_shape, unknown_shape
from opkernel.opdef.common_shapes.rules import (
    checked_no_outputs,
    checked_unknown,
    outputs_as_inputs,
    shape_rule,
)
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import (
    InexpensiveKernel,
    kept,
    names_tensor,
    resource_manager,
    resource_of_step,
    set_handle,
    step_container,
)
from opkernel.ops.variables.var import owned_input
from opkernel.types import DataType

_CONTAINER = "_stacks"
_MAX_SIZE = 2**31 - 1
_numbers = itertools.count()


for _version, _handle, _size in (("", "Ref(string)", ""), ("V2", "resource", "max_size: int32")):
    _is_resource = _version == "V2"
    _declare = partial(register_op, traits="clustering=stack" if _is_resource else "")
    _declare(
        f"Stack{_version}({_size}) -> handle: {_handle}",
        attrs=["elem_type: type", "stack_name: string = ''"],
        shape_fn=shape_rule("-> [2]"),
        is_stateful=True,
        doc="A new stack of the step.",
    )
    _declare(
        f"StackPush{_version}(handle: {_handle}, elem: T) -> output: T",
        attrs=["T: type", "swap_memory: bool = false"],
        shape_fn=outputs_as_inputs(1),
        is_stateful=_is_resource,
        doc="Puts `elem` on the stack; the output is `elem`.",
    )
    _declare(
        f"StackPop{_version}(handle: {_handle}) -> elem: elem_type",
        attrs=["elem_type: type"],
        shape_fn=unknown_shape,
        is_stateful=_is_resource,
        doc="Takes the last element from the stack.",
    )
    _declare(
        f"StackClose{_version}(handle: {_handle})",
        shape_fn=checked_no_outputs("h"),
        is_stateful=_is_resource,
        doc="Empties the stack, which takes no elements any more.",
    )


class Stack(ResourceBase):
    """Tensors, of which the last to come is the first to go; used from any thread."""

    def __init__(self, elem_type: DataType, name: str, max_size: int) -> None:
        self.elem_type = elem_type
        self.name = name
        self._max_size = max_size
        self._elements: list[Any] | None = []  # None once it is closed
        self._lock = threading.Lock()

    def debug_string(self) -> str:
        """The name."""
        return f"Stack[{self.name}]"

    def push(self, tensor: Any) -> None:
        """Put a tensor on the stack.

        Raises:
            InvalidArgumentError: the stack is full or closed.
        """
        with self._lock:
            elements = self._open()
            if len(elements) >= self._max_size:
                raise InvalidArgumentError(
                    f"Stack[{self.name}] overflowed its max_size ({self._max_size})"
                )
            elements.append(kept(tensor))

    def pop(self) -> Any:
        """Take the last tensor.

        Raises:
            InvalidArgumentError: the stack is empty or closed.
        """
        with self._lock:
            elements = self._open()
            if not elements:
                raise InvalidArgumentError(f"Stack[{self.name}] is empty when calling Pop().")
            return elements.pop()

    def close(self) -> None:
        """Give up all tensors, for good."""
        with self._lock:
            self._elements = None

    def _open(self) -> list[Any]:
        if self._elements is None:
            raise InvalidArgumentError(f"Stack[{self.name}] has already been closed.")
        return self._elements


@register_kernel("Stack", "StackV2")
class StackOp(InexpensiveKernel):
    """Makes a stack at each computation."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.elem_type: DataType = construction.get_attr("elem_type")
        self.stack_name: str = construction.get_attr("stack_name") or self.name

    def compute(self, ctx: OpKernelContext) -> None:
        name = f"{self.stack_name}_{next(_numbers)}"
        stack = Stack(self.elem_type, name, self._max_size(ctx))
        step_container(ctx).create(resource_manager(ctx), _CONTAINER + name, stack)
        set_handle(ctx, _CONTAINER, name, Stack)

    def _max_size(self, ctx: OpKernelContext) -> int:
        if self.num_inputs == 0:
            return _MAX_SIZE
        size = ctx.input(0)
        require_scalar(size, "Stack size must be a scalar, but had shape: {}")
        return int(size) if size >= 0 else _MAX_SIZE


@register_kernel("StackPush", "StackPushV2")
class StackPush(InexpensiveKernel):
    """Keeps its input, and passes it on."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_step(ctx, Stack) as stack:
            dtype = self.input_types[1]
            if dtype != stack.elem_type:
                raise InvalidArgumentError(
                    f"Must have type {int(stack.elem_type)} but got {int(dtype)}"
                )
            stack.push(ctx.input(1))
        ctx.set_output(0, ctx.input(1))


@register_kernel("StackPop", "StackPopV2")
class StackPop(InexpensiveKernel):
    """Gives the element that was pushed last."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_step(ctx, Stack) as stack:
            dtype = self.output_types[0]
            if dtype != stack.elem_type:
                raise InvalidArgumentError(
                    f"Type mismatch: actual {stack.elem_type.string} vs. expect {dtype.string}"
                )
            ctx.set_output(0, stack.pop())


@register_kernel("StackClose", "StackCloseV2")
class StackClose(InexpensiveKernel):
    """Closes the stack."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_step(ctx, Stack) as stack:
            stack.close()


for _name, _handle in (("GetSessionHandle", "string"), ("GetSessionHandleV2", "resource")):
    register_op(
        f"{_name}(value: T) -> handle: {_handle}",
        attrs=["T: type"],
        shape_fn=scalar_shape,
        is_stateful=True,
        doc="Has the session keep a tensor; the output is its handle.",
    )
register_op(
    "GetSessionTensor(handle: string) -> value: dtype",
    attrs=["dtype: type"],
    shape_fn=checked_unknown("0"),
    is_stateful=True,
    doc="The tensor that the session keeps under a handle.",
)
register_op(
    "DeleteSessionTensor(handle: string)",
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
