"""Kernels of ops that make a resource and give a handle to it; kernels that are given the handle.

Resources of one step are found by a handle or, in old graphs, by a vector of two strings.

Source: TensorFlow core/framework/resource_op_kernel.h, GetResourceFromContext in op_kernel.h; GetStack in
core/kernels/stack.cc, GetTensorArray in tensor_array_ops.cc.
"""

import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from opkernel.device.string_tensors import string_tensor
from opkernel.errors import InternalError, InvalidArgumentError, NotFoundError
from opkernel.kernel import (
    ContainerInfo,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    ResourceBase,
    ResourceMgr,
    ScopedStepContainer,
    TensorRef,
    handle_from_input,
    lookup_resource,
    make_ref_counting_handle,
    make_resource_handle,
    tensor_of_handle,
)
from opkernel.opdef import OpShapeInferenceFn, register_op
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
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


class RefCountingHandleOp(OpKernel):
    """Makes a new resource at each computation, which its handle owns.

    Attributes:
        resource_type: The class that the resource is found by.
    """

    resource_type: ClassVar[type[ResourceBase]]

    def create_resource(self, ctx: OpKernelContext) -> ResourceBase:
        """A new resource."""
        raise NotImplementedError(f"{type(self).__name__} does not override create_resource")

    def compute(self, ctx: OpKernelContext) -> None:
        """Make the resource."""
        resource = self.create_resource(ctx)
        handle = make_ref_counting_handle(resource, ctx.device, self.resource_type)
        ctx.set_output(0, tensor_of_handle(handle))


def names_tensor(*names: str) -> Any:
    """A vector of names."""
    return string_tensor((len(names),), [name.encode(errors="surrogateescape") for name in names])


def container_of(
    kernel: OpKernel, ctx: OpKernelContext, *, by_node_name: bool = True
) -> ContainerInfo:
    """Where a kernel keeps what nodes of the same shared name share; the node's name stands for it, if it may.

    Raises:
        InvalidArgumentError: the attrs are no names for it.
    """
    manager = resource_manager(ctx)
    return ContainerInfo.init(manager, kernel.node_def, use_node_name_as_default=by_node_name)


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


class LastResource(Generic[R]):
    """The resource that a kernel has found last, for kernels that mostly get the same handle."""

    __slots__ = ("_pair",)

    def __init__(self) -> None:
        self._pair: tuple[weakref.ref[Any], weakref.ref[R]] | None = None

    def get(self, handle: Any) -> R | None:
        """The resource, if the tensor of the handle is the same and the resource exists."""
        pair = self._pair
        if pair is None or pair[0]() is not handle:
            return None
        found = pair[1]()
        return found if found is not None and found.ref_count else None

    def put(self, handle: Any, resource: R) -> None:
        """Remember a resource; one that references to names lead to may change unseen."""
        if not isinstance(handle, TensorRef):
            self._pair = weakref.ref(handle), weakref.ref(resource)


def declare_versions(
    signature: str,
    *,
    shape_fn: OpShapeInferenceFn,
    shape_fn_v2: OpShapeInferenceFn,
    is_stateful: bool = False,
    **declared: Any,
) -> None:
    """Declare an op on a handle that is a reference to two strings, and its second version on a resource handle.

    Args:
        signature: That of the op, with `{}` for the type of a handle.
        shape_fn: The shape function.
        shape_fn_v2: That of the second version, which is stateful in any case.
        is_stateful: Whether the first version is, too.
        declared: Further arguments of `register_op`.
    """
    name, _, arguments = signature.partition("(")
    reference, resource = (arguments.replace("{}", one) for one in ("Ref(string)", "resource"))
    register_op(f"{name}({reference}", shape_fn=shape_fn, is_stateful=is_stateful, **declared)
    register_op(f"{name}V2({resource}", shape_fn=shape_fn_v2, is_stateful=True, **declared)


def register_fact(*ops: str, of: type[R], fact: Callable[[R], int]) -> None:
    """Register a kernel that returns a number or a bool of the resource whose handle is input 0."""

    class FactKernel(InexpensiveKernel):
        def compute(self, ctx: OpKernelContext) -> None:
            with resource_of_handle(ctx, of) as resource:
                ctx.set_output(0, self.output_dtypes[0].type(fact(resource)))

    register_kernel(*ops)(FactKernel)
