"""Constants from before a loop, folded within it."""

from typing import Any

import numpy as np
from tests.optimization.optimizing import check_same, ops_of, optimized
from tests.runtime.dataflow.loop_builders import Builder

import opkernel

PASSES = ("constants_into_loops", "constant_folding")
PAIR = np.array([[1.0, 2.0], [30.0, 40.0]], np.float32)


def loop(b: Builder, body: Any, *invariants: Any) -> Any:
    """`for i in range(3): x = body(x, *invariants)`."""

    def turn(i, x, *rest):
        return [b.op("AddV2", i, b.constant(1)), body(x, *rest)]

    start = [b.constant(0), b.placeholder("x")]
    return b.while_loop(lambda i, *_: b.op("Less", i, b.constant(3)), turn, start, invariants)[1]


def test_what_a_loop_computes_of_constants_from_before_it_is_a_constant():
    b = Builder()

    def body(x, pair):
        one, two = b.operation("Split", b.constant(0), b.op("Identity", pair), num_split=2).outputs
        return b.op("AddV2", b.op("Mul", x, b.op("Squeeze", one)), two)

    y = loop(b, body, b.constant(PAIR))
    assert {"Split", "Squeeze"} <= set(ops_of(optimized(b, y, "constant_folding")))
    left = set(ops_of(optimized(b, y, *PASSES)))
    assert not {"Split", "Squeeze"} & left
    feeds = {"x:0": np.array([[5.0, 6.0]], np.float32)}
    check_same(b, y, feeds, *PASSES)
    with opkernel.Session(b.graph, optimize=set(PASSES), executor_type="DATAFLOW") as session:
        found = session.run(y, feeds)
    x = feeds["x:0"]
    for _ in range(3):
        x = x * PAIR[0] + PAIR[1]
    np.testing.assert_array_equal(found, x)


def test_weights_and_what_is_fed_stay_before_the_loop():
    b = Builder()
    weights = b.constant(PAIR)
    y = loop(b, lambda x, w, v: b.op("AddV2", b.op("MatMul", x, b.op("Identity", w)), v),
             weights, b.constant(PAIR))  # fmt: skip
    assert optimized(b, y, *PASSES).changes == []
    b = Builder()
    fed = b.constant(PAIR)
    y = loop(b, lambda x, w: b.op("AddV2", x, b.op("Neg", w)), fed)
    assert optimized(b, y, *PASSES, feeds=[fed]).changes == []
    with opkernel.Session(b.graph, optimize=set(PASSES)) as session:
        found = session.run(y, {"x:0": np.zeros((2, 2), "f4"), fed: np.ones((2, 2), "f4")})
    np.testing.assert_array_equal(found, np.full((2, 2), -3.0))


def test_a_variable_of_the_loop_is_no_constant_though_it_starts_as_one():
    b = Builder()
    _, y = b.while_loop(
        lambda i, x: b.op("Less", i, b.constant(3)),
        lambda i, x: [b.op("AddV2", i, b.constant(1)), b.op("Neg", x)],
        [b.constant(0), b.constant(2.0)],
    )
    assert optimized(b, y, *PASSES).changes == []
    check_same(b, y, {}, *PASSES)
