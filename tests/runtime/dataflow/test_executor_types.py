"""Executors by name."""

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder

import opkernel
from opkernel.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
    UnimplementedError,
)
from opkernel.runtime import CompiledPlan, ExecutorArgs, register_executor, registered_executors
from opkernel.runtime.dataflow.run import DataflowExecutor


def looping():
    """A loop of a form that no plan takes: it reads whether a turn is the first."""
    b = Builder()

    def body(x):
        index = b.graph.get_operation_by_name("Merge").outputs[1]
        return [b.op("AddV2", x, b.op("Cast", index, SrcT=INT32, DstT=FLOAT))]

    (y,) = b.while_loop(lambda x: b.op("Less", x, b.constant(10.0)), body, [b.placeholder("x")])
    return b, y


def test_the_default_is_the_plan_and_dataflow_for_what_plans_cannot_do():
    b, y = looping()
    straight = b.op("Neg", b.graph.get_tensor_by_name("x:0"))
    with opkernel.Session(b.graph) as session:
        assert isinstance(session.plan(straight, ["x:0"]), CompiledPlan)
        assert isinstance(session.plan(y, ["x:0"]), DataflowExecutor)
    with opkernel.Session(b.graph, executor_type="DATAFLOW") as session:
        assert isinstance(session.plan(straight, ["x:0"]), DataflowExecutor)


def test_the_source_of_a_dataflow_executor_lists_the_nodes_by_loop():
    b, y = looping()
    source = opkernel.Session(b.graph).plan(y, ["x:0"]).source
    assert "loop 'loop_1':\n" in source
    assert "'NextIteration' = NextIteration('AddV2:0')" in source
    assert b.run(y, {"x:0": 0.0}) == 10


def test_plans_refuse_loops_and_name_who_runs_them():
    b, y = looping()
    with pytest.raises(UnimplementedError, match=r"dataflow executor|DATAFLOW"):
        b.run(y, {"x:0": 1.0}, "COMPILED_PLAN")


def test_the_single_threaded_executor_refuses_what_that_of_tensorflow_does():
    b, y = looping()
    with pytest.raises(FailedPreconditionError, match="control flow node"):
        b.run(y, {"x:0": 1.0}, "SINGLE_THREADED_EXECUTOR")
    switch = b.operation("Switch", b.graph.get_tensor_by_name("x:0"), b.placeholder("p", BOOL))
    with pytest.raises(FailedPreconditionError, match="control flow node Switch"):
        b.run(switch.outputs[0], {"x:0": 1.0, "p:0": False}, "SINGLE_THREADED_EXECUTOR")
    assert (
        b.run(
            b.op("Neg", b.graph.get_tensor_by_name("x:0")), {"x:0": 1.0}, "SINGLE_THREADED_EXECUTOR"
        )
        == -1
    )


def test_executors_are_registered_by_name():
    b = Builder()
    y = b.op("Neg", b.placeholder("x"))
    with pytest.raises(NotFoundError, match=r"No executor factory registered.*: NONE"):
        b.run(y, {"x:0": 1.0}, "NONE")

    class Answers:
        uses_step = False
        source = "42"

        def __init__(self, args: ExecutorArgs) -> None:
            self.fetches = args.fetches

        def run(self, step, *feeds):
            return [np.float32(42) for _ in self.fetches]

    register_executor("ANSWERS", Answers)
    assert "ANSWERS" in registered_executors()
    assert b.run(y, {"x:0": 1.0}, "ANSWERS") == 42
    with pytest.raises(AlreadyExistsError):
        register_executor("ANSWERS", lambda args: Answers(args))
