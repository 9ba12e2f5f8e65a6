"""Image files to tensors; the pixels are those that TensorFlow decoded (`make_image_files.py`)."""

from __future__ import annotations

import base64
import io
import json
import lzma
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.ops.image.codecs import jpeg as jpeg_pixels
from opkernel.ops.image.codecs import png

pytest.importorskip("PIL")
pytest.importorskip("simplejpeg")

RECORDED = json.loads(lzma.decompress(Path(__file__).with_name("image_files.json.xz").read_bytes()))
FILES = {name: base64.b64decode(text) for name, text in RECORDED["files"].items()}


def same(op: str, name: str, attrs: dict[str, Any], answer: Any) -> None:
    if answer is None:
        with pytest.raises(InvalidArgumentError):
            getattr(raw_ops, op)(contents=FILES[name], **attrs)
        return
    dtype, shape, data = answer
    wanted = np.frombuffer(base64.b64decode(data), dtype).reshape(shape)
    found = np.asarray(getattr(raw_ops, op)(contents=FILES[name], **attrs))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", FILES)
def test_pixels_are_tensorflow_s(name: str) -> None:
    for op, of, attrs, answer in RECORDED["calls"]:
        if of == name:
            same(op, name, attrs, answer)


def test_png_needs_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png, "library_or_none", lambda module: None)
    for op, name, attrs, answer in RECORDED["calls"]:
        if name.startswith("png") and op == "DecodeImage":
            same(op, name, attrs, answer)


def test_without_simplejpeg_pillow_decodes_with_the_accurate_transform(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jpeg_pixels, "library_or_none", lambda module: None)
    for op, name, attrs, answer in RECORDED["calls"]:
        if attrs == {"dct_method": "INTEGER_ACCURATE"} and name != "jpeg_cmyk":
            same(op, name, attrs, answer)


def test_a_crop_is_a_part_of_the_image() -> None:
    whole = raw_ops.DecodeJpeg(contents=FILES["jpeg_gray"])
    window = np.array([2, 1, 3, 4], np.int32)
    part = raw_ops.DecodeAndCropJpeg(contents=FILES["jpeg_gray"], crop_window=window)
    np.testing.assert_array_equal(part, whole[2:5, 1:5])
    with pytest.raises(InvalidArgumentError, match="exceeds"):
        raw_ops.DecodeAndCropJpeg(contents=FILES["jpeg_gray"], crop_window=window * 3)


@pytest.mark.parametrize(
    ("contents", "attrs", "message"),
    [
        (b"", {}, "empty"),
        (b"text", {}, "Unknown image file format"),
        (np.array([b"x"], object), {}, r"scalar but got shape\[1\]"),
        (FILES["jpeg"], {"channels": 2}, "must be 0, 1, 3 or 4 but got 2"),
        (FILES["jpeg"], {"ratio": 3}, "ratio must be 1, 2, 4, or 8, got 3"),
        (FILES["jpeg"], {"dct_method": "FAST"}, "dct_method"),
        (FILES["jpeg"][:-20], {}, "ends before its pixels"),
        (FILES["gif_frames"], {}, "Got 3 frames"),
    ],
)
def test_errors(contents: Any, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.DecodeJpeg(contents=contents, **attrs)


def chunks(png: bytes) -> list[bytes]:
    """The chunks of a file, whole."""
    found, at = [], 8
    while at < len(png):
        size = 12 + int.from_bytes(png[at : at + 4], "big")
        found.append(png[at : at + size])
        at += size
    return found


@pytest.mark.parametrize("kind", [b"IHDR", b"PLTE"])
def test_a_png_that_has_a_chunk_twice_is_refused(kind: bytes) -> None:
    parts = chunks(FILES["png_palette"])
    again = [part for part in parts if part[4:8] == kind]
    with pytest.raises(InvalidArgumentError, match="two chunks"):
        raw_ops.DecodePng(
            contents=FILES["png_palette"][:8] + b"".join(parts[:2] + again + parts[2:])
        )


def test_four_inks_with_subsampled_colors() -> None:
    from PIL import Image

    pixels = np.sort(np.random.default_rng(5).integers(0, 255, (24, 32, 4), np.uint8), 0)
    inks, file = Image.fromarray(pixels, "RGBA").convert("RGB").convert("CMYK"), io.BytesIO()
    inks.save(file, "JPEG", subsampling=2)
    found = raw_ops.DecodeJpeg(contents=file.getvalue(), dct_method="INTEGER_ACCURATE")
    stored = np.asarray(Image.open(file)).astype(int)
    expected = (255 - stored[..., :3]) * (255 - stored[..., 3:]) // 255
    np.testing.assert_array_equal(found, expected)


def test_jpeg_xl_is_refused() -> None:
    with pytest.raises(UnimplementedError, match="JPEG XL"):
        raw_ops.DecodeJxl(contents=b"\xff\x0a" + bytes(20))


def test_files_that_lie_about_their_size() -> None:
    png = bytearray(FILES["png_gray"])
    png[16:24] = struct.pack(">II", 20000, 20000)
    png[29:33] = struct.pack(">I", zlib.crc32(bytes(png[12:29])))
    with pytest.raises(InvalidArgumentError, match="cannot hold"):
        raw_ops.DecodePng(contents=bytes(png))
    bmp = bytearray(FILES["bmp"])
    bmp[18:22] = struct.pack("<i", 1 << 20)
    with pytest.raises(InvalidArgumentError, match="differ by"):
        raw_ops.DecodeBmp(contents=bytes(bmp))


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_end_in_clean_errors(name: str) -> None:
    draw = random.Random(name)
    for _ in range(40):
        data = bytearray(FILES[name])
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        cut = draw.choice([len(data), draw.randrange(len(data))])
        try:
            raw_ops.DecodeImage(contents=bytes(data[:cut]))
        except OpError:
            continue
