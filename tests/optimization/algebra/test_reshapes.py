"""Reshapes of what was reshaped: one is left out where it cannot fail, and its error is told where it can."""

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from tests.optimization.optimizing import ops_of, optimized
from tests.runtime.dataflow.loop_builders import FLOAT, Builder

import opkernel
from opkernel.errors import OpError
from opkernel.types import PartialTensorShape


def vector(b, sizes):
    return b.constant(np.array(sizes, np.int32))


def reshaped(b, dims, *targets):
    x = b.op("Placeholder", dtype=FLOAT, shape=PartialTensorShape(dims), name="x")
    y = x
    for target in targets:
        y = b.op("Reshape", y, vector(b, target))
    return x, y


@pytest.mark.parametrize(
    ("dims", "first", "left"),
    [
        ([2, 6], [3, 4], 1),
        ([None, 12], [-1, 4, 3], 1),
        ([None, 12], [-1, 6], 1),
        ([None, None, 12], [-1, 12], 1),
        ([None, 12], [-1, 5], 2),
        ([None, 12], [3, 4], 2),
        ([None, 12], [-1, 0], 2),
        ([0, 12], [-1, 5], 1),
        (None, [-1], 2),
    ],
)
def test_what_divides_the_known_sizes_cannot_fail(dims, first, left):
    b = Builder()
    _, y = reshaped(b, dims, first, [-1])
    assert ops_of(optimized(b, y, "arithmetic")) == ["Reshape"] * left


def test_sizes_that_are_those_of_the_input_are_known_to_fit():
    b = Builder()
    x = b.op("Placeholder", dtype=FLOAT, shape=PartialTensorShape([None, 12]), name="x")
    zero, one = vector(b, [0]), vector(b, [1])
    batch = b.op("StridedSlice", b.op("Shape", x), zero, one, one, shrink_axis_mask=1)
    y = b.op("Reshape", x, b.op("Pack", [batch, b.constant(4), b.constant(3)]))
    graph = optimized(b, b.op("Reshape", y, vector(b, [-1])), "arithmetic")
    assert ops_of(graph) == ["Reshape"]


SIZES = st.lists(st.integers(0, 4), max_size=3)
TARGETS = st.lists(st.integers(-1, 4), max_size=3)


@given(SIZES, st.lists(st.booleans(), min_size=3, max_size=3), TARGETS, TARGETS, st.booleans())
def test_a_reshape_that_fails_fails_with_all_passes(sizes, known, first, second, is_ranked):
    b = Builder()
    dims = [size if is_known else None for size, is_known in zip(sizes, known, strict=False)]
    try:
        x, y = reshaped(b, dims if is_ranked else None, first, second)
    except OpError:
        reject()  # the shape function refuses it
    value = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    assert outcome(b, y, {x: value}, True) == outcome(b, y, {x: value}, False)


def outcome(b, y, feeds, optimize):
    with opkernel.Session(b.graph, optimize=optimize) as session:
        try:
            value = session.run(y, feeds)
        except OpError as error:
            return error.code
    return value.tolist()
