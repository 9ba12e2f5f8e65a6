"""Data sets: what `predict` takes, as rows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any

from opkernel.distributed.batches.fitting import named
from opkernel.distributed.batches.image_rows import IMAGE_ENDINGS, image_rows
from opkernel.distributed.batches.mapped_model import MappedModel
from opkernel.distributed.batches.npz_rows import forget_arrays, npz_rows
from opkernel.distributed.batches.rows import ArrayRows, Rows
from opkernel.distributed.batches.table_rows import forget_table, table_rows
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph import file_kind
from opkernel.records import dataclass

_NPZ, _PARQUET = b"PK", b"PAR1"
_ENDINGS = (".npz", ".parquet")


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
        rows = ArrayRows(named(data, model))
        return DataSet([rows], None, len(rows))
    if isinstance(data, Iterable):
        return DataSet(ArrayRows(named(one, model)) for one in data)
    raise InvalidArgumentError(
        f"Expected a mapping of names to arrays, mappings, or a path, got {type(data).__name__}"
    )


def _data_of_files(
    path: str, model: MappedModel, batch_size: int, image_size: tuple[int, int] | None
) -> DataSet:
    files = _files(path)
    digest = _digest_of_names(files)
    chunks: list[Rows] = []
    if _is_image(files[0]):
        chunks = [image_rows(files, model, image_size)]
    else:
        for file in files:
            is_npz = _magic(file) == _NPZ
            chunks.append(npz_rows(file) if is_npz else table_rows(file, model.inputs, batch_size))
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
        f"The folder {path} has no files {' or '.join(_ENDINGS)}, and no images: "
        f"{', '.join(IMAGE_ENDINGS)}"
    )


def _is_image(path: str) -> bool:
    return path.lower().endswith(IMAGE_ENDINGS)


def _magic(path: str) -> bytes:
    """The first bytes of a file of arrays or of a table."""
    with open(path, "rb") as file:
        head = file.read(4)
    for magic in (_NPZ, _PARQUET):
        if head.startswith(magic):
            return magic
    raise InvalidArgumentError(
        f"{path} is {file_kind(path)}, and neither an .npz file nor a Parquet file"
    )


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


def forget_files() -> None:
    """Give up what this process keeps of the files that it has read."""
    forget_arrays()
    forget_table()
