"""file_kind: what a file is, told from its content and not from its name.

Protocol buffers have no magic number. GraphDef, MetaGraphDef, SavedModel and ONNX models are told
apart by the numbers and wire types of their fields, and by what the first of them hold.

`tarfile` and `zipfile` read headers and lists of files with the lengths that the archive states. A `BoundedReader` is a
file of which they read no more than they are allowed.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from io import BufferedIOBase
from typing import IO, BinaryIO, cast

from opkernel.device.budget import check_time
from opkernel.errors import DeadlineExceededError, ResourceExhaustedError
from opkernel.file_errors import checked_path, file_errors
from opkernel.graph.io.message_files import (
    LENGTH,
    VARINT,
    Field,
    Truncated,
    scan_fields,
    weights_manifest_beside,
)

_PIECE = 1 << 20


class BoundedReader:
    """A file for a parser of archives.

    Args:
        file: The file, which is open, and closed by its owner.
        path: Its name, for messages.

    Attributes:
        bytes_left: How much may be read; None for any amount. The caller sets it from time to time.

    Raises:
        ResourceExhaustedError: more is to be read; the same holds of all methods.
        DeadlineExceededError: time is up.
    """

    def __init__(
        self, file: IO[bytes] | BufferedIOBase, path: str, bytes_left: int | None = None
    ) -> None:
        self._file = file
        self._path = path
        self.bytes_left = bytes_left

    def read(self, size: int = -1) -> bytes:
        """The next bytes: so many, or all that there are."""
        pieces = []
        while size:
            check_time("reading", self._path)
            piece = self._file.read(_PIECE if size < 0 else min(size, _PIECE))
            if not piece:
                break
            if self.bytes_left is not None:
                self.bytes_left -= len(piece)
                if self.bytes_left < 0:
                    raise ResourceExhaustedError(
                        f"{self._path} has a header, or a list of files, larger than is read"
                    )
            pieces.append(piece)
            size -= len(piece) if size > 0 else 0
        return b"".join(pieces)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The place."""
        return self._file.tell()

    def seekable(self) -> bool:
        """Whether `seek` can be called."""
        return True

    def close(self) -> None:
        """Do nothing: the file belongs to whoever opened it."""


class FileKind(Enum):
    """Kinds of files that come where a model is expected; the value says it in words."""

    GRAPH_DEF = "a binary GraphDef"
    GRAPH_DEF_TEXT = "a GraphDef in text format"
    SAVED_MODEL = "a SavedModel directory"
    SAVED_MODEL_FILE = "the saved_model.pb of a SavedModel"
    SAVED_MODEL_TEXT = "the saved_model.pbtxt of a SavedModel"
    META_GRAPH = "a binary MetaGraphDef"
    META_GRAPH_TEXT = "a MetaGraphDef in text format"
    CHECKPOINT = "a TensorFlow checkpoint"
    CHECKPOINT_INDEX = "the index of a TensorFlow checkpoint"
    CHECKPOINT_DATA = "a data file of a TensorFlow checkpoint"
    CHECKPOINT_STATE = "the list of checkpoints in a directory"
    DIRECTORY = "a directory that holds no SavedModel"
    EMPTY = "an empty file"
    HTML = "an HTML page, perhaps an error page saved in place of a download"
    XML = "an XML document"
    JSON = "a JSON document"
    GIT_LFS = "a Git LFS pointer, in place of the file that it stands for"
    GZIP = "a gzip archive"
    TAR = "a tar archive"
    ZIP = "a ZIP archive"
    KERAS = "a Keras model (.keras)"
    NUMPY = "NumPy arrays (.npy or .npz)"
    PYTORCH = "a PyTorch model"
    PICKLE = "a Python pickle"
    HDF5 = "an HDF5 file, such as a Keras model (.h5)"
    TFLITE = "a TensorFlow Lite model"
    ONNX = "an ONNX model"
    TFJS_GRAPH = "a TensorFlow.js graph model"
    TFJS_LAYERS = "a TensorFlow.js layers model, which holds Keras layers and no graph"
    TFJS_SCRIPT = "a TensorFlow.js model wrapped in JavaScript"
    TFJS_WEIGHTS = "the list of weights of a TensorFlow.js model"
    TEXT = "a text file"
    UNKNOWN = "of no known kind"

    def __str__(self) -> str:
        return self.value

    @property
    def may_be_saved(self) -> bool:
        """Whether it is a SavedModel, an archive that may hold one, a MetaGraph, or a TensorFlow.js graph model."""
        return self in _SAVED


_SAVED = frozenset(
    {
        FileKind.SAVED_MODEL, FileKind.SAVED_MODEL_FILE, FileKind.SAVED_MODEL_TEXT,
        FileKind.META_GRAPH, FileKind.META_GRAPH_TEXT, FileKind.ZIP, FileKind.GZIP, FileKind.TAR,
        FileKind.TFJS_GRAPH,
    }
)  # fmt: skip

_HEAD = 1 << 16
_MAX_FIELDS = 64
_MOST_LIST_BYTES = 8 << 20

_MAGIC = (
    (0, b"\x89HDF\r\n\x1a\n", FileKind.HDF5),
    (0, b"\x1f\x8b", FileKind.GZIP),
    (0, b"PK\x03\x04", FileKind.ZIP),
    (0, b"PK\x05\x06", FileKind.ZIP),
    (0, b"\x93NUMPY", FileKind.NUMPY),
    (4, b"TFL3", FileKind.TFLITE),
    (257, b"ustar", FileKind.TAR),
    (0, b"version https://git-lfs", FileKind.GIT_LFS),
)
_OP_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_.>]*")
_PICKLE_STARTS = (b"\x80\x02", b"\x80\x03", b"\x80\x04\x95", b"\x80\x05\x95")
_TABLE_MAGIC = b"\x57\xfb\x80\x8b\x24\x75\x47\xdb"  # the last bytes of an SSTable

_MARKUP = {
    **dict.fromkeys(("<!doctype html", "<html", "<head", "<body"), FileKind.HTML),
    "<?xml": FileKind.XML,
}
_FIRST_FIELDS = {
    **dict.fromkeys(("node", "library", "version", "versions"), FileKind.GRAPH_DEF_TEXT),
    **dict.fromkeys(("saved_model_schema_version", "meta_graphs"), FileKind.SAVED_MODEL_TEXT),
    **dict.fromkeys(
        ("meta_info_def", "graph_def", "saver_def", "collection_def"), FileKind.META_GRAPH_TEXT
    ),
    "model_checkpoint_path": FileKind.CHECKPOINT_STATE,
}
_TFJS_MODEL = re.compile(
    r'"(modelTopology|weightsManifest)"\s*:|"format"\s*:\s*"(graph|layers)-model"'
)
_KERAS_KEY = r"(model_config|keras_version|backend|class_name|training_config)"
_TFJS_LAYERS = re.compile(
    rf'"format"\s*:\s*"layers-model"|"modelTopology"\s*:\s*{{\s*"{_KERAS_KEY}"'
)
_TFJS_SCRIPT = re.compile(
    rf"modelTopology\\?[\"']?\s*:\s*{{\s*\\?[\"']?(node|library|versions|{_KERAS_KEY})\b"
)
_TFJS_WEIGHTS = re.compile(r'\[\s*{\s*"(paths|weights)"\s*:\s*\[')
TFJS_MODEL_NAMES = {"model.json", "tensorflowjs_model.pb"}
"""The names of the files of TensorFlow.js models."""
_CONTROL_CHARACTERS = frozenset(map(chr, range(32))) - frozenset("\t\n\v\f\r\x1b")

_GRAPH_DEF_FIELDS = {1: LENGTH, 2: LENGTH, 3: VARINT, 4: LENGTH, 5: LENGTH}
_META_GRAPH_FIELDS = dict.fromkeys(range(1, 8), LENGTH)
_SAVED_MODEL_FIELDS = {1: VARINT, 2: LENGTH}
_META_INFO_FIELDS = {**dict.fromkeys(range(1, 7), LENGTH), 7: VARINT, 8: LENGTH, 9: LENGTH}
_ONNX_FIELDS = {1: VARINT, 5: VARINT} | dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25), LENGTH)


def file_kind(path: str | os.PathLike[str]) -> FileKind:
    """The kind of the file or directory at `path`. Reads only the ends of the file.

    Raises:
        InvalidArgumentError: no file can have that path.
        NotFoundError: there is nothing at `path`.
        PermissionDeniedError: it may not be read.
    """
    path = checked_path(path)
    with file_errors(path):
        if os.path.isdir(path):
            return _directory_kind(path)
        if not os.path.exists(path) and os.path.isfile(f"{path}.index"):
            return FileKind.CHECKPOINT
        with open(path, "rb") as file:
            head = file.read(_HEAD)
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - len(_TABLE_MAGIC), 0))
            tail = file.read()
    if re.search(r"\.data-\d{5}-of-\d{5}", os.path.basename(path)):
        return FileKind.CHECKPOINT_DATA
    kind = kind_of_bytes(head, tail)
    if kind is FileKind.GRAPH_DEF and weights_manifest_beside(path) is not None:
        return FileKind.TFJS_GRAPH
    return _zip_kind(path) if kind is FileKind.ZIP else kind


def _directory_kind(directory: str) -> FileKind:
    if any(os.path.exists(f"{directory}/saved_model.{end}") for end in ("pb", "pbtxt")):
        return FileKind.SAVED_MODEL
    path = tfjs_model_file(directory)
    kind = FileKind.DIRECTORY if path is None else file_kind(path)
    return kind if kind in (FileKind.TFJS_GRAPH, FileKind.TFJS_LAYERS) else FileKind.DIRECTORY


def tfjs_model_file(directory: str | os.PathLike[str]) -> str | None:
    """The file of a directory that has the name of a TensorFlow.js model; None where there is none."""
    paths = [os.path.join(directory, name) for name in sorted(TFJS_MODEL_NAMES)]
    return next(filter(os.path.isfile, paths), None)


def kind_of_bytes(head: bytes, tail: bytes = b"") -> FileKind:
    """The kind of a file that starts and ends with these bytes."""
    if not head:
        return FileKind.EMPTY
    if tail.endswith(_TABLE_MAGIC):
        return FileKind.CHECKPOINT_INDEX
    for offset, magic, kind in _MAGIC:
        if head.startswith(magic, offset):
            return kind
    if head.startswith(_PICKLE_STARTS):
        return FileKind.PICKLE
    return _text_kind(head) or _message_kind(head)


def _zip_kind(path: str) -> FileKind:
    import zipfile  # slow to import, and seldom needed

    try:
        with open(path, "rb") as file:
            reader = cast(BinaryIO, BoundedReader(file, path, _MOST_LIST_BYTES))
            with zipfile.ZipFile(reader) as archive:
                names = archive.namelist()
    except DeadlineExceededError:
        raise
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile, ResourceExhaustedError):
        return FileKind.ZIP
    if "config.json" in names and any(name.endswith(".weights.h5") for name in names):
        return FileKind.KERAS
    if any(name.endswith("data.pkl") for name in names):
        return FileKind.PYTORCH
    if names and all(name.endswith(".npy") for name in names):
        return FileKind.NUMPY
    return FileKind.ZIP


def _text_kind(head: bytes) -> FileKind | None:
    """The kind of a text by its start: TEXT for an unknown start, None for bytes that are no text."""
    text = head.decode(errors="replace").removeprefix("\ufeff")
    kind = _kind_by_start(text)
    if kind is not None:
        return kind
    whole = text[:-1] if len(head) == _HEAD else text  # the last character may be cut off
    is_text = len(text) > 1 and "\ufffd" not in whole and _CONTROL_CHARACTERS.isdisjoint(text)
    if is_text and _TFJS_SCRIPT.search(text):
        return FileKind.TFJS_SCRIPT
    return FileKind.TEXT if is_text else None


def _kind_by_start(text: str) -> FileKind | None:
    start = _without_comments(text)[:256]
    for markup, kind in _MARKUP.items():
        if start.lower().startswith(markup):
            return kind
    if start[:1] in ("{", "[") and (start[1:].lstrip()[:1] or " ") in '"[{}]0123456789':
        return _json_kind(text)
    field = re.match(r"(\w+)\s*[:{<]", start)
    return None if field is None else _FIRST_FIELDS.get(field[1])


def _json_kind(text: str) -> FileKind:
    """The kind of a document in JSON that starts like this."""
    if _TFJS_WEIGHTS.match(text.lstrip()):
        return FileKind.TFJS_WEIGHTS
    if _TFJS_MODEL.search(text):
        return FileKind.TFJS_LAYERS if _TFJS_LAYERS.search(text) else FileKind.TFJS_GRAPH
    return FileKind.JSON


def _without_comments(text: str) -> str:
    """The text from its first line on that is no comment."""
    text = text.lstrip()
    while text.startswith("#"):
        text = text.partition("\n")[2].lstrip()
    return text


def _message_kind(head: bytes) -> FileKind:
    """The kind of a protocol buffer that starts like this."""
    fields = _first_fields(head, 0, len(head))
    if not fields:
        return FileKind.UNKNOWN
    if _fits(fields, _SAVED_MODEL_FIELDS) and _holds_meta_graph(head, fields):
        return FileKind.SAVED_MODEL_FILE
    if _fits(fields, _ONNX_FIELDS) and fields[0].number == 1 and len(fields) > 1:
        return FileKind.ONNX
    if _fits(fields, _GRAPH_DEF_FIELDS) and _holds_nodes(head, fields):
        return FileKind.GRAPH_DEF
    if _fits(fields, _META_GRAPH_FIELDS) and _holds_meta_info(head, fields):
        return FileKind.META_GRAPH
    return FileKind.UNKNOWN


def _first_fields(head: bytes, start: int, stop: int) -> list[Field]:
    """The first fields of a message; none if it does not start with a field."""
    fields: list[Field] = []
    try:
        for field in scan_fields(head, start, stop):
            if len(fields) == _MAX_FIELDS:
                break
            fields.append(field)
    except Truncated as error:
        if error.offset < min(stop, len(head)) - 20:  # not just the end of the bytes that were read
            return []
    return fields


def _fits(fields: list[Field], schema: dict[int, int]) -> bool:
    return all(schema.get(field.number) == field.wire_type for field in fields)


def _holds_nodes(head: bytes, fields: list[Field]) -> bool:
    """Whether field 1 holds NodeDefs; a graph without nodes has versions or a library."""
    nodes = [field for field in fields if field.number == 1]
    if not nodes:
        return {field.number for field in fields} != {5}
    parts = {f.number: f for f in _first_fields(head, nodes[0].start, nodes[0].stop)}
    name, op = parts.get(1), parts.get(2)
    if name is None or name.stop >= len(head):
        return name is not None
    return op is not None and _OP_NAME.fullmatch(head[op.start : op.stop]) is not None


def _holds_meta_info(head: bytes, fields: list[Field]) -> bool:
    first = fields[0]
    parts = _first_fields(head, first.start, first.stop)
    if first.number == 1:
        return bool(parts) and _fits(parts, _META_INFO_FIELDS)
    return first.number == 2 and _fits(parts, _GRAPH_DEF_FIELDS) and _holds_nodes(head, parts)


def _holds_meta_graph(head: bytes, fields: list[Field]) -> bool:
    graphs = [field for field in fields if field.number == 2]
    if not graphs:
        return False
    parts = _first_fields(head, graphs[0].start, graphs[0].stop)
    return bool(parts) and _fits(parts, _META_GRAPH_FIELDS) and _holds_meta_info(head, parts)
