"""Stacks of tensors, which live for one step: loops keep in them what their gradients need.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/stack.cc.
"""

import itertools
import threading
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction, OpKernelContext, ResourceBase
from opkernel.opdef import register_op, unknown_shape
from opkernel.opdef.common_shapes.rules import checked_no_outputs, outputs_as_inputs
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.step_resources import (
    InexpensiveKernel,
    kept,
    resource_manager,
    resource_of_step,
    set_handle,
    step_container,
)
from opkernel.types import DataType

_CONTAINER = "_stacks"
_MAX_SIZE = 2**31 - 1
_numbers = itertools.count()


for _version, _handle, _size in (("", "Ref(string)", []), ("V2", "resource", ["max_size: int32"])):
    _is_resource = _version == "V2"
    _traits = "clustering=stack" if _is_resource else ""
    register_op(
        f"Stack{_version}",
        inputs=_size,
        outputs=[f"handle: {_handle}"],
        attrs=["elem_type: type", "stack_name: string = ''"],
        shape_fn=shape_rule("-> [2]"),
        is_stateful=True,
        traits=_traits,
        doc="A new stack of the step.",
    )
    register_op(
        f"StackPush{_version}",
        inputs=[f"handle: {_handle}", "elem: T"],
        outputs=["output: T"],
        attrs=["T: type", "swap_memory: bool = false"],
        shape_fn=outputs_as_inputs(1),
        is_stateful=_is_resource,
        traits=_traits,
        doc="Puts `elem` on the stack; the output is `elem`.",
    )
    register_op(
        f"StackPop{_version}",
        inputs=[f"handle: {_handle}"],
        outputs=["elem: elem_type"],
        attrs=["elem_type: type"],
        shape_fn=unknown_shape,
        is_stateful=_is_resource,
        traits=_traits,
        doc="Takes the last element from the stack.",
    )
    register_op(
        f"StackClose{_version}",
        inputs=[f"handle: {_handle}"],
        shape_fn=checked_no_outputs("h"),
        is_stateful=_is_resource,
        traits=_traits,
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
