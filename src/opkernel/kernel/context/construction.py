"""OpKernelConstruction: the node, device and services for making a kernel.

Source: TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.allocation import allocate
from opkernel.device.allocator_attributes import AllocatorAttributes
from opkernel.device.device import Device
from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.kernel.context.status_reporting import StatusReporting
from opkernel.kernel.contract import UNCLAIMED, KernelContract
from opkernel.kernel.node_properties import NodeProperties, OfNode
from opkernel.kernel.registry.memory_types import MemoryTypes
from opkernel.messages import did_you_mean
from opkernel.opdef import attr_to_python, attr_type_of, attr_value_has_type, find_attr
from opkernel.proto import OpDef
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.device.allocator import Allocator
    from opkernel.kernel.context.persistent_tensor import PersistentTensor
    from opkernel.state.resource_mgr import ResourceMgr


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

    @property
    def device_type(self) -> str:
        """The type of the device, such as `CPU`."""
        return self.device.device_type

    @property
    def array_namespace(self) -> Any:
        """The array namespace of the device's tensors: `numpy` on the CPU."""
        return self.device.array_namespace

    @property
    def resource_manager(self) -> ResourceMgr | None:
        """The resources of the device."""
        return self.device.resource_manager

    @property
    def env(self) -> Any:
        """The clock and the files that kernels may use."""
        return self.device.env

    def get_allocator(self, attr: AllocatorAttributes | None = None) -> Allocator:
        """The allocator of the device for memory of the given kind."""
        return self.device.get_allocator(attr or AllocatorAttributes())

    @property
    def op_def(self) -> OpDef:
        """The op of the node."""
        return self.properties.op_def

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
        values = {}
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
    ) -> np.ndarray[Any, Any]:
        """An uninitialised array for the kernel's own use.

        Args:
            dtype: its type.
            shape: its sizes.
            attr: the memory that it needs; any of the device's if None.

        Raises:
            InvalidArgumentError: a size is negative, or there are too many elements.
            ResourceExhaustedError: the array would be larger than the limit.
        """
        if attr is None:
            return allocate(shape, dtype)
        return self.get_allocator(attr).allocate(shape, dtype)

    def allocate_persistent(
        self, dtype: DataType, shape: Sequence[int], attr: AllocatorAttributes | None = None
    ) -> PersistentTensor:
        """An uninitialised array that the kernel keeps for its computations; raises as `allocate_temp`."""
        from opkernel.kernel.context.persistent_tensor import PersistentTensor  # for few kernels

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
