"""One function of a tensor for the same function of its parts."""

import numpy as np
import pytest
from tests.optimization.optimizing import check_same, ops_of, optimized
from tests.runtime.dataflow.loop_builders import Builder

import opkernel

PASS = "hoist_unary_over_split"
X = np.array([[0.5, -1.0, np.nan, np.inf], [-np.inf, 3.0, -0.0, 100.0]], np.float32)


def gates(b, *functions, axis=1):
    """A fed matrix, and functions of its parts."""
    x = b.placeholder("x")
    split = b.operation("Split", b.constant(axis), x, num_split=len(functions))
    parts = zip(functions, split.outputs, strict=True)
    return x, [b.op(function, part) for function, part in parts]


@pytest.mark.parametrize(
    ("functions", "ops"),
    [
        (("Sigmoid", "Sigmoid"), ["Sigmoid", "Split"]),
        (("Tanh", "Sigmoid", "Sigmoid", "Sigmoid"), ["Sigmoid", "Split", "Split", "Tanh"]),
        (("Sigmoid", "Tanh", "Sigmoid", "Tanh"), ["Sigmoid", "Sigmoid", "Split", "Tanh", "Tanh"]),
        (("Neg", "Neg"), ["Neg", "Neg", "Split"]),
    ],
)
def test_most_parts_go_through_one_function_together(functions, ops):
    b = Builder()
    x, parts = gates(b, *functions)
    y = b.op("ConcatV2", parts, b.constant(1))
    assert ops_of(optimized(b, y, PASS)) == ["ConcatV2", *ops]
    check_same(b, y, {x: X}, PASS)
    check_same(b, y, {x: np.zeros((0, 8), "f4")}, PASS)


def test_what_is_fetched_or_needed_as_it_is_stays():
    b = Builder()
    x, parts = gates(b, "Tanh", "Tanh")
    assert ops_of(optimized(b, parts, PASS)) == ["Split", "Tanh", "Tanh"]
    b = Builder()
    x, parts = gates(b, "Tanh", "Tanh")
    unchanged = parts[0].op.inputs[0]
    y = b.op("AddV2", b.op("AddV2", *parts), unchanged)
    assert ops_of(optimized(b, y, PASS)) == ["AddV2", "AddV2", "Split", "Tanh", "Tanh"]
    check_same(b, y, {x: X}, PASS)


def test_parts_that_do_not_fit_are_refused_as_before():
    b = Builder()
    x, parts = gates(b, "Exp", "Exp")
    y = b.op("AddV2", *parts)
    with opkernel.Session(b.graph, optimize={PASS}) as session:
        with pytest.raises(opkernel.errors.InvalidArgumentError, match="size = 3"):
            session.run(y, {x: np.ones((2, 3), "f4")})
        np.testing.assert_allclose(session.run(y, {x: np.zeros((1, 4), "f4")}), [[2.0, 2.0]])
