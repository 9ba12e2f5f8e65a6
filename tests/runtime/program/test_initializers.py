"""A step that needs a variable without value says what of the graph would set it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import opkernel
from opkernel import DataType, Graph, Operation, Session, Tensor
from opkernel.errors import FailedPreconditionError, OpError
from opkernel.runtime import DirectSession

FLOAT = {"dtype": DataType.DT_FLOAT}


def variable(graph: Graph, name: str, *, is_resource: bool) -> tuple[Operation, Tensor]:
    """A variable, and the tensor with its value."""
    shaped = {**FLOAT, "shape": []}
    if not is_resource:
        op = graph.create_op("VariableV2", attrs=shaped, name=name)
        return op, graph.create_op("Identity", op.outputs, name=f"{name}/read").outputs[0]
    op = graph.create_op(
        "VarHandleOp", attrs={**shaped, "shared_name": f"shared_{name}"}, name=name
    )
    read = graph.create_op("ReadVariableOp", op.outputs, attrs=FLOAT, name=f"{name}/read")
    return op, read.outputs[0]


def assign(graph: Graph, op: Operation, value: Tensor, name: str) -> Operation:
    """An assignment to a variable."""
    is_resource = op.type == "VarHandleOp"
    kind = "AssignVariableOp" if is_resource else "Assign"
    return graph.create_op(kind, [op.outputs[0], value], name=f"{op.name}/{name}")


def constant(graph: Graph, value: object, name: str) -> Tensor:
    """A constant."""
    with graph.as_default():
        return opkernel.constant(value, name=name)


def told(graph: Graph, tensor: Tensor) -> str:
    """The message of the error of a step that fetches a tensor."""
    with pytest.raises(FailedPreconditionError) as failed, Session(graph) as session:
        session.run(tensor)
    assert str(failed.value) == failed.value.message == failed.value.args[0]
    return failed.value.message.partition("; ")[2]


both_kinds = pytest.mark.parametrize("is_resource", [False, True])


@both_kinds
def test_the_initializer_is_named_and_helps(is_resource: bool) -> None:
    graph = Graph()
    v, read = variable(graph, "v", is_resource=is_resource)
    changed = graph.create_op("Neg", [read], name="changed").outputs[0]
    assign(graph, v, changed, "Change")  # needs a value itself
    set_it = assign(graph, v, constant(graph, np.float32(3), "three"), "Assign")
    feed = "v/read:0" if is_resource else "v:0"
    assert told(graph, read) == f"run 'v/Assign' first, which sets 'v'; or feed '{feed}'"
    group = graph.create_op("NoOp", name="group", control_inputs=[set_it])
    graph.create_op("NoOp", name="init", control_inputs=[group])
    by = "run 'init' first, which sets 'v' (by 'v/Assign')"
    assert told(graph, read) == f"{by}; or feed '{feed}'"
    with Session(graph) as session:
        session.run("init")
        assert session.run(read) == session.run(read, {feed: np.float32(3)}) == 3


@both_kinds
def test_a_variable_that_nothing_sets(is_resource: bool) -> None:
    graph = Graph()
    _, read = variable(graph, "v", is_resource=is_resource)
    assert told(graph, read).startswith(
        "freeze the graph with its values: nothing in it sets 'v'; or"
    )


@both_kinds
def test_a_checkpoint_is_named_by_what_restores_it(is_resource: bool) -> None:
    graph = Graph()
    v, read = variable(graph, "v", is_resource=is_resource)
    prefix = constant(graph, b"model", "save/Const")
    names = constant(graph, [b"v"], "save/names")
    whole = constant(graph, [b""], "save/shape_and_slices")
    restored = graph.create_op(
        "RestoreV2",
        [prefix, names, whole],
        attrs={"dtypes": [DataType.DT_FLOAT]},
        name="save/restore",
    )
    one = assign(graph, v, restored.outputs[0], "Restore")
    graph.create_op("NoOp", name="save/restore_all", control_inputs=[one])
    assert told(graph, read).startswith(
        "run 'save/restore_all' first with the path of a checkpoint fed as 'save/Const:0', which restores "
        "'v' (allow the session to read it: Permissions(read=[...])); or feed"
    )


def test_all_that_runs_steps_tells_it() -> None:
    graph = Graph()
    v, read = variable(graph, "v", is_resource=False)
    assign(graph, v, constant(graph, np.float32(3), "three"), "Assign")
    hint = re.escape("; run 'v/Assign' first, which sets 'v'; or feed 'v:0'")
    with Session(graph) as session:
        for run in (
            lambda: session.run(read),
            session.make_callable(read),
            session.make_callable(v.outputs[0]),
        ):
            with pytest.raises(FailedPreconditionError, match=f"^[^;]*{hint}$"):
                run()
        with pytest.raises(FailedPreconditionError, match=f"^[^;]*{hint}$"):
            session.run(
                read,
                options=opkernel.RunOptions(trace_level=3),
                run_metadata=opkernel.proto.RunMetadata(),
            )
    dataflow = Session(graph, config=opkernel.SessionConfig(executor_type="DATAFLOW"))
    with pytest.raises(FailedPreconditionError, match=f"^[^;]*{hint}$"):
        dataflow.run(read)
    direct = DirectSession()
    direct.create(graph.as_graph_def())
    with pytest.raises(FailedPreconditionError, match=f"^[^;]*{hint}$"):
        direct.run({}, [read.name], [])


def test_other_resources_have_no_initializer() -> None:
    graph = Graph()
    handle = graph.create_op(
        "VarHandleOp", attrs={**FLOAT, "shape": [], "shared_name": "a"}, name="h"
    )
    graph.create_op("VarHandleOp", attrs={**FLOAT, "shape": [], "shared_name": "b"}, name="a_")
    read = graph.create_op("ReadVariableOp", handle.outputs, attrs=FLOAT)
    with pytest.raises(OpError) as failed, Session(graph) as session:
        session.run(read.outputs[0])
    assert failed.value.resource == "a"
    assert "'h'" in failed.value.message
