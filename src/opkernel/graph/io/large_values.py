"""Large constants of a GraphDef in a file: each value is read once, into the array that steps will use.

Parsed with the rest, it would be in memory twice: in the message, and in the array.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.file_errors import file_errors
from opkernel.graph.io.message_files import (
    LENGTH,
    Field,
    Truncated,
    checked_size,
    parse_file,
    scan_fields,
)
from opkernel.proto import DecodeError, GraphDef, NodeDef, TensorProto
from opkernel.types import Array, DataType, TensorShape
from opkernel.types.varints import varint

_LEAST_VALUE = 1 << 16
"""Smaller values are parsed with their nodes."""
_CONTENT = (1, 5, 2, 8, 4)
"""The fields that lead to a value: a node, its attr, the attr's value, the tensor, tensor_content."""
_WINDOW = 1 << 12
_PIECE = 1 << 24
"""About so many bytes without large values are parsed at once."""
_MANY_FIELDS = 1 << 12

Values = dict[str, Array]
"""The values of Consts by their names; their messages have none."""


def parse_with_values(path: str | os.PathLike[str]) -> tuple[GraphDef, Values]:
    """The GraphDef that a file holds, without the values of its large Consts, and these.

    Raises:
        NotFoundError, PermissionDeniedError, InvalidArgumentError, ResourceExhaustedError: as `read_file`.
        DecodeError: the file is damaged.
    """
    with file_errors(path):
        size = checked_size(path)
        with open(path, "rb") as file, suppress(Truncated, DecodeError, _Unusual):
            cut = _Cut(file, size)
            return cut.graph_def(), cut.values
    # It says what is wrong, if anything is.
    return parse_file(path, GraphDef), {}


class _Unusual(Exception):
    """The file has large values elsewhere, or so many small nodes that looking for the ends takes long."""


class _Bytes:
    """The bytes of a file, of which some windows are read."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size
        self._start, self._window = 0, b""

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> int:
        at = position - self._start
        if not 0 <= at < len(self._window):
            self._start, self._window = position, self.read(position, position + _WINDOW)
            at = 0
        if not self._window:
            raise Truncated(position)
        return self._window[at]

    def read(self, start: int, stop: int) -> bytes:
        """A part of the file."""
        self._file.seek(start)
        return self._file.read(stop - start)


class _Cut:
    """Parses a GraphDef without its large values."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.values: Values = {}
        self._bytes = _Bytes(file, size)
        self._size = size
        self._cut: list[Field] = []

    def graph_def(self) -> GraphDef:
        """The GraphDef; its Consts without values are those of `values`."""
        graph_def, done = GraphDef(), 0
        for count, field in enumerate(scan_fields(self._bytes)):
            if count > _MANY_FIELDS and field.offset < count * _WINDOW:
                raise _Unusual
            if self._is_large(field, _CONTENT[0]):
                graph_def.MergeFromString(self._bytes.read(done, field.offset))
                graph_def.MergeFromString(self._field_without(field, _CONTENT[1:]))
                self._keep_value(graph_def.node[-1])
                done = field.stop
            elif field.stop - done >= _PIECE:
                graph_def.MergeFromString(self._bytes.read(done, field.stop))
                done = field.stop
        graph_def.MergeFromString(self._bytes.read(done, self._size))
        return graph_def

    def _is_large(self, field: Field, number: int) -> bool:
        if field.stop > self._size:
            raise Truncated(field.offset)
        is_large = field.stop - field.start >= _LEAST_VALUE
        return is_large and field.number == number and field.wire_type == LENGTH

    def _field_without(self, field: Field, path: tuple[int, ...]) -> bytes:
        """A field, without the large content of the one that a path leads to within it."""
        inner = b"".join(self._parts(field, path))
        return varint(field.number << 3 | LENGTH) + varint(len(inner)) + inner

    def _parts(self, field: Field, path: tuple[int, ...]) -> Iterator[bytes]:
        for part in scan_fields(self._bytes, field.start, field.stop):
            if not self._is_large(part, path[0]):
                yield self._bytes.read(part.offset, part.stop)
            elif len(path) > 1:
                yield self._field_without(part, path[1:])
            else:
                self._cut.append(part)

    def _keep_value(self, node: NodeDef) -> None:
        """Read the value that was cut from a node."""
        cut, self._cut = self._cut, []
        if not cut:
            return
        tensors = [attr for attr, value in node.attr.items() if value.HasField("tensor")]
        if len(cut) > 1 or tensors != ["value"] or node.attr["value"].tensor.tensor_content:
            raise _Unusual
        content = self._bytes.read(cut[0].start, cut[0].stop)
        if len(content) != cut[0].stop - cut[0].start:
            raise Truncated(cut[0].start)
        tensor = node.attr["value"].tensor
        value = _array(tensor, content) if node.op == "Const" else None
        if value is None:
            tensor.tensor_content = content
        else:
            self.values[node.name] = value


def _array(tensor: TensorProto, content: bytes) -> Array | None:
    """The value of a tensor whose elements are plain numbers; None where the content does not fit."""
    try:
        dtype, shape = DataType(tensor.dtype), TensorShape.from_proto(tensor.tensor_shape)
        if not dtype.can_memcpy or dtype.is_bool:
            return None
        return np.frombuffer(content, dtype.numpy_dtype).reshape(tuple(shape))
    except (InvalidArgumentError, ValueError):
        return None
