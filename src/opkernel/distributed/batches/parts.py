"""PartFolder: the outputs of batches as files that appear whole, so that a run can go on where another ended.

    manifest.json     what was computed: model, signature, batch size and input; the counts, when all is done
    parts.jsonl       a line for each part: its rows, its checksum, and the rows that failed
    part-00000.npz    the outputs of a batch, without those rows
    failed.jsonl      all rows that failed

A part counts once its line is written, so a run may be killed at any moment.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from opkernel.checkpoint.atomic_files import MARK, write_whole
from opkernel.checkpoint.crc32c import crc32c
from opkernel.distributed.batches.rows import Batch
from opkernel.distributed.batches.workers import Failure, Outcome
from opkernel.errors import (
    AlreadyExistsError,
    Code,
    DataLossError,
    FailedPreconditionError,
    UnimplementedError,
)
from opkernel.escaping import archive_name, json_text, json_value
from opkernel.file_errors import checked_path, file_errors
from opkernel.types import Array

_MANIFEST, _PARTS, _FAILED = "manifest.json", "parts.jsonl", "failed.jsonl"
_LINE_TYPES = {"number": int, "rows": int, "crc32c": int, "failed": list}
_OURS = re.compile(r"(part-\d{5,}\.npz|manifest\.json|parts\.jsonl|failed\.jsonl)(\.tempstate\d+)?")


class PartFolder:
    """A folder of parts.

    Args:
        path: The folder; it is made.
        run: What is computed: what must be the same for a run that goes on.
        overwrite: Whether the files of another run are deleted first.

    Raises:
        InvalidArgumentError: no folder can have that path.
        FailedPreconditionError: another run has written into the folder.
        AlreadyExistsError: there is something else in it.
    """

    def __init__(self, path: str, run: Mapping[str, Any], *, overwrite: bool = False) -> None:
        self._path = path
        self._run = dict(run)
        with file_errors(checked_path(path)):
            os.makedirs(path, exist_ok=True)
            is_empty = self._clear(overwrite=overwrite)
        self._lines = {} if is_empty or overwrite else self._earlier()
        lines = b"".join(map(_json, self._lines.values()))  # without one that was cut off
        write_whole(self._file(_MANIFEST), _json(self._run))
        write_whole(self._file(_PARTS), lines)

    def has(self, batch: Batch) -> bool:
        """Whether the part of a batch is there, and whole."""
        return self._content(batch) is not None

    def read(self, batch: Batch) -> Outcome:
        """What came of a batch whose part is there.

        Raises:
            DataLossError: it is not there any more.
        """
        data = self._content(batch)
        if data is None:
            raise DataLossError(f"{self._part(batch.number)} changed while it was used")
        with np.load(io.BytesIO(data), allow_pickle=False) as loaded:
            outputs = {name: loaded[name] for name in loaded.files}
        for name, array in outputs.items():
            if array.dtype.kind == "S":
                outputs[name] = array.astype(object)  # as the model gave it
        failed = self._lines[batch.number]["failed"]
        failures = [Failure(one["row"], Code[one["code"]], one["message"]) for one in failed]
        return Outcome(outputs, tuple(failures))

    def _content(self, batch: Batch) -> bytes | None:
        """The file of a part; None where it is not there, or damaged."""
        line = self._lines.get(batch.number)
        if line is None or line["rows"] != len(batch.rows):
            return None
        path = self._part(batch.number)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except OSError:
            return None
        return data if crc32c(data) == line["crc32c"] else None

    def write(self, batch: Batch, outcome: Outcome) -> None:
        """Write the part of a batch.

        Raises:
            UnimplementedError: an output has no form in an .npz file.
            ResourceExhaustedError, PermissionDeniedError, UnavailableError: the file cannot be written.
        """
        path = self._part(batch.number)
        data = _npz(outcome.outputs)
        write_whole(path, data)
        line = {
            "number": batch.number,
            "part": os.path.basename(path),
            "first_row": batch.first_row,
            "rows": len(batch.rows),
            "crc32c": crc32c(data),
            "failed": [
                {"row": one.row, "code": one.code.name, "message": one.message}
                for one in outcome.failures
            ],
        }
        with file_errors(self._file(_PARTS)), open(self._file(_PARTS), "ab") as file:
            file.write(_json(line))
        self._lines[batch.number] = line

    def finish(self) -> None:
        """Write the list of the rows that failed, and the counts."""
        lines = [self._lines[number] for number in sorted(self._lines)]
        failed = [one for line in lines for one in line["failed"]]
        counts = {"parts": len(lines), "rows": sum(one["rows"] for one in lines)}
        write_whole(self._file(_FAILED), b"".join(map(_json, failed)))
        manifest = {**self._run, "complete": True, **counts, "failed": len(failed)}
        write_whole(self._file(_MANIFEST), _json(manifest))

    def _file(self, name: str) -> str:
        return os.path.join(self._path, name)

    def _part(self, number: int) -> str:
        return self._file(f"part-{number:05}.npz")

    def _clear(self, *, overwrite: bool) -> bool:
        """Delete what a run has left unfinished, or all of it; whether nothing is there then."""
        names = os.listdir(self._path)
        ours = [one for one in names if _OURS.fullmatch(one) and (overwrite or MARK in one)]
        for name in sorted(ours, key=_MANIFEST.__eq__):  # the manifest last
            os.unlink(self._file(name))
        return len(ours) == len(names)

    def _earlier(self) -> dict[int, dict[str, Any]]:
        """The parts that an earlier run has written, by their numbers."""
        path = self._file(_MANIFEST)
        if not os.path.exists(path):
            raise AlreadyExistsError(f"{self._path} is not empty, and has no {_MANIFEST}")
        with file_errors(path), open(path, "rb") as file:
            text = file.read()
        try:
            found = json_value(text)
        except ValueError as error:
            raise DataLossError(f"Cannot read {path}: {error}") from error
        manifest = found if isinstance(found, dict) else {}
        for name, value in self._run.items():
            if value is None or manifest.get(name) != value:
                raise FailedPreconditionError(
                    f"{self._path} has the outputs of another run: {_difference(name, manifest, value)}. "
                    f"--overwrite (overwrite=True) deletes them first"
                )
        return {line["number"]: line for line in self._listed()}

    def _listed(self) -> Iterator[dict[str, Any]]:
        """The lines of parts; a line that was cut off, or is another's, is none."""
        path = self._file(_PARTS)
        if not os.path.exists(path):
            return
        with file_errors(path), open(path, "rb") as file:
            for text in file:
                with suppress(ValueError):
                    if _is_line(line := json_value(text)):
                        yield line


def _is_line(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(key), kind) for key, kind in _LINE_TYPES.items()
    )


def _difference(name: str, manifest: Any, value: Any) -> str:
    if value is None:
        return "data in memory is not compared"
    earlier = manifest.get(name)
    if name.endswith("_sha256"):
        return f"the {name.removesuffix('_sha256')} is another"
    return f"{name} was {earlier!r}, and is {value!r}"


def _json(value: Mapping[str, Any]) -> bytes:
    return f"{json_text(value)}\n".encode()


def _npz(arrays: Mapping[str, Array]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{archive_name(name)}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _stored(name, array), allow_pickle=False)
    return data.getvalue()


def _stored(name: str, array: Array) -> Array:
    """An array of a type that .npy files have: strings as `S`, types that NumPy lacks as wider ones."""
    if array.dtype == object:
        if not all(isinstance(one, bytes) and not one.endswith(b"\0") for one in array.flat):
            raise UnimplementedError(
                f"Output {name!r} has values that .npz files cannot hold: strings that end in zero "
                f"bytes, or handles"
            )
        return array.astype("S") if array.size else np.zeros(array.shape, "S1")
    if array.dtype.isbuiltin == 1:
        return array
    try:
        return array.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise UnimplementedError(
            f"Output {name!r} has dtype {array.dtype}, which .npz files cannot hold"
        ) from error
