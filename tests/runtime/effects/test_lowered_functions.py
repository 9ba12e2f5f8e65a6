"""What runs of functions that no fetch needs: as in TensorFlow, which lowers calls before it prunes.

The tables are TensorFlow 2.21's answers in sessions, with and without its optimisers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import INT32, Builder

import opkernel
from opkernel.graph import Graph, Operation, Tensor, graph_to_function_def
from opkernel.proto import AttrValue, FunctionDef, NameAttrList
from opkernel.types import DataType

RESOURCE = DataType.DT_RESOURCE
TYPES = [RESOURCE, RESOURCE, INT32]
HOW = [
    {},
    {"optimize": False},
    {"executor_type": "DATAFLOW"},
    {"executor_type": "DATAFLOW", "optimize": False},
    {"config": opkernel.SessionConfig(operation_timeout_in_ms=60000)},
]

Call = tuple[str, bool]
"""A way of calling, and whether it is lowered."""

RUNS_ALL = {
    (("If", False),): True,
    (("If", True),): False,
    (("StatelessIf", False),): True,
    (("StatelessIf", True),): False,
    (("Case", False),): True,
    (("Case", True),): False,
    (("While", False),): True,
    (("While", True),): False,
    (("PartitionedCall", False),): False,
    (("StatefulPartitionedCall", False),): False,
    (("by name", False),): True,
    (("If", False), ("If", False)): True,
    (("If", False), ("If", True)): True,
    (("If", True), ("If", False)): True,
    (("If", True), ("If", True)): False,
    (("If", False), ("by name", False)): True,
    (("If", True), ("by name", False)): True,
    (("by name", False), ("If", True)): True,
    (("by name", False), ("by name", False)): True,
    (("If", False), ("StatefulPartitionedCall", False)): False,
    (("If", True), ("StatefulPartitionedCall", False)): False,
    (("by name", False), ("StatefulPartitionedCall", False)): False,
    (("StatefulPartitionedCall", False), ("If", False)): True,
    (("StatefulPartitionedCall", False), ("If", True)): False,
    (("StatefulPartitionedCall", False), ("by name", False)): True,
    (("StatefulPartitionedCall", False), ("While", False)): True,
    (("StatefulPartitionedCall", False), ("StatefulPartitionedCall", False)): False,
}
"""Whether what nothing needs runs in the last function, by the calls from the first to the last."""

NOINLINE_RUNS_ALL = {
    (("If", True),): True,
    (("StatelessIf", True),): True,
    (("Case", True),): True,
    (("PartitionedCall", False),): False,
    (("StatefulPartitionedCall", False),): False,
    (("If", True), ("If", True)): True,
    (("If", True), ("StatefulPartitionedCall", False)): False,
    (("StatefulPartitionedCall", False), ("If", True)): True,
}
"""The same where the functions have the attr `_noinline`."""

PRUNED_FIRST_RUNS_ALL = {
    (("If", True),): True,
    (("Case", True),): True,
    (("While", True),): True,
    (("StatefulPartitionedCall", False),): False,
    (("If", True), ("If", True)): True,
    (("If", True), ("StatefulPartitionedCall", False)): False,
    (("StatefulPartitionedCall", False), ("If", True)): False,
}
"""The same where the config says `place_pruned_graph`."""


class Calls:
    """A graph with two variables, which functions that are called count up.

    The result needs the first; nothing needs the second, but for the functions' control outputs if
    there are any.
    """

    def __init__(self, *, noinline: bool = False, controls: bool = False) -> None:
        self.b = Builder()
        self._noinline, self._controls = noinline, controls
        self.handles = [
            self.b.op("VarHandleOp", dtype=INT32, shape=[], shared_name=f"v{k}", name=f"v{k}")
            for k in range(2)
        ]
        zero = self.b.constant(0)
        for k, v in enumerate(self.handles):
            self.b.operation("AssignVariableOp", v, zero, name=f"start{k}", dtype=INT32)
            self.b.operation("ReadVariableOp", v, name=f"read{k}", dtype=INT32)

    def define(self, name: str, types: Sequence[DataType], body: Any) -> NameAttrList:
        """Add a function; `body` gives its results, and the operations that it returns control from."""
        inner, library = Builder(), self.b.graph.function_library
        inner.graph = Graph(function_library=library)
        arguments = [inner.placeholder(f"a{k}", dtype) for k, dtype in enumerate(types)]
        results, effects = body(inner, *arguments)
        controls = {op.name: op for op in effects} if self._controls else {}
        function: FunctionDef = graph_to_function_def(
            inner.graph, name, arguments, results, control_outputs=controls
        )
        if self._noinline:
            function.attr["_noinline"].b = True
        library.add_function(function)
        return NameAttrList(name=name)

    def last(self) -> NameAttrList:
        """The function that counts up."""

        def body(g: Builder, v: Tensor, w: Tensor, x: Tensor) -> Any:
            adds = [
                g.operation("AssignAddVariableOp", one, g.constant(1), dtype=INT32)
                for one in (v, w)
            ]
            read = g.operation("ReadVariableOp", v, dtype=INT32, after=adds[:1]).outputs[0]
            return [g.op("AddV2", read, x)], adds[1:]

        return self.define("last", TYPES, body)

    def call(
        self, b: Builder, call: Call, function: NameAttrList, inputs: list[Tensor]
    ) -> Operation:
        """A call of the function."""
        kind, is_lowered = call
        attrs: dict[str, Any] = {"Tout": [INT32]}
        if is_lowered:
            attrs["_lower_using_switch_merge"] = AttrValue(b=True)
        if kind == "by name":
            return b.operation(function.name, *inputs)
        if kind.endswith("If"):
            both: dict[str, Any] = {"then_branch": function, "else_branch": function}
            return b.operation(kind, b.constant(True), inputs, **both, **attrs)
        if kind == "Case":
            return b.operation("Case", b.constant(0), inputs, branches=[function] * 2, **attrs)
        if kind == "While":
            return self._loop(b, function, inputs, attrs)
        return b.operation(kind, inputs, f=function, **attrs)

    def _loop(
        self, b: Builder, function: NameAttrList, inputs: list[Tensor], attrs: dict[str, Any]
    ) -> Operation:
        """A loop of one turn, of which the body is that of the function."""
        types = [INT32, INT32, *TYPES]
        go_on = self.define("go_on", types, lambda g, k, *_: ([g.op("Less", k, g.constant(1))], []))

        def body(g: Builder, k: Tensor, y: Tensor, v: Tensor, w: Tensor, x: Tensor) -> Any:
            adds = [
                g.operation("AssignAddVariableOp", one, g.constant(1), dtype=INT32)
                for one in (v, w)
            ]
            read = g.operation("ReadVariableOp", v, dtype=INT32, after=adds[:1]).outputs[0]
            return [g.op("AddV2", k, g.constant(1)), g.op("AddV2", read, x), v, w, x], adds[1:]

        del attrs["Tout"]
        loop_body = self.define("turn", types, body)
        start = [b.constant(0), b.constant(0), *inputs]
        return b.operation("While", start, cond=go_on, body=loop_body, T=types, **attrs)

    def result(self, calls: Sequence[Call]) -> Tensor:
        """What the first call gives, which calls a function that makes the next call, and so on."""
        function = self.last()
        for number, call in enumerate(reversed(calls[1:])):

            def body(g: Builder, *inputs: Tensor, call: Call = call, f: Any = function) -> Any:
                op = self.call(g, call, f, list(inputs))
                return [op.outputs[op.type == "While"]], [op]

            function = self.define(f"calls_{number}", TYPES, body)
        op = self.call(self.b, calls[0], function, [*self.handles, self.b.constant(5)])
        return op.outputs[op.type == "While"]

    def counted(self, y: Tensor, **options: Any) -> list[int]:
        """The variables after a step that fetches the result."""
        with opkernel.Session(self.b.graph, **options) as session:
            session.run(["start0", "start1"])
            assert session.run(y) == 6
            return [int(value) for value in session.run(["read0:0", "read1:0"])]


@pytest.mark.parametrize("options", HOW)
@pytest.mark.parametrize(("calls", "runs_all"), RUNS_ALL.items(), ids=str)
def test_what_nothing_needs(calls: Sequence[Call], runs_all: bool, options: dict[str, Any]) -> None:
    graph = Calls()
    assert graph.counted(graph.result(calls), **options) == [1, int(runs_all)]


@pytest.mark.parametrize("options", HOW)
@pytest.mark.parametrize(("calls", "runs_all"), NOINLINE_RUNS_ALL.items(), ids=str)
def test_functions_that_are_not_inlined(
    calls: Sequence[Call], runs_all: bool, options: dict[str, Any]
) -> None:
    graph = Calls(noinline=True)
    assert graph.counted(graph.result(calls), **options) == [1, int(runs_all)]


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize(("calls", "runs_all"), PRUNED_FIRST_RUNS_ALL.items(), ids=str)
def test_graphs_that_are_pruned_first(
    calls: Sequence[Call], runs_all: bool, optimize: bool, executor: str
) -> None:
    config = opkernel.SessionConfig(
        place_pruned_graph=True, optimize=optimize, executor_type=executor
    )
    graph = Calls()
    assert graph.counted(graph.result(calls), config=config) == [1, int(runs_all)]


@pytest.mark.parametrize("noinline", [False, True])
@pytest.mark.parametrize("options", HOW)
@pytest.mark.parametrize("calls", RUNS_ALL, ids=str)
def test_what_functions_return_control_from_runs(
    calls: Sequence[Call], options: dict[str, Any], noinline: bool
) -> None:
    graph = Calls(noinline=noinline, controls=True)
    assert graph.counted(graph.result(calls), **options) == [1, 1]


@pytest.mark.parametrize("options", HOW)
def test_a_predicate_that_is_fed(options: dict[str, Any]) -> None:
    """The branch that is not taken does nothing; of the other what is needed runs."""
    graph = Calls()
    b, last = graph.b, graph.last()
    p = b.placeholder("p", DataType.DT_BOOL)
    other = graph.define("other", TYPES, lambda g, v, w, x: ([g.op("Neg", x)], []))
    y = b.op(
        "If", p, [*graph.handles, b.constant(5)], then_branch=last, else_branch=other, Tout=[INT32],
        _lower_using_switch_merge=AttrValue(b=True),
    )  # fmt: skip
    with opkernel.Session(b.graph, **options) as session:
        session.run(["start0", "start1"])
        found = [int(session.run(y, {p: np.bool_(choice)})) for choice in (True, False, True)]
        assert found == [6, -5, 7]
        assert session.run(["read0:0", "read1:0"]) == [2, 0]
