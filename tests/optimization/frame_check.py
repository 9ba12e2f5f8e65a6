"""FrameCheck: no pass moves an operation out of its loop.

Patched into `GraphEditor`, it compares the frames of all operations before and behind each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

from opkernel.errors import OpError
from opkernel.graph import Operation
from opkernel.graph.core.frame_loops import control_flow_info, is_constant_enter
from opkernel.graph.core.structural_ops import ENTER_OPS, MERGE_OPS, NEXT_ITERATION_OPS
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.edit.subgraph import Needs

__all__ = ["frames_are_checked"]

_WITHOUT_LOOPS = "functionalize_control_flow"
"""The pass that turns loops into calls, and so takes their frames away."""


def _frames(order: list[Operation]) -> dict[str, str]:
    """The frame of each operation; none where no operation enters a frame."""
    if not any(op.type in ENTER_OPS for op in order):
        return {}
    return {name: frame.name for name, frame in control_flow_info(order, Needs(())).items()}


def _of_some_turns(order: list[Operation]) -> set[str]:
    """The operations, besides heads of loops, that run only in the first turn, or in all but the first."""

    def is_of_some(source: Operation) -> bool:
        is_start = source.type in ENTER_OPS and not is_constant_enter(source)
        return is_start or source.type in NEXT_ITERATION_OPS

    return {
        op.name
        for op in order
        if op.type not in MERGE_OPS and any(map(is_of_some, (*op.edges[::2], *op.control_inputs)))
    }


@contextmanager
def frames_are_checked() -> Iterator[list[str]]:
    """While the block runs, passes are checked; gives the passes that were, those that saw loops alone."""
    begin, end = GraphEditor.begin, GraphEditor.end
    before: dict[GraphEditor, tuple[dict[str, str], set[str]] | None] = {}
    checked: list[str] = []

    def checked_begin(editor: GraphEditor, pass_name: str) -> None:
        begin(editor, pass_name)
        order = editor.operations()
        try:
            before[editor] = _frames(order), _of_some_turns(order)
        except OpError:  # the graph was wrong when it came
            before[editor] = None

    def checked_end(editor: GraphEditor) -> None:
        end(editor)
        known, pass_name = before.pop(editor), editor._pass_name
        if known is None or not known[0] or pass_name == _WITHOUT_LOOPS:
            return
        checked.append(pass_name)
        order = editor.operations()
        try:
            found = _frames(order)
        except OpError as error:  # of which a session would make a graph without passes
            raise AssertionError(f"{pass_name} mixes frames: {error}") from error
        moved = {
            name: f"from {known[0][name]!r} to {frame!r}"
            for name, frame in found.items()
            if known[0].get(name, frame) != frame
        }
        assert not moved, f"{pass_name} moves operations to other frames: {moved}"
        some = _of_some_turns(order) - known[1]
        assert not some, f"{pass_name} has operations run in some turns only: {sorted(some)}"

    patches: list[tuple[str, Callable[..., None]]] = [
        ("begin", checked_begin),
        ("end", checked_end),
    ]
    with (
        mock.patch.object(GraphEditor, *patches[0]),
        mock.patch.object(GraphEditor, *patches[1]),
    ):
        yield checked
