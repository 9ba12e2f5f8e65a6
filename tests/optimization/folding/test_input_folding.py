"""Scales and paddings before convolutions become part of them."""

from typing import Any

import numpy as np
import pytest
from tests.optimization.optimizing import check_same, ops_of, optimized
from tests.runtime.dataflow.loop_builders import FLOAT, Builder

from opkernel.types import PartialTensorShape


def image(b, *dims, name="x"):
    return b.op("Placeholder", name=name, dtype=FLOAT, shape=PartialTensorShape(dims))


def floats(b, *shape, seed=1, low=-1.0):
    return b.constant(np.random.default_rng(seed).uniform(low, 1, shape), "f4")


def value(*shape):
    return np.random.default_rng(7).normal(size=shape).astype("f4")


@pytest.mark.parametrize(
    ("op", "shape", "filters", "attrs"),
    [
        ("Conv2D", (1, 5, 5, 3), (2, 2, 3, 4), {"strides": [1, 1, 1, 1], "padding": "SAME"}),
        (
            "DepthwiseConv2dNative",
            (1, 5, 5, 3),
            (2, 2, 3, 2),
            {"strides": [1, 1, 1, 1], "padding": "SAME"},
        ),
        ("MatMul", (4, 3), (3, 5), {}),
        ("MatMul", (4, 3), (5, 3), {"transpose_b": True}),
        ("Conv3D", (1, 3, 3, 3, 3), (2, 2, 2, 3, 4), {"strides": [1] * 5, "padding": "VALID"}),
    ],
)
def test_scales_of_channels_go_into_the_filter(op, shape, filters, attrs):
    b = Builder()
    x = image(b, None, *shape[1:])
    y = b.op("Mul", b.op("RealDiv", x, b.constant(127.5)), floats(b, 3, low=0.5))
    y = b.op(op, b.op("Mul", b.constant(0.25), y), floats(b, *filters), **attrs)
    assert ops_of(optimized(b, y, "input_folding")) == [op]
    check_same(b, y, {x: value(*shape)}, "input_folding")
    check_same(b, y, {x: value(*shape)})


@pytest.mark.parametrize("make", [
    lambda b, x: b.op("MatMul", b.op("Mul", x, floats(b, 3)), floats(b, 3, 5), transpose_a=True),
    lambda b, x: b.op("MatMul", b.op("Mul", x, floats(b, 3, 1)), floats(b, 3, 5)),
    lambda b, x: b.op("MatMul", b.op("Mul", x, b.constant(0.0)), floats(b, 3, 5)),
    lambda b, x: b.op("MatMul", b.op("Mul", x, b.constant(1e30)), floats(b, 3, 5)),
    lambda b, x: b.op("MatMul", b.op("RealDiv", b.constant(2.0), x), floats(b, 3, 5)),
    lambda b, x: b.op("MatMul", b.op("AddV2", x, b.constant(2.0)), floats(b, 3, 5)),
])  # fmt: skip
def test_what_does_not_scale_channels_or_by_far_too_much_stays(make):
    b = Builder()
    x = image(b, 3, 3)
    y = make(b, x)
    assert len(ops_of(optimized(b, y, "input_folding"))) == 2
    check_same(b, y, {x: value(3, 3)})


def test_what_is_taken_elsewhere_or_asked_for_is_still_computed():
    b = Builder()
    x = image(b, 3, 3)
    scaled = b.op("Mul", x, b.constant(2.0))
    y = b.op("MatMul", scaled, floats(b, 3, 5))
    assert ops_of(optimized(b, [y, scaled], "input_folding")) == ["MatMul", "Mul"]
    assert ops_of(optimized(b, y, "input_folding")) == ["MatMul"]


PADDED: dict[str, Any] = {"strides": [1, 2, 2, 1], "padding": "VALID"}


@pytest.mark.parametrize(("size", "padding"), [(8, "SAME"), (None, "EXPLICIT"), (7, "EXPLICIT")])
@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
def test_a_convolution_pads_its_input_itself(op, size, padding):
    b = Builder()
    x = image(b, None, size, size, 3)
    padded = b.op("Pad", x, b.constant([[0, 0], [0, 1], [0, 1], [0, 0]], "i4"))
    y = b.op(op, padded, floats(b, 3, 3, 3, 4), **PADDED)
    graph = optimized(b, y, "input_folding")
    assert ops_of(graph) == [op]
    assert graph.fetches[0].op.get_attr("padding") == padding.encode()
    check_same(b, y, {x: value(2, size or 8, size or 8, 3)}, "input_folding")
    check_same(b, y, {x: value(2, size or 8, size or 8, 3)})


def test_a_scale_behind_a_padding_is_found():
    b = Builder()
    x = image(b, None, 7, 7, 3)
    y = b.op("PadV2", b.op("Mul", x, floats(b, 3, low=0.5)),
             b.constant([[0, 0], [2, 1], [0, 3], [0, 0]], "i4"), b.constant(0.0))  # fmt: skip
    y = b.op("Conv2D", y, floats(b, 3, 3, 3, 4), **PADDED)
    graph = optimized(b, y, "input_folding")
    assert ops_of(graph) == ["Conv2D"]
    assert list(graph.fetches[0].op.get_attr("explicit_paddings")) == [0, 0, 2, 1, 0, 3, 0, 0]
    check_same(b, y, {x: value(2, 7, 7, 3)})


@pytest.mark.parametrize(("paddings", "number", "attrs"), [
    ([[0, 0], [1, 1], [1, 1], [0, 1]], 0.0, PADDED),
    ([[1, 0], [1, 1], [1, 1], [0, 0]], 0.0, PADDED),
    ([[0, 0], [1, 1], [1, 1], [0, 0]], 1.0, PADDED),
    ([[0, 0], [1, 1], [1, 1], [0, 0]], 0.0, PADDED | {"padding": "SAME"}),
])  # fmt: skip
def test_other_paddings_stay(paddings, number, attrs):
    b = Builder()
    x = image(b, None, 7, 7, 3)
    y = b.op("PadV2", x, b.constant(paddings, "i4"), b.constant(number))
    depth = 3 + sum(paddings[3])
    y = b.op("Conv2D", y, floats(b, 3, 3, depth, 4), **attrs)
    assert ops_of(optimized(b, y, "input_folding")) == ["Conv2D", "PadV2"]
    check_same(b, y, {x: value(2, 7, 7, 3)})
