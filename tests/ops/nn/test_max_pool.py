"""Maximum pools and their gradients; values are TensorFlow's or the definition's."""

import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.ops.nn import pooling
from opkernel.types import int32

NAN, INF = np.nan, np.inf
LOWEST = np.finfo(np.float32).min
PAIR = {"ksize": [1, 1, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
SQUARE = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}


def line(*values, dtype=np.float32):
    return np.array(values, dtype).reshape(1, 1, -1, 1)


def max_pool(x, **attrs):
    return raw_ops.MaxPool(input=x, **{**PAIR, **attrs})


@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({}, [5, 5, 3, 3]),
        ({"padding": "SAME"}, [5, 5, 3, 3, 2]),
        ({"strides": [1, 1, 2, 1]}, [5, 3]),
        ({"ksize": [1, 1, 9, 1], "padding": "SAME"}, [5, 5, 5, 5, 5]),
        ({"ksize": [1, 1, 2**31 - 1, 1], "padding": "SAME"}, [5, 5, 5, 5, 5]),
        ({"ksize": [1, 1, 1, 1], "strides": [1, 1, 4, 1], "padding": "SAME"}, [1, 2]),
        (
            {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 0, 0, 1, 1, 0, 0]},
            [1, 5, 5, 3, 3, 2],
        ),
    ],
)
def test_windows(attrs, expected):
    assert max_pool(line(1, 5, -4, 3, 2), **attrs).ravel().tolist() == expected


def test_rows_and_columns():
    x = np.arange(2 * 5 * 3 * 2, dtype=np.float64).reshape(2, 5, 3, 2)
    found = max_pool(x, **SQUARE)
    expected = [[[x[b, r, c] for c in (1, 2)] for r in (1, 3, 4)] for b in (0, 1)]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "dtype",
    [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.float16, ml_dtypes.bfloat16],
)
def test_types(dtype):
    found = max_pool(line(1, 3, 2, dtype=dtype))
    assert found.dtype == dtype
    assert found.ravel().tolist() == [3, 3]


def test_nan_and_infinities_count_as_absent():
    found = max_pool(line(NAN, 1, NAN, NAN, -INF, -INF, INF)).ravel()
    np.testing.assert_array_equal(found, [1, 1, LOWEST, LOWEST, LOWEST, INF])


def test_windows_over_channels():
    x = np.array([1, 4, 3, 2, NAN, 7, 5, NAN], np.float32).reshape(1, 1, 1, 8)
    depth = {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2]}
    np.testing.assert_array_equal(max_pool(x, **depth).ravel(), [4, 3, NAN, 5])


def test_windows_as_inputs():
    x = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)
    sizes, steps = np.array([[1, 2], [2, 1]], np.int32), np.array([1, 1, 1, 1], np.int32)
    found = raw_ops.MaxPoolV2(input=x, ksize=sizes, strides=steps, padding="VALID")
    assert found[0, :, :, 0].tolist() == [[4, 5], [7, 8]]
    vectors = np.arange(2 * 2 * 3 * 4, dtype=np.float32).reshape(1, 2, 2, 3, 4)
    sizes = np.array([1, 1, 2, 2], np.int32)
    found = raw_ops.MaxPoolV2(
        input=vectors, ksize=sizes, strides=steps, padding="VALID", data_format="NCHW_VECT_C"
    )
    np.testing.assert_array_equal(found, vectors[:, :, 1:, 1:])


@pytest.mark.parametrize(
    ("shape", "attrs", "error", "message"),
    [
        ((1, 2, 4, 4), {"data_format": "NCHW"}, InvalidArgumentError, "only supports NHWC"),
        ((2, 4, 1), {}, InvalidArgumentError, "must be 4-dimensional"),
        ((1, 1, 1, 1), {"ksize": [1, 1, 3, 1]}, InvalidArgumentError, "would be negative"),
        ((1, 4, 4, 1), {"ksize": [1, 0, 1, 1]}, InvalidArgumentError, "must be positive"),
        ((1, 4, 4, 1), {"ksize": [1, 2, 2, 1, 1]}, InvalidArgumentError, "must specify 4"),
        ((1, 4, 4, 1), {"strides": [1, 0, 1, 1]}, InvalidArgumentError, "Stride must be > 0"),
        ((1, 4, 4, 1), {"ksize": [2, 1, 1, 1]}, UnimplementedError, "batch dimension"),
        ((1, 4, 4, 4), {"ksize": [1, 1, 2, 2]}, UnimplementedError, "exactly one of pooling"),
        ((1, 4, 4, 3), {"ksize": [1, 1, 1, 2]}, UnimplementedError, "evenly divide"),
        (
            (1, 4, 4, 1),
            {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 0, 0, 0, 2, 0, 0]},
            InvalidArgumentError,
            "smaller than the window size 2",
        ),
    ],
)
def test_refusals(shape, attrs, error, message):
    with pytest.raises(error, match=message):
        max_pool(np.ones(shape), **attrs)


# MaxPoolWithArgmax


def pooled(op, ksize):
    """The call of a pool, or of a gradient of one, with windows of this size."""
    rank = 5 if "3D" in op else 4
    ksize = [1, *[2] * (rank - 3), *ksize] if len(ksize) == 2 else [*ksize, *[2] * (rank - 2), 1]
    attrs = {"ksize": ksize, "strides": [1, *[2] * (rank - 2), 1], "padding": "SAME"}
    x, y = (np.ones((1, *[size] * (rank - 2), 1), np.float32) for size in (4, 2))
    shape = np.array(x.shape, np.int32)
    places = np.zeros(y.shape, np.int64)
    inputs = {
        "AvgPool": {"value": x},
        "AvgPool3D": {"input": x},
        "AvgPoolGrad": {"orig_input_shape": shape, "grad": y},
        "AvgPool3DGrad": {"orig_input_shape": shape, "grad": y},
        "MaxPool": {"input": x},
        "MaxPool3D": {"input": x},
        "MaxPoolWithArgmax": {"input": x},
        "MaxPoolGradWithArgmax": {"input": x, "grad": y, "argmax": places},
        "MaxPoolGrad": {"orig_input": x, "orig_output": y, "grad": y},
        "MaxPool3DGrad": {"orig_input": x, "orig_output": y, "grad": y},
        "MaxPool3DGradGrad": {"orig_input": x, "orig_output": y, "grad": x},
        "MaxPoolGradGrad": {"orig_input": x, "orig_output": y, "grad": x},
    }
    return getattr(raw_ops, op)(**inputs[op], **attrs)


@pytest.mark.parametrize("size", [0, -1])
@pytest.mark.parametrize(
    ("op", "of_batch", "of_channels"),
    [
        ("AvgPool", UnimplementedError, InvalidArgumentError),
        ("AvgPool3D", InvalidArgumentError, InvalidArgumentError),
        ("AvgPoolGrad", UnimplementedError, UnimplementedError),
        ("AvgPool3DGrad", InvalidArgumentError, InvalidArgumentError),
        ("MaxPool", InvalidArgumentError, InvalidArgumentError),
        ("MaxPool3D", InvalidArgumentError, InvalidArgumentError),
        ("MaxPoolWithArgmax", InvalidArgumentError, InvalidArgumentError),
        ("MaxPoolGradWithArgmax", InvalidArgumentError, InvalidArgumentError),
        ("MaxPoolGrad", UnimplementedError, UnimplementedError),
        ("MaxPoolGradGrad", UnimplementedError, UnimplementedError),
        ("MaxPool3DGrad", UnimplementedError, UnimplementedError),
        ("MaxPool3DGradGrad", UnimplementedError, UnimplementedError),
    ],
)
def test_what_is_said_of_windows_without_elements(op, of_batch, of_channels, size):
    with pytest.raises(of_batch):
        pooled(op, [size])
    with pytest.raises(of_channels):
        pooled(op, [2, size])


def test_argmax_is_the_first_largest():
    x = np.array([[7, 7, 1], [7, NAN, 8]], np.float32).reshape(1, 2, 3, 1)
    values, argmax = raw_ops.MaxPoolWithArgmax(input=x, **{**SQUARE, "strides": [1, 1, 1, 1]})
    np.testing.assert_array_equal(values.ravel(), [7, 8, 8, 7, NAN, 8])
    assert argmax.ravel().tolist() == [0, 5, 5, 3, 4, 5]
    assert argmax.dtype == np.int64


@pytest.mark.parametrize(("include_batch", "second"), [(False, [0, 1]), (True, [8, 9])])
def test_argmax_of_images_and_channels(include_batch, second):
    x = np.zeros((2, 2, 2, 2), np.int32)
    _, argmax = raw_ops.MaxPoolWithArgmax(
        input=x, **SQUARE, include_batch_in_index=include_batch, Targmax=int32
    )
    assert argmax.dtype == np.int32
    assert argmax.reshape(2, 2).tolist() == [[0, 1], second]


def test_argmax_of_nothing_is_refused():
    with pytest.raises(InvalidArgumentError, match="must not be empty"):
        raw_ops.MaxPoolWithArgmax(input=np.ones((0, 2, 2, 1), np.float32), **SQUARE)


# Gradients


def test_gradient_goes_to_the_first_largest():
    x, y = line(1, 7, 7, NAN, 2), line(0, 0, 0, 0)
    found = raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=line(1, 10, 100, 1000), **PAIR)
    assert found.ravel().tolist() == [0, 11, 100, 1000, 0]
    sizes = {key: np.array(PAIR[key], np.int32) for key in ("ksize", "strides")}
    same = raw_ops.MaxPoolGradV2(
        orig_input=x, orig_output=y, grad=line(1, 10, 100, 1000), **sizes, padding="VALID"
    )
    np.testing.assert_array_equal(same, found)


def test_gradient_is_that_of_the_chosen_element_alone():
    values = [1, 1, -INF, -INF, 1, 0, -INF, -INF, NAN, 2, 3, NAN, 5, 4, 7, 7]
    x = np.array(values, np.float32).reshape(1, 4, 4, 1)
    y = np.zeros((1, 2, 2, 1), np.float32)
    for a, b, c, d in ((1, 2, 3, 4), (INF, -1, NAN, -INF)):
        gradient = np.array([a, b, c, d], np.float32).reshape(y.shape)
        found = raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=gradient, **SQUARE)
        expected = [[a, 0, b, 0], [0, 0, 0, 0], [c, 0, 0, 0], [0, 0, d, 0]]
        np.testing.assert_array_equal(found.reshape(4, 4), expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_elements_that_are_not_chosen_get_zero_whatever_the_gradient_is(dtype):
    x, gradient = line(1, 2, 4, 3, 5, 6, 8, 7, dtype=dtype), line(NAN, INF, -1, -INF, dtype=dtype)
    attrs = {"ksize": [1, 1, 2, 1], "strides": [1, 1, 2, 1], "padding": "VALID"}
    y = raw_ops.MaxPool(input=x, **attrs)
    found = raw_ops.MaxPoolGrad(orig_input=x, orig_output=y, grad=gradient, **attrs)
    expected = np.array([0, NAN, INF, 0, 0, -1, -INF, 0])
    np.testing.assert_array_equal(found.ravel().astype(np.float64), expected)
    assert not np.signbit(found.ravel()[[0, 3, 4, 7]]).any()


def test_gradients_of_overlapping_windows_are_added():
    x = np.array([1, 3, 3, NAN, 2, 3, 5, 4, 7], np.float32).reshape(1, 3, 3, 1)
    gradient = np.arange(1, 10, dtype=np.float32).reshape(x.shape)
    attrs = {**SQUARE, "strides": [1, 1, 1, 1]}
    found = raw_ops.MaxPoolGrad(orig_input=x, orig_output=x, grad=gradient, **attrs)
    assert found.ravel().tolist() == [0, 3, 3, 4, 0, 0, 7, 0, 28]


@pytest.mark.parametrize("tile_bytes", [1, 500, 4000, 1 << 20])
def test_images_and_lines_are_pooled_in_tiles_of_any_size(tile_bytes, monkeypatch):
    monkeypatch.setattr(pooling, "_TILE_BYTES", tile_bytes)
    x = np.random.default_rng(0).integers(-99, 99, (5, 11, 4, 3)).astype(np.float32)
    attrs = {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (1, 2))[:, ::2, ::2]
    np.testing.assert_array_equal(
        raw_ops.MaxPool(input=x, **attrs), windows.max((-2, -1)), strict=True
    )
    np.testing.assert_allclose(raw_ops.AvgPool(value=x, **attrs), windows.mean((-2, -1)), rtol=1e-6)


def test_gradient_wraps_around():
    ones = line(1, 1, 1, dtype=np.int8)
    found = raw_ops.MaxPoolGrad(
        orig_input=ones,
        orig_output=ones,
        grad=line(100, 100, 100, dtype=np.int8),
        **{**PAIR, "ksize": [1, 1, 3, 1], "padding": "SAME"},
    )
    assert found.ravel().tolist() == [-56, 100, 0]


def test_gradient_with_argmax():
    x, argmax = line(0, 0, 0, 0), np.array([3, 1, 3]).reshape(1, 1, 3, 1)
    found = raw_ops.MaxPoolGradWithArgmax(input=x, grad=line(1, 2, 4), argmax=argmax, **PAIR)
    assert found.ravel().tolist() == [0, 2, 0, 5]
    for outside in (-4, 1):
        with pytest.raises(InvalidArgumentError, match="argmax must be indices"):
            raw_ops.MaxPoolGradWithArgmax(
                input=x, grad=line(1, 2, 4), argmax=argmax + outside, **PAIR
            )


def test_gradient_of_the_gradient():
    found = raw_ops.MaxPoolGradGrad(
        orig_input=line(1, 7, 7, 2, 9),
        orig_output=line(7, 7, 5, 9),
        grad=line(1, 10, 100, 1000, 10000),
        **PAIR,
    )
    assert found.ravel().tolist() == [10, 10, 0, 10000]


@pytest.mark.parametrize(
    ("y", "gradient", "message"),
    [
        ((1, 1, 3, 1), (1, 1, 2, 1), r"orig_output shape to be \[1, 1, 2, 1\]"),
        ((1, 1, 2, 1), (1, 1, 3, 1), r"grad shape to be \[1, 1, 2, 1\]"),
        ((1, 2, 1), (1, 1, 2, 1), "tensor_out must be 4-dimensional"),
        ((1, 1, 2, 1), (1, 2, 1), "out_backprop must be 4-dimensional"),
    ],
)
def test_refusals_of_the_gradient(y, gradient, message):
    inputs = {
        "orig_input": line(1, 2, 3),
        "orig_output": np.ones(y, np.float32),
        "grad": np.ones(gradient, np.float32),
    }
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.MaxPoolGrad(**inputs, **PAIR)


def test_gradients_over_channels_are_refused():
    x = np.ones((1, 1, 2, 2), np.float32)
    depth = {"ksize": [1, 1, 1, 2], "strides": [1, 1, 1, 2], "padding": "VALID"}
    with pytest.raises(UnimplementedError, match="depth dimension"):
        raw_ops.MaxPoolGrad(orig_input=x, orig_output=x[..., :1], grad=x[..., :1], **depth)


# Volumes

TRIPLE = {"ksize": [1, 1, 1, 3, 1], "strides": [1, 1, 1, 1, 1], "padding": "SAME"}


def volume(*values, channels=1):
    return np.repeat(np.array(values, np.float32).reshape(1, 1, 1, -1, 1), channels, axis=-1)


def test_volumes():
    x = np.arange(27, dtype=np.float32).reshape(1, 3, 3, 3, 1)
    cube = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    found = raw_ops.MaxPool3D(input=x, **cube)
    assert found[0, ..., 0].tolist() == [[[13, 14], [16, 17]], [[22, 23], [25, 26]]]


def test_nan_in_volumes():
    # TensorFlow computes 8 channels at a time, where NaN is passed over; one by one it is not.
    x = [NAN, 5, NAN, 2]
    whole = {**TRIPLE, "ksize": [1, 1, 1, 4, 1], "padding": "VALID"}
    assert raw_ops.MaxPool3D(input=volume(*x), **whole).item() == 2
    found = raw_ops.MaxPool3D(input=volume(*x, channels=9), **whole)
    assert found.ravel().tolist() == [5] * 8 + [2]


def test_padding_of_volumes_is_the_lowest_value():
    found = raw_ops.MaxPool3D(input=volume(-INF, -INF, -INF), **TRIPLE)
    np.testing.assert_array_equal(found.ravel(), [LOWEST, -INF, LOWEST])


def test_gradient_of_volumes_goes_to_all_that_are_equal():
    x, y = volume(7, 7, 1), volume(7, 7, 7)
    found = raw_ops.MaxPool3DGrad(orig_input=x, orig_output=y, grad=volume(1, 10, 100), **TRIPLE)
    assert found.ravel().tolist() == [11, 111, 0]
    back = raw_ops.MaxPool3DGradGrad(orig_input=x, orig_output=y, grad=volume(1, 10, 100), **TRIPLE)
    assert back.ravel().tolist() == [1, 1, 10]


@pytest.mark.parametrize(
    ("attrs", "error", "message"),
    [
        ({"data_format": "NCDHW", "ksize": [1, 2, 1, 1, 1]}, InvalidArgumentError, "only supports"),
        ({"ksize": [1, 1, 1, 0, 1]}, InvalidArgumentError, "must be positive"),
        ({"ksize": [1, 1, 1, 1, 2]}, UnimplementedError, "depth dimension"),
        ({"strides": [2, 1, 1, 1, 1]}, UnimplementedError, "batch dimension"),
    ],
)
def test_refusals_of_volumes(attrs, error, message):
    with pytest.raises(error, match=message):
        raw_ops.MaxPool3D(input=volume(1, 2, 3), **{**TRIPLE, **attrs})


@pytest.mark.parametrize(
    ("ksize", "strides"), [([1, 2, -1, 2], [1, 1, 1, 1]), ([1, 0, 2, 1], [1, 1, 1, 2])]
)
@pytest.mark.parametrize("op", ["MaxPoolGradV2", "MaxPoolGradGradV2"])
def test_windows_over_channels_are_not_implemented_whatever_else_is_wrong(op, ksize, strides):
    images = dict.fromkeys(("orig_input", "orig_output", "grad"), np.zeros((1, 4, 3, 2), "f"))
    windows = {"ksize": np.int32(ksize), "strides": np.int32(strides)}
    with pytest.raises(UnimplementedError, match="on the depth dimension"):
        getattr(raw_ops, op)(**images, **windows, padding="SAME")
