"""OpKernel: the implementation of an op for one node on one device.

Source: TensorFlow core/framework/op_kernel.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opkernel.errors import InvalidArgumentError
from opkernel.kernel.memory_types import MemoryType
from opkernel.opdef import is_list_arg, name_ranges_for_node
from opkernel.proto import NodeDef, OpDef
from opkernel.types import DataType

if TYPE_CHECKING:
    from opkernel.kernel.construction import OpKernelConstruction
    from opkernel.kernel.context import OpKernelContext

__all__ = ["Arg", "NodeProperties", "OpKernel"]


@dataclass(frozen=True, slots=True)
class Arg:
    """An input or output argument of a node: the tensors `start` to `stop - 1` of its flat list."""

    name: str
    start: int
    stop: int
    is_list: bool


@dataclass(frozen=True, slots=True)
class NodeProperties:
    """A node with its op and what follows from both: types and argument ranges."""

    op_def: OpDef
    node_def: NodeDef
    input_types: tuple[DataType, ...]
    output_types: tuple[DataType, ...]
    input_args: tuple[Arg, ...]
    output_args: tuple[Arg, ...]

    @classmethod
    def of(
        cls,
        node_def: NodeDef,
        op_def: OpDef,
        input_types: Sequence[DataType],
        output_types: Sequence[DataType],
    ) -> NodeProperties:
        """The properties of a valid node."""
        ranges = name_ranges_for_node(node_def, op_def)
        inputs, outputs = (
            tuple(Arg(arg.name, *found[arg.name], is_list_arg(arg)) for arg in args)
            for args, found in zip((op_def.input_arg, op_def.output_arg), ranges, strict=True)
        )
        return cls(op_def, node_def, tuple(input_types), tuple(output_types), inputs, outputs)


class OpKernel:
    """A kernel: constructed once for a node, then computed once a step, from many threads.

    Subclasses take an OpKernelConstruction, read their attrs from it, and override `compute`.
    A synchronous kernel never blocks on what another kernel is to do.
    """

    def __init__(self, construction: OpKernelConstruction) -> None:
        self.properties: NodeProperties = construction.properties
        self.input_memory_types: tuple[MemoryType, ...] = construction.input_memory_types
        self.output_memory_types: tuple[MemoryType, ...] = construction.output_memory_types
        self.graph_def_version = construction.graph_def_version

    def compute(self, ctx: OpKernelContext) -> None:
        """Compute the outputs of one step from the inputs in `ctx`."""
        raise NotImplementedError(f"{type(self).__name__} does not override compute")

    @property
    def node_def(self) -> NodeDef:
        """The node that this kernel was made for."""
        return self.properties.node_def

    @property
    def name(self) -> str:
        """The node's name."""
        return self.properties.node_def.name

    @property
    def type_string(self) -> str:
        """The op's name."""
        return self.properties.node_def.op

    @property
    def requested_device(self) -> str:
        """The device that the node asks for; may be partial or empty."""
        return self.properties.node_def.device

    def requested_input(self, index: int) -> str:
        """The name of the input at `index` as the node gives it."""
        return self.properties.node_def.input[index]

    @property
    def input_types(self) -> tuple[DataType, ...]:
        """The types of the flat list of inputs."""
        return self.properties.input_types

    @property
    def output_types(self) -> tuple[DataType, ...]:
        """The types of the flat list of outputs."""
        return self.properties.output_types

    @property
    def num_inputs(self) -> int:
        """The number of input tensors."""
        return len(self.properties.input_types)

    @property
    def num_outputs(self) -> int:
        """The number of output tensors."""
        return len(self.properties.output_types)

    def input_range(self, name: str) -> tuple[int, int]:
        """The range `[start, stop)` of the input argument `name` in the flat list of inputs."""
        return _range(self, name, self.properties.input_args, "input")

    def output_range(self, name: str) -> tuple[int, int]:
        """The range `[start, stop)` of the output argument `name` in the flat list of outputs."""
        return _range(self, name, self.properties.output_args, "output")

    @property
    def const_tensor(self) -> Any:
        """The value of a kernel that always gives the same tensor; None for all others."""
        return None


def _range(kernel: OpKernel, name: str, args: tuple[Arg, ...], what: str) -> tuple[int, int]:
    for arg in args:
        if arg.name == name:
            return arg.start, arg.stop
    raise InvalidArgumentError(
        f"{kernel.type_string}: unknown {what} name {name!r}; "
        f"has {[arg.name for arg in args]} (node {kernel.name!r})",
        node=kernel.name,
        op=kernel.type_string,
    )
