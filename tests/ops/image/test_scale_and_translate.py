"""Resampling with a kernel; expected values are TensorFlow's."""

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

SQUARES = np.array([0, 1, 4, 9], np.float32).reshape(1, 1, 4, 1)


def resample(images, size, scale, translation, **attrs):
    vectors = (np.array(v, np.float32) for v in (scale, translation))
    arguments = dict(zip(("scale", "translation"), vectors, strict=True))
    return raw_ops.ScaleAndTranslate(
        images=images, size=np.array(size, np.int32), **arguments, **attrs
    )


@pytest.mark.parametrize(
    ("kernel_type", "halved", "moved"),
    [
        ("lanczos1", [0.684211, 6.210526], [0, 0.038461, 2.5]),
        ("lanczos3", [0.404175, 6.175412], [0, 0.025290, 1.928571]),
        ("lanczos5", [0.309376, 6.220648], [0, 0.168336, 1.679553]),
        ("gaussian", [1.207611, 5.529249], [0, 0.208608, 2.5]),
        ("box", [0.5, 6.5], [0, 0, 2.5]),
        ("triangle", [1, 5.714286], [0, 0.166667, 2.5]),
        ("keyscubic", [0.603306, 6.082644], [0, 0.080962, 2.25]),
        ("mitchellcubic", [0.887923, 5.800966], [0, 0.144391, 2.361111]),
    ],
)
def test_kernels(kernel_type, halved, moved):
    result = resample(SQUARES, [1, 2], [1, 0.5], [0, 0], kernel_type=kernel_type)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result.ravel(), halved, atol=2e-6)
    result = resample(SQUARES, [1, 3], [1, 0.75], [0, 1], kernel_type=kernel_type, antialias=False)
    np.testing.assert_allclose(result.ravel(), moved, atol=2e-6)


def test_all_types_give_float_and_the_same_size_gives_the_same_pixels():
    images = np.arange(12, dtype=np.uint8).reshape(1, 3, 2, 2)
    result = resample(images, [3, 2], [1, 1], [0, 0], kernel_type="triangle")
    np.testing.assert_array_equal(result, images.astype(np.float32), strict=True)


def test_gradient_of_the_sum_of_products_is_the_transposed_map():
    grads = np.array([1, 2, 3], np.float32).reshape(1, 1, 3, 1)
    result = raw_ops.ScaleAndTranslateGrad(
        grads=grads,
        original_image=SQUARES,
        scale=np.array([1, 0.75], np.float32),
        translation=np.zeros(2, np.float32),
        kernel_type="triangle",
    )
    np.testing.assert_allclose(result.ravel(), [0.7, 1.3, 1.9, 2.1], rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel_type": "cubic"}, "Unrecognized kernel type: cubic"),
        ({"scale": [1, 0]}, "Scale must be greater than zero"),
        ({"scale": [1]}, "must have two elements"),
        ({"size": [1, 0]}, "output dimensions must be positive"),
        ({"images": SQUARES[0]}, "input must be 4-dimensional"),
        ({"images": SQUARES[:, :0]}, "non-zero size"),
    ],
)
def test_errors(change, message):
    arguments = {"images": SQUARES, "size": [1, 2], "scale": [1, 1], "translation": [0, 0]}
    with pytest.raises(InvalidArgumentError, match=message):
        resample(**{**arguments, **change})
