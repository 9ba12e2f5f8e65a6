"""Resources of one step, which ops find by a handle or, in old graphs, by a vector of two strings.

Source: GetStack in TensorFlow core/kernels/stack.cc, GetTensorArray in tensor_array_ops.cc.
"""

from typing import Any, TypeVar

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    ResourceMgr,
    ScopedStepContainer,
    TensorRef,
    handle_from_input,
    lookup_resource,
    tensor_of_handle,
)
from opkernel.types import DataType, TensorShape

R = TypeVar("R", bound=ResourceBase)


class InexpensiveKernel(OpKernel):
    """A kernel that is not worth a thread of its own: it only hands tensors on."""

    @property
    def is_expensive(self) -> bool:
        """It is not."""
        return False


def resource_manager(ctx: OpKernelConstruction | OpKernelContext) -> ResourceMgr:
    """The resources of the device.

    Raises:
        InternalError: it has none.
    """
    manager = ctx.resource_manager
    if manager is None:
        raise InternalError("No resource manager.")
    return manager


def step_container(ctx: OpKernelContext) -> ScopedStepContainer:
    """The container of the step.

    Raises:
        InternalError: it has none.
    """
    if ctx.step_container is None:
        raise InternalError("No step container.")
    return ctx.step_container


def string_handle(ctx: OpKernelContext, what: str, index: int = 0) -> tuple[str, str]:
    """The two strings that an input holds.

    Raises:
        InvalidArgumentError: it does not hold two.
    """
    given = ctx.input(index)
    tensor = given.tensor if isinstance(given, TensorRef) else given
    if tensor.size != 2:
        raise InvalidArgumentError(
            f"{what} handle must be 2-element vector, but had shape: {TensorShape(tensor.shape)}"
        )
    container, name = (part.decode(errors="surrogateescape") for part in tensor.flat)
    return container, name


def resource_of_step(ctx: OpKernelContext, resource_type: type[R]) -> R:
    """The resource whose handle is input 0, with one more reference.

    Raises:
        NotFoundError: it does not exist.
        InvalidArgumentError: the handle is malformed, or of another device or type.
    """
    if ctx.input_dtype(0) == DataType.DT_RESOURCE:
        return lookup_resource(ctx, handle_from_input(ctx.input(0)), resource_type)
    container, name = string_handle(ctx, resource_type.__name__)
    return step_container(ctx).lookup(resource_manager(ctx), container + name, resource_type)


def set_handle(
    ctx: OpKernelContext, container: str, name: str, resource_type: type[ResourceBase]
) -> None:
    """Set output 0 to a handle of the resource `container + name` of the step, of its type."""
    dtype = ctx.expected_output_dtype(0)
    if dtype == DataType.DT_RESOURCE:
        handle = step_container(ctx).make_resource_handle(
            container + name, ctx.device, resource_type
        )
        ctx.set_output(0, tensor_of_handle(handle))
        return
    strings = np.empty(2, object)
    strings[:] = [part.encode(errors="surrogateescape") for part in (container, name)]
    if dtype.is_ref:
        ctx.set_output_ref(0, TensorRef(strings))
    else:
        ctx.set_output(0, strings)


def kept(tensor: Any) -> Any:
    """A tensor as a resource keeps it, to hand it out later; it is read-only."""
    if not isinstance(tensor, np.ndarray) or not tensor.flags.writeable:
        return tensor
    view = tensor.view()
    view.setflags(write=False)
    return view
