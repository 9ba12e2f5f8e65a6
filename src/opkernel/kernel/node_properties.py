"""NodeProperties: a node with its op, and what follows from both.

Source: NodeProperties in TensorFlow core/framework/node_properties.h.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import is_list_arg, name_ranges_for_node
from opkernel.proto import NodeDef, OpDef
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


class OfNode:
    """The facts of a node: for its kernel, and for the kernel's construction.

    Attributes:
        properties: The node, its op, its types and arguments.
    """

    properties: NodeProperties

    @property
    def node_def(self) -> NodeDef:
        """The node."""
        return self.properties.node_def

    @property
    def input_types(self) -> tuple[DataType, ...]:
        """The types of the flat list of inputs."""
        return self.properties.input_types

    @property
    def output_types(self) -> tuple[DataType, ...]:
        """The types of the flat list of outputs."""
        return self.properties.output_types

    def input_type(self, index: int) -> DataType:
        """The type of the input at `index`."""
        return self.properties.input_types[index]

    def output_type(self, index: int) -> DataType:
        """The type of the output at `index`."""
        return self.properties.output_types[index]
