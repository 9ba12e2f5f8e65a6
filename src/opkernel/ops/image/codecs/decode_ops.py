"""Image files to tensors: DecodeImage, DecodeJpeg, DecodeAndCropJpeg, DecodePng, DecodeGif, DecodeBmp, DecodeWebP, DecodeJxl.

As in TensorFlow, most of these ops decode files of most formats: the first bytes of a file decide.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/decode_image_op.cc.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import check_allocation, from_attrs
from opkernel.opdef import DimensionHandle, InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes.rules import check_scalars
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.image.codecs.bmp_pixels import bmp_pixels
from opkernel.ops.image.codecs.file_format import FileFormat, file_format
from opkernel.ops.image.codecs.gif_frames import gif_frames
from opkernel.ops.image.codecs.jpeg import JpegOptions, jpeg_pixels
from opkernel.ops.image.codecs.png_pixels import png_pixels
from opkernel.ops.image.codecs.webp_pixels import webp_frames
from opkernel.ops.input_checks import require_equal, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_JPEG_ATTRS = [
    "channels: int = 0",
    "ratio: int = 1",
    "fancy_upscaling: bool = true",
    "try_recover_truncated: bool = false",
    "acceptable_fraction: float = 1.0",
    "dct_method: string = ''",
]
_DCT_METHODS = ("", "INTEGER_FAST", "INTEGER_ACCURATE")
_RATIOS = (1, 2, 4, 8)
_U8, _U16 = DataType.DT_UINT8, DataType.DT_UINT16


def _channels(c: InferenceContext) -> DimensionHandle:
    """The attr `channels`; 0 for as many as the file has."""
    channels = c.get_attr("channels")
    if channels < 0:
        raise InvalidArgumentError(f"channels must be non-negative, got {channels}")
    return c.make_dim(channels or None)


def _decode_shape(c: InferenceContext) -> None:
    """A file -> [height, width, channels]."""
    check_scalars(c, 0)
    c.set_output(0, c.make_shape([None, None, _channels(c)]))


def _decode_any_shape(c: InferenceContext) -> None:
    """As `_decode_shape`; unknown where the frames of an animation are wanted, too."""
    _decode_shape(c)
    if c.get_attr("expand_animations"):
        c.set_output(0, c.unknown_shape())


def _decode_animation_shape(c: InferenceContext) -> None:
    """A file -> [frames, height, width, channels]."""
    check_scalars(c, 0)
    c.set_output(0, c.make_shape([None, None, None, _channels(c)]))


def _decode_and_crop_shape(c: InferenceContext) -> None:
    """A file and a window (y, x, height, width) -> [height, width, channels]."""
    check_scalars(c, 0)
    channels = _channels(c)
    c.with_value(c.dim(c.with_rank(c.input(1), 1), 0), 4)
    window = c.input_tensor(1)
    size = [None, None] if window is None else window.tolist()[2:]
    c.set_output(0, c.make_shape([*size, channels]))


def _decode_op(name: str, doc: str, **changed: Any) -> OpHandle:
    """An op that decodes files to uint8; `changed` says what is otherwise."""
    declared: dict[str, Any] = {
        "inputs": ["contents: string"],
        "outputs": ["image: uint8"],
        "attrs": ["channels: int = 0"],
        "shape_fn": _decode_shape,
        "traits": "extra=image",
    }
    return register_op(name, **declared | changed, doc=doc)


_TYPED = {"outputs": ["image: dtype"]}
DECODE_IMAGE = _decode_op(
    "DecodeImage",
    "The pixels of an image file of any format; all frames of an animation with `expand_animations`.",
    **_TYPED,
    attrs=[
        "channels: int = 0",
        "dtype: {uint8, uint16, float} = DT_UINT8",
        "expand_animations: bool = true",
    ],
    shape_fn=_decode_any_shape,
)
DECODE_PNG = _decode_op(
    "DecodePng",
    "The pixels of a PNG file, of 8 or 16 bits.",
    **_TYPED,
    attrs=["channels: int = 0", "dtype: {uint8, uint16} = DT_UINT8"],
)
DECODE_WEBP = _decode_op(
    "DecodeWebP",
    "The frames of a WebP file.",
    **_TYPED,
    attrs=["channels: int = 0", "dtype: {uint8} = DT_UINT8"],
    shape_fn=_decode_animation_shape,
)
DECODE_JXL = _decode_op(
    "DecodeJxl",
    "The pixels of a JPEG XL file. opkernel has no decoder of this format.",
    traits="no_kernel=jxl",
    **_TYPED,
    attrs=["channels: int = 0", "dtype: {uint8} = DT_UINT8"],
)
DECODE_BMP = _decode_op("DecodeBmp", "The pixels of a BMP file.")
DECODE_GIF = _decode_op(
    "DecodeGif",
    "The frames of a GIF file.",
    attrs=[],
    shape_fn=shape_rule("[] -> [?, ?, ?, 3]"),
)
DECODE_JPEG = _decode_op(
    "DecodeJpeg", "The pixels of a JPEG file, 1 / `ratio` as high and wide.", attrs=_JPEG_ATTRS
)
DECODE_AND_CROP_JPEG = _decode_op(
    "DecodeAndCropJpeg",
    "The pixels of a window (y, x, height, width) of a JPEG file.",
    inputs=["contents: string", "crop_window: int32"],
    attrs=_JPEG_ATTRS,
    shape_fn=_decode_and_crop_shape,
)


@dataclass(frozen=True)
class _Decoder:
    """What one of the ops decodes, and how."""

    op: str
    channels: int
    dtype: DataType = _U8
    expand_animations: bool = True
    jpeg: JpegOptions = field(default_factory=JpegOptions)

    def __post_init__(self) -> None:
        if self.channels not in (0, 1, 3, 4):
            raise InvalidArgumentError(f"`channels` must be 0, 1, 3 or 4 but got {self.channels}")

    def __call__(self, contents: Any, crop_window: Any = None) -> Any:
        require_scalar(contents, "`contents` must be scalar but got shape{}")
        data = contents.item()
        if not data:
            raise InvalidArgumentError("Input is empty.")
        kind = file_format(data)
        return _DECODERS[kind](self, data, crop_window)

    def _refuse_crop(self, kind: FileFormat) -> None:
        if self.op == "DecodeAndCropJpeg":
            raise InvalidArgumentError(
                f"DecodeAndCropJpeg operation can run on JPEG only, but detected {kind.value}."
            )

    def _refuse_other(self, kind: FileFormat) -> None:
        raise InvalidArgumentError(
            f"{self.op} does not decode {kind.value} files. "
            f"Use `decode_{kind.value.lower()}` or `decode_image` instead."
        )

    def _of_jpeg(self, data: bytes, crop_window: Any) -> Any:
        if self.channels == 4:
            raise InvalidArgumentError("JPEG does not support 4 channels")
        if self.op == "DecodeBmp":
            self._refuse_other(FileFormat.JPEG)
        crop = None if crop_window is None else _window(crop_window)
        return self._typed(jpeg_pixels(data, self.channels, self.jpeg, crop))

    def _of_png(self, data: bytes, crop_window: Any) -> Any:
        self._refuse_crop(FileFormat.PNG)
        if self.op == "DecodeBmp":
            self._refuse_other(FileFormat.PNG)
        pixels = png_pixels(data, self.channels, self.dtype is not _U8)
        return self._typed(pixels)

    def _of_gif(self, data: bytes, crop_window: Any) -> Any:
        self._refuse_crop(FileFormat.GIF)
        if self.channels not in (0, 3):
            raise InvalidArgumentError(f"channels must be 0 or 3 for GIF, got {self.channels}")
        if self.op in ("DecodeBmp", "DecodeWebP", "DecodeJxl"):
            self._refuse_other(FileFormat.GIF)
        frames = gif_frames(data, self.expand_animations, self.op)
        if self.op in ("DecodeJpeg", "DecodePng") and len(frames) > 1:
            raise InvalidArgumentError(
                f"Got {len(frames)} frames, but animated gifs can only be decoded by "
                "tf.io.decode_gif or tf.io.decode_image"
            )
        keeps_frames = self.op == "DecodeGif" or (
            self.op == "DecodeImage" and self.expand_animations
        )
        return self._typed(frames if keeps_frames else frames[0])

    def _of_bmp(self, data: bytes, crop_window: Any) -> Any:
        self._refuse_crop(FileFormat.BMP)
        if self.channels == 1:
            raise InvalidArgumentError("`channels` must be 0, 3 or 4 for BMP, but got 1")
        if self.op not in ("DecodeBmp", "DecodeImage"):
            raise InvalidArgumentError(
                "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` "
                f"instead. Op used: {self.op}"
            )
        return self._typed(bmp_pixels(data, self.channels))

    def _of_webp(self, data: bytes, crop_window: Any) -> Any:
        if self.channels == 1:
            raise InvalidArgumentError("WebP only supports 3 or 4 channels")
        if self.dtype is not _U8:
            raise InvalidArgumentError("WebP only supports uint8 for dtype")
        frames = webp_frames(data, self.channels, self.op)
        return frames if self.expand_animations else frames[0]

    def _of_jxl(self, data: bytes, crop_window: Any) -> Any:
        raise UnimplementedError(f"{self.op} cannot decode JPEG XL: opkernel has no decoder of it")

    def _typed(self, pixels: Any) -> Any:
        """The pixels in the output's type: the whole range of integers, 0 to 1 for floats."""
        if self.op == "DecodeGif" and pixels.ndim == 3:
            pixels = pixels[None]
        if self.dtype.numpy_dtype == pixels.dtype:
            return pixels
        check_allocation(pixels.shape, self.dtype)
        if self.dtype is _U16:
            return pixels.astype(np.uint16) * np.uint16(256)
        return pixels * np.float32(1 / np.iinfo(pixels.dtype).max)


_DECODERS: dict[FileFormat, Callable[[_Decoder, bytes, Any], Any]] = {
    FileFormat.JPEG: _Decoder._of_jpeg,
    FileFormat.JXL: _Decoder._of_jxl,
    FileFormat.PNG: _Decoder._of_png,
    FileFormat.GIF: _Decoder._of_gif,
    FileFormat.BMP: _Decoder._of_bmp,
    FileFormat.WEBP: _Decoder._of_webp,
}


def _window(crop_window: Any) -> list[int]:
    require_equal(crop_window.shape, (4,), "crop_window must have four elements {}")
    return [int(value) for value in crop_window]


def _jpeg_options(
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    acceptable_fraction: float,
    dct_method: str,
) -> JpegOptions:
    if ratio not in _RATIOS:
        raise InvalidArgumentError(f"ratio must be 1, 2, 4, or 8, got {ratio}")
    if dct_method not in _DCT_METHODS:
        raise InvalidArgumentError(
            f"dct_method must be one of {{'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}}, got {dct_method!r}"
        )
    accurate = dct_method == "INTEGER_ACCURATE"
    return JpegOptions(ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, accurate)


@register_kernel(DECODE_IMAGE, factory=True)
def decode_image(*, channels: int, dtype: DataType, expand_animations: bool) -> Any:
    return _Decoder("DecodeImage", channels, dtype, expand_animations)


def _typed_decoder(op: str) -> Callable[..., _Decoder]:
    """Makes the decoder of an op whose attrs are the channels and the type."""

    def make(*, channels: int, dtype: DataType) -> _Decoder:
        return _Decoder(op, channels, dtype)

    return make


for _op in (DECODE_PNG, DECODE_WEBP, DECODE_JXL):
    register_kernel(_op, factory=True)(_typed_decoder(_op.name))


@register_kernel(DECODE_BMP, factory=True)
def decode_bmp(*, channels: int) -> Any:
    return _Decoder("DecodeBmp", channels)


@register_kernel(DECODE_GIF, factory=True)
def decode_gif() -> Any:
    return _Decoder("DecodeGif", 3)


@register_kernel(DECODE_JPEG, factory=True)
@from_attrs(jpeg=_jpeg_options)
def decode_jpeg(*, channels: int, jpeg: JpegOptions) -> Any:
    return _Decoder("DecodeJpeg", channels, jpeg=jpeg)


@register_kernel(DECODE_AND_CROP_JPEG, factory=True)
@from_attrs(jpeg=_jpeg_options)
def decode_and_crop_jpeg(*, channels: int, jpeg: JpegOptions) -> Any:
    return _Decoder("DecodeAndCropJpeg", channels, jpeg=jpeg)
