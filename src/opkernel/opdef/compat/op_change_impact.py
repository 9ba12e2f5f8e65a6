"""For which graphs, and callers, a change of an op matters."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from opkernel.errors import OpError
from opkernel.opdef.compat.op_compatibility import CompatibilityRule, OpChange
from opkernel.opdef.core.declarations import find_attr
from opkernel.opdef.core.validate import validate_attr_value
from opkernel.opdef.text.summary import summarize_attr_value
from opkernel.proto import AttrValue, FunctionDef, GraphDef, NodeDef, OpDef

_Rule = CompatibilityRule


class NodeInGraph(NamedTuple):
    """A node and where it stands.

    Attributes:
        node: The node.
        function: The function whose body it is part of; None for a node of the graph itself.
        producer: The GraphDef version that the graph was written with.
    """

    node: NodeDef
    function: FunctionDef | None
    producer: int

    def __str__(self) -> str:
        if self.function is None:
            return self.node.name
        return f"{self.node.name} (in function {self.function.signature.name})"


def nodes_of_graph_def(graph_def: GraphDef) -> Iterator[NodeInGraph]:
    """All nodes of a graph and of its functions."""
    producer = graph_def.versions.producer
    for node in graph_def.node:
        yield NodeInGraph(node, None, producer)
    for function in graph_def.library.function:
        for node in function.node_def:
            yield NodeInGraph(node, function, producer)


def impact_of_change(change: OpChange) -> str:
    """For which graphs or callers the change matters, in a sentence or two."""
    return _IMPACTS[change.rule](change)


def is_hit_by_change(found: NodeInGraph, change: OpChange) -> bool:
    """Whether the change matters for a node.

    Where references between nodes decide, which the node alone does not show, the answer is True.
    """
    hits = _HITS.get(change.rule)
    return found.node.op == change.op and (hits is None or hits(found, change))


def _removed_attr(change: OpChange) -> str:
    if _old_attr(change).HasField("default_value"):
        return (
            f"Graphs whose {change.op} nodes hold attr '{change.part}' no longer load; those saved "
            "with default attrs stripped may lack it."
        )
    return f"Graphs with {change.op} nodes no longer load: each of them holds attr '{change.part}'."


def _lost_values(before: OpDef.AttrDef, now: OpDef.AttrDef) -> str:
    """The values that are no longer allowed."""
    allowed = now.allowed_values.list
    if not before.HasField("allowed_values"):
        return f"anything but {summarize_attr_value(now.allowed_values)}"
    earlier = before.allowed_values.list
    lost = [AttrValue(type=number) for number in earlier.type if number not in allowed.type]
    lost += [AttrValue(s=text) for text in earlier.s if text not in allowed.s]
    return " or ".join(map(summarize_attr_value, lost))


def _higher_minimum(change: OpChange) -> str:
    attr = _new_attr(change)
    few = f"to less than {attr.minimum}"
    if attr.type != "int":
        few = f"to fewer than {attr.minimum} values"
    return f"Graphs whose {change.op} nodes set attr '{change.part}' {few} no longer load."


def _changed_outputs(change: OpChange) -> str:
    if not _only_outputs_renamed(change):
        return f"Graphs that use the outputs of {change.op} nodes no longer load, or go wrong."
    names = _changed_output_names(change)
    return (
        f"Functions whose bodies name outputs of {change.op} nodes "
        f"(`node:{next(iter(names), '')}:0`) no longer load; "
        "nodes outside functions number their outputs and are not hit."
    )


def _changed_added_default(change: OpChange) -> str:
    attr = _new_attr(change)
    if not attr.HasField("default_value"):
        return (
            f"Graphs with {change.op} nodes from before attr '{change.part}' was added "
            "no longer load."
        )
    return (
        f"{change.op} nodes from before attr '{change.part}' was added now get "
        f"{_default(attr)} for it, where the last version gave them {_default(_old_attr(change))}."
    )


_IMPACTS: dict[CompatibilityRule, Callable[[OpChange], str]] = {
    _Rule.OP_REMOVED: lambda change: f"Graphs with {change.op} nodes no longer load.",
    _Rule.ATTR_REMOVED: _removed_attr,
    _Rule.ATTR_TYPE_CHANGED: lambda change: (
        f"Graphs whose {change.op} nodes hold attr '{change.part}', as '{_old_attr(change).type}', "
        "no longer load."
    ),
    _Rule.ATTR_VALUES_STRICTER: lambda change: (
        f"Graphs whose {change.op} nodes set attr '{change.part}' to "
        f"{_lost_values(_old_attr(change), _new_attr(change))} no longer load."
    ),
    _Rule.ATTR_MINIMUM_HIGHER: _higher_minimum,
    _Rule.ATTR_WITHOUT_DEFAULT: lambda change: (
        f"Graphs with {change.op} nodes that were saved before no longer load: the nodes have no "
        f"value for attr '{change.part}'. A default would help them."
    ),
    _Rule.INPUT_SIGNATURE: lambda change: (
        f"Graphs with {change.op} nodes no longer load: the inputs do not fit."
    ),
    _Rule.INPUT_TO_REF: lambda change: (
        f"Graphs that feed input {change.part} of {change.op} nodes from anything but a "
        "reference, which is what TensorFlow 1 variables give, no longer load."
    ),
    _Rule.OUTPUT_SIGNATURE: _changed_outputs,
    _Rule.OUTPUT_FROM_REF: lambda change: (
        f"Graphs that pass output {change.part} of {change.op} nodes to an input that wants a "
        "reference, such as that of Assign, no longer load."
    ),
    _Rule.DEFAULT_REMOVED: lambda change: (
        f"Graphs whose {change.op} nodes leave attr '{change.part}' out, as those saved with "
        "default attrs stripped do, no longer load; callers that leave it out must give it."
    ),
    _Rule.DEFAULT_CHANGED: lambda change: (
        f"{change.op} nodes that leave attr '{change.part}' out, as those saved with default attrs "
        f"stripped do, and callers that leave it out now mean {_default(_new_attr(change))} where "
        f"they meant {_default(_old_attr(change))}."
    ),
    _Rule.ADDED_DEFAULT_CHANGED: _changed_added_default,
    _Rule.DEPRECATED: lambda change: (
        f"Graphs of GraphDef version {_new_op(change).deprecation.version} and later with "
        f"{change.op} nodes do not load; older ones load with a warning."
    ),
    _Rule.INPUT_RENAMED: lambda change: (
        f"Python callers that give this input of {change.op} by its keyword must use the new "
        "name; graphs are not hit."
    ),
}


def _holds_attr(found: NodeInGraph, change: OpChange) -> bool:
    return change.part in found.node.attr


def _lacks_attr(found: NodeInGraph, change: OpChange) -> bool:
    return change.part not in found.node.attr


def _holds_refused_value(found: NodeInGraph, change: OpChange) -> bool:
    if change.part not in found.node.attr:
        return False
    try:
        validate_attr_value(found.node.attr[change.part], _new_attr(change))
    except OpError:
        return True
    return False


def _uses_outputs(found: NodeInGraph, change: OpChange) -> bool:
    """Whether an output that has another name now is named, which only functions do."""
    if not _only_outputs_renamed(change):
        return True
    if found.function is None:
        return False
    starts = tuple([f"{found.node.name}:{name}:" for name in _changed_output_names(change)])
    inputs = (text for node in found.function.node_def for text in node.input)
    return any(text.startswith(starts) for text in (*inputs, *found.function.ret.values()))


_HITS: dict[CompatibilityRule, Callable[[NodeInGraph, OpChange], bool]] = {
    _Rule.ATTR_REMOVED: _holds_attr,
    _Rule.ATTR_TYPE_CHANGED: _holds_attr,
    _Rule.ATTR_VALUES_STRICTER: _holds_refused_value,
    _Rule.ATTR_MINIMUM_HIGHER: _holds_refused_value,
    _Rule.ATTR_WITHOUT_DEFAULT: _lacks_attr,
    _Rule.OUTPUT_SIGNATURE: _uses_outputs,
    _Rule.DEFAULT_REMOVED: _lacks_attr,
    _Rule.DEFAULT_CHANGED: _lacks_attr,
    _Rule.ADDED_DEFAULT_CHANGED: _lacks_attr,
    _Rule.DEPRECATED: lambda found, change: found.producer >= _new_op(change).deprecation.version,
    _Rule.INPUT_RENAMED: lambda found, change: False,
}


def _new_op(change: OpChange) -> OpDef:
    return change.new or OpDef()


def _old_attr(change: OpChange) -> OpDef.AttrDef:
    return find_attr(change.old, change.part) or OpDef.AttrDef()


def _new_attr(change: OpChange) -> OpDef.AttrDef:
    return find_attr(_new_op(change), change.part) or OpDef.AttrDef()


def _default(attr: OpDef.AttrDef) -> str:
    return summarize_attr_value(attr.default_value)


def _only_outputs_renamed(change: OpChange) -> bool:
    """Whether the outputs differ from the old ones in nothing but names."""
    return _nameless(change.old) == _nameless(_new_op(change))


def _nameless(op_def: OpDef) -> list[tuple[object, ...]]:
    return [
        (arg.type, arg.type_attr, arg.number_attr, arg.type_list_attr, arg.is_ref)
        for arg in op_def.output_arg
    ]


def _changed_output_names(change: OpChange) -> list[str]:
    """The names that outputs had and have no more."""
    pairs = zip(change.old.output_arg, _new_op(change).output_arg, strict=False)
    return [before.name for before, now in pairs if before.name != now.name]
