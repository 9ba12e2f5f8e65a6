"""Random calls of uniformly quantised ops have TensorFlow's bits, or its status code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.ops.quantized.calls import f32, plain, quantized

from opkernel import errors, raw_ops
from opkernel.proto import UniformQuantizedConvolutionDimensionNumbersAttr

Call = tuple[str, dict[str, Any], dict[str, Any]]
INT32 = np.iinfo(np.int32)


class Drawn:
    """Inputs and attrs of random calls; a tensor of integers is a pair of its type and its values."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def often(self, chance: float = 0.5) -> bool:
        return bool(self.rng.random() < chance)

    def sizes(self, low: int, high: int, count: int) -> list[int]:
        return [int(n) for n in self.rng.integers(low, high + 1, count)]

    def size(self, low: int, high: int) -> int:
        return self.sizes(low, high, 1)[0]

    def qint8(self, shape: Any) -> tuple[str, Any]:
        return "qint8", self.rng.integers(-128, 128, shape)

    def qint32(self, shape: Any) -> tuple[str, Any]:
        most = self.rng.choice([10, 1000, 10**6, 10**9])
        return "qint32", self.rng.integers(-most, most, shape)

    def floats(self, shape: Any) -> Any:
        values = self.rng.normal(size=shape) * 10 ** self.rng.uniform(-5, 5)
        return f32(np.abs(values) if self.often(0.2) else values)

    def scaled(self, **shapes: Any) -> dict[str, Any]:
        """Scales, sometimes no valid ones, and zero points; without sums that overflow."""
        inputs: dict[str, Any] = {}
        for side, shape in shapes.items():
            scales = f32(10 ** self.rng.uniform(-4, 4, shape))
            if scales.size and self.often(0.03):
                scales = scales * f32(self.rng.choice([0, -1, np.inf, np.nan]))
            inputs[f"{side}_scales"] = f32(scales)
            most = self.rng.choice([1, 100, 300, 5000])
            zero_points = self.rng.integers(-most, most + 1, shape)
            inputs[f"{side}_zero_points"] = np.asarray(zero_points, np.int32)
        return inputs

    def limits(self, *sides: str) -> dict[str, int]:
        found = {f"{side}_quantization_{end}_val": 0 for side in sides for end in ("min", "max")}
        if "output" in sides:
            low, high = (
                sorted(self.sizes(-5000, 5000, 2)) if self.often() else (INT32.min, INT32.max)
            )
            found["output_quantization_min_val"] = int(low)
            found["output_quantization_max_val"] = int(high)
        return found


def draw_add(draw: Drawn) -> Call:
    shape = draw.sizes(1, 3, draw.size(1, 3))
    axis = draw.size(-1, len(shape) - 1)
    lhs, rhs = ([1 if draw.often(0.3) else n for n in shape] for _ in range(2))
    shape = list(np.broadcast_shapes(tuple(lhs), tuple(rhs)))
    axes = {side: axis if draw.often(0.7) else -1 for side in ("lhs", "rhs", "output")}
    if axes["output"] >= 0:
        axes["lhs"] = (
            axis  # TensorFlow ends the process where lhs has one scale, and the output many
        )
    operands = zip(axes.items(), (lhs, rhs, shape), strict=True)
    scales = draw.scaled(**{side: () if at < 0 else (of[at],) for (side, at), of in operands})
    inputs = {"lhs": draw.qint32(lhs), "rhs": draw.qint32(rhs), **scales}
    attrs = {f"{side}_quantization_axis": at for side, at in axes.items()}
    return "UniformQuantizedAdd", inputs, attrs | draw.limits(*axes)


def draw_clip(draw: Drawn) -> Call:
    shape = draw.sizes(0, 4, draw.size(0, 3))
    axis = draw.size(-1, len(shape) - 1)
    ends = () if axis < 0 else (shape[axis],)
    of_ends = ends if draw.often(0.95) else (7,)
    named = {name: draw.qint32(of) for name, of in (("min", of_ends), ("max", ends))}
    scales = {"scales": f32(np.ones(ends)), "zero_points": np.zeros(ends, np.int32)}
    limits = {"quantization_min_val": 0, "quantization_max_val": 0}
    inputs = {"operand": draw.qint32(shape), **named, **scales}
    return "UniformQuantizedClipByValue", inputs, {"quantization_axis": axis, **limits}


def draw_dot(draw: Drawn) -> Call:
    m, k, n = draw.sizes(0, 6, 3)
    k = draw.size(500, 2000) if draw.often(0.1) else k
    per_channel = (n,) if draw.often() else ()
    scales = draw.scaled(lhs=(), rhs=per_channel, output=per_channel if draw.often() else ())
    rows = k if draw.often(0.95) else k + 1
    inputs = {"lhs": draw.qint8((m, k)), "rhs": draw.qint8((rows, n)), **scales}
    return "UniformQuantizedDot", inputs, {"Tout": "qint32", **draw.limits("lhs", "rhs", "output")}


def draw_dot_hybrid(draw: Drawn) -> Call:
    m, k, n = draw.sizes(0, 6, 3)
    scales = draw.scaled(rhs=(n,) if draw.often() else ())
    inputs = {"lhs": draw.floats((m, k)), "rhs": draw.qint8((k, n)), **scales}
    return "UniformQuantizedDotHybrid", inputs, {"Tout": "float", **draw.limits("rhs")}


def _laid_out(values: list[int], order: list[int]) -> list[int]:
    return [values[order.index(i)] for i in range(len(order))]


def _draw_convolution(draw: Drawn) -> tuple[dict[str, Any], list[int], list[int], list[int]]:
    """Attrs; the shapes of images and filters; where channels stand in filters and output, and how many."""
    space = draw.size(1, 3)
    features, batches = draw.size(1, 3), draw.size(1, 2)
    channels, outputs = draw.size(1, 2) * features, draw.size(1, 2) * features * batches
    orders = [[int(i) for i in draw.rng.permutation(space + 2)] for _ in range(3)]
    if draw.often(0.3):
        orders = [list(range(space + 2))] * 3
    images, filters, output = orders
    numbers = UniformQuantizedConvolutionDimensionNumbersAttr(
        input_batch_dimension=images[0],
        input_feature_dimension=images[1],
        input_spatial_dimensions=images[2:],
        kernel_output_feature_dimension=filters[0],
        kernel_input_feature_dimension=filters[1],
        kernel_spatial_dimensions=filters[2:],
        output_batch_dimension=output[0],
        output_feature_dimension=output[1],
        output_spatial_dimensions=output[2:],
    )
    padding = str(draw.rng.choice(["SAME", "VALID", "EXPLICIT"]))
    attrs = {
        "dimension_numbers": numbers.SerializeToString(),
        "padding": padding,
        "explicit_padding": draw.sizes(0, 2, 2 * space) if padding == "EXPLICIT" else [],
        "window_strides": draw.sizes(1, 3, space),
        "lhs_dilation": draw.sizes(1, 2, space),
        "rhs_dilation": draw.sizes(1, 2, space),
        "feature_group_count": features,
        "batch_group_count": batches,
    }
    batch = draw.size(1, 2) * batches + draw.often(0.05)
    lhs = _laid_out([batch, channels, *draw.sizes(1, 5, space)], images)
    rhs = _laid_out([outputs, channels // features, *draw.sizes(1, 3, space)], filters)
    return attrs, lhs, rhs, [filters[0], output[1], outputs]


def draw_convolution(draw: Drawn) -> Call:
    attrs, lhs, rhs, (rhs_axis, output_axis, outputs) = _draw_convolution(draw)
    attrs["rhs_quantization_axis"] = rhs_axis if draw.often(0.6) else -1
    by_channel = attrs["rhs_quantization_axis"] >= 0 and draw.often()
    attrs["output_quantization_axis"] = output_axis if by_channel else -1
    shapes = [
        () if attrs[f"{side}_quantization_axis"] < 0 else (outputs,) for side in ("rhs", "output")
    ]
    scales = draw.scaled(lhs=(), rhs=shapes[0], output=shapes[1])
    inputs = {"lhs": draw.qint8(lhs), "rhs": draw.qint8(rhs), **scales}
    limits = draw.limits("lhs", "rhs", "output")
    return "UniformQuantizedConvolution", inputs, {"Tout": "qint32", **attrs, **limits}


def draw_convolution_hybrid(draw: Drawn) -> Call:
    attrs, lhs, rhs, (axis, _, outputs) = _draw_convolution(draw)
    attrs["rhs_quantization_axis"] = axis if draw.often() else -1
    scales = draw.scaled(rhs=() if attrs["rhs_quantization_axis"] < 0 else (outputs,))
    inputs = {"lhs": draw.floats(lhs), "rhs": draw.qint8(rhs), **scales}
    name = "UniformQuantizedConvolutionHybrid"
    return name, inputs, {"Tout": "float", **attrs, **draw.limits("rhs")}


def _ours(op: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Any:
    given = {k: quantized(*v) if isinstance(v, tuple) else v for k, v in inputs.items()}
    try:
        return plain(getattr(raw_ops, op)(**given, **attrs))
    except errors.OpError as error:
        return int(error.code)


def _theirs(tf: Any, op: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Any:
    given = {
        k: tf.bitcast(tf.constant(plain(quantized(*v))), tf.as_dtype(v[0]))
        if isinstance(v, tuple)
        else tf.constant(v)
        for k, v in inputs.items()
    }
    attrs = {k: tf.as_dtype(v) if k == "Tout" else v for k, v in attrs.items()}
    try:
        found = getattr(tf.raw_ops, op)(**given, **attrs)
    except tf.errors.OpError as error:
        return error.error_code
    return tf.bitcast(found, tf.int32).numpy()


@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "draw_call",
    [
        draw_add,
        draw_clip,
        draw_dot,
        draw_dot_hybrid,
        draw_convolution,
        draw_convolution_hybrid,
    ],
)
def test_bits_are_tensorflow_s(tf: Any, draw_call: Callable[[Drawn], Call], seed: int) -> None:
    draw = Drawn(seed)
    for _ in range(30):
        op, inputs, attrs = draw_call(draw)
        got, wanted = _ours(op, inputs, attrs), _theirs(tf, op, inputs, attrs)
        if isinstance(wanted, int) or isinstance(got, int):
            assert got == wanted, (op, attrs, inputs)
        else:
            np.testing.assert_array_equal(
                got.view(np.int32), wanted, err_msg=str((op, attrs, inputs))
            )
