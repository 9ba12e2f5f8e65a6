"""What a graph takes and gives, seen from outside."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from opkernel.cli.exit_status import WrongUse
from opkernel.errors import NotFoundError, OpError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.core.control_flow_ops import ENTER_OPS, EXIT_OPS, MERGE_OPS, SWITCH_OPS
from opkernel.graph.core.structural_ops import INPUT_OPS

__all__ = ["find_fetches", "find_tensor", "graph_inputs", "graph_outputs"]

_NO_RESULT = INPUT_OPS | {"Const"}
_MAX_NAMED = 5


def graph_inputs(graph: Graph) -> list[Tensor]:
    """The placeholders of a graph."""
    return [op.outputs[0] for op in graph.get_operations() if op.type in INPUT_OPS]


def graph_outputs(graph: Graph) -> list[Tensor]:
    """The outputs of the operations that nothing waits for; placeholders and constants are none.

    What is inside a loop of TensorFlow 1 is no output: it has a value in each turn, or none. Neither is
    what is on one branch of a conditional: it has no value where the branch is not taken.

    Source: TensorFlow tools/graph_transforms/summarize_graph_main.cc.
    """
    operations = graph.get_operations()
    waited_for = {tensor.op for op in operations for tensor in op.inputs}
    waited_for.update(source for op in operations for source in op.control_inputs)
    ends = [op for op in operations if op not in waited_for and op.type not in _NO_RESULT]
    if any(op.type in ENTER_OPS for op in operations):
        ends = _outside_loops(ends)
    if any(op.type in SWITCH_OPS for op in operations):
        ends = _outside_branches(ends)
    return [tensor for op in ends for tensor in op.outputs]


def _outside_loops(ends: list[Operation]) -> list[Operation]:
    from opkernel.graph.core.control_flow_info import ROOT, control_flow_info
    from opkernel.graph.edit.prune import Needs, prune_and_order  # few graphs have loops

    try:
        frames = control_flow_info(prune_and_order((), ends, ()), Needs(()))
    except OpError:
        return ends  # a step says what is wrong
    return [
        op
        for op in ends
        if (frames[op.name].parent if op.type in EXIT_OPS else frames[op.name]) is ROOT
        and op.type not in ENTER_OPS
    ]


def _outside_branches(ends: list[Operation]) -> list[Operation]:
    """The operations that have a value whatever branches are taken."""
    from opkernel.graph.edit.prune import prune_and_order  # few graphs have branches

    try:
        order = prune_and_order((), ends, ())
    except OpError:
        return ends  # a step says what is wrong
    within: dict[Operation, frozenset[tuple[Operation, int]]] = {}
    for op in order:
        join = frozenset.intersection if op.type in MERGE_OPS else frozenset.union
        found = [
            within[tensor.op].union(_begun_by(tensor))
            for tensor in op.inputs
            if tensor.op in within  # what comes back in a loop is not yet
        ]
        joined = join(*found) if found else frozenset()
        within[op] = joined.union(*[within[one] for one in op.control_inputs if one in within])
    return [op for op in ends if not within[op] and op.type not in SWITCH_OPS]


def _begun_by(tensor: Tensor) -> list[tuple[Operation, int]]:
    """The branch that an output of a Switch begins; in a loop it is the next turn or the end."""
    switch = tensor.op
    if switch.type not in SWITCH_OPS or switch.inputs[1].op.type == "LoopCond":
        return []
    return [(switch.inputs[1].op, tensor.value_index)]


def find_fetches(graph: Graph, names: Sequence[str]) -> list[Tensor | Operation]:
    """What names ask for: tensors, or operations that give none; without names all outputs.

    Raises:
        NotFoundError: there is none of a name; the message names the graph's own outputs.
        WrongUse: there are no names, and the graph has no outputs.
    """
    found = [_find_fetch(graph, name) for name in names] or [*graph_outputs(graph)]
    if not found:
        raise WrongUse("the graph has no outputs of its own: name with --fetch what is asked for")
    return found


def _find_fetch(graph: Graph, name: str) -> Tensor | Operation:
    if ":" not in name:
        with suppress(NotFoundError):
            operation = graph.get_operation_by_name(name)
            if not operation.outputs:
                return operation
    return find_tensor(graph, name, "outputs")


def find_tensor(graph: Graph, name: str, role: Literal["inputs", "outputs"]) -> Tensor:
    """The tensor of a name; `x` means `x:0`.

    Raises:
        NotFoundError: there is none; the message names the graph's own inputs or outputs.
    """
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except NotFoundError as error:
        tensors = graph_inputs(graph) if role == "inputs" else graph_outputs(graph)
        names = [tensor.name for tensor in tensors[:_MAX_NAMED]]
        if len(tensors) > _MAX_NAMED:
            names.append(f"{len(tensors) - _MAX_NAMED} more")
        raise NotFoundError(
            f"{error.message} The {role} of the graph: {', '.join(names) or 'none'}."
        ) from error
