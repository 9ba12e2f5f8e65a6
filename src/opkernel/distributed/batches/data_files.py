"""Data sets: what `predict` takes, as rows. Rows may be image files.

Images are decoded by the op DecodeImage, or given as their bytes where the model takes strings.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.distributed.batches.mapped_model import MappedModel
from opkernel.distributed.batches.rows import ArrayRows, Rows, forget_tables, numpy_rows, table_rows
from opkernel.distributed.batches.text_rows import TEXT_ENDINGS, forget_text, text_rows
from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.file_errors import file_errors
from opkernel.graph import TensorSpec, file_kind
from opkernel.records import dataclass, replace
from opkernel.types import Array, DataType

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
    are_separate = True

    def __len__(self) -> int:
        return len(self.paths)

    def part(self, start: int, stop: int) -> ImageRows:
        """Some of the files."""
        return replace(self, paths=self.paths[start:stop])

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
    name = _only_input(model, "Image files are")
    spec = model.inputs[name]
    dtype, size, channels = spec.dtype.base, *_height_width_channels(name, spec)
    return ImageRows(
        tuple(paths), name, dtype, channels, image_size or size, image_size is not None
    )


def _only_input(model: MappedModel, what: str) -> str:
    """The one input that a model requires.

    Raises:
        InvalidArgumentError: it requires several, or none.
    """
    if len(model.required) != 1:
        raise InvalidArgumentError(
            f"{what} one input, and the model takes {len(model.required)}: "
            f"{', '.join(map(repr, sorted(model.required)))}"
        )
    return next(iter(model.required))


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


_NPZ, _NPY, _PARQUET, _JSON = b"PK", b"\x93NUMPY", b"PAR1", b"{"
_ENDINGS = (".npz", ".npy", ".parquet", *TEXT_ENDINGS)


@dataclass(frozen=True)
class DataSet:
    """Rows, a chunk after the other.

    Attributes:
        chunks: The rows; a batch has those of one chunk.
        digest: What differs where the files differ; None for data that is no files.
        count: How many rows there are, if that is known before.
    """

    chunks: Iterable[Rows]
    digest: str | None = None
    count: int | None = None


def data_set(
    data: Any, model: MappedModel, batch_size: int, image_size: tuple[int, int] | None
) -> DataSet:
    """What `predict` is given, as a DataSet.

    Args:
        data: A mapping, an iterable of mappings, or the path of a file or folder.
        model: The model that takes it.
        batch_size: How many rows of a table are read at once.
        image_size: The height and width that images are resized to.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is nothing of this kind, or does not fit the model.
        DataLossError: a file is damaged.
    """
    if isinstance(data, str | os.PathLike):
        return _data_of_files(os.path.abspath(data), model, batch_size, image_size)
    if isinstance(data, Mapping):
        rows = ArrayRows(model.named(data))
        return DataSet([rows], None, len(rows))
    if isinstance(data, Iterable):
        return DataSet(ArrayRows(model.named(one)) for one in data)
    raise InvalidArgumentError(
        f"Expected a mapping of names to arrays, mappings, or a path, got {type(data).__name__}"
    )


def _data_of_files(
    path: str, model: MappedModel, batch_size: int, image_size: tuple[int, int] | None
) -> DataSet:
    files = _files(path)
    digest = _digest_of_names(files)
    chunks: list[Rows] = []
    if files[0].lower().endswith(IMAGE_ENDINGS):
        chunks = [image_rows(files, model, image_size)]
    else:
        chunks = [_rows_of_file(file, model, batch_size) for file in files]
    return DataSet(chunks, digest, sum(map(len, chunks)))


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    names = sorted(os.listdir(path))
    for endings in (_ENDINGS, IMAGE_ENDINGS):
        found = [os.path.join(path, one) for one in names if one.lower().endswith(endings)]
        if found:
            return found
    raise NotFoundError(
        f"The folder {path} has no {', '.join(_ENDINGS)} files, and no images: "
        f"{', '.join(IMAGE_ENDINGS)}"
    )


def _rows_of_file(path: str, model: MappedModel, batch_size: int) -> Rows:
    """The rows of a file of arrays, a table, or text."""
    with open(path, "rb") as file:
        head = file.read(8)
    if head.startswith(_NPZ):
        return numpy_rows(path)
    if head.startswith(_NPY):
        return numpy_rows(path, _only_input(model, f"{path} is"))
    if head.startswith(_PARQUET):
        return table_rows(path, model.inputs, model.required, batch_size)
    if path.lower().endswith(TEXT_ENDINGS) or head.startswith(_JSON):
        return text_rows(path, model.inputs, model.required)
    raise InvalidArgumentError(
        f"{path} is {file_kind(path)}; rows come from {', '.join(_ENDINGS)} files and from images"
    )


def forget_files() -> None:
    """Give up what this process keeps of the files that it has read."""
    forget_tables()
    forget_text()


def _digest_of_names(files: list[str]) -> str:
    """What differs where files have other names, sizes or times."""
    try:
        stats = [(os.path.basename(path), os.stat(path)) for path in files]
    except FileNotFoundError as error:
        raise NotFoundError(f"There is no file {error.filename}") from None
    facts = [(name, one.st_size, one.st_mtime_ns) for name, one in stats]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def digest_of_files(files: Iterable[str]) -> str:
    """What differs where files have other contents."""
    digest = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
