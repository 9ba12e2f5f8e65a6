"""Rows that are image files: decoded by the op DecodeImage, or as their bytes where the model takes strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from opkernel import raw_ops
from opkernel.distributed.batches.mapped_model import MappedModel
from opkernel.distributed.batches.rows import Array
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.file_errors import file_errors
from opkernel.graph import TensorSpec
from opkernel.records import dataclass
from opkernel.types import DataType

IMAGE_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".webp")


@dataclass(frozen=True)
class ImageRows:
    """Image files.

    Attributes:
        paths: the files.
        name: the input that takes them.
        dtype: its type.
        channels: how many values a pixel gets.
        size: the height and width that images have; None where the model takes any.
        is_resized: whether images of another size are brought to it.
    """

    paths: tuple[str, ...]
    name: str
    dtype: DataType
    channels: int
    size: tuple[int | None, int | None]
    is_resized: bool
    are_files: ClassVar[bool] = True

    def __len__(self) -> int:
        return len(self.paths)

    def part(self, start: int, stop: int) -> ImageRows:
        """Some of the files."""
        paths = self.paths[start:stop]
        return ImageRows(paths, self.name, self.dtype, self.channels, self.size, self.is_resized)

    def read(self) -> Mapping[str, Array]:
        """The pixels, of shape [files, height, width, channels]; or the bytes, of shape [files].

        Raises:
            OpError: a file is no image that can be decoded, or is gone.
            InvalidArgumentError: images have different sizes, or not that of the model.
        """
        if self.dtype is DataType.DT_STRING:
            return {self.name: np.array([_content(path) for path in self.paths], object)}
        images = [self._pixels(path) for path in self.paths]
        shapes = {image.shape for image in images}
        if len(shapes) > 1:
            raise InvalidArgumentError(f"Images have different shapes: {sorted(shapes)}")
        return {self.name: np.stack(images)}

    def _pixels(self, path: str) -> Array:
        is_real = not self.dtype.is_integer
        decoded = DataType.DT_UINT16 if self.dtype is DataType.DT_UINT16 else DataType.DT_UINT8
        try:
            image = np.asarray(
                raw_ops.DecodeImage(
                    contents=_content(path),
                    channels=self.channels,
                    dtype=DataType.DT_FLOAT if is_real else decoded,
                    expand_animations=False,
                )
            )
        except OpError as error:
            error.message = f"{path}: {error.message}"
            raise
        sized = self._sized(path, image)
        pixels: Array = sized.astype(self.dtype.numpy_dtype, copy=False)
        return pixels

    def _sized(self, path: str, image: Array) -> Array:
        wanted = tuple(size or had for size, had in zip(self.size, image.shape, strict=False))
        if image.shape[:2] == wanted:
            return image
        if not self.is_resized:
            raise InvalidArgumentError(
                f"{path} has {image.shape[0]} x {image.shape[1]} pixels, and the model takes "
                f"{wanted[0]} x {wanted[1]}; image_size (--image-size) resizes images"
            )
        resized = raw_ops.ResizeBilinear(images=image[None], size=wanted, half_pixel_centers=True)
        pixels: Array = np.asarray(resized)[0]
        return pixels if image.dtype == np.float32 else np.asarray(np.rint(pixels))


def image_rows(
    paths: list[str], model: MappedModel, image_size: tuple[int, int] | None
) -> ImageRows:
    """The files as the one input that a model requires.

    Args:
        paths: The files.
        model: The model; its type, channels and size decide how images are decoded. Real numbers are from 0 to 1.
        image_size: The height and width that images are resized to.

    Raises:
        InvalidArgumentError: the model takes several inputs, or no images.
    """
    if len(model.required) != 1:
        raise InvalidArgumentError(
            f"Image files are one input, and the model takes {len(model.required)}: "
            f"{', '.join(map(repr, sorted(model.required)))}"
        )
    (name,) = model.required
    spec = model.inputs[name]
    dtype, size, channels = spec.dtype.base, *_height_width_channels(name, spec)
    return ImageRows(
        tuple(paths), name, dtype, channels, image_size or size, image_size is not None
    )


def _height_width_channels(
    name: str, spec: TensorSpec
) -> tuple[tuple[int | None, int | None], int]:
    """What a model says of its images; pixels have three values where it does not."""
    is_text = spec.dtype.base is DataType.DT_STRING
    rank = spec.shape.rank
    if rank is not None and rank != (1 if is_text else 4):
        raise InvalidArgumentError(
            f"Input {name!r} has shape {spec.shape}; images have four axes, and their bytes one"
        )
    if rank is None or is_text:
        return (None, None), 3
    _, height, width, channels = spec.shape.as_list()
    return (height, width), channels or 3


def _content(path: str) -> bytes:
    with file_errors(path), open(path, "rb") as file:
        return file.read()
