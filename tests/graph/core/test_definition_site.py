"""Where in a program a node was made, as `Operation.traceback` tells it; and where a trace failed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import opkernel
from opkernel import raw_ops
from opkernel.graph import Graph, GraphEdit, placeholder
from opkernel.types import float32

HERE = __file__


def made(depth: int = 0) -> Any:
    if depth:
        return made(depth - 1)
    return raw_ops.Neg(x=placeholder(float32), name="y")


def line_of(function: Any, offset: int) -> int:
    return int(function.__code__.co_firstlineno) + offset


def test_the_last_frame_is_the_line_that_made_the_node() -> None:
    with Graph().as_default():
        y = made()
    last, caller = y.op.traceback[-1], y.op.traceback[-2]
    assert (last.filename, last.name, last.lineno) == (HERE, "made", line_of(made, 3))
    assert last.line == 'return raw_ops.Neg(x=placeholder(float32), name="y")'
    own = sys._getframe().f_code
    assert (caller.filename, caller.name) == (HERE, own.co_name)
    assert caller.lineno == own.co_firstlineno + 2
    package = str(Path(opkernel.__file__).parent)
    assert not any(frame.filename.startswith(package) for frame in y.op.traceback)


def test_no_more_than_sixteen_frames_are_kept() -> None:
    with Graph().as_default():
        y = made(40)
    assert [frame.name for frame in y.op.traceback] == ["made"] * 16


def test_copies_were_made_where_the_originals_were_and_imported_nodes_nowhere() -> None:
    with Graph().as_default() as graph:
        y = made()
    part = GraphEdit(graph).extract("y")
    assert part.get_operation_by_name("y").traceback == y.op.traceback
    read = Graph()
    opkernel.import_graph_def(graph.as_graph_def(), graph=read, name="")
    assert read.get_operation_by_name("y").traceback is None


def test_an_error_in_a_trace_tells_the_line_once() -> None:
    @opkernel.function
    def inner(x: Any) -> Any:
        raise KeyError(x)

    @opkernel.function
    def outer(x: Any) -> Any:
        return inner(x)

    with pytest.raises(KeyError) as raised:
        outer.get_concrete_function(opkernel.TensorSpec([2]))
    (note,) = raised.value.__notes__
    assert note.startswith("while tracing ")
    assert note.endswith(f", at {HERE}:{line_of(inner.python_function, 2)}")
