"""Random control flow: plans, their trees and programs give the same as the dataflow executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder
from tests.runtime.plan.tree_interpreter import interpret

import opkernel
from opkernel.decompile import decompile
from opkernel.errors import OpError
from opkernel.graph import Tensor
from opkernel.kernel import register_kernel
from opkernel.opdef import register_op, scalar_shape
from opkernel.runtime import CompiledPlan
from opkernel.runtime.plan import compiled_plan
from opkernel.runtime.program.run_step import RunStep

UNARY, BINARY = ("Neg", "Sin", "Identity", "Relu"), ("AddV2", "Mul", "Sub", "Maximum")

noted: list[tuple[float, float]] = []


@pytest.fixture(scope="module", autouse=True)
def _op_with_an_effect() -> None:
    """`RaisingNote(x, token)` notes x; who takes the token that it gives comes after it."""
    register_op(
        "RaisingNote",
        inputs=["x: float", "token: float"],
        outputs=["next: float"],
        shape_fn=scalar_shape,
        is_stateful=True,
    )

    @register_kernel("RaisingNote", device="CPU")
    def note(x: Any, token: Any) -> Any:
        noted.append((float(x), float(token)))
        return np.float32(token + 1)


class Grower:
    """Draws graphs; `values` are floats of one loop and branch, `token` the last note's."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.b = Builder()
        self.predicates = [self.b.placeholder(f"p{k}", BOOL) for k in range(3)]
        self.values = [self.b.placeholder(f"x{k}") for k in range(2)]
        self.token = self.b.placeholder("token")
        self.turns = self.b.placeholder("turns", INT32)

    def graph(self) -> tuple[Builder, list[Tensor]]:
        """A graph, and what may be fetched of it; some of that may be dead."""
        with self.b.graph.name_scope("model"), self.b.graph.name_scope("part"):
            values, token = self.grow(self.values, self.predicates, self.token, self.turns, depth=3)
            values += self.merges_of_a_kind(values)
            loose = self.b.operation("Switch", self.pick(values), self.pick(self.predicates))
            behind = self.b.op("Neg", loose.outputs[self.draw(st.integers(0, 1))])
            after = self.b.operation("Identity", values[0], after=[self.pick([*values, behind]).op])
        return self.b, [*values[-3:], behind, after.outputs[0], token]

    def pick(self, values: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(values))

    def grow(
        self,
        values: Sequence[Tensor],
        predicates: Sequence[Tensor],
        token: Tensor,
        turns: Tensor,
        depth: int,
    ) -> tuple[list[Tensor], Tensor]:
        """The values and more, computed from them."""
        values, b = list(values), self.b
        kinds = ["unary", "binary", "constant", "note", "after"]
        kinds += ["cond", "cond", "loop", "until", "array", "stack"] if depth else []
        for _ in range(self.draw(st.integers(1, 4))):
            kind = self.pick(kinds)
            if kind == "unary":
                values.append(b.op(self.pick(UNARY), self.pick(values)))
            elif kind == "binary":
                values.append(b.op(self.pick(BINARY), self.pick(values), self.pick(values)))
            elif kind == "constant":
                values.append(b.constant(float(self.draw(st.integers(-3, 3)))))
            elif kind == "note":
                token = b.op("RaisingNote", self.pick(values), token)
            elif kind == "after":
                before = self.pick([*values, token]).op
                if before.type != "Placeholder":
                    after = [before, b.operation("NoOp", after=[before])]
                    values.append(b.operation("Sin", self.pick(values), after=after).outputs[0])
            else:
                more, token = getattr(self, kind)(values, predicates, token, turns, depth - 1)
                values += more
        return values, token

    def inside(self, depth: int) -> Callable[..., tuple[list[Tensor], Tensor]]:
        """A random body of two values, two predicates, a token and a number of turns."""

        def build(x: Tensor, y: Tensor, p: Tensor, q: Tensor, token: Tensor, turns: Tensor) -> Any:
            values, token = self.grow([x, y], [p, q], token, turns, depth)
            return values[-2:], token

        return build

    def cond(self, values: Any, predicates: Any, token: Tensor, turns: Tensor, depth: int) -> Any:
        """A conditional; predicates from outside are led in, as TensorFlow does."""

        def branch(*inputs: Tensor) -> list[Tensor]:
            values, token = self.inside(depth)(*inputs)
            return [*values, token]

        inputs = [self.pick(values), self.pick(values)]
        others = [self.pick(predicates), self.pick(predicates), token, turns]
        *more, token = self.b.cond(self.pick(predicates), branch, branch, [*inputs, *others])
        return more, token

    def loop(self, values: Any, predicates: Any, token: Tensor, turns: Tensor, depth: int) -> Any:
        """A loop over both values; one of the predicates changes at every turn."""
        b, body = self.b, self.inside(depth)

        def go_on(i: Tensor, *rest: Tensor) -> Tensor:
            return b.op("Less", i, rest[-1])

        def turn(i: Tensor, x: Tensor, y: Tensor, p: Tensor, token: Tensor, *outer: Tensor) -> Any:
            q, turns = outer
            (x, y), token = body(x, y, p, q, token, turns)
            return [b.op("AddV2", i, b.constant(1)), x, y, b.op("LogicalNot", p), token]

        variables = [b.constant(0), self.pick(values), self.pick(values), self.pick(predicates)]
        invariants = [self.pick(predicates), turns]
        results = b.while_loop(go_on, turn, [*variables, token], invariants)
        return results[1:3], results[4]

    def until(self, values: Any, predicates: Any, token: Tensor, turns: Tensor, depth: int) -> Any:
        """A loop whose condition is a conditional, and whose body may hand a variable on."""
        b = self.b
        swap = self.draw(st.booleans())

        def go_on(i: Tensor, x: Tensor, y: Tensor, p: Tensor, turns: Tensor) -> Tensor:
            (limit,) = b.cond(p, lambda n: [n], lambda n: [b.constant(1)], [turns])
            return b.op("Less", i, limit)

        def turn(i: Tensor, x: Tensor, y: Tensor, p: Tensor, turns: Tensor) -> Any:
            x = b.op(self.pick(UNARY), x)
            return [b.op("AddV2", i, b.constant(1)), *([y, x] if swap else [x, y])]

        variables = [b.constant(0), self.pick(values), self.pick(values)]
        results = b.while_loop(go_on, turn, variables, [self.pick(predicates), turns])
        return results[1:], token

    def array(self, values: Any, predicates: Any, token: Tensor, turns: Tensor, depth: int) -> Any:
        """A loop that writes a TensorArray, whose elements are added up."""
        b = self.b
        array = b.operation("TensorArrayV3", turns, dtype=FLOAT, element_shape=[])
        handle, flow = array.outputs

        def turn(i: Tensor, x: Tensor, flow: Tensor, handle: Tensor, turns: Tensor) -> Any:
            x = b.op(self.pick(UNARY), x)
            written = b.op("TensorArrayWriteV3", handle, i, x, flow, T=FLOAT)
            return [b.op("AddV2", i, b.constant(1)), x, written]

        _, x, flow = b.while_loop(
            lambda i, *rest: b.op("Less", i, rest[-1]),
            turn,
            [b.constant(0), self.pick(values), flow],
            [handle, turns],
        )
        indices = b.op("Range", b.constant(0), turns, b.constant(1))
        found = b.op("TensorArrayGatherV3", handle, indices, flow, dtype=FLOAT, element_shape=[])
        return [x, b.op("Sum", found, b.constant(0))], token

    def stack(self, values: Any, predicates: Any, token: Tensor, turns: Tensor, depth: int) -> Any:
        """A loop that pushes on a stack, and one that pops, as gradients do."""
        b = self.b
        handle = b.op("StackV2", b.constant(-1), elem_type=FLOAT)

        def push(i: Tensor, x: Tensor, handle: Tensor, turns: Tensor) -> Any:
            pushed = b.op("StackPushV2", handle, x, T=FLOAT)
            return [b.op("AddV2", i, b.constant(1)), b.op("Sin", pushed)]

        n, x = b.while_loop(
            lambda i, *rest: b.op("Less", i, rest[-1]),
            push,
            [b.constant(0), self.pick(values)],
            [handle, turns],
            parallel_iterations=1,
        )

        def pop(i: Tensor, x: Tensor, handle: Tensor) -> Any:
            trigger = b.operation("ControlTrigger", after=[i.op])
            popped = b.operation("StackPopV2", handle, after=[trigger, i.op], elem_type=FLOAT)
            return [b.op("Sub", i, b.constant(1)), b.op("Sub", popped.outputs[0], x)]

        _, y = b.while_loop(
            lambda i, *rest: b.op("Less", b.constant(0), i),
            pop,
            [b.operation("Identity", n, after=[x.op]).outputs[0], x],
            [handle],
            parallel_iterations=1,
        )
        return [x, y], token

    def merges_of_a_kind(self, values: Sequence[Tensor]) -> Iterator[Tensor]:
        """Merges that are no conditionals: of nested switches, some without a value for some feeds."""
        b = self.b
        p, q, r = self.predicates
        x, y, z = (self.pick(values) for _ in range(3))
        off, on = b.operation("Switch", x, p).outputs
        inner = b.operation("Switch", b.operation("Switch", y, p).outputs[1], q).outputs
        parts = [off, *inner] if self.draw(st.booleans()) else [off, inner[0]]
        merged = b.operation("Merge", parts)
        yield b.op(
            "AddV2", merged.outputs[0], b.op("Cast", merged.outputs[1], SrcT=INT32, DstT=FLOAT)
        )
        later = b.operation("Switch", merged.outputs[0], r).outputs
        yield b.op("Merge", [b.op("Neg", later[0]), b.op("Mul", later[1], z)])
        yield b.operation("Merge", [on]).outputs[0]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Builder, list[Tensor]]:
    return Grower(draw).graph()


def outcome(session: opkernel.Session, fetches: Any, feeds: dict[str, Any]) -> Any:
    """What a step gives, or its error, and what it noted."""
    noted.clear()
    try:
        found = [float(value) for value in session.run(fetches, feeds)]
    except OpError as error:
        return type(error), error.message
    return found, list(noted)


@pytest.mark.parametrize(("lines", "depth"), [(2000, 10), (5, 2)])
@given(graph=graphs(), data=st.data())
@settings(max_examples=40, deadline=None)
def test_plans_compute_what_dataflow_does(lines: int, depth: int, graph: Any, data: Any) -> None:
    b, values = graph
    feeds: dict[str, Any] = {"x0:0": 0.5, "x1:0": -1.25, "token:0": 0.0}
    dataflow = opkernel.Session(b.graph, executor_type="DATAFLOW")
    plans = opkernel.Session(b.graph, executor_type="COMPILED_PLAN")
    with pytest.MonkeyPatch.context() as patch, dataflow, plans, np.errstate(all="ignore"):
        patch.setattr(compiled_plan, "LINES_A_PART", lines)
        patch.setattr(compiled_plan, "MAX_DEPTH", depth)
        for _ in range(3):
            feeds |= {f"p{k}:0": data.draw(st.booleans()) for k in range(3)}
            feeds["turns:0"] = data.draw(st.integers(0, 3))
            for fetches in (
                [values[0]],
                [values[1], values[-1]],
                [values[-3]],
                values[-2:],
                values,
            ):
                expected = outcome(dataflow, fetches, feeds)
                np.testing.assert_equal(outcome(plans, fetches, feeds), expected)


def drawn_feeds(data: Any) -> dict[str, Any]:
    """Values of all placeholders."""
    feeds = {"x0:0": np.float32(0.5), "x1:0": np.float32(-1.25), "token:0": np.float32(0)}
    choices = {f"p{k}:0": np.bool_(data.draw(st.booleans())) for k in range(3)}
    return {**feeds, **choices, "turns:0": np.int32(data.draw(st.integers(0, 3)))}


def arrays(feeds: dict[str, Any]) -> list[Any]:
    return [np.asarray(value) for value in feeds.values()]


def check_outcome(run: Callable[[], Any], expected: Any) -> None:
    """Check that something does what a session has done."""
    noted.clear()
    try:
        found: Any = [float(value) for value in run()], noted
    except OpError as error:
        found, expected = type(error), expected[0]
    np.testing.assert_equal(found, expected)


@given(graph=graphs(), data=st.data())
@settings(max_examples=40, deadline=None)
def test_trees_say_all_that_plans_do(graph: Any, data: Any) -> None:
    b, values = graph
    feeds = drawn_feeds(data)
    dataflow = opkernel.Session(b.graph, executor_type="DATAFLOW")
    plans = opkernel.Session(b.graph, executor_type="COMPILED_PLAN")
    with dataflow, plans, np.errstate(all="ignore"):
        for fetches in ([values[1]], values[-2:], values):
            plan = plans.plan(fetches, list(feeds))
            assert isinstance(plan, CompiledPlan)
            expected = outcome(dataflow, fetches, feeds)
            run = partial(interpret, plan.tree, RunStep(), arrays(feeds))
            check_outcome(run, expected)


@pytest.mark.parametrize(("lines", "depth"), [(2000, 10), (5, 2)])
@given(graph=graphs(), data=st.data())
@settings(max_examples=25, deadline=None)
def test_programs_compute_what_dataflow_does(lines: int, depth: int, graph: Any, data: Any) -> None:
    b, values = graph
    feeds = drawn_feeds(data)
    given_tensors = [b.graph.get_tensor_by_name(name) for name in feeds]
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(compiled_plan, "LINES_A_PART", lines)
        patch.setattr(compiled_plan, "MAX_DEPTH", depth)
        program = decompile(given_tensors, values, "Random control flow")
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(program.source, namespace)
    with opkernel.Session(b.graph, executor_type="DATAFLOW") as dataflow:
        expected = outcome(dataflow, values, feeds)
    check_outcome(partial(namespace["model"], *arrays(feeds)), expected)
