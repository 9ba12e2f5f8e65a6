"""A session keeps so many executables and no more, whatever it is asked for; nothing else is lost."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Iterator
from itertools import combinations, islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.dataflow.kernels import register
from tests.runtime.dataflow.loop_builders import Builder

import opkernel
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.proto import RunMetadata
from opkernel.runtime.session.executables import LruCache
from opkernel.types import DataType

COUNTS = "BoundedExecutablesCounts"
FETCHED = 40
INT64 = DataType.DT_INT64


class Counts(OpKernel):
    """Adds to its input how often it was computed before."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._count = 0

    def compute(self, ctx: OpKernelContext) -> None:
        ctx.set_output(0, np.float32(ctx.input(0) + self._count))
        self._count += 1


register(COUNTS, Counts)


def example() -> Builder:
    """Node `yK` is `x * K`; a variable counts how often `count` was computed, a kernel does `counts`."""
    b = Builder()
    x = b.placeholder("x")
    for k in range(FETCHED):
        b.op("Mul", x, b.constant(float(k)), name=f"y{k}")
    v = b.op("VarHandleOp", name="v", dtype=INT64, shape=[])
    b.operation("AssignVariableOp", v, b.constant(0, "i8"), name="start", dtype=INT64)
    add = b.operation("AssignAddVariableOp", v, b.constant(1, "i8"), name="add", dtype=INT64)
    b.operation("ReadVariableOp", v, dtype=INT64, after=[add], name="count")
    b.op(COUNTS, b.constant(100.0), name="counts")
    return b


def config(most: int) -> opkernel.SessionConfig:
    return opkernel.SessionConfig(max_executables=most, allow_soft_placement=True)


class Plans:
    """The plans that a session has made, as long as they live."""

    def __init__(self, session: opkernel.Session) -> None:
        self._session = session
        self._made: weakref.WeakSet[Any] = weakref.WeakSet()

    def make(self, fetches: list[str]) -> Any:
        plan = self._session.plan(fetches, ["x:0"])
        self._made.add(plan.run)
        return weakref.ref(plan.run)

    def alive(self) -> int:
        gc.collect()
        return len(self._made)


def pairs() -> Iterator[list[str]]:
    return ([f"y{i}:0", f"y{k}:0"] for i, k in combinations(range(FETCHED), 2))


@pytest.mark.parametrize("most", [1, 2, 3, 20])
def test_no_more_plans_live_than_the_config_says(most: int) -> None:
    with opkernel.Session(example().graph, config=config(most)) as session:
        plans, asked = Plans(session), pairs()
        for count in (most, most + 1, 2 * most):
            for fetches in islice(asked, count):
                plans.make(fetches)
            assert max(most // 2, 1) <= plans.alive() <= most


def test_what_is_used_again_and_again_stays() -> None:
    with opkernel.Session(example().graph, config=config(8)) as session:
        plans = Plans(session)
        used = plans.make(["y1:0"])
        for fetches in islice(pairs(), 60):
            plans.make(fetches)
            assert session.run(["y1:0"], {"x:0": 2.0}) == [2.0]
        gc.collect()
        assert used() is not None


def test_steps_that_are_dropped_are_compiled_again() -> None:
    chance = random.Random(3)
    with opkernel.Session(example().graph, config=config(5)) as session:
        for _ in range(300):
            first, second = chance.randrange(FETCHED), chance.randrange(FETCHED)
            found = session.run([f"y{first}:0", f"y{second}:0"], {"x:0": 3.0})
            assert found == [3 * first, 3 * second]


@pytest.mark.parametrize("options", [{}, {"optimize": False}, {"executor_type": "DATAFLOW"}])
def test_the_state_of_kernels_stays(options: dict[str, Any]) -> None:
    with opkernel.Session(example().graph, config=config(1), **options) as session:
        session.run("start")
        for step, fetches in enumerate(islice(pairs(), 10)):
            session.run(fetches, {"x:0": 1.0})
            assert session.run(["counts:0", "count:0"]) == [100 + step, 1 + step]


def test_callables_and_partial_runs_keep_theirs() -> None:
    with opkernel.Session(example().graph, config=config(1)) as session:
        call = session.make_callable("y2:0", ["x:0"])
        handle = session.partial_run_setup(["y3:0"], ["x:0"])
        for fetches in islice(pairs(), 5):
            session.run(fetches, {"x:0": 1.0})
        assert call(5.0) == 10
        assert session.partial_run(handle, "y3:0", {"x:0": 5.0}) == 15


def test_a_finalized_session_drops_nothing_more() -> None:
    with opkernel.Session(example().graph, config=config(4)) as session:
        for k in range(10):
            session.run(f"y{k}:0", {"x:0": 1.0})
        session.finalize()
        with pytest.raises(FailedPreconditionError, match="has been finalized"):
            session.run("y0:0", {"x:0": 1.0})
        for _ in range(3):
            for k in (9, 8):
                assert session.run(f"y{k}:0", {"x:0": 1.0}) == k


def test_direct_sessions_are_bounded_too() -> None:
    with opkernel.DirectSession(config(3)) as session:
        session.create(example().graph.as_graph_def())
        for k in (*range(FETCHED), *range(FETCHED)):
            assert session.run({"x": np.float32(2)}, [f"y{k}"]) == [2 * k]
        assert len(session._signatures) <= 3


def test_cost_models_go_with_their_executables() -> None:
    costs = opkernel.SessionConfig(build_cost_model=1, max_executables=2, allow_soft_placement=True)
    with opkernel.Session(example().graph, config=costs) as session:
        metadata = RunMetadata()
        for k in range(10):
            session.run(f"y{k}:0", {"x:0": 1.0}, run_metadata=metadata)
            assert {f"y{k}"} <= {node.name for node in metadata.cost_graph.node}
        assert len(session._runtime.recorder._costs) <= 2


def living() -> int:
    """The objects of ours that live; memory is no measure, as other threads take and free it."""
    gc.collect()
    return sum(str(type(one).__module__).startswith("opkernel.") for one in gc.get_objects())


def test_nothing_of_what_was_dropped_is_left() -> None:
    """Not in kernels, functions, or the graph."""
    with opkernel.Session(example().graph, config=config(4)) as session:
        asked = pairs()
        for k in range(FETCHED):  # the kernels, which stay
            session.run(f"y{k}:0", {"x:0": 1.0})

        def grown_by(steps: int) -> int:
            before = living()
            for fetches in islice(asked, steps):
                session.run(fetches, {"x:0": 1.0})
            return living() - before

        grown_by(20)
        assert grown_by(100) < 100  # a combination that is kept has many


def test_there_must_be_room_for_one() -> None:
    with pytest.raises(InvalidArgumentError, match="max_executables must be at least 1, got 0"):
        opkernel.SessionConfig(max_executables=0)


@given(st.integers(1, 9), st.lists(st.integers(0, 12), max_size=60))
def test_the_last_used_are_found_and_never_too_many(most: int, keys: list[int]) -> None:
    kept = LruCache[int, str](most)
    used: list[int] = []
    for key in keys:
        assert {**kept._older, **kept}.keys() >= {*used[-max(most // 2, 1) :]}
        if kept.find(key) is None:
            kept.keep(key, str(key))
        assert kept.get(key) == str(key)
        assert len(kept) + len(kept._older) <= most
        used = [one for one in used if one != key] + [key]
