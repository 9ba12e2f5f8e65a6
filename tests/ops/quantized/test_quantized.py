"""Quantised tensors; expected integers and ranges are TensorFlow's or follow from the range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ops.quantized.calls import f32, plain, quantized

from opkernel import Graph, Session, raw_ops
from opkernel.errors import InternalError, InvalidArgumentError, UnimplementedError

FLOATS = f32([-1.5, -0.3, 0.0, 0.1, 1.999, 7.0])
X_AND_Y = {"min_x": -1.0, "max_x": 1.0, "min_y": 0.0, "max_y": 4.0, "Toutput": "qint32"}
BYTES = {"min_a": 0.0, "max_a": 255.0, "min_b": -128.0, "max_b": 127.0}
IMAGE_RANGES = {"min_input": 0.0, "max_input": 255.0, "min_filter": 0.0, "max_filter": 255.0}


def bytes_of(values: Any, *shape: int) -> Any:
    array = np.array(values)
    return quantized("quint8", array.reshape(shape) if shape else array)


def values(outputs: Any) -> list[Any]:
    return [plain(output).tolist() for output in outputs]


@pytest.mark.parametrize(
    ("mode", "name", "integers", "low"),
    [
        ("MIN_COMBINED", "qint8", [-128, -69, -43, -35, 127, 127], -1.0),
        ("MIN_COMBINED", "quint8", [0, 60, 85, 94, 255, 255], -1.0),
        ("MIN_FIRST", "qint8", [-128, -69, -43, -34, 127, 127], -1.0),
        ("MIN_FIRST", "quint8", [0, 59, 85, 94, 255, 255], -1.0),
        ("SCALED", "qint8", [-95, -19, 0, 6, 127, 127], f32(-2.0157480239868164)),
        ("SCALED", "quint8", [0, 0, 0, 13, 255, 255], 0.0),
    ],
)
def test_floats_become_integers_of_a_range(mode: str, name: str, integers: Any, low: Any) -> None:
    output, got_low, high = raw_ops.QuantizeV2(
        input=FLOATS, min_range=-1.0, max_range=2.0, T=name, mode=mode
    )
    assert plain(output).tolist() == integers
    assert (got_low, high) == (low, 2.0)


@pytest.mark.parametrize(
    ("mode", "name", "floats"),
    [
        ("MIN_COMBINED", "qint8", [0.5058823823928833, 0.5176471471786499, 1.6823530197143555, 2]),
        ("MIN_FIRST", "quint8", [-1, -0.9882352948188782, 0.17647063732147217, 0.4941176176071167]),
        ("SCALED", "qint8", [0, 0.015748031437397003, 1.574803113937378, 2]),
        ("SCALED", "quint8", [0, 0.007843137718737125, 0.7843137979507446, 0.9960784912109375]),
    ],
)
def test_integers_of_a_range_become_floats(mode: str, name: str, floats: Any) -> None:
    x = quantized(name, [0, 1, 100, 127])
    got = raw_ops.Dequantize(input=x, min_range=-1.0, max_range=2.0, mode=mode)
    np.testing.assert_array_equal(got, f32(floats))


def test_a_range_is_made_to_hold_zero() -> None:
    outputs = raw_ops.QuantizeV2(
        input=f32([5, 6]), min_range=5.0, max_range=6.0, T="quint8", mode="MIN_FIRST"
    )
    assert values(outputs) == [[213, 255], 0.0, 6.0]


@pytest.mark.parametrize(
    ("mode", "name", "integers"),
    [
        ("MIN_FIRST", "quint8", [0, 255, 0]),
        ("MIN_COMBINED", "quint8", [0, 255, 0]),
        ("SCALED", "qint8", [0, 127, -128]),
        ("MIN_FIRST", "qint32", [-(2**31), 2147483520, -(2**31)]),
        ("SCALED", "qint32", [0, -(2**31), -(2**31)]),
    ],
)
def test_what_no_integer_stands_for(mode: str, name: str, integers: list[int]) -> None:
    output, *_ = raw_ops.QuantizeV2(
        input=f32([np.nan, np.inf, -np.inf]), min_range=-1.0, max_range=2.0, T=name, mode=mode
    )
    assert plain(output).tolist() == integers


@pytest.mark.parametrize(
    ("round_mode", "integers"),
    [("HALF_TO_EVEN", [0, 2, 2, 0]), ("HALF_AWAY_FROM_ZERO", [1, 2, 3, -1])],
)
def test_halves_are_rounded_as_asked(round_mode: str, integers: list[int]) -> None:
    output, *_ = raw_ops.QuantizeV2(
        input=f32([0.5, 1.5, 2.5, -0.5]),
        min_range=-127.0,
        max_range=127.0,
        T="qint8",
        mode="SCALED",
        narrow_range=True,
        round_mode=round_mode,
    )
    assert plain(output).tolist() == integers


def test_each_slice_has_its_range() -> None:
    outputs = raw_ops.QuantizeV2(
        input=f32([[1, 2], [1, 2]]),
        min_range=f32([0, 0]),
        max_range=f32([2, 4]),
        T="quint8",
        mode="MIN_COMBINED",
        axis=0,
    )
    assert values(outputs) == [[[128, 255], [64, 128]], [0, 0], [2, 4]]


def test_what_no_mode_allows_is_refused() -> None:
    wide = {"input": FLOATS, "min_range": -1.0, "max_range": 2.0, "T": "qint8"}
    with pytest.raises(InvalidArgumentError, match="HALF_TO_EVEN"):
        raw_ops.QuantizeV2(**wide, round_mode="HALF_TO_EVEN", mode="MIN_FIRST")
    with pytest.raises(InvalidArgumentError, match="larger than"):
        raw_ops.QuantizeV2(**wide | {"max_range": -2.0})
    with pytest.raises(InvalidArgumentError, match="single float element"):
        raw_ops.QuantizeV2(**wide | {"max_range": f32([1, 2])})
    ends = {"min_range": f32([0] * 6), "max_range": f32([1] * 6)}
    with pytest.raises(UnimplementedError, match="MIN_FIRST"):
        raw_ops.QuantizeV2(**wide | ends, mode="MIN_FIRST", axis=0)


@given(st.lists(st.integers(0, 255), max_size=20), st.floats(-10, 0), st.floats(0.1, 10))
def test_there_and_back_gives_the_same_integers(integers: Any, low: float, high: float) -> None:
    x = bytes_of(np.array(integers, np.uint8))
    floats = raw_ops.Dequantize(input=x, min_range=low, max_range=high, mode="MIN_FIRST")
    back, *_ = raw_ops.QuantizeV2(
        input=floats, min_range=low, max_range=high, T="quint8", mode="MIN_FIRST"
    )
    assert plain(back).tolist() == integers


@pytest.mark.parametrize(
    ("name", "integers"), [("quint8", [0, 85, 85, 90, 255]), ("qint8", [-128, -43, -43, -38, 127])]
)
def test_integers_of_another_range(name: str, integers: list[int]) -> None:
    outputs = raw_ops.Requantize(
        input=quantized("qint32", [-(2**31), -(2**20), 0, 12345678, 2**31 - 1]),
        input_min=-10.0,
        input_max=10.0,
        requested_output_min=-1.0,
        requested_output_max=2.0,
        out_type=name,
    )
    assert values(outputs) == [integers, -1.0, 2.0]


def test_the_range_that_values_need() -> None:
    x = {
        "input": quantized("qint32", [-(2**20), 0, 12345678]),
        "input_min": -10.0,
        "input_max": 10.0,
    }
    needed = [f32(-0.0048828101716935635), f32(0.05748904496431351)]
    assert list(raw_ops.RequantizationRange(**x)) == needed
    output, *ends = raw_ops.QuantizeDownAndShrinkRange(**x, out_type="quint8")
    assert (plain(output).tolist(), ends) == ([0, 20, 255], needed)


def test_each_channel_has_its_range() -> None:
    x = {
        "input": quantized("qint32", [[[[2**30, 2**30], [-(2**29), 2**28]]]]),
        "input_min": f32([-1, -2]),
        "input_max": f32([1, 1]),
    }
    wanted = {"requested_output_min": -1.0, "requested_output_max": 1.0}
    output, *_ = raw_ops.RequantizePerChannel(**x, **wanted, out_type="qint8")
    assert plain(output).ravel().tolist() == [64, 127, -32, 32]
    assert values(raw_ops.RequantizationRangePerChannel(**x, clip_value_max=6.0)) == [-1, 1]
    assert values(raw_ops.RequantizationRangePerChannel(**x, clip_value_max=0.5)) == [-0.5, 0.5]


def test_activations_are_between_the_levels_of_their_limits() -> None:
    x = bytes_of([0, 50, 127, 128, 255])
    relu = raw_ops.QuantizedRelu(features=x, min_features=-1.0, max_features=1.0, out_type="quint8")
    assert values(relu) == [[128, 128, 128, 128, 255], -1.0, 1.0]
    relu6 = raw_ops.QuantizedRelu6(
        features=x, min_features=-8.0, max_features=8.0, out_type="quint8"
    )
    assert values(relu6) == [[128, 128, 128, 128, 224], -8.0, 8.0]


def test_sums_and_products_stand_in_a_wider_range() -> None:
    x, y = bytes_of([[0, 128, 255], [1, 2, 3]]), bytes_of([10, 20, 30])
    assert values(raw_ops.QuantizedAdd(x=x, y=y, **X_AND_Y)) == [
        [[-27499, 10537, 48316], [-27242, -21845, -16448]],
        -65536.0,
        65536.0,
    ]
    assert values(raw_ops.QuantizedMul(x=x, y=y, **X_AND_Y)) == [
        [[-1280, 0, 3810], [-1270, -2520, -3750]],
        -264204.09375,
        264204.09375,
    ]
    ends = {"min_input": -1.0, "max_input": 1.0, "min_bias": 0.0, "max_bias": 4.0}
    assert values(raw_ops.QuantizedBiasAdd(input=x, bias=y, **ends, out_type="qint32")) == [
        [[-3437, 1317, 6040], [-3405, -2731, -2056]],
        -524288.0,
        524288.0,
    ]


def test_only_a_smaller_input_is_repeated_along_the_first_dimensions() -> None:
    x, column = bytes_of(np.zeros((2, 3))), bytes_of([[1], [2]])
    for op in (raw_ops.QuantizedAdd, raw_ops.QuantizedMul):
        with pytest.raises(UnimplementedError, match="first dimensions"):
            op(x=x, y=column, **X_AND_Y)
        with pytest.raises(UnimplementedError, match="not supported yet"):
            op(x=bytes_of(np.zeros((1, 3, 1))), y=bytes_of(np.zeros((2, 1, 3))), **X_AND_Y)
        with pytest.raises(InvalidArgumentError, match="Incompatible shapes"):
            op(x=x, y=bytes_of([1, 2]), **X_AND_Y)
        with pytest.raises(InvalidArgumentError, match="max_x must be larger"):
            op(x=x, y=x, **X_AND_Y | {"max_x": -1.0})


def test_products_of_matrices() -> None:
    a, b = bytes_of([[1, 2], [3, 4]]), bytes_of([[5, 6], [7, 8]])
    got = values(raw_ops.QuantizedMatMul(a=a, b=b, **BYTES, Toutput="qint32"))
    assert got == [[[-365, -362], [-853, -846]], -(2.0**31), 2.0**31]
    with pytest.raises(InvalidArgumentError, match="incompatible"):
        raw_ops.QuantizedMatMul(a=a, b=bytes_of([[1, 2]]), **BYTES, Toutput="qint32")


@pytest.mark.parametrize(
    ("size", "filters", "stride", "padding", "sums"),
    [
        (3, [[0, 1], [2, 3]], 2, "SAME", [19, 10, 7, 0]),
        (4, [[1]], 3, "VALID", [0, 3, 12, 15]),
        (5, [[1]], 3, "VALID", [0, 3, 15, 18]),
    ],
)
def test_convolutions(size: int, filters: Any, stride: int, padding: str, sums: Any) -> None:
    kernel = np.array(filters)
    output, low, high = raw_ops.QuantizedConv2D(
        input=bytes_of(np.arange(size * size), 1, size, size, 1),
        filter=bytes_of(kernel, *kernel.shape, 1, 1),
        **IMAGE_RANGES,
        strides=[1, stride, stride, 1],
        padding=padding,
        out_type="qint32",
    )
    assert plain(output).ravel().tolist() == sums
    assert (low, high) == (-(2.0**31), 2.0**31)


def test_what_only_onednn_computes_sets_no_output() -> None:
    a, b = bytes_of([[1, 2], [3, 4]]), quantized("qint8", [[5, 6], [7, 8]])
    call = {"a": a, "b": b, "bias": f32([0, 0]), **BYTES}
    assert [np.shape(v) for v in raw_ops.QuantizedMatMulWithBias(**call)] == [(0,)] * 3
    with Graph().as_default() as graph:
        out = raw_ops.QuantizedMatMulWithBias(**call).out
    with pytest.raises(InternalError, match="output 0"):
        Session(graph).run(out)


def test_concatenated_tensors_get_one_range() -> None:
    outputs = raw_ops.QuantizedConcat(
        concat_dim=0,
        values=[bytes_of([0, 255]), bytes_of([0, 128, 255])],
        input_mins=[f32(0), f32(-1)],
        input_maxes=[f32(1), f32(3)],
    )
    assert values(outputs) == [[64, 128, 0, 128, 255], -1.0, 3.0]


def test_many_concatenated_bytes_get_one_range() -> None:
    levels = np.arange(0, 256, 2).repeat(3)
    output, *_ = raw_ops.QuantizedConcat(
        concat_dim=0,
        values=[bytes_of(levels), bytes_of([255])],
        input_mins=[f32(0), f32(0)],
        input_maxes=[f32(1), f32(2)],
    )
    assert plain(output).tolist() == [*(levels // 2), 255]


def test_means_are_rounded_towards_zero() -> None:
    output, *_ = raw_ops.QuantizedAvgPool(
        input=quantized("qint8", [[[[-3], [-4], [5], [6]]]]),
        min_input=0.0,
        max_input=1.0,
        ksize=[1, 1, 2, 1],
        strides=[1, 1, 2, 1],
        padding="VALID",
    )
    assert plain(output).ravel().tolist() == [-3, 5]


@pytest.mark.parametrize(
    ("name", "pixels", "width", "resized"),
    [
        ("quint8", [0, 100, 255], 5, [0, 59, 130, 224, 255]),
        ("qint32", [-5, -7], 4, [-4, -5, -6, -6]),
    ],
)
def test_resized_images(name: str, pixels: Any, width: int, resized: Any) -> None:
    images = quantized(name, np.array(pixels).reshape(1, 1, -1, 1))
    output, *_ = raw_ops.QuantizedResizeBilinear(
        images=images, size=np.int32([1, width]), min=0.0, max=1.0
    )
    assert plain(output).ravel().tolist() == resized


def test_instances_with_mean_zero() -> None:
    output, low, high = raw_ops.QuantizedInstanceNorm(
        x=bytes_of([0, 10, 20, 255], 1, 2, 2, 1), x_min=0.0, x_max=1.0
    )
    assert plain(output).ravel().tolist() == [0, 10, 20, 255]
    np.testing.assert_allclose([low, high], [-0.6701053380966187, 1.7281663417816162], rtol=1e-6)


def test_batch_normalisation_in_integers() -> None:
    parts = {
        "t": [[[[0, 100], [200, 255]]]],
        "m": [100, 200],
        "v": [100, 200],
        "beta": [100, 200],
        "gamma": [100, 200],
    }
    inputs: dict[str, Any] = {}
    for name, integers in parts.items():
        inputs |= {
            name: bytes_of(integers),
            f"{name}_min": -1.0 + (name == "v"),
            f"{name}_max": 1.0,
        }
    output, low, high = raw_ops.QuantizedBatchNormWithGlobalNormalization(
        **inputs, out_type="qint32", variance_epsilon=0.001, scale_after_normalization=True
    )
    assert plain(output).ravel().tolist() == [109, 135, -976, 1743]
    assert (low, high) == (-(2.0**20), 2.0**20)


def test_a_scale_and_a_zero_point() -> None:
    quantize = raw_ops.UniformQuantize(
        input=f32([-1, -0.05, 0.05, 0.15, 30]),
        scales=f32(0.1),
        zero_points=np.int32(3),
        Tout="qint8",
        quantization_min_val=-5,
        quantization_max_val=127,
    )
    assert plain(quantize).tolist() == [-5, 3, 4, 5, 127]
    limits = {"quantization_min_val": -128, "quantization_max_val": 127}
    floats = raw_ops.UniformDequantize(
        input=quantized("qint8", [[-128, 127], [0, 3]]),
        scales=f32([0.5, 2]),
        zero_points=np.int32([3, 0]),
        Tout="float",
        quantization_axis=1,
        **limits,
    )
    assert floats.tolist() == [[-65.5, 254], [-1.5, 6]]


def test_integers_of_another_scale() -> None:
    call = {
        "input": quantized("qint32", [-1000, -5, 5, 7, 100000]),
        "input_scales": f32(0.05),
        "input_zero_points": np.int32(1),
        "output_scales": f32(0.1),
        "output_zero_points": np.int32(-2),
        "Tout": "qint8",
        "input_quantization_min_val": -(2**31),
        "input_quantization_max_val": 2**31 - 1,
        "output_quantization_min_val": -128,
        "output_quantization_max_val": 127,
    }
    assert plain(raw_ops.UniformRequantize(**call)).tolist() == [-128, -5, 0, 1, 127]
    with pytest.raises(InvalidArgumentError, match="positive"):
        raw_ops.UniformRequantize(**call | {"output_scales": f32(0)})
    with pytest.raises(InvalidArgumentError, match="scales must have shape"):
        raw_ops.UniformRequantize(**call | {"input_scales": f32([1, 2])})


OPS: Any = raw_ops  # whose stub leaves out the ops that TensorFlow puts into graphs by itself
VOLUME_ATTRS = {"ksize": [1, 1, 2, 2, 1], "strides": [1, 1, 2, 2, 1], "padding": "SAME"}


def test_volumes_are_pooled_and_keep_their_range() -> None:
    rows = [[[-3, 7], [5, -128]], [[0, 1], [127, -1]], [[2, 2], [-9, 4]]]
    x = quantized("qint8", np.reshape(rows, (1, 1, 3, 2, 2)))
    outputs = OPS._QuantizedMaxPool3D(input=x, min_input=-1.0, max_input=1.0, **VOLUME_ATTRS)
    assert values(outputs) == [[[[[[127, 7]], [[2, 4]]]]], -1.0, 1.0]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"min_input": [0.0, 1.0]}, InvalidArgumentError),
        ({"ksize": [1, 2, 2, 2, 2]}, UnimplementedError),
        ({"ksize": [2, 2, 2, 2, 1]}, UnimplementedError),
        ({"ksize": [1, 0, 2, 2, 1]}, InvalidArgumentError),
        ({"data_format": "NCDHW"}, InvalidArgumentError),
    ],
)
def test_volumes_that_cannot_be_pooled_are_refused(
    changed: dict[str, Any], error: type[Exception]
) -> None:
    x = quantized("quint8", np.ones((1, 3, 4, 5, 2), int))
    call = {"input": x, "min_input": 0.0, "max_input": 1.0, **VOLUME_ATTRS, **changed}
    with pytest.raises(error):
        OPS._QuantizedMaxPool3D(**call)
