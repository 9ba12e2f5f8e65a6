"""Archives of models: `.tar.gz`, `.tar` and `.zip`, unpacked where they do no harm.

Links, devices, absolute names and names with `..` are refused: a file of the archive would lie, or lead, outside.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
import weakref
import zipfile
from collections.abc import Iterator
from typing import IO

from opkernel.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
)

__all__ = ["UnpackedArchive"]

_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")
_MAX_DEPTH = 4
_COPY_AT_ONCE = 1 << 20
_PART_OF_DISK = 0.5
"""An archive may take so much of the space that is left."""


class UnpackedArchive:
    """The files of an archive, in a directory that goes with this object.

    Raises:
        InvalidArgumentError: a file would lie outside of the directory, or is a link or device.
        DataLossError: the archive is damaged.
        ResourceExhaustedError: it needs more than half of the space that is left on the disk.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._directory = tempfile.TemporaryDirectory(prefix="opkernel-model-")
        self._left = int(shutil.disk_usage(self._directory.name).free * _PART_OF_DISK)
        try:
            self._unpack()
        except BaseException:
            self._directory.cleanup()
            raise
        weakref.finalize(self, self._directory.cleanup)

    @property
    def model_directory(self) -> str:
        """The directory of the SavedModel in the archive.

        Raises:
            NotFoundError: there is none.
            InvalidArgumentError: there are several.
        """
        root = os.path.realpath(self._directory.name)
        found = [
            folder
            for folder, _, files in os.walk(root)
            if any(name in files for name in _MODEL_FILES)
            and os.path.relpath(folder, root).count(os.sep) < _MAX_DEPTH
        ]
        if not found:
            raise NotFoundError(f"{self.path} holds no SavedModel (no saved_model.pb)")
        if len(found) > 1:
            names = ", ".join(sorted(os.path.relpath(one, root) for one in found)[:5])
            raise InvalidArgumentError(
                f"{self.path} holds {len(found)} SavedModels ({names}): unpack it, and load one"
            )
        return found[0]

    def _unpack(self) -> None:
        try:
            for name, file in _files(self.path):
                self._write(name, file)
        except OpError:
            raise
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, RuntimeError) as error:
            # RuntimeError: a password; OSError and EOFError: what gzip finds
            raise DataLossError(f"{self.path} is damaged or no archive: {error}") from error
        except (ValueError, NotImplementedError, ImportError) as error:
            raise DataLossError(f"{self.path} cannot be unpacked: {error}") from error

    def _write(self, name: str, file: IO[bytes]) -> None:
        target = os.path.join(self._directory.name, *_checked(self.path, name))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "xb") as copy:
            while data := file.read(_COPY_AT_ONCE):
                self._left -= len(data)
                if self._left < 0:
                    raise ResourceExhaustedError(
                        f"{self.path} needs more than half of the space that is left on the disk"
                    )
                copy.write(data)


def _files(path: str) -> Iterator[tuple[str, IO[bytes]]]:
    """The files of an archive, with their names."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    with archive.open(info) as file:
                        yield info.filename, file
        return
    with _tar(path) as tar:
        for member in tar:
            if member.isdir():
                continue
            taken = tar.extractfile(member) if member.isreg() else None
            if taken is None:
                raise InvalidArgumentError(
                    f"{path}: {member.name!r} is a link or device, which is not unpacked"
                )
            with taken:
                yield member.name, taken


def _tar(path: str) -> tarfile.TarFile:
    """A tar archive.

    Raises:
        InvalidArgumentError: it is none, such as a single file that gzip made smaller.
    """
    try:
        return tarfile.open(path)
    except tarfile.ReadError as error:
        raise InvalidArgumentError(
            f"{path} is no archive of a SavedModel (.tar.gz, .tar or .zip); if it is a single file, "
            f"unpack it with gunzip first"
        ) from error


def _checked(path: str, name: str) -> list[str]:
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or "\0" in name or ":" in parts[0]:
        raise InvalidArgumentError(f"{path}: {name!r} would lie outside of the archive's directory")
    return [part for part in parts if part not in ("", ".")] or ["_"]
