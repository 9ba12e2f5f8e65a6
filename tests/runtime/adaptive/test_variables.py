"""Programs for the values of variables: the same answers as without, whoever assigns, and whenever."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, raw_ops
from opkernel.errors import FailedPreconditionError
from opkernel.graph import apply_op
from opkernel.kernel import OpKernel, OpKernelContext, register_kernel
from opkernel.opdef import register_op, scalar_shape
from opkernel.runtime.adaptive.variables import VariablesOfProgram
from opkernel.types import tensor_from_proto

FLOAT = opkernel.float32
Array = np.ndarray[Any, Any]
STEPS = 30
"""More steps than any trial needs."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that were made for values of variables."""
    programs: list[Any] = []
    make = VariablesOfProgram.program

    def noted(self: VariablesOfProgram, *args: Any) -> Any:
        programs.append(make(self, *args))
        return programs[-1]

    monkeypatch.setattr(VariablesOfProgram, "program", noted)
    return programs


def images(seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((2, 6, 6, 3)).astype(np.float32)


FILTERS = np.random.default_rng(1).standard_normal((3, 3, 3, 4)).astype(np.float32)
STATISTICS = {
    "scale": np.array([1, 2, 0.5, -1], np.float32),
    "offset": np.array([0, 1, -1, 2], np.float32),
    "mean": np.array([0.1, -0.2, 0, 0.5], np.float32),
    "variance": np.array([1, 4, 0.25, 2], np.float32),
}


def normalized(x: Any, filters: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    """A convolution and a batch norm, which passes fold into it where weights are known."""
    y = raw_ops.Conv2D(input=x, filter=filters, strides=[1, 1, 1, 1], padding="SAME")
    normal = raw_ops.FusedBatchNormV3(
        x=y, scale=scale, offset=offset, mean=mean, variance=variance, is_training=False
    )
    return raw_ops.Relu(features=normal.y, name="y")


def by_definition(x: Array, filters: Array, values: dict[str, Array]) -> Array:
    padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    y = np.einsum("nhwcij,ijco->nhwo", windows, filters.astype(np.float64))
    normal = (y - values["mean"]) / np.sqrt(values["variance"] + 1e-4)
    return np.maximum(normal * values["scale"] + values["offset"], 0)


class OfFunction:
    """The network as a function that captures variables."""

    def __init__(self) -> None:
        self.variables = {
            name: opkernel.Variable(value, name=name)
            for name, value in {"filters": FILTERS, **STATISTICS}.items()
        }

        @opkernel.function(input_signature=[opkernel.TensorSpec([None, 6, 6, 3], FLOAT)])
        def network(x: Any) -> Any:
            return normalized(x, **{name: one.value for name, one in self.variables.items()})

        self.run: Callable[[Array], Any] = network

    def assign(self, name: str, value: Array) -> None:
        self.variables[name].assign(value)


class OfSession:
    """The network in a graph, with handles or references."""

    def __init__(self, *, references: bool) -> None:
        self.graph = Graph()
        self.assigns: dict[str, tuple[Any, Any]] = {}
        with self.graph.as_default():
            x = opkernel.placeholder(FLOAT, [None, 6, 6, 3], name="x")
            read = {}
            for name, value in {"filters": FILTERS, **STATISTICS}.items():
                new = opkernel.placeholder(FLOAT, value.shape, name=f"new_{name}")
                if references:
                    variable = raw_ops.VariableV2(dtype=FLOAT, shape=value.shape, name=name)
                    assign = raw_ops.Assign(ref=variable, value=new).op
                    read[name] = raw_ops.Identity(input=variable)
                else:
                    variable = raw_ops.VarHandleOp(dtype=FLOAT, shape=value.shape, shared_name=name)
                    assign = raw_ops.AssignVariableOp(resource=variable, value=new)
                    read[name] = raw_ops.ReadVariableOp(resource=variable, dtype=FLOAT)
                self.assigns[name] = assign, new
            y = normalized(x, **read)
        self.session = Session(self.graph)
        for name, value in {"filters": FILTERS, **STATISTICS}.items():
            self.assign(name, value)
        self.run: Callable[[Array], Any] = self.session.make_callable(y, [x])
        self.run_by_name = lambda value: self.session.run(y, {x: value})

    def assign(self, name: str, value: Array) -> None:
        assign, new = self.assigns[name]
        self.session.run(assign, {new: value})


NETWORKS = {
    "function": OfFunction,
    "handles": lambda: OfSession(references=False),
    "references": lambda: OfSession(references=True),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_an_assignment_counts_at_the_next_step_where_batch_norm_was_folded(
    kind: str, made: list[Any]
) -> None:
    network: Any = NETWORKS[kind]()
    values, x = dict(STATISTICS), images()
    for number in range(4):
        for _ in range(STEPS):
            expected = by_definition(x, FILTERS, values)
            np.testing.assert_allclose(network.run(x), expected, rtol=1e-4, atol=1e-5)
        name = ("mean", "variance", "scale", "offset")[number]
        values[name] = values[name] + np.float32(0.5)
        network.assign(name, values[name])
    assert made
    types = {op.type for op in made[0].executable.program.part.operations}
    assert "FusedBatchNormV3" not in types
    assert "ReadVariableOp" not in types


def test_session_run_and_a_callable_see_the_same_assignments(made: list[Any]) -> None:
    network, x = OfSession(references=False), images()
    for scale in (2, 3):
        values = {**STATISTICS, "scale": STATISTICS["scale"] * np.float32(scale)}
        network.assign("scale", values["scale"])
        for _ in range(STEPS):
            expected = by_definition(x, FILTERS, values)
            np.testing.assert_allclose(network.run_by_name(x), expected, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(network.run(x), expected, rtol=1e-4, atol=1e-5)
    assert made


def test_a_session_reports_which_program_reads_no_variables() -> None:
    network, x = OfSession(references=False), images()
    for _ in range(4):
        network.run(x)
    (found,) = map(str, network.session.report())
    assert found == (
        "y:0 with the same values of 5 variables: program for their values since step 1 (variables)"
    )


def test_a_function_that_assigns_has_no_such_program(made: list[Any]) -> None:
    count = opkernel.Variable(np.float32(0))

    @opkernel.function
    def counted() -> Any:
        count.assign_add(np.float32(1))
        return count.value

    assert [float(counted()) for _ in range(STEPS)] == [*range(1, STEPS + 1)]
    assert not made


def test_what_is_assigned_in_the_step_stays_a_variable_beside_weights(made: list[Any]) -> None:
    count, weights = (opkernel.Variable(np.full(n, 2, np.float32)) for n in (1, 5000))

    @opkernel.function
    def add() -> Any:
        count.assign_add(np.ones(1, np.float32))
        return count.value

    @opkernel.function
    def counted(x: Any) -> Any:
        return raw_ops.Sum(input=weights * x, axis=0) + add()

    one = np.float32(1)
    assert [float(counted(one)[0]) for _ in range(STEPS)] == [10003 + n for n in range(STEPS)]
    weights.assign(np.zeros(5000, np.float32))
    assert [float(counted(one)[0]) for _ in range(3)] == [3 + STEPS + n for n in range(3)]
    count.assign(np.zeros(1, np.float32))
    assert float(counted(one)[0]) == 1
    assert made


def test_a_variable_is_not_assigned_to_behind_its_other_name(made: list[Any]) -> None:
    with Graph().as_default() as graph:
        attrs: dict[str, Any] = {"dtype": FLOAT, "shape": [2], "shared_name": "shared"}
        first, second = raw_ops.VarHandleOp(**attrs), raw_ops.VarHandleOp(**attrs)
        big = raw_ops.VarHandleOp(dtype=FLOAT, shape=[100], shared_name="big")
        start = [
            raw_ops.AssignVariableOp(resource=first, value=np.zeros(2, np.float32)),
            raw_ops.AssignVariableOp(resource=big, value=np.ones(100, np.float32)),
        ]
        add = raw_ops.AssignAddVariableOp(resource=second, value=np.ones(2, np.float32))
        with graph.control_dependencies([add]):
            read = raw_ops.ReadVariableOp(resource=first, dtype=FLOAT)
        total = raw_ops.Sum(input=raw_ops.ReadVariableOp(resource=big, dtype=FLOAT), axis=0)
    session = Session(graph)
    session.run(start)
    for step in range(1, STEPS):
        assert session.run([read, total])[0].tolist() == [step, step]
    assert made


def test_a_handle_that_is_fed_may_be_of_any_variable(made: list[Any]) -> None:
    weights = opkernel.Variable(np.ones(100, np.float32))

    @opkernel.function(input_signature=[opkernel.TensorSpec([], opkernel.resource)])
    def changed(handle: Any) -> Any:
        raw_ops.AssignAddVariableOp(resource=handle, value=np.ones(100, np.float32))
        return weights.value

    handle = np.array(weights.handle, object)
    assert [changed(handle)[0] for _ in range(STEPS)] == [*range(2, STEPS + 2)]
    assert not made


def test_variables_that_keep_changing_have_few_such_programs(made: list[Any]) -> None:
    weights = opkernel.Variable(np.ones((2, 2), np.float32))
    twice = opkernel.function(lambda x: x * weights)
    for turn in range(60):
        for _ in range(3):
            assert float(twice(np.float32(2))[0, 0]) == 2 * (turn + 1)
        weights.assign_add(np.ones((2, 2), np.float32))
    assert 1 < len(made) < 10


def test_two_functions_of_two_variables_share_nothing() -> None:
    first, second = OfFunction(), OfFunction()
    x = images()
    for _ in range(STEPS):
        first.run(x), second.run(x)
    first.assign("offset", STATISTICS["offset"] + 7)
    np.testing.assert_allclose(second.run(x), by_definition(x, FILTERS, STATISTICS), 1e-4, 1e-5)
    moved = {**STATISTICS, "offset": STATISTICS["offset"] + 7}
    np.testing.assert_allclose(first.run(x), by_definition(x, FILTERS, moved), 1e-4, 1e-5)


def test_two_sessions_of_one_graph_share_nothing() -> None:
    network, x = OfSession(references=False), images()
    other = Session(network.graph)
    for name, (assign, new) in network.assigns.items():
        other.run(assign, {new: ({"filters": FILTERS} | STATISTICS)[name] * 0})
    y = network.graph.get_tensor_by_name("y:0")
    for _ in range(STEPS):
        np.testing.assert_allclose(
            network.run(x), by_definition(x, FILTERS, STATISTICS), rtol=1e-4, atol=1e-5
        )
        assert not other.run(y, {"x:0": x}).any()


def test_another_thread_assigns_whole_values() -> None:
    """All elements of the variable are equal at any time, so a step never sees two values."""
    weights = opkernel.Variable(np.zeros(4096, np.float32))

    @opkernel.function
    def spread(x: Any) -> Any:
        read = weights * x
        return raw_ops.Max(input=read, axis=0) - raw_ops.Min(input=read, axis=0)

    stop = threading.Event()

    def assign() -> None:
        value = 0
        while not stop.wait(0.002):
            value += 1
            if value % 2:
                weights.assign(np.full(4096, value, np.float32))
            else:
                weights.assign_add(np.ones(4096, np.float32))

    thread = threading.Thread(target=assign)
    thread.start()
    try:
        for _ in range(2000):
            assert spread(np.float32(1)) == 0
    finally:
        stop.set()
        thread.join()


def test_a_variable_that_is_destroyed_is_missed(made: list[Any]) -> None:
    with Graph().as_default() as graph:
        handle = raw_ops.VarHandleOp(dtype=FLOAT, shape=[2], shared_name="w")
        assign = raw_ops.AssignVariableOp(resource=handle, value=np.array([1, 2], np.float32))
        y = raw_ops.ReadVariableOp(resource=handle, dtype=FLOAT) * np.float32(3)
        destroy = raw_ops.DestroyResourceOp(resource=handle)
    session = Session(graph)
    session.run(assign)
    for _ in range(STEPS):
        assert session.run(y).tolist() == [3, 6]
    assert made
    session.run(destroy)
    with pytest.raises(FailedPreconditionError, match="w"):
        session.run(y)
    session.run(assign)
    assert session.run(y).tolist() == [3, 6]


def test_a_variable_without_a_value_is_missed_as_long_as_it_has_none() -> None:
    with Graph().as_default() as graph:
        handle = raw_ops.VarHandleOp(dtype=FLOAT, shape=[2], shared_name="w")
        assign = raw_ops.AssignVariableOp(resource=handle, value=np.array([1, 2], np.float32))
        y = raw_ops.ReadVariableOp(resource=handle, dtype=FLOAT) * np.float32(3)
    session = Session(graph)
    for _ in range(STEPS):
        with pytest.raises(FailedPreconditionError):
            session.run(y)
    session.run(assign)
    assert session.run(y).tolist() == [3, 6]


def test_a_value_of_another_shape_counts_at_the_next_step(made: list[Any]) -> None:
    weights = opkernel.Variable(np.ones(2, np.float32), shape=[None])
    total = opkernel.function(lambda: raw_ops.Sum(input=weights.value, axis=0))
    for size in (2, 5, 3):
        weights.assign(np.ones(size, np.float32))
        assert [float(total()) for _ in range(STEPS)] == [size] * STEPS
    assert len(made) == 3


def test_loops_read_variables_as_constants(made: list[Any]) -> None:
    weights = opkernel.Variable(np.full((2, 2), 0.5, np.float32))

    @opkernel.function
    def repeated(x: Any) -> Any:
        return opkernel.while_loop(
            lambda i, y: i < 3,
            lambda i, y: (i + 1, raw_ops.MatMul(a=y, b=weights.value)),
            (np.int32(0), x),
        )[1]

    x = np.ones((1, 2), np.float32)
    for _ in range(STEPS):
        assert repeated(x).tolist() == [[1, 1]]
    assert made
    weights.assign(np.ones((2, 2), np.float32))
    for _ in range(STEPS):
        assert repeated(x).tolist() == [[8, 8]]


def test_kernels_with_state_of_their_own_go_on(made: list[Any]) -> None:
    register_op("CountsItsCalls", outputs=["n: float"], shape_fn=scalar_shape, is_stateful=True)

    @register_kernel("CountsItsCalls", device="CPU")
    class CountsItsCalls(OpKernel):
        count = 0

        def compute(self, ctx: OpKernelContext) -> None:
            self.count += 1
            ctx.set_output(0, np.float32(self.count))

    weights = opkernel.Variable(np.float32(2))
    count = opkernel.function(lambda: apply_op("CountsItsCalls"))
    counted = opkernel.function(lambda: weights * count())
    assert [float(counted()) for _ in range(STEPS)] == [*range(2, 2 * STEPS + 1, 2)]
    assert not made


def test_results_are_the_callers_own(made: list[Any]) -> None:
    weights = opkernel.Variable(np.ones(5000, np.float32))
    read = opkernel.function(lambda: weights.value)
    for _ in range(STEPS):
        value = read()
        value[:] = 7
    assert made
    assert weights.numpy().max() == 1


def test_weights_are_not_copied(made: list[Any]) -> None:
    weights = opkernel.Variable(np.ones((64, 64), np.float32))
    product = opkernel.function(lambda x: raw_ops.MatMul(a=x, b=weights.value))
    for _ in range(STEPS):
        product(np.ones((64, 64), np.float32))
    constants = [op for op in made[0].executable.program.part.operations if op.type == "Const"]
    values = [tensor_from_proto(op.attr["value"].tensor) for op in constants]
    ((_, array),) = made[0].kept
    assert [np.shares_memory(one, array) for one in values if one.nbytes >= 4096] == [True]


def test_old_values_are_freed_at_the_next_step(made: list[Any]) -> None:
    weights = opkernel.Variable(np.ones((64, 64), np.float32))
    product = opkernel.function(lambda x: raw_ops.MatMul(a=x, b=weights.value))
    x = np.ones((64, 64), np.float32)
    for _ in range(STEPS):
        product(x)
    (program,) = made
    old = [weakref.ref(array) for _, array in program.kept]
    made.clear()
    del program
    weights.assign(np.zeros((64, 64), np.float32))
    assert not product(x).any()
    gc.collect()
    assert [reference() for reference in old] == [None]


def test_switched_off_with_constant_folding(made: list[Any]) -> None:
    with Graph().as_default() as graph:
        handle = raw_ops.VarHandleOp(dtype=FLOAT, shape=[2], shared_name="w")
        assign = raw_ops.AssignVariableOp(resource=handle, value=np.array([1, 2], np.float32))
        y = raw_ops.ReadVariableOp(resource=handle, dtype=FLOAT) * np.float32(3)
    session = Session(graph, optimize={"identities"})
    session.run(assign)
    for _ in range(STEPS):
        assert session.run(y).tolist() == [3, 6]
    assert not made


def test_errors_of_kernels_name_their_nodes() -> None:
    table = opkernel.Variable(np.ones((3, 2), np.float32))
    rows = opkernel.function(
        lambda i: raw_ops.GatherV2(params=table.value, indices=i, axis=0, name="rows"),
        input_signature=[opkernel.TensorSpec([None], opkernel.int32)],
    )
    for _ in range(STEPS):
        rows(np.array([1], np.int32))
    with pytest.raises(opkernel.errors.InvalidArgumentError) as caught:
        rows(np.array([3], np.int32))
    assert caught.value.node == "rows"


@pytest.mark.shared
@pytest.mark.parametrize("load", [opkernel.load, opkernel.load_as_session])
def test_a_loaded_model_that_counts_its_calls(load: Any, made: list[Any], shared: Path) -> None:
    folder = shared / "models" / "saved_dense"
    case = np.load(folder / "case.npz")
    signature = load(folder / "saved_model").signatures["serving_default"]
    x, y = case["feed:x"], case["fetch:y"]
    for call in range(1, STEPS):
        found = signature(x=x)
        np.testing.assert_allclose(found["y"], y, rtol=1e-5)
        assert found["calls"] == call
    assert made
