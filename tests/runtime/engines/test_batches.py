"""Batches of many sizes: one program for several, where rows do not depend on each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.engines.own_engine import OwnEngine, registered

import opkernel
from opkernel import raw_ops
from opkernel.graph import Graph

RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.standard_normal((6, 6)).astype(np.float32)
IMAGES = RANDOM.standard_normal((3, 3, 2, 2)).astype(np.float32)
TABLE = RANDOM.standard_normal((5, 6)).astype(np.float32)
OPS = (
    *("AddV2", "AvgPool", "BiasAdd", "ConcatV2", "Conv2D", "Cumsum", "ExpandDims", "GatherV2"),
    *("MatMul", "Max", "Mul", "Pad", "Relu", "Reshape", "Shape", "Softmax", "Split", "Sum", "Tanh"),
    *("Transpose", "BatchMatMulV2", "Cast", "StridedSlice"),
)


def matmul(x, **attrs):
    return raw_ops.MatMul(a=x, b=WEIGHTS, **attrs)


def image(x):
    return raw_ops.Reshape(tensor=x, shape=[-1, 3, 1, 2])


BY_ROWS = {
    "a dense layer": lambda x: raw_ops.Softmax(
        logits=raw_ops.Relu(features=raw_ops.BiasAdd(value=matmul(x), bias=WEIGHTS[0]))
    ),
    "sums of rows": lambda x: raw_ops.Sum(input=x * x, axis=[1]) * 2.0,
    "numbers and vectors are added": lambda x: (x + WEIGHTS[1]) * WEIGHTS[2:3] + 1.0,
    "a convolution": lambda x: raw_ops.Conv2D(
        input=image(x), filter=IMAGES, strides=[1] * 4, padding="SAME"
    ),
    "a pool": lambda x: raw_ops.AvgPool(
        value=image(x), ksize=[1, 2, 1, 1], strides=[1] * 4, padding="VALID"
    ),
    "parts and their other order": lambda x: raw_ops.ConcatV2(
        values=[*reversed(raw_ops.Split(axis=1, value=x, num_split=3))], axis=1
    ),
    "turned rows": lambda x: raw_ops.Transpose(
        x=raw_ops.Reshape(tensor=x, shape=[-1, 2, 3]), perm=[0, 2, 1]
    ),
    "a table": lambda x: raw_ops.Tanh(
        x=raw_ops.GatherV2(
            params=TABLE, indices=raw_ops.Cast(x=x * 0.0, DstT=opkernel.int32), axis=0
        )
    ),
    "products of matrices in rows": lambda x: raw_ops.BatchMatMulV2(
        x=raw_ops.Reshape(tensor=x, shape=[-1, 2, 3]),
        y=raw_ops.Reshape(tensor=x, shape=[-1, 3, 2]),
    ),
    "padded rows": lambda x: raw_ops.Pad(input=x, paddings=[[0, 0], [1, 2]]) + 1.0,
}
MIXED = {
    "sums of columns": lambda x: raw_ops.Sum(input=x, axis=[0]) * 2.0,
    "sums of all": lambda x: x / raw_ops.Sum(input=x, axis=[0, 1]),
    "running sums": lambda x: raw_ops.Cumsum(x=x, axis=0) * 2.0,
    "the columns' product": lambda x: raw_ops.MatMul(a=x, b=x, transpose_a=True) * 2.0,
    "rows times rows": lambda x: raw_ops.MatMul(a=x, b=x, transpose_b=True) * 2.0,
    "shares of a vector": lambda x: raw_ops.Softmax(logits=raw_ops.Sum(input=x, axis=[1])),
    "rows turned to columns": lambda x: raw_ops.Transpose(x=x, perm=[1, 0]) * 2.0,
    "two rows in one": lambda x: raw_ops.Reshape(tensor=x, shape=[-1, 12]) * 2.0,
    "rows one after the other": lambda x: raw_ops.ConcatV2(values=[x, x], axis=0) * 2.0,
    "the number of rows": lambda x: (
        x * raw_ops.Cast(x=raw_ops.Shape(input=x * 2.0)[0], DstT=opkernel.float32)
    ),
    "another rank": lambda x: raw_ops.ExpandDims(input=x, axis=0) + x,
}


def graph_of(make):
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[None, 6], name="x")
        raw_ops.Identity(input=make(x), name="y")
    return graph


def compare(make, sizes):
    """Values with and without the engine; the first sizes of the arguments that it has compiled for."""
    graph = graph_of(make)
    config = opkernel.SessionConfig(jit="own!", optimize={"constant_folding"})
    plain = opkernel.Session(graph, jit="off", optimize=False)
    with (
        registered(OwnEngine(ops=OPS)) as engine,
        opkernel.Session(graph, config=config) as session,
    ):
        for size in sizes:
            x = RANDOM.standard_normal((size, 6)).astype(np.float32)
            found, wanted = session.run("y:0", {"x:0": x}), plain.run("y:0", {"x:0": x})
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    parameters = [[shape for kind, shape in one if kind == "parameter"] for one in engine.compiled]
    return [shape[0] for shapes in parameters for shape in shapes[:1] if shape]


@pytest.mark.parametrize("name", BY_ROWS)
def test_programs_for_powers_of_two_serve_all_sizes(name):
    sizes = compare(BY_ROWS[name], [5, 3, 7, 6, 4, 2, 1, 8, 0, 5, 13, 9])
    assert sorted(set(sizes)) == [0, 1, 2, 4, 5, 8, 16]


@pytest.mark.parametrize("name", MIXED)
def test_programs_are_exact_where_rows_depend_on_each_other(name):
    sizes = compare(MIXED[name], [6, 4, 8, 10, 2])
    assert {6, 10} <= set(sizes)
    assert 16 not in sizes


STEPS = {**BY_ROWS, **MIXED}
SQUARE = [
    "numbers and vectors are added",
    "parts and their other order",
    "running sums",
    "sums of all",
    "the number of rows",
    "a dense layer",
]


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from(SQUARE), max_size=3),
    st.sampled_from(sorted(STEPS)),
    st.lists(st.sampled_from([2, 4, 6, 10, 12]), min_size=2, max_size=5),
)
def test_values_do_not_depend_on_the_sizes_of_programs(first, last, sizes):
    def make(x):
        for name in first:
            x = STEPS[name](x)
        return STEPS[last](x)

    compare(make, sizes)
