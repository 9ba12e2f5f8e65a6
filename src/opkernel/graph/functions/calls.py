"""The functions that a node calls, by its op or by its attrs; and whether they take and give what the node says.

TensorFlow compares the types when the function is called, so that a branch that is never taken may
be wrong. The runtime compares them when it compiles the call, and refuses what does not fit when it
is called: calls that fit cost nothing.

Source: TensorFlow core/common_runtime/lower_functional_ops.cc, function.cc, executor.cc,
core/kernels/functional_ops.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.graph.core.operation import Operation
from opkernel.graph.functions.function_library import functions_of
from opkernel.opdef import in_out_types_for_node
from opkernel.proto import AttrValue, NameAttrList, NodeDef, OpDef
from opkernel.types import Array, DataType

FUNCTION_ATTRS = {
    "case": ("branches",),
    "function": ("f",),
    "if": ("then_branch", "else_branch"),
    "while": ("cond", "body"),
}
"""The attrs that name the functions, by the trait `calls`."""
LOWERING = "_lower_using_switch_merge"
"""The attr of an If, Case or While that becomes control flow of TensorFlow 1. A PartitionedCall that
stands for an If has it, too, true or false."""


def calls_functions(op: Operation) -> bool:
    """Whether a node hands its inputs to functions, which give its outputs."""
    return op.traits.calls in FUNCTION_ATTRS or op.type in op.graph.function_library


def called_function(op: Operation) -> NameAttrList:
    """The function that an operation calls, with the attrs to instantiate it with."""
    if op.traits.calls == "function":
        return op.attr["f"].func
    attrs = {attr.name: op.attr[attr.name] for attr in op.op_def.attr if attr.name in op.attr}
    return NameAttrList(name=op.type, attr=attrs)


def called_functions(op: Operation) -> list[NameAttrList]:
    """The functions that a node calls, in the order of `FUNCTION_ATTRS`."""
    attrs = FUNCTION_ATTRS.get(op.traits.calls)
    if attrs is None:
        return [called_function(op)]
    return [function for attr in attrs for function in functions_of(op.attr[attr])]


def chosen_branch(op: Operation, choice: Array) -> NameAttrList | None:
    """The branch that an If or Case calls for a choice; None where the op refuses that."""
    branches = called_functions(op)
    if op.traits.calls == "if":
        then_branch, else_branch = branches
        is_true = bool(choice[()]) if choice.ndim == 0 else choice.size > 0
        return then_branch if is_true else else_branch
    if choice.ndim > 0 or not branches:
        return None
    index = int(choice[()])
    return branches[index if 0 <= index < len(branches) else -1]


def is_lowered(op: Operation) -> bool:
    """Whether an If, Case or While is lowered, or the call that stands for one would be."""
    return LOWERING in op.attr and op.attr[LOWERING].b


def is_part_of_graph(op: Operation) -> bool:
    """Whether a node is a PartitionedCall of its own right."""
    return op.traits.calls == "function" and LOWERING not in op.attr


CallTypes = tuple[list[DataType], list[DataType]]
"""The types of arguments and of results; a reference counts as the type that it refers to."""


def declared_types(signature: OpDef, attrs: Mapping[str, AttrValue]) -> CallTypes | None:
    """The types of a function with these attrs; None if an attr is missing or wrong."""
    node = NodeDef(name=signature.name, op=signature.name, attr=attrs)
    try:
        takes, gives = in_out_types_for_node(node, signature)
    except (OpError, ValueError):
        return None
    return _bases(takes), _bases(gives)


def misfit(op: Operation, attr: str, name: str, types: CallTypes | None) -> OpError | None:
    """The complaint about a call whose types differ from its function's.

    Args:
        op: the node that calls.
        attr: its attr that names the function.
        name: the name of the function.
        types: its types; None where it cannot be instantiated.

    Returns:
        InvalidArgumentError for arguments, for the one result of the condition of a loop, which may
        be of any type, and for the results of its body; InternalError for other results. None where
        all fits, and for None, since instantiating the function says what is wrong.
    """
    if types is None:
        return None
    takes, gives = types
    given = _bases(op.input_types[op.traits.chooses_function :])
    if given != takes:
        wrong = _difference(takes, given)
        return InvalidArgumentError(
            f"Function {name!r} takes {wrong[0]}, the call gives {wrong[1]}"
        )
    if attr == "cond":
        one = f"Function {name!r} is the condition of a loop and must give 1 tensor"
        return None if len(gives) == 1 else InvalidArgumentError(f"{one}, it gives {len(gives)}")
    wanted = _bases(op.output_types)
    if wanted == gives:
        return None
    wrong = _difference(gives, wanted)
    error = InvalidArgumentError if attr == "body" else InternalError
    return error(f"Function {name!r} gives {wrong[0]}, the call wants {wrong[1]}")


def _bases(types: Iterable[DataType]) -> list[DataType]:
    return [dtype.base for dtype in types]


def _difference(types: Sequence[DataType], others: Sequence[DataType]) -> tuple[str, str]:
    """The first difference between lists of types."""
    if len(types) != len(others):
        return f"{len(types)} tensor(s)", str(len(others))
    index = next(i for i, (a, b) in enumerate(zip(types, others, strict=True)) if a != b)
    return f"{types[index].string} as tensor {index}", others[index].string
