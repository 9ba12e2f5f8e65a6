"""Files of op histories, and of any other OpList: text or binary, packed with gzip or xz or not."""

import io
import os
import re
from pathlib import Path

from opkernel.errors import (
    InvalidArgumentError,
    ResourceExhaustedError,
)
from opkernel.file_errors import checked_path, file_errors
from opkernel.opdef.compat.op_history import OpHistory
from opkernel.opdef.compat.op_revision import OpRevision, split_op_list_text
from opkernel.proto import DecodeError, OpList

_MAX_BYTES = 1 << 30  # unpacked; TensorFlow's own history has 2.5 MB

_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
_PACKED = (".gz", ".xz")
_TEXT = re.compile(rb"(?:\s+|#[^\n]*)*(?:op\s*:?\s*[{<\[]|\Z)")


def read_op_history(path: str | os.PathLike[str]) -> OpHistory:
    """The ops in a file that holds an OpList: a history, or one definition of each op.

    The content tells whether it is packed, and whether text or binary. Definitions in text format
    are parsed when they are looked at.

    Raises:
        NotFoundError: there is no such file.
        PermissionDeniedError: it may not be read.
        InvalidArgumentError: it holds something else.
        ResourceExhaustedError: it is larger than 1 GiB, unpacked.
    """
    with file_errors(path), open(checked_path(path), "rb") as file:
        data = file.read(_MAX_BYTES + 1)
    return parse_op_history(data, str(path))


def parse_op_history(data: bytes, source: str) -> OpHistory:
    """The ops in the content of a file named `source`; see `read_op_history`."""
    data = _unpacked(data, source)
    if len(data) > _MAX_BYTES:
        raise ResourceExhaustedError(f"{source} is larger than {_MAX_BYTES} bytes")
    if _TEXT.match(data):
        try:
            text = data.decode().replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise InvalidArgumentError(f"{source}, line {line} is not UTF-8") from error
        return OpHistory(split_op_list_text(text, source))
    return OpHistory(OpRevision(op) for op in _parse_binary(data, source).op)


def write_op_history(history: OpHistory, path: str | os.PathLike[str]) -> None:
    """Write a history: binary where the name ends in .pb, as text otherwise; .gz and .xz pack it.

    Definitions that were read from text are written as they were.

    Raises:
        NotFoundError: there is no directory of that name.
        PermissionDeniedError: the file may not be written.
    """
    path = Path(checked_path(path))
    name = path.stem if path.suffix in _PACKED else path.name
    if name.endswith(".pb"):
        ops = OpList(op=[revision.op_def for revision in history.revisions()])
        data = ops.SerializeToString(deterministic=True)
    else:
        data = "".join(revision.to_text() for revision in history.revisions()).encode()
    with file_errors(path):
        path.write_bytes(_packed(data, path.suffix))


def _packed(data: bytes, suffix: str) -> bytes:
    import gzip  # slow to import, and seldom needed, as the next one
    import lzma

    if suffix == ".gz":
        return gzip.compress(data, mtime=0)
    return lzma.compress(data) if suffix == ".xz" else data


def _unpacked(data: bytes, source: str) -> bytes:
    import gzip  # slow to import, and seldom needed, as the others
    import lzma
    import zlib

    try:
        if data.startswith(_GZIP):
            return gzip.GzipFile(fileobj=io.BytesIO(data)).read(_MAX_BYTES + 1)
        if data.startswith(_XZ):
            return lzma.LZMAFile(io.BytesIO(data)).read(_MAX_BYTES + 1)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InvalidArgumentError(f"{source} cannot be unpacked: {error}") from error
    return data


def _parse_binary(data: bytes, source: str) -> OpList:
    try:
        ops = OpList.FromString(data)
    except DecodeError as error:
        raise InvalidArgumentError(
            f"{source} is no OpList, neither in text nor in binary format"
        ) from error
    if not ops.op or not all(op.name for op in ops.op):
        raise InvalidArgumentError(f"{source} is no OpList, neither in text nor in binary format")
    return ops
