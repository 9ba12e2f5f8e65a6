"""Random nests of loops and conditionals, against the same computation in Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder

import opkernel
from opkernel.graph import Tensor

F = np.float32
Inside = Callable[[Tensor, Tensor], Tensor]
"""Builds nodes for a value and a loop-invariant value."""
Python = Callable[[np.float32, np.float32], np.float32]


def nest(
    draw: st.DrawFn, b: Builder, depth: int, leaf: Callable[[], str] = lambda: "Identity"
) -> tuple[Inside, Python]:
    """A random computation of x and w: what builds it, and the same in Python.

    `leaf` gives the ops that some values go through, which pass them on.
    """
    kind = draw(st.sampled_from(["leaf", "then", "cond", "loop", "until"])) if depth else "leaf"
    number = F(draw(st.integers(-4, 4)) / 2)
    if kind == "leaf":
        passed = leaf()
        return (
            lambda x, w: b.op("AddV2", b.op(passed, b.op("Mul", x, w)), b.constant(float(number))),
            lambda x, w: F(x * w) + number,
        )
    inner, python = nest(draw, b, depth - 1, leaf)
    if kind == "then":
        other, other_python = nest(draw, b, depth - 1, leaf)
        return (
            lambda x, w: b.op("Maximum", inner(x, w), other(x, w)),
            lambda x, w: max(python(x, w), other_python(x, w)),
        )
    if kind == "cond":
        other, other_python = nest(draw, b, depth - 1, leaf)

        def conditional(x: Tensor, w: Tensor) -> Tensor:
            greater = b.op("Greater", x, b.constant(float(number)))
            return b.cond(greater, lambda x, w: [inner(x, w)], lambda x, w: [other(x, w)], [x, w])[
                0
            ]

        return conditional, lambda x, w: python(x, w) if x > number else other_python(x, w)
    turns, parallel = draw(st.integers(0, 3)), draw(st.integers(1, 4))
    until_small = kind == "until"

    def go_on(i: Tensor, x: Tensor, w: Tensor) -> Tensor:
        less = b.op("Less", i, b.constant(turns))
        large = b.op("Greater", b.op("Abs", x), b.constant(0.5))
        return b.op("LogicalAnd", less, large) if until_small else less

    def loop(x: Tensor, w: Tensor) -> Tensor:
        def body(i: Tensor, x: Tensor, w: Tensor) -> list[Tensor]:
            index = b.op("Cast", i, SrcT=INT32, DstT=FLOAT)
            return [b.op("AddV2", i, b.constant(1)), b.op("AddV2", inner(x, w), index)]

        return b.while_loop(go_on, body, [b.constant(0), x], [w], parallel)[1]

    def python_loop(x: np.float32, w: np.float32) -> np.float32:
        i = 0
        while i < turns and (not until_small or abs(x) > 0.5):
            i, x = i + 1, python(x, w) + F(i)
        return x

    return loop, python_loop


@given(st.data(), st.lists(st.integers(-8, 8), min_size=3, max_size=3))
@settings(max_examples=50, deadline=None)
def test_random_nests_of_loops_and_conditionals(data: Any, starts: list[int]) -> None:
    b = Builder()
    build, python = nest(data.draw, b, 3)
    y = build(b.placeholder("x"), b.placeholder("w"))
    with (
        opkernel.Session(b.graph) as session,
        opkernel.Session(b.graph, executor_type="DATAFLOW", inter_op_threads=1) as threads,
        np.errstate(all="ignore"),
    ):
        for start in starts:
            feeds = {"x:0": start / 4, "w:0": 0.75}
            expected = python(F(start / 4), F(0.75))
            assert session.run(y, feeds) == threads.run(y, feeds) == expected
