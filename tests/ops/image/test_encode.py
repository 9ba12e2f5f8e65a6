"""Tensors to image files; the bytes are TensorFlow's."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InternalError, InvalidArgumentError

pytest.importorskip("PIL")

IMAGE = np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 9


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_keeps_pixels(dtype: Any, channels: int) -> None:
    draw = np.random.default_rng(channels)
    images = draw.integers(0, np.iinfo(dtype).max, (2, 5, 9, channels), dtype)
    files = raw_ops.EncodePng(image=images)
    for file, image in zip(files, images, strict=True):
        if channels == 2:
            decoded = raw_ops.DecodePng(contents=file, dtype=dtype)
        else:
            decoded = raw_ops.DecodePng(contents=file, channels=channels, dtype=dtype)
        np.testing.assert_array_equal(decoded, image)


def test_rows_take_the_filter_of_the_least_sum() -> None:
    """A slope along the rows has constant differences from the left; equal rows none from above."""
    slope = np.tile(np.arange(0, 100, 5, dtype=np.uint8), (3, 1))[..., None]
    file = raw_ops.EncodePng(image=slope)
    rows = zlib.decompress(file[41:-16])
    assert [rows[at] for at in range(0, 63, 21)] == [1, 2, 2]


def test_jpeg_is_near_the_image() -> None:
    image = np.full((16, 16, 3), (200, 100, 50), np.uint8)
    file = raw_ops.EncodeJpeg(image=image, density_unit="cm", x_density=7, y_density=-1)
    assert file[:20] == b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\2\0\7\xff\xff\0\0"
    assert np.abs(raw_ops.DecodeJpeg(contents=file).astype(int) - image).max() <= 3
    small = raw_ops.EncodeJpegVariableQuality(images=image, quality=1)
    assert len(small) <= len(file)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: raw_ops.EncodePng(image=IMAGE[0]), InvalidArgumentError, "at least rank 3"),
        (lambda: raw_ops.EncodePng(image=IMAGE[:0]), InternalError, "no size 0"),
        (lambda: raw_ops.EncodePng(image=IMAGE, compression=10), InvalidArgumentError, "-1,9"),
        (lambda: raw_ops.EncodeJpeg(image=IMAGE[..., :2]), InvalidArgumentError, "1 or 3"),
        (lambda: raw_ops.EncodeJpeg(image=IMAGE[:0]), InternalError, "JPEG encoding failed"),
        (lambda: raw_ops.EncodeJpeg(image=IMAGE, format="grayscale"), InvalidArgumentError, "exp"),
        (lambda: raw_ops.EncodeJpeg(image=IMAGE, quality=101), InvalidArgumentError, "101"),
        (
            lambda: raw_ops.EncodeJpeg(image=IMAGE, xmp_metadata="a" * 70000),
            InternalError,
            "too long",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.tensorflow
def test_files_are_tensorflow_s(tf: Any) -> None:
    draw = np.random.default_rng(0)
    for size in ((1, 1), (1, 9), (9, 1), (40, 70), (150, 200)):
        for channels in (1, 2, 3, 4):
            image = draw.integers(0, 64, (*size, channels)).cumsum(1).astype(np.uint8)
            for level in (-1, 1, 9):
                wanted = tf.raw_ops.EncodePng(image=image, compression=level).numpy()
                assert raw_ops.EncodePng(image=image, compression=level) == wanted
            if channels in (1, 3):
                for quality in (0, 50, 100):
                    wanted = tf.raw_ops.EncodeJpeg(image=image, quality=quality).numpy()
                    assert raw_ops.EncodeJpeg(image=image, quality=quality) == wanted


def test_one_pixel_is_deflated_as_libpng_deflates_rows_without_filter() -> None:
    pixel = np.full((1, 1, 4), 7, np.uint8)
    assert raw_ops.EncodePng(image=pixel) == (
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
        b"\x00\x00\x00\x0bIDAT\x08\x99c`\x07\x02\x00\x00K\x00\x1d\xc9\xf7\xf0\x83\x00\x00\x00\x00IEND\xaeB`\x82"
    )
