"""ClusterScoping: the stages of a pipeline stay in clusters of their own.

What leads to a Stage and what follows an Unstage run at the same time. In one cluster, each would wait for the inputs of
the other.

Source: TensorFlow compiler/jit/cluster_scoping_pass.cc.
"""

from __future__ import annotations

from collections.abc import Iterable

from opkernel.graph import Operation
from opkernel.graph.core.edges import behind, reached
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.clusters.marks import INTERNAL_SCOPE
from opkernel.proto import AttrValue


def cluster_scoping(editor: GraphEditor) -> None:
    """Put the operations before a Stage, and those behind an Unstage, into scopes."""
    options, order = editor.jit, editor.operations()
    if options is None or not options.is_global:
        return
    ends = [op for op in order if op.type in ("Stage", "Unstage")]
    for number, end in enumerate(ends):
        reach = _leading_to(end) if end.type == "Stage" else behind([end])
        for op in sorted(reach, key=lambda one: one.number):
            _add_scope(op, f"_{number}")


def _leading_to(op: Operation) -> Iterable[Operation]:
    return reached([op], lambda one: [*one.edges[::2], *one.control_inputs])


def _add_scope(op: Operation, scope: str) -> None:
    """Add a scope to those that an operation is in: it shares clusters with those that are in the same ones."""
    attrs = op.message.attr
    before = attrs[INTERNAL_SCOPE].s.decode() if INTERNAL_SCOPE in attrs else ""
    whole = f"{before}&{scope}" if before else scope
    op.set_attr(INTERNAL_SCOPE, AttrValue(s=whole.encode()))
