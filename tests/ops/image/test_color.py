import colorsys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError


def f32(value):
    return np.asarray(value, np.float32)


NAN, INF = np.nan, np.inf
COLORS = np.array(
    [
        [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1],
        [0, 0, 0], [1, 1, 1], [0.2, 0.5, 0.7], [0.9, 0.3, 0.6], [0.1, 0.8, 0.3], [0.5, 0.5, 0.2],
    ]
).reshape(3, 4, 3)  # fmt: skip
FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


def tolerance(dtype):
    return {"rtol": 1e-5, "atol": 1e-6} if np.dtype(dtype).itemsize > 2 else {"atol": 2e-2}


@pytest.mark.parametrize("dtype", FLOATS)
def test_conversions(dtype):
    hsv = np.array([colorsys.rgb_to_hsv(*color) for color in COLORS.reshape(-1, 3)])
    hsv = hsv.reshape(COLORS.shape)
    result = raw_ops.RGBToHSV(images=COLORS.astype(dtype))
    assert result.dtype == dtype
    np.testing.assert_allclose(result.astype(float), hsv, **tolerance(dtype))
    back = raw_ops.HSVToRGB(images=hsv.astype(dtype))
    assert back.dtype == dtype
    np.testing.assert_allclose(back.astype(float), COLORS, **tolerance(dtype))


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_there_and_back(color):
    rgb = np.array([color])
    back = raw_ops.HSVToRGB(images=raw_ops.RGBToHSV(images=rgb))
    np.testing.assert_allclose(back, rgb, atol=1e-9)


def test_what_is_not_a_number():
    """Recorded from TensorFlow: only a last channel without a number is the largest."""
    rgb = np.array([[NAN, 0.1, -0.2], [0.1, NAN, -0.2], [0.1, -0.2, NAN]], np.float32)
    value = raw_ops.RGBToHSV(images=rgb)[:, 2]
    np.testing.assert_array_equal(value, f32([0.1, -0.2, NAN]))


@pytest.mark.parametrize("op", ["RGBToHSV", "HSVToRGB"])
def test_channels(op):
    run = getattr(raw_ops, op)
    assert run(images=np.zeros((0, 3), np.float32)).shape == (0, 3)
    with pytest.raises(FailedPreconditionError, match="input only has 4 channels"):
        run(images=np.zeros((2, 4), np.float32))
    with pytest.raises(InvalidArgumentError, match="at least 1D"):
        run(images=np.float32(1))


def adjust(what, images, factor):
    op, name = {
        "Contrastv2": ("AdjustContrastv2", "contrast_factor"),
        "Hue": ("AdjustHue", "delta"),
        "Saturation": ("AdjustSaturation", "scale"),
    }[what]
    return getattr(raw_ops, op)(images=images, **{name: np.asarray(factor, np.float32)})


def test_contrast():
    image = f32([[0, 10], [2, 20], [4, 60]]).reshape(1, 3, 1, 2)
    result = adjust("Contrastv2", image, 3)
    assert result.reshape(3, 2).tolist() == [[-4, -30], [2, 0], [8, 120]]
    two = np.concatenate([image, image + 100])
    np.testing.assert_allclose(adjust("Contrastv2", two, 3)[1], result[0] + 100, rtol=1e-6)
    assert adjust("Contrastv2", image[:, :0], 3).shape == (1, 0, 1, 2)
    with pytest.raises(UnimplementedError, match="AdjustContrast"):
        raw_ops.AdjustContrast(images=image, contrast_factor=1.0, min_value=0.0, max_value=1.0)


@pytest.mark.parametrize("delta", [0.0, 0.25, -0.4, 3.1])
def test_hue(delta):
    expected = []
    for color in COLORS.reshape(-1, 3):
        hue, saturation, value = colorsys.rgb_to_hsv(*color)
        expected.append(colorsys.hsv_to_rgb((hue + delta) % 1, saturation, value))
    result = adjust("Hue", COLORS.astype(np.float32), delta)
    np.testing.assert_allclose(result.reshape(-1, 3), expected, atol=2e-6)


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0, 5.0])
def test_saturation(scale):
    expected = []
    for color in COLORS.reshape(-1, 3):
        hue, saturation, value = colorsys.rgb_to_hsv(*color)
        expected.append(colorsys.hsv_to_rgb(hue, min(saturation * scale, 1), value))
    result = adjust("Saturation", COLORS.astype(np.float32), scale)
    np.testing.assert_allclose(result.reshape(-1, 3), expected, atol=2e-6)


def test_colors_without_numbers():
    """Recorded from TensorFlow."""
    image = f32([[[-1.25, NAN, NAN], [NAN, -0.5, 1], [96, NAN, 703]]])
    hue = adjust("Hue", image, -0.5)
    np.testing.assert_array_equal(hue[0, :2], [[-1.25, NAN, NAN], [NAN, -0.5, NAN]])
    assert adjust("Saturation", image, 500)[0, 2].tolist() == [96, 96, 96]


@pytest.mark.parametrize("what", ["Contrastv2", "Hue", "Saturation"])
def test_what_is_refused(what):
    image = np.zeros((2, 2, 3), np.float32)
    with pytest.raises(InvalidArgumentError, match=r"at least 3-D, got shape\[2,3\]"):
        adjust(what, image[0], 1)
    with pytest.raises(InvalidArgumentError, match=r"must be scalar: \[1\]"):
        adjust(what, image, [1])
    if what != "Contrastv2":
        with pytest.raises(InvalidArgumentError, match="must have 3 channels but instead has 2"):
            adjust(what, image[..., :2], 1)
