"""OpKernelConstruction: the node, device and services for making a kernel; and KernelFacts, which the kernel keeps of them.

`requires` and its forms (`StatusReporting`) say that something is wrong. In `compute` a condition that fails raises.
In `compute_async`, which has returned by the time that something fails, it is recorded and the callback is called.

Source: OpKernelConstruction, OpKernel, OP_REQUIRES and CtxFailure in TensorFlow core/framework/op_kernel.h,
op_requires.h, op_kernel.cc.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opkernel.device.allocation import allocate
from opkernel.device.local_device import AllocatorAttributes, Device
from opkernel.errors import InternalError, InvalidArgumentError, NotFoundError, OpError
from opkernel.kernel.contract import UNCLAIMED, KernelContract
from opkernel.kernel.node_properties import (
    Arg,
    MemoryType,
    MemoryTypes,
    NodeProperties,
    OfNode,
    delegated_to,
)
from opkernel.logs import logger
from opkernel.messages import did_you_mean
from opkernel.opdef import attr_to_python, attr_type_of, attr_value_has_type, find_attr
from opkernel.proto import NodeDef, OpDef
from opkernel.records import replace
from opkernel.types import Array, DataType

if TYPE_CHECKING:
    from opkernel.device.allocator import Allocator
    from opkernel.kernel.context.memory_record import PersistentTensor
    from opkernel.state.resource_mgr import ResourceMgr


class StatusReporting:
    """The status of a construction or of a computation, and the ways to set it.

    Where an `error` is wanted, a message stands for an InvalidArgumentError.

    Attributes:
        status: The recorded error, or None where all is well.
    """

    __slots__ = ("status",)
    status: OpError | None

    def requires(self, condition: object, error: str | OpError) -> None:
        """Raise `error` unless `condition` holds (OP_REQUIRES).

        Raises:
            InternalError: it is called in a `compute_async`, where `requires_async` is right.
        """
        if not condition:
            self.check_not_in_compute_async("requires_async")
            raise _as_error(error)

    def requires_ok(self, error: OpError | None) -> None:
        """Raise `error` if there is one (OP_REQUIRES_OK)."""
        if error is not None:
            self.check_not_in_compute_async("requires_ok_async")
            raise error

    def requires_async(
        self, condition: object, error: str | OpError, done: Callable[[], None]
    ) -> bool:
        """Record `error` and call `done` unless `condition` holds (OP_REQUIRES_ASYNC).

        if not ctx.requires_async(x.ndim == 1, "x must be a vector", done):
            return
        """
        if condition:
            return True
        self._fail(_as_error(error))
        done()
        return False

    def requires_ok_async(self, error: OpError | None, done: Callable[[], None]) -> bool:
        """Record `error` and call `done` if there is one (OP_REQUIRES_OK_ASYNC)."""
        if error is None:
            return True
        self._fail(error)
        done()
        return False

    def ctx_failure(self, error: str | OpError) -> None:
        """Record an error, with the file and line of the caller as a note on it (CtxFailure)."""
        self._fail(_as_error(error))

    def ctx_failure_with_warning(self, error: str | OpError) -> None:
        """Record an error as `ctx_failure` does, and log it as a warning."""
        self._fail(_as_error(error), is_warning=True)

    def set_status(self, error: OpError | None) -> None:
        """Record an error without leaving the kernel; the first one counts."""
        if self.status is None:
            self.status = error

    def check_not_in_compute_async(self, right_form: str) -> None:
        """Raise InternalError where the kernel's errors must go through its callback."""
        if self._reports_by_callback():
            raise InternalError(f"Use {right_form} in AsyncOpKernel implementations.")

    def _reports_by_callback(self) -> bool:
        return False

    def _fail(self, error: OpError, *, is_warning: bool = False) -> None:
        """Record an error for the function that called the caller."""
        frame = sys._getframe(2)
        error.add_note(f"reported at {frame.f_code.co_filename}:{frame.f_lineno}")
        log = logger("opkernel.kernel")
        told = log.warning if is_warning else log.debug
        told("%s: %s", error.code.name, error.message, stacklevel=3)
        self.set_status(error)


def _as_error(error: str | OpError) -> OpError:
    return InvalidArgumentError(error) if isinstance(error, str) else error


class KernelFacts(OfNode):
    """A kernel, but for what it computes.

    Args:
        construction: the node, device and services that the kernel is made from.
        custom_def: a node to go by instead of the graph's, for kernels that rewrite theirs.
        is_deferred: the kernel's work goes on after `compute` has returned.

    Attributes:
        forwards_inputs: The claim of that name in the contracts of all kernels of the class.
        contract: The claims of the kernel.
        node_traceback: Tells where the node was defined, if that is known.
    """

    forwards_inputs: ClassVar[bool] = False
    node_traceback: Callable[[], Any] | None = None

    def __init__(
        self,
        construction: OpKernelConstruction,
        *,
        custom_def: NodeDef | None = None,
        is_deferred: bool = False,
    ) -> None:
        self.properties = construction.properties
        if custom_def is not None:
            self.properties = replace(self.properties, node_def=custom_def)
        self.device: Device = construction.device
        self.input_memory_types: tuple[MemoryType, ...] = construction.input_memory_types
        self.output_memory_types: tuple[MemoryType, ...] = construction.output_memory_types
        self.graph_def_version = construction.graph_def_version
        self.contract: KernelContract = construction.contract
        if self.forwards_inputs and not self.contract.forwards_inputs:
            self.contract = replace(self.contract, forwards_inputs=True)
        self.is_deferred = is_deferred
        self.num_inputs = len(self.properties.input_types)
        self.num_outputs = len(self.properties.output_types)
        self.output_dtypes = _numpy_dtypes(self.properties.output_types)
        self.unset_outputs = _unset_outputs(self.num_outputs)

    name: str = delegated_to("properties.node_def.name")
    """The node's name."""

    type_string: str = delegated_to("properties.node_def.op")
    """The op's name."""

    requested_device: str = delegated_to("properties.node_def.device")
    """The device that the node asks for; may be partial or empty."""

    def requested_input(self, index: int) -> str:
        """The name of the input at `index` as the node gives it."""
        return self.properties.node_def.input[index]

    def input_range(self, name: str) -> tuple[int, int]:
        """The range `[start, stop)` of the input argument `name` in the flat list of inputs."""
        return _range(self, name, self.properties.input_args, "input")

    def output_range(self, name: str) -> tuple[int, int]:
        """The range `[start, stop)` of the output argument `name` in the flat list of outputs."""
        return _range(self, name, self.properties.output_args, "output")


@lru_cache
def _numpy_dtypes(types: tuple[DataType, ...]) -> tuple[np.dtype[Any], ...]:
    return tuple([dtype.base.numpy_dtype for dtype in types])


@lru_cache
def _unset_outputs(count: int) -> tuple[None, ...]:
    return (None,) * count


def _range(kernel: KernelFacts, name: str, args: tuple[Arg, ...], what: str) -> tuple[int, int]:
    for arg in args:
        if arg.name == name:
            return arg.start, arg.stop
    raise InvalidArgumentError(
        f"{kernel.type_string}: unknown {what} name {name!r}; "
        f"has {[arg.name for arg in args]} (node {kernel.name!r})",
        node=kernel.name,
        op=kernel.type_string,
    )


class OpKernelConstruction(OfNode, StatusReporting):
    """The node, its types, its device and its attrs, for the constructor of a kernel.

    An error may be raised, or recorded by `set_status` and `ctx_failure`: either way there is no
    kernel.

    Attributes:
        device: The device that the kernel will run on.
        input_memory_types: Where the inputs live.
        output_memory_types: Where the outputs live.
        graph_def_version: The version of GraphDef whose rules count.
        function_library: Instantiates functions; None where there is none.
        contract: What the kernel claims.
    """

    def __init__(
        self,
        device: Device,
        properties: NodeProperties,
        memory_types: MemoryTypes,
        graph_def_version: int,
        function_library: Any = None,
        *,
        known_attrs: dict[str, Any] | None = None,
        contract: KernelContract = UNCLAIMED,
    ) -> None:
        """`known_attrs` are values of attrs that `get_attr` found, or will, for nodes of one form."""
        self.device = device
        self.properties = properties
        self.input_memory_types, self.output_memory_types = memory_types
        self.graph_def_version = graph_def_version
        self.function_library = function_library
        self.contract = contract
        self.status: OpError | None = None
        self._known_attrs = {} if known_attrs is None else known_attrs

    device_type: str = delegated_to("device.device_type")
    """The type of the device, such as `CPU`."""

    array_namespace: Any = delegated_to("device.array_namespace")
    """The array namespace of the device's tensors: `numpy` on the CPU."""

    resource_manager: ResourceMgr | None = delegated_to("device.resource_manager")
    """The resources of the device."""

    env: Any = delegated_to("device.env")
    """The clock and the files that kernels may use."""

    def get_allocator(self, attr: AllocatorAttributes | None = None) -> Allocator:
        """The allocator of the device for memory of the given kind."""
        return self.device.get_allocator(attr or AllocatorAttributes())

    op_def: OpDef = delegated_to("properties.op_def")
    """The op of the node."""

    @property
    def num_inputs(self) -> int:
        """The number of input tensors."""
        return len(self.input_types)

    @property
    def num_outputs(self) -> int:
        """The number of output tensors."""
        return len(self.output_types)

    def has_attr(self, name: str) -> bool:
        """Whether the node has the attr `name`."""
        return name in self.node_def.attr

    def get_attr(self, name: str, attr_type: str | None = None) -> Any:
        """The value of the attr `name` as `attr_to_python` gives it.

        Args:
            name: the attr's name.
            attr_type: the type that the kernel takes, such as `list(int)`, or `int32` and
                `list(int32)` for integers of 32 bits; as the op declares it if None.

        Raises:
            NotFoundError: the node has no such attr.
            InvalidArgumentError: the attr's value is not of that type.
        """
        if attr_type is None and name in self._known_attrs:
            return self._known_attrs[name]
        attrs = self.properties.node_def.attr
        if name not in attrs:
            raise NotFoundError(f"No attr named '{name}' in NodeDef{did_you_mean(name, attrs)}:")
        value = attrs[name]
        declared = find_attr(self.properties.op_def, name)
        if attr_type is not None:
            is_int32 = attr_type in ("int32", "list(int32)")
            wanted = attr_type.replace("int32", "int") if is_int32 else attr_type
            attr_value_has_type(value, wanted)
            found = attr_to_python(value, wanted)
            return _as_int32(name, found) if is_int32 else found
        found = attr_to_python(value, attr_type_of(value) if declared is None else declared.type)
        if isinstance(found, int | float | str) and not value.HasField("tensor"):
            self._known_attrs[name] = found
        return found

    def keyword_values(self, names: Iterable[str]) -> dict[str, Any]:
        """The values of a kernel function's keywords: `xp`, `construction`, and attrs by their names."""
        known = self._known_attrs
        values: dict[str, Any] = {}
        for name in names:
            if name == "xp":
                values[name] = self.device.array_namespace
            elif name == "construction":
                values[name] = self
            else:
                values[name] = known[name] if name in known else self.get_attr(name)
        return values

    def match_signature(
        self, expected_inputs: Sequence[DataType], expected_outputs: Sequence[DataType]
    ) -> None:
        """Raise InvalidArgumentError unless the node has exactly these input and output types."""
        self.properties.match_signature(expected_inputs, expected_outputs)

    def allocate_temp(
        self, dtype: DataType, shape: Sequence[int], attr: AllocatorAttributes | None = None
    ) -> Array:
        """An uninitialised array for the kernel's own use.

        Args:
            dtype: its type.
            shape: its sizes.
            attr: the memory that it needs; any of the device's if None.

        Raises:
            InvalidArgumentError: a size is negative, or there are too many elements.
            ResourceExhaustedError: the array would be larger than the limit.
        """
        if attr is None and not self.device.allocates:
            return allocate(shape, dtype)
        kind = attr or AllocatorAttributes()
        array: Array = self.device.allocate(kind, self.get_allocator(kind), shape, dtype)
        return array

    def allocate_persistent(
        self, dtype: DataType, shape: Sequence[int], attr: AllocatorAttributes | None = None
    ) -> PersistentTensor:
        """An uninitialised array that the kernel keeps for its computations; raises as `allocate_temp`."""
        from opkernel.kernel.context.memory_record import PersistentTensor  # for few kernels

        return PersistentTensor(self.allocate_temp(dtype, shape, attr))

    def allocate_on_host(self, attr: AllocatorAttributes) -> bool:
        """Whether memory of the given kind is memory of the host."""
        return attr.on_host or self.device_type == "CPU"

    def record_tensor_reference(self, tensor: Any) -> None:
        """Nothing: while a kernel is made no work on its tensors can be under way."""


def _as_int32(name: str, found: Any) -> Any:
    """An int, or a list of them, if all fit into 32 bits."""
    for value in found if isinstance(found, list) else [found]:
        if not -(2**31) <= value < 2**31:
            raise InvalidArgumentError(f"Attr {name} has value {value} out of range for an int32")
    return found
