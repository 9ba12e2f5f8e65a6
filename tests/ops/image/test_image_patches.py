"""ExtractImagePatches."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, OpError, OutOfRangeError, UnimplementedError

IMAGE = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
ONES = [1, 1, 1, 1]


def patches(
    images: Any, ksizes: Any, strides: Any = ONES, rates: Any = ONES, padding: str = "VALID"
) -> Any:
    return raw_ops.ExtractImagePatches(
        images=images, ksizes=ksizes, strides=strides, rates=rates, padding=padding
    )


def test_windows_and_channels() -> None:
    images = np.arange(2 * 3 * 3 * 2, dtype=np.int16).reshape(2, 3, 3, 2)
    found = patches(images, [1, 2, 2, 1])
    assert found.shape == (2, 2, 2, 8)
    np.testing.assert_array_equal(found[1, 1, 0], images[1, 1:3, 0:2].reshape(-1))
    assert found.dtype == np.int16


def test_same_padding_strides_and_rates() -> None:
    found = patches(IMAGE, [1, 3, 3, 1], [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    assert found[0, 0, 0].tolist() == [0, 0, 0, 0, 5, 7, 0, 13, 15]
    assert found[0, 1, 1].tolist() == [5, 7, 0, 13, 15, 0, 0, 0, 0]


def test_no_windows() -> None:
    assert patches(IMAGE, [1, 5, 5, 1]).shape == (1, 0, 0, 25)
    assert patches(IMAGE[:0], [1, 2, 2, 1]).shape == (0, 3, 3, 4)


@pytest.mark.parametrize(
    ("images", "ksizes", "error", "message"),
    [
        (IMAGE, [1, 0, 2, 1], OutOfRangeError, "ksizes is out of range"),
        (IMAGE, [2, 2, 2, 1], UnimplementedError, "Only support ksizes across space"),
        (IMAGE, [1, 2**31, 2, 1], InvalidArgumentError, "out of range for an int32"),
        (IMAGE[0], [1, 2, 2, 1], InvalidArgumentError, r"4-dimensional\[4,4,1\]"),
        (IMAGE, [1, 9, 2, 1], InvalidArgumentError, "negative"),
    ],
)
def test_errors(images: Any, ksizes: Any, error: type[OpError], message: str) -> None:
    with pytest.raises(error, match=message):
        patches(images, ksizes)
