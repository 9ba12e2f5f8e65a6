"""OpKernelConstruction: what a kernel is given when it is made.

Source: TensorFlow core/framework/op_kernel.h.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.kernel.allocation import allocate
from opkernel.kernel.device import Device
from opkernel.kernel.memory_types import MemoryType
from opkernel.kernel.op_kernel import NodeProperties
from opkernel.opdef import attr_to_python, attr_type_of, find_attr
from opkernel.proto import NodeDef, OpDef
from opkernel.types import DataType

__all__ = ["OpKernelConstruction"]


class OpKernelConstruction:
    """The node, its types, its device and its attrs, for the constructor of a kernel."""

    def __init__(
        self,
        device: Device,
        properties: NodeProperties,
        input_memory_types: Sequence[MemoryType],
        output_memory_types: Sequence[MemoryType],
        graph_def_version: int,
    ) -> None:
        self.device = device
        self.properties = properties
        self.input_memory_types = tuple(input_memory_types)
        self.output_memory_types = tuple(output_memory_types)
        self.graph_def_version = graph_def_version

    @property
    def device_type(self) -> str:
        """The type of the device, such as `CPU`."""
        return self.device.device_type

    @property
    def array_namespace(self) -> Any:
        """The array namespace of the device's tensors: `numpy` on the CPU."""
        return self.device.array_namespace

    @property
    def node_def(self) -> NodeDef:
        """The node that the kernel is made for."""
        return self.properties.node_def

    @property
    def op_def(self) -> OpDef:
        """The op of the node."""
        return self.properties.op_def

    @property
    def input_types(self) -> tuple[DataType, ...]:
        """The types of the flat list of inputs."""
        return self.properties.input_types

    @property
    def output_types(self) -> tuple[DataType, ...]:
        """The types of the flat list of outputs."""
        return self.properties.output_types

    def has_attr(self, name: str) -> bool:
        """Whether the node has the attr `name`."""
        return name in self.node_def.attr

    def get_attr(self, name: str) -> Any:
        """The value of the attr `name` as `attr_to_python` gives it.

        Raises:
            NotFoundError: the node has no such attr.
            InvalidArgumentError: the attr's value is not of the type that the op declares.
        """
        if name not in self.node_def.attr:
            raise NotFoundError(f"No attr named '{name}' in NodeDef:")
        value = self.node_def.attr[name]
        declared = find_attr(self.op_def, name)
        return attr_to_python(value, attr_type_of(value) if declared is None else declared.type)

    def requires(self, condition: object, error: str | OpError) -> None:
        """Raise `error` (a message stands for an InvalidArgumentError) unless `condition` holds."""
        if not condition:
            raise InvalidArgumentError(error) if isinstance(error, str) else error

    def match_signature(
        self, expected_inputs: Sequence[DataType], expected_outputs: Sequence[DataType]
    ) -> None:
        """Raise InvalidArgumentError unless the node has exactly these input and output types."""
        if (self.input_types, self.output_types) != (
            tuple(expected_inputs),
            tuple(expected_outputs),
        ):
            have, want = (
                f"{_types(inputs)}->{_types(outputs)}"
                for inputs, outputs in (
                    (self.input_types, self.output_types),
                    (expected_inputs, expected_outputs),
                )
            )
            raise InvalidArgumentError(f"Signature mismatch, have: {have} expected: {want}")

    def allocate_temp(self, dtype: DataType, shape: Sequence[int]) -> np.ndarray[Any, Any]:
        """An uninitialised array for the kernel's own use."""
        return allocate(shape, dtype)


def _types(types: Sequence[DataType]) -> str:
    return ", ".join(dtype.string for dtype in types)
