"""The attrs by which nodes, and the functions that they call, ask to be compiled, or not to be.

Source: TensorFlow compiler/jit/defs.h.
"""

from __future__ import annotations

from collections.abc import Iterable

from opkernel.device.local_device import CPU
from opkernel.graph import Operation
from opkernel.graph.core.node import copied
from opkernel.graph.functions.calls import called_function

CLUSTER = "_XlaCluster"
"""The attr that names the cluster of a node."""
COMPILE = "_XlaCompile"
"""The attr that asks for a node to be compiled, or forbids it."""
MUST_COMPILE = "_XlaMustCompile"
"""The attr of a call, or of its function, that has to be compiled as a whole."""
ALREADY_CLUSTERED = "_XlaAlreadyClustered"
"""The attr of the nodes of a function that was a cluster."""
COMPILE_TIME_CONSTANT_INPUTS = "_XlaCompileTimeConstantInputs"
"""The attr that names the inputs of a node that the compiler must know, where it need not know all that its op says."""
SCOPE, INTERNAL_SCOPE = "_XlaScope", "_XlaInternalScope"
"""Nodes of different scopes stay apart; the first counts only where nobody asks for clusters globally."""


def text_of(op: Operation, attr: str) -> str:
    """The text of an attr; empty where a node has none of that name."""
    attrs = op.slim_message.attr
    return attrs[attr].s.decode() if attr in attrs else ""


def cluster_of(op: Operation) -> str:
    """The name of the cluster of a node; empty where it is in none."""
    return text_of(op, CLUSTER)


def by_cluster(ops: Iterable[Operation]) -> dict[str, list[Operation]]:
    """The operations that are in clusters, by the names of these."""
    clusters: dict[str, list[Operation]] = {}
    for op in ops:
        if cluster_of(op):
            clusters.setdefault(cluster_of(op), []).append(op)
    return clusters


def leave_cluster(op: Operation) -> None:
    """Take a node out of its cluster."""
    node = copied(op.slim_message)
    del node.attr[CLUSTER]
    op.become(node, op.inputs)


def mark_of(op: Operation, name: str) -> bool | None:
    """What a mark of a node, or of the function that it calls, says; None where there is none."""
    attrs = op.slim_message.attr
    if name in attrs:
        return bool(attrs[name].b)
    library = op.graph.function_library
    if op.type not in library and op.traits.calls != "function":
        return None
    function = library.get(called_function(op).name)
    return bool(function.attr[name].b) if function and name in function.attr else None


def device_type_of(op: Operation) -> str:
    """The type of the device of an operation; a CPU unless it says otherwise."""
    name = op.graph.assigned_devices.get(op, op.device)
    _, _, device = name.rpartition("device:")
    return device.partition(":")[0] or CPU.device_type
