"""NodeProperties: a node with its op, and what follows from both: arguments, types, and the memory that each lives in.

Source: TensorFlow core/framework/node_properties.h, memory_types.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import Any, NamedTuple

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import is_list_arg, name_ranges_for_node
from opkernel.opdef import text as summaries
from opkernel.proto import AttrValue, KernelDef, NodeDef, OpDef
from opkernel.records import dataclass
from opkernel.types import DataType

_Ranges = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Arg:
    """An input or output argument of a node: the tensors `start` to `stop - 1` of its flat list."""

    name: str
    start: int
    stop: int
    is_list: bool


def args_of_node(node_def: NodeDef, op_def: OpDef) -> tuple[tuple[Arg, ...], tuple[Arg, ...]]:
    """The input and the output arguments of a valid node."""
    return args_in_ranges(op_def, *name_ranges_for_node(node_def, op_def))


def args_in_ranges(
    op_def: OpDef, inputs: _Ranges, outputs: _Ranges
) -> tuple[tuple[Arg, ...], tuple[Arg, ...]]:
    """The input and the output arguments of an op, of which each stands for a range of tensors."""
    return _args(op_def.input_arg, inputs), _args(op_def.output_arg, outputs)


def _args(args: Iterable[OpDef.ArgDef], ranges: _Ranges) -> tuple[Arg, ...]:
    return tuple([Arg(arg.name, *ranges[arg.name], is_list_arg(arg)) for arg in args])


def by_arg(tensors: Sequence[Any], args: Iterable[Arg]) -> list[Any]:
    """Tensors one entry an argument: a tensor, or a list of them."""
    return [
        list(tensors[arg.start : arg.stop]) if arg.is_list else tensors[arg.start] for arg in args
    ]


@dataclass(slots=True)  # not frozen: one is made for each kernel, and that takes four times as long
class NodeProperties:
    """A node with its op, and the types and argument ranges that follow from both."""

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
        args = args_of_node(node_def, op_def)
        return cls(op_def, node_def, tuple(input_types), tuple(output_types), *args)

    def match_signature(
        self, expected_inputs: Sequence[DataType], expected_outputs: Sequence[DataType]
    ) -> None:
        """Raise InvalidArgumentError unless the node has these input and output types.

        Where an input is expected by value, a reference counts as the value that it refers to.
        """
        fits = self.output_types == tuple(expected_outputs) and _types_compatible(
            expected_inputs, self.input_types
        )
        if not fits:
            have, want = (
                f"{_types_text(inputs)}->{_types_text(outputs)}"
                for inputs, outputs in (
                    (self.input_types, self.output_types),
                    (expected_inputs, expected_outputs),
                )
            )
            raise InvalidArgumentError(f"Signature mismatch, have: {have} expected: {want}")


def _types_compatible(expected: Sequence[DataType], actual: Sequence[DataType]) -> bool:
    """Whether tensors of the actual types may be given where others are expected."""
    return len(expected) == len(actual) and all(
        want in (have, have.base) for want, have in zip(expected, actual, strict=True)
    )


def _types_text(types: Sequence[DataType]) -> str:
    return ", ".join(dtype.string for dtype in types)


def delegated_to(path: str) -> Any:
    """A property that reads an attribute of an attribute: `delegated_to("device.env")`."""
    return property(attrgetter(path), doc=f"The same as `{path}`.")


class OfNode:
    """The facts of a node: for its kernel, and for the kernel's construction.

    Attributes:
        properties: The node, its op, its types and arguments.
    """

    properties: NodeProperties

    node_def: NodeDef = delegated_to("properties.node_def")
    """The node."""

    input_types: tuple[DataType, ...] = delegated_to("properties.input_types")
    """The types of the flat list of inputs."""

    output_types: tuple[DataType, ...] = delegated_to("properties.output_types")
    """The types of the flat list of outputs."""

    def input_type(self, index: int) -> DataType:
        """The type of the input at `index`."""
        return self.properties.input_types[index]

    def output_type(self, index: int) -> DataType:
        """The type of the output at `index`."""
        return self.properties.output_types[index]


class MemoryType(IntEnum):
    """The memory of a tensor that passes between kernels."""

    DEVICE_MEMORY = 0
    HOST_MEMORY = 1


class MemoryTypes(NamedTuple):
    """The memory types of the flat lists of a node's inputs and outputs."""

    inputs: tuple[MemoryType, ...]
    outputs: tuple[MemoryType, ...]


_FUNCTION_CALL_OPS = frozenset(
    {"SymbolicGradient", "PartitionedCall", "StatefulPartitionedCall", "While", "StatelessWhile"}
)
"""Ops that run a function: its body, not their kernel, decides where integers live."""


def mtype_from_dtype(dtype: DataType, *, int32_on_device: bool = False) -> MemoryType:
    """Where tensors of a type live unless a kernel says otherwise.

    Strings and resources live on the host for every device. So does int32, which mostly holds
    shapes and indices, unless `int32_on_device`.
    """
    on_host = dtype.always_on_host or (dtype is DataType.DT_INT32 and not int32_on_device)
    return MemoryType.HOST_MEMORY if on_host else MemoryType.DEVICE_MEMORY


def memory_types(
    node: NodeProperties, device_type: str, kernel_def: KernelDef | None
) -> MemoryTypes:
    """The memory types of a node on a device, given its kernel.

    The kernel's HostMemory arguments, types that always live on the host, and the indices in the
    attrs `_input_hostmem` and `_output_hostmem` are in host memory; all else is in the device's.
    A node without a kernel, and a function call, is judged by its types alone.

    Raises:
        InvalidArgumentError: the kernel names HostMemory arguments that the op does not have.
    """
    node_def = node.node_def
    if node_def.op in _FUNCTION_CALL_OPS:
        kernel_def = None
    named = () if kernel_def is None else kernel_def.host_memory_arg
    known = {arg.name for arg in (*node.input_args, *node.output_args)}
    unknown = [name for name in named if name not in known]
    if unknown:
        raise InvalidArgumentError(
            f"HostMemory args {', '.join(map(repr, unknown))} not found in OpDef: "
            f"{summaries.summarize_op_def(node.op_def)}"
        )
    int32_on_device = (
        kernel_def is not None or device_type == "TPU" or is_set(node_def.attr, "_XlaMustCompile")
    )

    def of(types: Iterable[DataType], args: Iterable[Arg], attr: str) -> tuple[MemoryType, ...]:
        on_host = {*node_def.attr[attr].list.i} if attr in node_def.attr else set()
        for arg in args:
            if arg.name in named:
                on_host.update(range(arg.start, arg.stop))
        return tuple(
            [
                MemoryType.HOST_MEMORY
                if index in on_host
                else mtype_from_dtype(dtype, int32_on_device=int32_on_device)
                for index, dtype in enumerate(types)
            ]
        )

    inputs = of(node.input_types, node.input_args, "_input_hostmem")
    return MemoryTypes(inputs, of(node.output_types, node.output_args, "_output_hostmem"))


def is_marked(attrs: Mapping[str, AttrValue]) -> bool:
    """Whether the attrs of a node or a function ask for it to be compiled by XLA."""
    return is_set(attrs, "_XlaCompile") or is_set(attrs, "_XlaMustCompile")


def is_set(attrs: Mapping[str, AttrValue], name: str) -> bool:
    """Whether attrs of a node or a function have a bool that is true."""
    return name in attrs and attrs[name].b
