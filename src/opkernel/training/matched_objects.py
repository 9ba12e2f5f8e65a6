"""matched_variables: which value of a checkpoint belongs to which variable, as the names of objects say it.

Source: TensorFlow python/checkpoint/restore.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from opkernel.checkpoint import ObjectGraph
from opkernel.errors import FailedPreconditionError
from opkernel.training.optimizer import Optimizer
from opkernel.training.resource import Resource
from opkernel.training.tracked_objects import TrackedObjects
from opkernel.training.variable import Variable

Tables = list[tuple[Callable[..., Any], str]]


def matched_values(root: Any, same: Any, graph: ObjectGraph) -> tuple[dict[Variable, str], Tables]:
    """The variables under a root with the keys of their values, and what restores tables with the keys of these.

    The same names lead to an object here and in the checkpoint.

    Args:
        root: The object.
        same: An object that it stands for, if there is one.
        graph: What the checkpoint has.

    Raises:
        FailedPreconditionError: an optimiser has no slots, and its variables are not among those matched.
    """
    tracked = TrackedObjects(root, same)
    pairs = _pairs(tracked, graph)
    if _build_optimizers(tracked, pairs, graph):
        tracked = TrackedObjects(root, same)
        pairs = _pairs(tracked, graph)
    found, tables = dict[Variable, str](), Tables()
    for number, match in pairs.items():
        one = tracked.objects[number]
        if isinstance(one, Variable):
            key = graph.key_of(match)
            found |= {} if key is None else {one: key}
        elif isinstance(one, Resource):
            for attribute, (_, restore) in one.saveables().items():
                key = graph.key_of(match, attribute)
                tables += [] if key is None else [(restore, key)]
    return found, tables


def _pairs(tracked: TrackedObjects, graph: ObjectGraph) -> dict[int, int]:
    """The numbers of objects, with those that they have in the checkpoint."""
    found = {0: 0}
    queue = deque([0])
    while queue:
        number = queue.popleft()
        theirs = _children(graph, found[number])
        for name, child in tracked.children[number]:
            if name in theirs and child not in found:
                found[child] = theirs[name]
                queue.append(child)
    return found


def _build_optimizers(tracked: TrackedObjects, pairs: dict[int, int], graph: ObjectGraph) -> bool:
    """Give optimisers the slots that the checkpoint has values for; whether there were such."""
    ours = {match: tracked.objects[number] for number, match in pairs.items()}
    was_built = False
    for number, match in pairs.items():
        one = tracked.objects[number]
        if isinstance(one, Optimizer) and one.saved_slots() and not one.slot_names:
            trained = _children(graph, match).get("_trainable_variables")
            numbers = [] if trained is None else [*_children(graph, trained).values()]
            variables = [ours.get(number) for number in numbers]
            found = [variable for variable in variables if isinstance(variable, Variable)]
            if len(found) < len(numbers):
                raise FailedPreconditionError(
                    f"{type(one).__name__} has no slots for the values of the checkpoint: restore the model in the "
                    f"same Checkpoint, or call optimizer.build(variables) before"
                )
            one.build(found)
            was_built = was_built or bool(found)
    return was_built


def _children(graph: ObjectGraph, number: int) -> dict[str, int]:
    return {child.local_name: child.node_id for child in graph.proto.nodes[number].children}
