"""Kernels of ops that make a resource and give a handle to it; kernels that are given the handle.

Source: TensorFlow core/framework/resource_op_kernel.h, GetResourceFromContext in op_kernel.h.
"""

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

from opkernel.device.string_tensors import string_tensor
from opkernel.errors import NotFoundError
from opkernel.kernel import (
    ContainerInfo,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    TensorRef,
    handle_from_input,
    lookup_resource,
    make_resource_handle,
    tensor_of_handle,
)
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.step_resources import InexpensiveKernel, resource_manager, string_handle
from opkernel.types import DataType

__all__ = [
    "ResourceOpKernel",
    "container_of",
    "register_fact",
    "resource_of_handle",
    "string_tensor",
]

R = TypeVar("R", bound=ResourceBase)


class ResourceOpKernel(OpKernel):
    """Gives a handle to the resource of its shared name, and makes the resource if need be.

    Without a shared name the resource is the kernel's own and ends with it.

    Attributes:
        resource_type: The class that the resource is found by.
        use_node_name: Whether the name of the node stands for a shared name that is missing.
        info: Under which name the resource is kept, from the first computation on.
    """

    resource_type: ClassVar[type[ResourceBase]] = ResourceBase
    use_node_name: bool = False
    info: ContainerInfo

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._lock = threading.Lock()
        self._handle: Any = None
        self._verified: ResourceBase | None = None

    def create_resource(self, ctx: OpKernelContext) -> ResourceBase:
        """A new resource."""
        raise NotImplementedError(f"{type(self).__name__} does not override create_resource")

    def verify_resource(self, resource: Any) -> None:
        """Raise InvalidArgumentError unless a found resource is what the node asks for."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Give the handle."""
        with self._lock:
            if self._handle is None:
                self._name_resource(ctx)
            info = self.info
            with info.resource_manager.lookup_or_create(
                info.container, info.name, self.resource_type, lambda: self.create_resource(ctx)
            ) as resource:
                if resource is not self._verified:
                    self.verify_resource(resource)
                    self._verified = resource
        if isinstance(self._handle, TensorRef):
            ctx.set_output_ref(0, self._handle)
        else:
            ctx.set_output(0, self._handle)

    def _name_resource(self, ctx: OpKernelContext) -> None:
        """Find the name, and make the handle: a resource handle, or two strings by reference."""
        info = self.info = ContainerInfo.init(
            resource_manager(ctx), self.node_def, use_node_name_as_default=self.use_node_name
        )
        if self.output_types[0] == DataType.DT_RESOURCE:
            self._handle = tensor_of_handle(
                make_resource_handle(info.container, info.name, ctx.device, self.resource_type)
            )
        else:
            self._handle = TensorRef(names_tensor(info.container, info.name))

    def __del__(self, _is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if _is_ending():
            return  # modules have lost their names
        if getattr(self, "_handle", None) is None or not self.info.resource_is_private_to_kernel:
            return  # it has none, or the constructor failed
        with suppress(NotFoundError):  # the container was emptied
            self.info.resource_manager.delete(
                self.info.container, self.info.name, self.resource_type
            )


def names_tensor(*names: str) -> Any:
    """A vector of names."""
    return string_tensor((len(names),), [name.encode(errors="surrogateescape") for name in names])


def container_of(kernel: OpKernel, ctx: OpKernelContext) -> ContainerInfo:
    """Where a kernel keeps what nodes of the same shared name share; the node's name stands for it.

    Raises:
        InvalidArgumentError: the attrs are no names for it.
    """
    return ContainerInfo.init(resource_manager(ctx), kernel.node_def, use_node_name_as_default=True)


def resource_of_handle(ctx: OpKernelContext, resource_type: type[R], index: int = 0) -> R:
    """The resource whose handle is an input, with one more reference, for the caller to give up.

    Raises:
        InvalidArgumentError: the handle is malformed, or of another device or type.
        NotFoundError: the resource does not exist.
    """
    if ctx.input_dtype(index) == DataType.DT_RESOURCE:
        given = ctx.input(index)
        require_scalar(given, "Resource handle must be a scalar")
        return lookup_resource(ctx, handle_from_input(given), resource_type)
    container, name = string_handle(ctx, "Resource", index)
    return resource_manager(ctx).lookup(container, name, resource_type)


def register_fact(*ops: str, of: type[R], fact: Callable[[R], int]) -> None:
    """Register a kernel that returns a number or a bool of the resource whose handle is input 0."""

    class FactKernel(InexpensiveKernel):
        def compute(self, ctx: OpKernelContext) -> None:
            with resource_of_handle(ctx, of) as resource:
                ctx.set_output(0, self.output_dtypes[0].type(fact(resource)))

    register_kernel(*ops)(FactKernel)
