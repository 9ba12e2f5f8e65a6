"""Programs that are put on the tasks of a cluster at random."""

from __future__ import annotations

import random
from collections.abc import Sequence

from opkernel.distributed.cluster.cluster_spec import TaskName
from opkernel.graph import Graph, Operation
from opkernel.types import DataType

__all__ = ["place_at_random"]

_HANDLES = {DataType.DT_RESOURCE, DataType.DT_VARIANT}


def place_at_random(graph: Graph, tasks: Sequence[TaskName], rng: random.Random) -> int:
    """Ask for a random task for most operations; the number of those that were put somewhere.

    What has to do with resources, references or functions stays where the placer puts it: on the master.
    """
    count = 0
    for op in graph.get_operations():
        if _may_be_anywhere(op) and rng.random() < 0.8:
            op.set_device(f"{rng.choice(tasks)}/device:CPU:0")
            count += 1
    return count


def _may_be_anywhere(op: Operation) -> bool:
    tensors = [*op.inputs, *op.outputs]
    has_functions = any(attr.type in ("func", "list(func)") for attr in op.op_def.attr)
    is_call = op.type in op.graph.function_library
    is_held = any(t.dtype.is_ref or t.dtype.base in _HANDLES for t in tensors)
    return not (has_functions or is_call or is_held or "_class" in op.node_def.attr)
