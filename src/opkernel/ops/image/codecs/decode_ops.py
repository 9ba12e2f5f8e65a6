"""Image files to tensors: DecodeImage, DecodeJpeg, DecodeAndCropJpeg, DecodePng, DecodeGif, DecodeBmp, DecodeWebP, DecodeJxl.

As in TensorFlow, most of these ops decode files of most formats: the first bytes of a file decide. BMP files
are decoded here: those without compression, of 8, 24 or 32 bits a pixel.

Source: TensorFlow core/ops/image_ops.cc, core/kernels/image/decode_image_op.cc.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import check_allocation, from_attrs
from opkernel.opdef import DimensionHandle, InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_scalars, shape_rule
from opkernel.ops.image.codecs import FileFormat, file_format
from opkernel.ops.image.codecs.gif_and_webp import gif_frames, webp_frames
from opkernel.ops.image.codecs.jpeg import JpegOptions, jpeg_pixels
from opkernel.ops.image.codecs.png import png_pixels
from opkernel.ops.input_checks import require, require_equal, require_scalar
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
    require(channels >= 0, f"channels must be non-negative, got {channels}")
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


_CHANNELS = "channels: int = 0"

_FOR_SOME_FILES = "extra=image extra_when=inputs"
"""The traits of ops that take files of several formats: PNG needs no library."""

_decode_op = partial(register_op, attrs=[_CHANNELS], shape_fn=_decode_shape, traits="extra=image")

DECODE_IMAGE = _decode_op(
    "DecodeImage(contents: string) -> image: dtype",
    attrs=[_CHANNELS, "dtype: {uint8, uint16, float} = DT_UINT8", "expand_animations: bool = true"],
    shape_fn=_decode_any_shape,
    traits=_FOR_SOME_FILES,
    doc="The pixels of an image file of any format; all frames of an animation with `expand_animations`.",
)
DECODE_PNG = _decode_op(
    "DecodePng(contents: string) -> image: dtype",
    attrs=[_CHANNELS, "dtype: {uint8, uint16} = DT_UINT8"],
    traits=_FOR_SOME_FILES,
    doc="The pixels of a PNG file, of 8 or 16 bits.",
)
DECODE_WEBP = _decode_op(
    "DecodeWebP(contents: string) -> image: dtype",
    attrs=[_CHANNELS, "dtype: {uint8} = DT_UINT8"],
    shape_fn=_decode_animation_shape,
    doc="The frames of a WebP file.",
)
DECODE_JXL = _decode_op(
    "DecodeJxl(contents: string) -> image: dtype",
    attrs=[_CHANNELS, "dtype: {uint8} = DT_UINT8"],
    traits="no_kernel=jxl",
    doc="The pixels of a JPEG XL file. opkernel has no decoder of this format.",
)
DECODE_BMP = _decode_op(
    "DecodeBmp(contents: string) -> image: uint8", traits="", doc="The pixels of a BMP file."
)
DECODE_GIF = _decode_op(
    "DecodeGif(contents: string) -> image: uint8",
    attrs=[],
    shape_fn=shape_rule("[] -> [?, ?, ?, 3]"),
    doc="The frames of a GIF file.",
)
DECODE_JPEG = _decode_op(
    "DecodeJpeg(contents: string) -> image: uint8",
    attrs=_JPEG_ATTRS,
    doc="The pixels of a JPEG file, 1 / `ratio` as high and wide.",
)
DECODE_AND_CROP_JPEG = _decode_op(
    "DecodeAndCropJpeg(contents: string, crop_window: int32) -> image: uint8",
    attrs=_JPEG_ATTRS,
    shape_fn=_decode_and_crop_shape,
    doc="The pixels of a window (y, x, height, width) of a JPEG file.",
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
        require(data, "Input is empty.")
        kind = file_format(data)
        return _DECODERS[kind](self, data, crop_window)

    def _refuse_crop(self, kind: FileFormat) -> None:
        message = f"DecodeAndCropJpeg operation can run on JPEG only, but detected {kind.value}."
        require(self.op != "DecodeAndCropJpeg", message)

    def _refuse_other(self, kind: FileFormat) -> None:
        raise InvalidArgumentError(
            f"{self.op} does not decode {kind.value} files. "
            f"Use `decode_{kind.value.lower()}` or `decode_image` instead."
        )

    def _of_jpeg(self, data: bytes, crop_window: Any) -> Any:
        require(self.channels != 4, "JPEG does not support 4 channels")
        if self.op == "DecodeBmp":
            self._refuse_other(FileFormat.JPEG)
        crop = None
        if crop_window is not None:
            require_equal(crop_window.shape, (4,), "crop_window must have four elements {}")
            crop = crop_window.tolist()
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
        require(self.channels != 1, "`channels` must be 0, 3 or 4 for BMP, but got 1")
        if self.op not in ("DecodeBmp", "DecodeImage"):
            raise InvalidArgumentError(
                "Trying to decode BMP format using a wrong op. Use `decode_bmp` or `decode_image` "
                f"instead. Op used: {self.op}"
            )
        return self._typed(bmp_pixels(data, self.channels))

    def _of_webp(self, data: bytes, crop_window: Any) -> Any:
        require(self.channels != 1, "WebP only supports 3 or 4 channels")
        require(self.dtype is _U8, "WebP only supports uint8 for dtype")
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


def _jpeg_options(
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    acceptable_fraction: float,
    dct_method: str,
) -> JpegOptions:
    require(ratio in _RATIOS, f"ratio must be 1, 2, 4, or 8, got {ratio}")
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


_HEADER_BYTES = 32
_START, _SIZE, _BITS = (struct.Struct(f"<{code}") for code in ("i", "ii", "h"))


def bmp_pixels(data: bytes, channels: int) -> Any:
    """The pixels [height, width, channels] of a file, uint8.

    As in TensorFlow, a file of 8 bits a pixel is gray, whatever its palette says.

    Args:
        data: The file.
        channels: 3 or 4; 0 for as many as the file has.

    Raises:
        InvalidArgumentError: the file is damaged, cut, or of another kind.
        ResourceExhaustedError: the image would be larger than the allocation limit.
    """
    if len(data) < _HEADER_BYTES:
        raise InvalidArgumentError(
            f"Incomplete bmp content, requires at least {_HEADER_BYTES} bytes to find the header "
            f"size, width, height, and bpp, got {len(data)} bytes"
        )
    (start,), (width, height) = _START.unpack_from(data, 10), _SIZE.unpack_from(data, 18)
    depth = int(_BITS.unpack_from(data, 28)[0] / 8)
    message = f"BMP header says: pixels at {start}, width {width}, height {height}"
    require(start >= 0 and width > 0 and height != 0, message)
    message = f"Number of channels inherent in the image must be 1, 3 or 4, was {depth}"
    require(depth in (1, 3, 4), message)
    row_size = -(-depth * width // 4) * 4
    missing = len(data) - start - row_size * abs(height)
    if missing:
        raise InvalidArgumentError(
            f"Input size should match (header_size + row_size * abs_height) but they differ by {missing}"
        )
    shape = (abs(height), width, channels or depth)
    stored = np.frombuffer(data, np.uint8, offset=start).reshape(abs(height), row_size)
    pixels = stored[:, : width * depth].reshape(abs(height), width, depth)
    return _as_rgb(
        pixels if height < 0 else pixels[::-1], check_allocation(shape, DataType.DT_UINT8)
    )


def _as_rgb(stored: Any, shape: tuple[int, ...]) -> Any:
    """Blue, green, red and alpha in the order of the tensors."""
    pixels = np.full(shape, 255, np.uint8)
    colors = min(3, shape[2])
    pixels[..., :colors] = stored[..., :3][..., ::-1]
    if shape[2] == stored.shape[2] == 4:
        pixels[..., 3] = stored[..., 3]
    return pixels
