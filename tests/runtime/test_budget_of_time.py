"""What a deadline promises: it is looked at in every stage; and what nobody asked for takes little."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.runtime.deadlines import error_at_deadline

import opkernel
from opkernel import raw_ops
from opkernel.device import budget as budgets
from opkernel.device.budget import Budget, current_budget
from opkernel.errors import DeadlineExceededError
from opkernel.graph import Graph, import_graph_def
from opkernel.kernel import under_budget
from opkernel.optimization import optimize_graph
from opkernel.proto import FunctionDefLibrary, GraphDef
from opkernel.runtime import RunOptions

FLOAT = np.float32


class Clock:
    """Says that time is up once it was asked so many times."""

    def __init__(self, ticks: float) -> None:
        self.left = ticks
        self.stages: list[str] = []

    def monotonic(self) -> float:
        self.left -= 1
        return 2.0 if self.left < 0 else 0.0


def deep_graph() -> GraphDef:
    """A graph with functions, constants to fold, and conditionals."""

    @opkernel.function
    def half(x: Any) -> Any:
        return raw_ops.Mul(x=x, y=FLOAT(0.5))

    with Graph().as_default() as graph:
        x = opkernel.placeholder(FLOAT, [None], name="x")
        y = functools.reduce(lambda y, i: y + raw_ops.Exp(x=FLOAT(i)), range(3), x)
        raw_ops.Identity(input=half(y), name="y")
    return graph.as_graph_def()


def whole_way(graph_def: GraphDef) -> Any:
    with Graph().as_default() as graph:
        import_graph_def(graph_def, name="")
    with opkernel.Session(graph) as session:
        return session.run("y:0", {"x:0": [1.0]})


def test_time_is_looked_at_in_every_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the clock has been looked at when time is up, the work ends there and says where."""
    graph_def = deep_graph()
    whole_way(graph_def)  # loads what is loaded on demand
    ends: set[str] = set()
    for ticks in range(1000):
        monkeypatch.setattr(budgets, "time", Clock(ticks))
        try:
            with under_budget(Budget(deadline=1.0)):
                whole_way(graph_def)
        except DeadlineExceededError as error:
            ends.add(error.message.partition(" '")[0])
        else:
            break
    assert ticks > 20
    for stage in ("importing", "importing the function", "inferring shapes at", "optimizing by"):
        assert f"Timed out while {stage}" in ends
    for stage in ("making the kernel of", "compiling", "compiling a plan"):
        assert f"Timed out while {stage}" in ends


def test_a_step_has_its_time_from_compiling_on() -> None:
    with Graph().as_default() as graph:
        import_graph_def(deep_graph(), name="")
    with opkernel.Session(graph) as session:
        seen: list[float | None] = []
        made = session._runner.executables._make

        def make(*arguments: Any) -> Any:
            budget = current_budget()
            seen.append(None if budget is None else budget.seconds_left)
            return made(*arguments)

        session._runner.executables._make = make  # type: ignore[assignment, method-assign]  # to look on
        session.run("y:0", {"x:0": [1.0]}, RunOptions(timeout_in_ms=60_000))
        session.run("y:0", {"x:0": [1.0]})
    (timed, plain) = seen
    assert timed is not None
    assert 0 < timed <= 60
    assert plain is None


def fill(value: Any, *sizes: int) -> Any:
    return raw_ops.Fill(dims=np.array(sizes, np.int32), value=np.asarray(value))


EXPENSIVE: dict[str, Callable[[], Any]] = {
    "Conv2D": lambda: raw_ops.Conv2D(
        input=fill(FLOAT(1), 1, 1000, 1000, 1),
        filter=fill(FLOAT(1), 1000, 1000, 1, 1),
        strides=[1, 1, 1, 1],
        padding="SAME",
    ),
    "MatMul": lambda: raw_ops.MatMul(a=fill(FLOAT(1), 1500, 1500), b=fill(FLOAT(1), 1500, 1500)),
    "TopKV2": lambda: raw_ops.TopKV2(input=fill(FLOAT(1), 2_000_000), k=1_000_000)[0],
    "Igamma": lambda: raw_ops.Igamma(a=fill(FLOAT(100), 2_000_000), x=fill(FLOAT(0.5), 2_000_000)),
    "NonMaxSuppression": lambda: raw_ops.NonMaxSuppression(
        boxes=fill(FLOAT(1), 500_000, 4), scores=fill(FLOAT(1), 500_000), max_output_size=500_000
    ),
    "Range": lambda: raw_ops.Range(start=0, limit=10**9, delta=1),
    "Tile": lambda: raw_ops.Tile(input=fill(FLOAT(1), 1000), multiples=[100_000]),
}


@pytest.mark.parametrize("op", EXPENSIVE)
def test_what_takes_long_is_not_folded(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []
    real = opkernel.OpKernelContext.run

    def run(ctx: opkernel.OpKernelContext) -> Any:
        outputs = real(ctx)
        computed.append(ctx.kernel.type_string)
        return outputs

    monkeypatch.setattr(opkernel.OpKernelContext, "run", run)
    with Graph().as_default() as graph:
        result = EXPENSIVE[op]()
        total = raw_ops.Size(input=raw_ops.Reshape(tensor=result, shape=[-1]))
    optimize_graph(graph, [result, total])
    assert op not in computed


def test_what_is_cheap_is_folded() -> None:
    with Graph().as_default() as graph:
        x = opkernel.placeholder(FLOAT, [None])
        w = raw_ops.MatMul(a=fill(FLOAT(1), 100, 100), b=fill(FLOAT(2), 100, 100))
        y = raw_ops.MatMul(a=raw_ops.Reshape(tensor=x, shape=[-1, 100]), b=raw_ops.Tanh(x=w))
    optimized = optimize_graph(graph, [y], [x])
    assert "Tanh" not in {op.type for op in optimized.operations}


def test_functions_that_double_each_other_are_not_folded() -> None:
    """Thirty functions, each of which calls the one before it twice."""
    library = FunctionDefLibrary()
    for number in range(30):
        function = library.function.add()
        function.signature.name = f"f{number}"
        function.signature.input_arg.add(name="x", type=1)
        function.signature.output_arg.add(name="y", type=1)
        inner = f"f{number - 1}" if number else "Neg"
        port = "y:y:0"
        for name, source in (("a", "x"), ("y", "a:y:0")):
            node = function.node_def.add(name=name, op=inner, input=[source])
            if not number:
                node.attr["T"].type = 1
        if not number:
            function.node_def[1].input[0] = "a:y:0"
        function.ret["y"] = port
    graph_def = GraphDef(library=library)
    graph_def.versions.producer = 1500
    const = graph_def.node.add(name="c", op="Const")
    const.attr["dtype"].type = 1
    const.attr["value"].tensor.dtype = 1
    const.attr["value"].tensor.tensor_shape.SetInParent()
    graph_def.node.add(name="z", op="f29", input=["c"])
    with Graph().as_default() as graph:
        import_graph_def(graph_def, name="")
    with opkernel.Session(graph) as session:
        session.plan("z:0")
        with pytest.raises(DeadlineExceededError):
            session.run("z:0", options=RunOptions(timeout_in_ms=100))


@pytest.mark.parametrize("build", [raw_ops.Lgamma, raw_ops.AsString], ids=["pointwise", "strings"])
def test_kernels_that_take_long_go_in_pieces(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is looked at more often for more elements."""

    def looks(elements: int) -> int:
        with Graph().as_default() as graph:
            x = opkernel.placeholder(FLOAT, [None])
            y = build(**{"input" if build is raw_ops.AsString else "x": x})
        with opkernel.Session(graph) as session:
            value = np.linspace(1, 2, elements, dtype=FLOAT)
            options = RunOptions(timeout_in_ms=3_600_000)
            expected = session.run(y, {x: value})
            np.testing.assert_array_equal(session.run(y, {x: value}, options), expected)
            count = 0
            real = time.monotonic

            class Counting:
                @staticmethod
                def monotonic() -> float:
                    nonlocal count
                    count += 1
                    return real()

            monkeypatch.setattr(budgets, "time", Counting)
            monkeypatch.setattr(
                "opkernel.runtime.program.run_step.time.monotonic", Counting.monotonic
            )
            session.run(y, {x: value}, options)
            monkeypatch.undo()
        return count

    many = 3_000_000 if build is raw_ops.Lgamma else 50_000
    assert looks(many) >= looks(10) + 8


def test_a_product_that_must_take_too_long_is_not_begun() -> None:
    with Graph().as_default() as graph:
        x = opkernel.placeholder(FLOAT, [None, None])
        y = raw_ops.MatMul(a=x, b=x)
    with opkernel.Session(graph) as session:
        value = np.broadcast_to(FLOAT(0), (40_000, 40_000))
        error_at_deadline(
            lambda options: session.run(y, {x: value}, options), "at least", (50, 500, 5_000)
        )
