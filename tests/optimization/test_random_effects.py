"""Whatever in a random graph waits for effects, passes keep them: as many, and in the same order."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimization.counting import WAYS, Counting, wait
from tests.optimization.random_graph import RandomGraph
from tests.optimization.test_same_results import CHOICES
from tests.runtime.dataflow.loop_builders import Builder

import opkernel
from opkernel.graph import Operation, Tensor
from opkernel.graph.core.structural_ops import ENTER_OPS, SWITCH_OPS
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.optimization import optimize_graph
from opkernel.types import DataType

INT64 = DataType.DT_INT64
STEPS = 5


def drawn(data: st.DataObject, most: int) -> RandomGraph:
    graph = RandomGraph(data)
    for _ in range(data.draw(st.integers(1, most))):
        graph.grow()
    return graph


@given(st.data())
@settings(max_examples=60)
def test_effects_happen_as_often_as_without_passes(data):
    graph = drawn(data, 8)
    y = graph.made[-1]
    x = np.random.default_rng(len(graph.made)).normal(size=(2, 3, 3)).astype("f4")
    counting = Counting(graph.b, y, {graph.x: x, graph.p: graph.pick([True, False])})
    for place in data.draw(st.lists(st.sampled_from(counting.places), min_size=1, max_size=5)):
        counting.count_before(place, graph.pick(WAYS), beside=data.draw(st.booleans()))
    values, counts = counting.run(False)
    for passes in (True, *data.draw(st.lists(st.sampled_from(CHOICES), max_size=3))):
        found = counting.run(passes, graph.pick(["", "DATAFLOW"]))
        assert found[1] == counts, passes
        np.testing.assert_allclose(found[0], values, rtol=1e-4, atol=1e-4)


class Row:
    """Effects in a row: each makes `3 * v + k` of a variable, k being its number.

    Attributes:
        assigns: these effects.
    """

    def __init__(self, b: Builder, way: str) -> None:
        self._b, self._way = b, way
        self.assigns: list[Operation] = []

    def variable(self) -> Tensor:
        return self._b.op("VarHandleOp", dtype=INT64, shape=[], shared_name="row")

    def put_between(self, last: Operation, op: Operation) -> None:
        """Let the next effect wait for one operation, and another one for it."""
        b, v = self._b, self.variable()
        read = b.operation("ReadVariableOp", v, dtype=INT64, after=[last]).outputs[0]
        number = b.constant(len(self.assigns) + 1, "i8")
        value = b.op("AddV2", b.op("Mul", read, b.constant(3, "i8")), number)
        self.assigns.append(b.operation("AssignVariableOp", v, value, dtype=INT64))
        wait(b, op, self.assigns[-1], self._way)


def unconditional(ops: list[Operation]) -> list[Operation]:
    """Those that always run once, in the order in which they were made."""
    varying: set[Operation] = set()
    for op in ops:
        is_choice = op.type in SWITCH_OPS | ENTER_OPS
        if is_choice or not varying.isdisjoint((*(t.op for t in op.inputs), *op.control_inputs)):
            varying.add(op)
    return sorted(set(ops) - varying, key=lambda op: op.number)


@given(st.data())
@settings(max_examples=60)
def test_effects_stay_in_order(data):
    graph = drawn(data, 6)
    b, y = graph.b, graph.made[-1]
    feeds = {graph.x: np.ones((2, 3, 3), "f4"), graph.p: graph.pick([True, False])}
    first, *places = unconditional(prune_and_order([y], (), ()))
    row, last = Row(b, graph.pick(WAYS)), first
    chosen = data.draw(st.sets(st.sampled_from(range(len(places))), min_size=1, max_size=4))
    for place in sorted(chosen):
        row.put_between(last, places[place])
        last = places[place]
    start = b.operation("AssignVariableOp", row.variable(), b.constant(0, "i8"), dtype=INT64)
    total = b.op("ReadVariableOp", row.variable(), dtype=INT64)
    fetches, passes = list(dict.fromkeys([y, graph.pick(graph.made)])), graph.pick(CHOICES)
    found = []
    for optimize in (False, passes, True):
        with opkernel.Session(b.graph, optimize=optimize) as session:
            session.run(start)
            for _ in range(STEPS):
                session.run(fetches, feeds)
            found.append(session.run(total))
    assert found == found[:1] * 3
    check_row(row, fetches, list(feeds), passes)


def check_row(
    row: Row, fetches: list[Tensor], feeds: list[Tensor], passes: Collection[str]
) -> None:
    """Of the effects that are needed each still depends on the one before it."""
    order = set(prune_and_order(fetches, (), feeds))
    needed = [op.name for op in row.assigns if op in order]
    left = optimize_graph(fetches[0].graph, fetches, feeds, passes=passes)
    assert set(needed) <= {op.name for op in left.operations}
    for before, after in pairwise(needed):
        behind = prune_and_order((), [left.graph.get_operation_by_name(after)], ())
        assert before in [op.name for op in behind]
