"""Archives of models: `.tar.gz`, `.tar` and `.zip`, unpacked where they do no harm.

Links, devices, absolute names and names with `..` are refused: a file of the archive would lie, or lead, outside.
Entries, directories and bytes are bounded, since a small archive can claim any number of each.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, BinaryIO, cast

from opkernel.device.budget import check_time
from opkernel.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
)
from opkernel.file_errors import file_errors
from opkernel.graph.io.file_kind import TFJS_MODEL_NAMES, BoundedReader, FileKind, file_kind

_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")
_MAX_DEPTH = 4
_COPY_AT_ONCE = 1 << 20
_GZIP = b"\x1f\x8b"
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The compressions whose memory does not depend on what the archive claims."""

_MOST_ENTRIES = 10_000
"""Files and directories; a model has a few dozen."""
_MOST_DIRECTORIES_DEEP = 32
_MOST_LIST_BYTES = 8 << 20
_MOST_HEADER_BYTES = 1 << 20
_ALWAYS_BYTES = 1 << 30
_MOST_GROWTH = 100
"""Beyond the first GiB, the bytes of files for each byte of the archive."""
_PART_OF_DISK = 0.5
"""An archive may take so much of the space that is left."""


class UnpackedArchive:
    """The files of an archive, in a directory that goes with this object.

    Raises:
        InvalidArgumentError: a file would lie outside of the directory, or is a link or device.
        DataLossError: the archive is damaged.
        ResourceExhaustedError: it has more than 10,000 files and directories, or directories 32 deep; or it
            unpacks to more than half of the space that is left on the disk, or than 1 GiB and 100 times its size;
            or a header, or the list of files, is larger than 1 MiB or 8 MiB.
        DeadlineExceededError: the time of the budget is up.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._directory = tempfile.TemporaryDirectory(prefix="opkernel-model-")
        self._entries_left = _MOST_ENTRIES
        self._folders: set[str] = set()
        try:
            with file_errors(path):
                self._bytes_left = self._most_bytes()
            self._unpack()
        except BaseException:
            self._directory.cleanup()
            raise
        weakref.finalize(self, self._directory.cleanup)

    @property
    def model_directory(self) -> str:
        """The directory of the SavedModel in the archive, or else of the TensorFlow.js graph model.

        Raises:
            NotFoundError: there is none.
            InvalidArgumentError: there are several, or a TensorFlow.js model is one of Keras layers.
        """
        root = os.path.realpath(self._directory.name)
        folders = [
            (folder, {*files})
            for folder, _, files in os.walk(root)
            if os.path.relpath(folder, root).count(os.sep) < _MAX_DEPTH
        ]
        found = [one for one, files in folders if not files.isdisjoint(_MODEL_FILES)]
        what = "SavedModels"
        if not found:
            what = "TensorFlow.js models"
            kinds = {one: file_kind(one) for one, files in folders if files & TFJS_MODEL_NAMES}
            found = [one for one, kind in kinds.items() if kind is FileKind.TFJS_GRAPH]
            if not found and FileKind.TFJS_LAYERS in kinds.values():
                raise InvalidArgumentError(
                    f"{self.path} holds {FileKind.TFJS_LAYERS}: unpack it, and opkernel.load of its folder says how to "
                    f"convert it"
                )
        if not found:
            raise NotFoundError(
                f"{self.path} holds no SavedModel (no saved_model.pb) and no TensorFlow.js graph model (no model.json)"
            )
        if len(found) > 1:
            names = ", ".join(sorted(os.path.relpath(one, root) for one in found)[:5])
            raise InvalidArgumentError(
                f"{self.path} holds {len(found)} {what} ({names}): unpack it, and load one"
            )
        return found[0]

    def _most_bytes(self) -> int:
        """The bytes that may be unpacked."""
        on_disk = int(shutil.disk_usage(self._directory.name).free * _PART_OF_DISK)
        return min(on_disk, max(_ALWAYS_BYTES, _MOST_GROWTH * os.path.getsize(self.path)))

    def _unpack(self) -> None:
        try:
            with open(self.path, "rb") as file:
                for name, content in _files(self.path, file):
                    self._count_entry()
                    if content is not None:
                        self._write(name, content)
        except OpError:
            raise
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            check_time("unpacking", self.path)  # zipfile takes a deadline for damage
            raise DataLossError(f"{self.path} is damaged or no archive: {error}") from error
        except (ValueError, OverflowError, NotImplementedError, RuntimeError) as error:
            # OverflowError: the length of a header; RuntimeError: a password, or headers within headers
            raise DataLossError(f"{self.path} cannot be unpacked: {error}") from error

    def _count_entry(self) -> None:
        check_time("unpacking", self.path)
        self._entries_left -= 1
        if self._entries_left < 0:
            raise _too_many_entries(self.path)

    def _write(self, name: str, file: IO[bytes]) -> None:
        *folders, last = _checked(self.path, name)
        if len(folders) > _MOST_DIRECTORIES_DEEP:
            raise ResourceExhaustedError(
                f"{self.path} has a file {len(folders)} directories deep; at most {_MOST_DIRECTORIES_DEEP} are unpacked"
            )
        folder = self._directory.name
        for part in folders:
            folder = os.path.join(folder, part)
            if folder not in self._folders:
                self._count_entry()
                os.makedirs(folder, exist_ok=True)
                self._folders.add(folder)
        with open(os.path.join(folder, last), "xb") as copy:
            while data := file.read(_COPY_AT_ONCE):
                check_time("unpacking", self.path)
                self._bytes_left -= len(data)
                if self._bytes_left < 0:
                    raise ResourceExhaustedError(
                        f"{self.path} unpacks to more than {self._most_bytes()} bytes: half of the space that is left "
                        f"on the disk, or {_MOST_GROWTH} times its size. If it is to be trusted, unpack it, and load "
                        f"the directory"
                    )
                copy.write(data)


def _too_many_entries(path: str) -> ResourceExhaustedError:
    return ResourceExhaustedError(
        f"{path} has more than {_MOST_ENTRIES} files and directories. If it is to be trusted, unpack it, and load the "
        f"directory"
    )


def _files(path: str, file: BinaryIO) -> Iterator[tuple[str, IO[bytes] | None]]:
    """The entries of an archive, with their names; directories without content."""
    is_packed = file.read(len(_GZIP)) == _GZIP
    file.seek(0)
    if is_packed:
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield from _files_of_tar(path, BoundedReader(unpacked, path))
    elif zipfile.is_zipfile(file):
        yield from _files_of_zip(path, BoundedReader(file, path))
    else:
        file.seek(0)
        yield from _files_of_tar(path, BoundedReader(file, path))


def _files_of_zip(path: str, file: BoundedReader) -> Iterator[tuple[str, IO[bytes] | None]]:
    file.bytes_left = _MOST_LIST_BYTES
    with zipfile.ZipFile(cast(BinaryIO, file)) as archive:
        if len(archive.infolist()) > _MOST_ENTRIES:
            raise _too_many_entries(path)
        file.bytes_left = None
        for info in archive.infolist():
            if info.compress_type not in _COMPRESSIONS:
                raise InvalidArgumentError(
                    f"{path}: {info.filename!r} is compressed by method {info.compress_type}; only files that are "
                    f"deflated, or not compressed, are unpacked"
                )
            if info.is_dir():
                yield info.filename, None
                continue
            with archive.open(info) as content:
                yield info.filename, content


def _files_of_tar(path: str, file: BoundedReader) -> Iterator[tuple[str, IO[bytes] | None]]:
    """The entries of a tar archive.

    Raises:
        InvalidArgumentError: it is none, such as a single file that gzip made smaller; or it has links.
    """
    with _tar(path, file) as tar:
        while (member := _next(tar, file)) is not None:
            if member.isdir():
                yield member.name, None
                continue
            content = tar.extractfile(member) if member.isreg() else None
            if content is None:
                raise InvalidArgumentError(
                    f"{path}: {member.name!r} is a link or device, which is not unpacked"
                )
            with content:
                yield member.name, content


def _tar(path: str, file: BoundedReader) -> tarfile.TarFile:
    file.bytes_left = _MOST_HEADER_BYTES
    try:
        return tarfile.open(fileobj=cast(BinaryIO, file), mode="r:")
    except tarfile.ReadError as error:
        raise InvalidArgumentError(
            f"{path} is no archive of a model (.tar.gz, .tar or .zip); if it is a single file, "
            f"unpack it with gunzip first"
        ) from error


def _next(tar: tarfile.TarFile, file: BoundedReader) -> tarfile.TarInfo | None:
    """The next entry; what `tar` would keep of those before it is gone."""
    file.bytes_left = _MOST_HEADER_BYTES
    tar.members = []  # type: ignore[attr-defined]  # which typeshed leaves out
    tar.pax_headers = {}
    member = tar.next()
    if member is None:
        _check_end(tar, file)
    file.bytes_left = None
    return member


def _check_end(tar: tarfile.TarFile, file: BoundedReader) -> None:
    """An archive ends with zeros, or with the file: `tarfile` ends it at a damaged header, too."""
    file.seek(tar.offset)
    if any(file.read(tarfile.BLOCKSIZE)):
        raise tarfile.ReadError(f"the header at byte {tar.offset} is damaged")


def _checked(path: str, name: str) -> list[str]:
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or "\0" in name or ":" in parts[0]:
        raise InvalidArgumentError(f"{path}: {name!r} would lie outside of the archive's directory")
    return [part for part in parts if part not in ("", ".")] or ["_"]
