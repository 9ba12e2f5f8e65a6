"""Freezing: graphs with constants in the place of variables compute what the session did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, Tensor, convert_variables_to_constants, raw_ops
from opkernel.errors import FailedPreconditionError, NotFoundError

VALUE = np.arange(6, dtype=np.float32).reshape(2, 3)


def handle(name: str = "v") -> Any:
    return raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[2, 3], shared_name=name, name=name)


def read(resource: Any, name: str | None = None) -> Any:
    return raw_ops.ReadVariableOp(resource=resource, dtype=opkernel.float32, name=name)


def resource_variable(use: Callable[[Any], Any]) -> Any:
    v = handle()
    raw_ops.AssignVariableOp(resource=v, value=VALUE, name="init")
    return use(v)


def reference_variable(use: Callable[[Any], Any]) -> Any:
    v = raw_ops.VariableV2(shape=[2, 3], dtype=opkernel.float32, name="v")
    raw_ops.Assign(ref=v, value=VALUE, name="init")
    return use(v)


def switched(v: Any) -> Any:
    """Read in the taken branch of a conditional of TensorFlow 1."""
    branches = raw_ops.Switch(data=v, pred=opkernel.constant(True))
    return raw_ops.Merge(inputs=[read(branches.output_true)]).output


def entered(v: Any) -> Any:
    """The sum of several reads, in a loop of TensorFlow 1."""
    graph = opkernel.graph.get_default_graph()
    start, *around = [
        raw_ops.Enter(data=data, frame_name="f", is_constant=data is not VALUE)
        for data in (VALUE, v, [0, 1], np.float32(11))
    ]
    inside, axes, limit = around
    merge = raw_ops.Merge(inputs=[start, start], name="merge")
    below = raw_ops.Less(x=raw_ops.Max(input=merge.output, axis=axes), y=limit)
    turn = raw_ops.Switch(data=merge.output, pred=raw_ops.LoopCond(input=below))
    following = raw_ops.NextIteration(data=turn.output_true + read(inside))
    graph.get_operation_by_name("merge").update_input(1, following)
    return raw_ops.Exit(data=turn.output_false)


@opkernel.function
def called(v: Any) -> Any:
    return read(v) * 2


Use = Callable[[Any], Any]
USES: dict[str, tuple[Callable[[Use], Any], Use]] = {
    "read": (resource_variable, read),
    "read by way of Identity": (resource_variable, lambda v: read(raw_ops.Identity(input=v))),
    "gathered": (resource_variable, lambda v: raw_ops.ResourceGather(
        resource=v, indices=[1, 1], dtype=opkernel.float32)),
    "its shape": (resource_variable, lambda v: raw_ops.VariableShape(input=v)),
    "switched": (resource_variable, switched),
    "entered": (resource_variable, entered),
    "called": (resource_variable, called),
    "reference": (reference_variable, lambda v: raw_ops.Sqrt(x=v)),
    "reference by way of Identity": (reference_variable, lambda v: raw_ops.Identity(input=v)),
    "reference switched": (reference_variable, lambda v: raw_ops.Merge(inputs=[
        raw_ops.RefSwitch(data=v, pred=opkernel.constant(True)).output_true]).output),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_a_frozen_graph_computes_what_the_session_did(use: str) -> None:
    make, take = USES[use]
    graph = Graph()
    with graph.as_default():
        raw_ops.Identity(input=make(take), name="y")
    before = graph.as_graph_def()
    with Session(graph) as session:
        session.run("init")
        wanted = session.run("y:0")
        frozen = convert_variables_to_constants(session, ["y:0"])
    assert graph.as_graph_def() == before
    left = {op.type for op in frozen.get_operations()}
    assert not left & {
        "VarHandleOp",
        "VariableV2",
        "ReadVariableOp",
        "StatefulPartitionedCall",
        "RefSwitch",
    }
    assert frozen.get_operation_by_name("v").type == "Const" or use == "its shape"
    assert [name for name in frozen.function_library if not name.endswith("_frozen")] == []
    reread = Graph()
    opkernel.import_graph_def(frozen.as_graph_def(), graph=reread, name="")
    with Session(reread) as session:
        np.testing.assert_array_equal(session.run("y:0"), wanted)


def model() -> Graph:
    graph = Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [None, 2], name="x")
        v = handle()
        raw_ops.AssignVariableOp(resource=v, value=VALUE, name="init")
        step = raw_ops.AssignAddVariableOp(
            resource=v, value=np.ones((2, 3), np.float32), name="step"
        )
        y = raw_ops.MatMul(a=x, b=read(v), name="y")
        with graph.control_dependencies([step]):
            raw_ops.Identity(input=y, name="after_step")
    return graph


def test_values_are_those_of_now_and_inputs_stay() -> None:
    with Session(model()) as session:
        session.run(["init"])
        session.run(["step"])
        frozen = convert_variables_to_constants(session, ["y"])
        session.run(["step"])
    assert {op.type for op in frozen.get_operations()} == {
        "Placeholder",
        "Const",
        "Identity",
        "MatMul",
    }
    with Session(frozen) as session:
        x = np.ones((1, 2), np.float32)
        assert session.run("y:0", {"x:0": x}).tolist() == [[5, 7, 9]]


def test_outputs_without_variables_are_extracted() -> None:
    with Session(model()) as session:
        frozen = convert_variables_to_constants(session, ["x"])
        nothing = convert_variables_to_constants(session, []).get_operations()
    assert [op.type for op in frozen.get_operations()] == ["Placeholder"]
    assert nothing == []


def test_text_is_frozen_too() -> None:
    graph = Graph()
    with graph.as_default():
        words = raw_ops.VarHandleOp(dtype=opkernel.string, shape=[2], shared_name="w", name="w")
        raw_ops.AssignVariableOp(resource=words, value=["a", "\u00e9"], name="init")
        raw_ops.ReadVariableOp(resource=words, dtype=opkernel.string, name="y")
    with Session(graph) as session:
        session.run("init")
        frozen = convert_variables_to_constants(session, ["y:0"])
    with Session(frozen) as session:
        assert session.run("y:0").tolist() == [b"a", b"\xc3\xa9"]


def test_an_input_cuts_off_what_lies_behind_it() -> None:
    with Session(model()) as session:
        session.run("init")
        frozen = convert_variables_to_constants(session, ["y:0"], inputs=["ReadVariableOp:0"])
    assert {op.type for op in frozen.get_operations()} == {"Placeholder", "MatMul"}


def test_what_changes_a_variable_is_refused() -> None:
    with Session(model()) as session:
        session.run("init")
        with pytest.raises(
            FailedPreconditionError, match=r"'v' cannot .*'step' \(AssignAddVariableOp\)"
        ):
            convert_variables_to_constants(session, ["after_step"])


def test_a_loop_that_hands_a_variable_to_its_functions_is_frozen() -> None:
    graph = Graph()
    with graph.as_default():
        v = handle()
        raw_ops.AssignVariableOp(resource=v, value=VALUE, name="init")

        def body(y: Tensor) -> Tensor:
            return y + read(v)

        first = opkernel.constant(VALUE)
        y = opkernel.while_loop(lambda y: raw_ops.Max(input=y, axis=[0, 1]) < 9, body, [first])[0]
    with Session(graph) as session:
        session.run("init")
        wanted = session.run(y)
        frozen = convert_variables_to_constants(session, [y])
    assert "StatelessWhile" in {op.type for op in frozen}
    np.testing.assert_array_equal(Session(frozen).run(y.name), wanted)


def test_a_variable_without_a_value_is_told() -> None:
    with Session(model()) as session:
        with pytest.raises(FailedPreconditionError, match="Could not find variable v"):
            convert_variables_to_constants(session, ["y:0"])
        with pytest.raises(NotFoundError, match="perhaps you mean y"):
            convert_variables_to_constants(session, ["yy:0"])


def test_an_output_and_an_input_may_stand_by_themselves() -> None:
    with Graph().as_default() as graph, Session(graph) as session:
        x = opkernel.placeholder(opkernel.float32, [2, 3], name="x")
        raw_ops.Mul(x=raw_ops.Neg(x=x, name="negative"), y=VALUE, name="y")
        frozen = convert_variables_to_constants(session, "y:0", "negative:0")
    assert Session(frozen).run("y:0", {"negative:0": VALUE}).tolist() == (VALUE * VALUE).tolist()
    assert [op.name for op in frozen if op.type != "Const"] == ["negative", "y"]
