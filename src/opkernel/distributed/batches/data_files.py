"""Data sets: what `predict` takes, as mappings of names to arrays, one after the other."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from opkernel.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError
from opkernel.graph import file_kind
from opkernel.records import dataclass

__all__ = ["DataSet", "data_set", "digest_of_files"]

_NPZ, _PARQUET = b"PK", b"PAR1"
_ENDINGS = (".npz", ".parquet")


@dataclass(frozen=True)
class DataSet:
    """Mappings of names to arrays.

    Attributes:
        chunks: The mappings.
        digest: What differs where the files differ; None for data that is no files.
    """

    chunks: Iterable[Any]
    digest: str | None = None


def data_set(data: Any, names: Collection[str], batch_size: int) -> DataSet:
    """What `predict` is given, as a DataSet.

    Args:
        data: A mapping, an iterable of mappings, or the path of a file or folder.
        names: The inputs of the model, which are read of tables that have more columns.
        batch_size: How many rows of a table are read at once.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is nothing of this kind.
    """
    if isinstance(data, str | os.PathLike):
        files = _files(os.fspath(data))
        return DataSet(_read(files, names, batch_size), _digest_of_names(files))
    if isinstance(data, Mapping):
        return DataSet([data])
    if isinstance(data, Iterable):
        return DataSet(data)
    raise InvalidArgumentError(
        f"Expected a mapping of names to arrays, mappings, or a path, got {type(data).__name__}"
    )


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):
        _magic(path)
        return [path]
    found = sorted(name for name in os.listdir(path) if name.endswith(_ENDINGS))
    if not found:
        raise NotFoundError(f"The folder {path} has no files {' or '.join(_ENDINGS)}")
    return [os.path.join(path, name) for name in found]


def _magic(path: str) -> bytes:
    """The first bytes of a file of arrays or of a table."""
    try:
        with open(path, "rb") as file:
            head = file.read(4)
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}") from None
    for magic in (_NPZ, _PARQUET):
        if head.startswith(magic):
            return magic
    raise InvalidArgumentError(
        f"{path} is {file_kind(path)}, and neither an .npz file nor a Parquet file"
    )


def _read(files: list[str], names: Collection[str], batch_size: int) -> Iterator[Mapping[str, Any]]:
    for path in files:
        if _magic(path) == _NPZ:
            yield _arrays(path)
        else:
            from opkernel.distributed.batches.parquet import read_table  # needs a library

            yield from read_table(path, names, batch_size)


def _arrays(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as loaded:
            return {name: loaded[name] for name in loaded.files}
    except OpError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy have many for a damaged file
        raise DataLossError(f"Cannot read arrays from {path}: {error}") from error


def _digest_of_names(files: list[str]) -> str:
    """What differs where files have other names, sizes or times."""
    stats = [(os.path.basename(path), os.stat(path)) for path in files]
    facts = [(name, one.st_size, one.st_mtime_ns) for name, one in stats]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def digest_of_files(files: Iterable[str]) -> str:
    """What differs where files have other contents."""
    digest = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
