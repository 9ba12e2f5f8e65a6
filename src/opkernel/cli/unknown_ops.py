"""Where a SavedModel uses the ops that are not registered, for the errors of what needs them."""

from __future__ import annotations

from opkernel.cli.meta_graph_needs import MetaGraphNeeds
from opkernel.cli.model import Model
from opkernel.cli.output import abridged
from opkernel.errors import NotFoundError
from opkernel.opdef import UnregisteredOpError, global_op_registry
from opkernel.proto import MetaGraphDef


def name_uses(error: UnregisteredOpError, model: Model) -> None:
    """Have an error say where the SavedModel uses the ops that are not registered."""
    error.message = f"{error.message.rstrip('.')}. {_uses(model.meta_graph)}"


def _uses(meta_graph: MetaGraphDef) -> str:
    graph = meta_graph.graph_def
    functions = {one.signature.name for one in graph.library.function}
    nodes = [*graph.node, *[node for one in graph.library.function for node in one.node_def]]
    ops = {node.op for node in nodes} - functions
    unknown = sorted(op for op in ops if not _is_registered(op))
    needs = MetaGraphNeeds(meta_graph)
    told = []
    for op in unknown:
        uses = [*needs.uses({op})]
        parts = dict.fromkeys(part for use in uses for part in use.needed_by)
        needed = abridged(parts) or "nothing"
        told.append(
            f"The model uses {op!r} in {abridged(use.place for use in uses)} (needed by {needed})"
        )
    return abridged(told)


def _is_registered(op: str) -> bool:
    try:
        global_op_registry().look_up_op_def(op)
    except NotFoundError:
        return False
    return True
