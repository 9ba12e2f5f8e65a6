"""A StatelessWhile with known shapes has no variables that nothing needs."""

import numpy as np
import pytest
from tests.optimization.optimizing import check_same
from tests.runtime.dataflow.loop_builders import FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import define

import opkernel
from opkernel.types import PartialTensorShape

TYPES = [INT32, FLOAT, FLOAT, FLOAT]


def loop_of(b, x, turn):
    """Three turns of a loop with a counter and three variables."""
    less = define(b, "less", TYPES, lambda g, i, *rest: [g.op("Less", i, g.constant(3))])
    body = define(
        b, "turn", TYPES, lambda g, i, *rest: [g.op("AddV2", i, g.constant(1)), *turn(g, *rest)]
    )
    variables = [b.constant(0), x, b.op("Neg", x), b.op("Exp", x)]
    return b.operation("StatelessWhile", variables, cond=less, body=body, T=TYPES, name="loop")


def turn(g, x, y, z):
    """The first needs itself, the second the first; the third needs all."""
    return [g.op("Tanh", x), g.op("AddV2", x, y), g.op("AddV2", y, z)]


@pytest.mark.parametrize(("fetched", "needed"), [(0, 1), (1, 2), (2, 3), (3, 4)])
def test_what_a_result_needs_is_kept(fetched, needed):
    b = Builder()
    x = b.op("Placeholder", dtype=FLOAT, shape=PartialTensorShape([2]), name="x")
    y = b.op("Neg", loop_of(b, x, turn).outputs[fetched])
    ops = opkernel.optimize_graph(b.graph, [y], [x]).operations
    (loop,) = [op for op in ops if op.type == "StatelessWhile"]
    assert len(loop.inputs) == len(loop.outputs) == needed
    check_same(b, y, {x: np.array([0.5, 2], np.float32)})


def test_loops_whose_shapes_are_not_known_and_that_are_fetched_from_stay_as_they_are():
    b = Builder()
    x = b.placeholder("x")
    loop = loop_of(b, x, turn)
    y = b.op("Neg", loop.outputs[1])
    known = b.op("Placeholder", dtype=FLOAT, shape=PartialTensorShape([2]), name="known")
    other = loop_of(b, known, turn)
    for fetches, feeds in (([y], [x]), ([other.outputs[1]], [known])):
        ops = opkernel.optimize_graph(b.graph, fetches, feeds).operations
        assert [len(op.outputs) for op in ops if op.type == "StatelessWhile"] == [4]


def test_the_gradient_of_a_loop_keeps_no_shapes_once_they_are_known():
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [None, 3], name="x")
        weights = np.arange(9, dtype=np.float32).reshape(3, 3) / 9

        def turn(i, h):
            return i + 1, opkernel.raw_ops.Tanh(x=h @ weights + x)

        _, h = opkernel.while_loop(lambda i, h: i < 4, turn, [opkernel.constant(0), x * 0.5])
        (dx,) = opkernel.gradients(h, x)
    value = np.array([[0.1, -0.2, 0.3], [1, 0, -1]], np.float32)
    with opkernel.Session(graph, optimize=False) as session:
        expected = session.run(dx, {x: value})
    with opkernel.Session(graph) as session:
        for _ in range(5):
            np.testing.assert_allclose(session.run(dx, {x: value}), expected, rtol=1e-5)
        plans = [session.plan(dx, [x]), session.plan(dx, [x], [(2, 3)])]
        assert len(plans[1].source) < len(plans[0].source)
