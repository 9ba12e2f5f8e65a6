"""Whether a function takes and gives what a node that calls it says.

TensorFlow compares the types when the function is called, so that a branch that is never taken may
be wrong. The runtime compares them when it compiles the call, and refuses what does not fit when it
is called: calls that fit cost nothing.

Source: TensorFlow core/common_runtime/function.cc, core/common_runtime/executor.cc,
core/kernels/functional_ops.cc.
"""

from collections.abc import Iterable, Mapping, Sequence

from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.graph.core.operation import Operation
from opkernel.opdef import in_out_types_for_node
from opkernel.proto import AttrValue, NameAttrList, NodeDef, OpDef
from opkernel.types import DataType

CallTypes = tuple[list[DataType], list[DataType]]
"""The types of arguments and of results; a reference counts as the type that it refers to."""


def called_function(op: Operation) -> NameAttrList:
    """The function that an operation calls, with the attrs to instantiate it with."""
    if op.traits.calls == "function":
        return op.attr["f"].func
    return NameAttrList(name=op.type, attr=op.attr)


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
