"""Weights of TensorFlow.js models: files of bytes, and a list that says which weights are in them.

A manifest is a list of groups. The bytes of a group's files, one file after the other, are the bytes of its weights, one
weight after the other, in little-endian order. Each string has four bytes with its length before it. Quantised weights
are stored as uint8 or uint16, `value = stored * scale + min`, or as float16.

Source: TensorFlow.js tfjs-core/src/io/io_utils.ts (decodeWeights), tfjs-converter/python/tensorflowjs/write_weights.py.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from opkernel.device.budget import check_time, current_budget
from opkernel.device.permissions import NO_PERMISSIONS, Permissions
from opkernel.errors import DataLossError, InvalidArgumentError, OpError
from opkernel.file_errors import checked_path, file_errors
from opkernel.files import resolved
from opkernel.messages import short_repr
from opkernel.records import dataclass
from opkernel.types import Array, TensorShape

_TYPES = {
    name: np.dtype(name).newbyteorder("<")
    for name in (
        *("float16", "float32", "float64", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "bool", "complex64"),
    )
}
"""The types of weights besides strings, by their names in a manifest."""
_STRING = "string"
_LENGTH = np.dtype("<u4")
_QUANTIZED = ("uint8", "uint16", "float16")
_RESULTS = {"uint8": ("float32", "int32"), "uint16": ("float32", "int32"), "float16": ("float32",)}
"""The types of weights, by the types that they may be stored as."""


@dataclass(frozen=True, slots=True)
class _Weight:
    """A weight of a manifest.

    Attributes:
        name: the name of its constant.
        shape: its shape.
        dtype: the name of its type.
        stored: the name of the type of its bytes.
        scale, minimum: what makes values of stored integers.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    stored: str
    scale: float = 1.0
    minimum: float = 0.0

    @property
    def count(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def least_bytes(self) -> int:
        """How many bytes it has at least: more only for strings."""
        kind = _LENGTH if self.stored == _STRING else _TYPES[self.stored]
        return self.count * kind.itemsize


class ModelFiles:
    """The files of a TensorFlow.js model: its own, and those that it names.

    Args:
        path: The file of the model.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._folder = os.path.dirname(os.path.abspath(path))
        beside = os.path.dirname(resolved(path))  # the files of a cache are links to one place
        self._permissions: Permissions = NO_PERMISSIONS.reading(self._folder, beside)

    def damage(self, fact: str) -> DataLossError:
        """The error that the model is damaged."""
        return DataLossError(f"{self.path} is damaged: {fact}")

    def place(self, name: Any) -> str:
        """The path of a file that the model names.

        Raises:
            DataLossError: it is no name.
            InvalidArgumentError: it would lie outside of the folder of the model.
        """
        if not isinstance(name, str) or not name:
            raise self.damage(f"{short_repr(name)} is not the name of a file of weights")
        path = os.path.normpath(os.path.join(self._folder, checked_path(name)))
        if os.path.dirname(path + os.sep) == self._folder:
            raise InvalidArgumentError(f"{self.path}: {short_repr(name)} is not the name of a file")
        if not path.startswith(self._folder.rstrip(os.sep) + os.sep):
            raise InvalidArgumentError(
                f"{self.path}: the file of weights {short_repr(name)} lies outside of {self._folder}"
            )
        return path

    def size(self, path: str) -> int:
        """The size of a file; raises OpError where there is none."""
        with file_errors(path):
            return os.stat(path).st_size

    def read(self, path: str, size: int) -> bytes:
        """The bytes of a file that had this size.

        Raises:
            PermissionDeniedError: it is no regular file, or a link that leads out of the folder.
            DataLossError: its size changed.
        """
        with (
            file_errors(path),
            open(self._permissions.open_to_read(path), "rb", buffering=0) as file,
        ):
            data = file.readall() if size else b""
        if len(data) != size:
            raise DataLossError(f"{path} changed while it was read")
        return data


def read_weights(manifest: Any, files: ModelFiles) -> dict[str, Array]:
    """The weights of a manifest, by the names of their constants.

    Args:
        manifest: The list of groups, as JSON has it.
        files: The files of the model.

    Returns:
        Arrays of the types and shapes of the manifest; strings are bytes in object arrays. Numbers that are not
        quantised are views of the bytes of the files.

    Raises:
        DataLossError: the manifest is damaged, or the files have other sizes than it says.
        InvalidArgumentError: a file would lie outside of the folder of the model.
        NotFoundError, PermissionDeniedError: a file cannot be read.
        ResourceExhaustedError: the weights are larger than the memory limit.
        UnimplementedError: a weight has a type that nobody knows.
    """
    found: dict[str, Array] = {}
    read: set[str] = set()
    for group in _list(manifest, "the list of weights", files):
        if not isinstance(group, dict):
            raise files.damage("a group in the list of weights is not an object")
        weights = [
            _weight(one, files)
            for one in _list(group.get("weights"), "the weights of a group", files)
        ]
        paths = [
            files.place(one) for one in _list(group.get("paths"), "the paths of a group", files)
        ]
        if len(read.union(paths)) < len(read) + len(paths):
            raise files.damage("the list of weights names a file twice")
        read.update(paths)
        decoder = _Decoder(_content(paths, weights, files), files)
        for weight in weights:
            check_time("reading weights of", files.path)
            if weight.name in found:
                raise files.damage(f"the weight {short_repr(weight.name)} is listed twice")
            found[weight.name] = decoder.next(weight)
        decoder.check_end(paths)
    return found


def _list(value: Any, what: str, files: ModelFiles) -> list[Any]:
    if not isinstance(value, list):
        raise files.damage(f"{what} must be a list, not {short_repr(value)}")
    return value


def _weight(entry: Any, files: ModelFiles) -> _Weight:
    """A weight, from the manifest's words for it."""
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise files.damage(f"the list of weights has {short_repr(entry)}, which has no name")
    name, dtype = entry["name"], entry.get("dtype")
    what = f"weight {short_repr(name)}"
    if not isinstance(dtype, str) or (dtype != _STRING and dtype not in _TYPES):
        raise files.damage(f"{what} has the dtype {short_repr(dtype)}, which no weight has")
    shape = _shape(entry.get("shape"), what, files)
    quantization = entry.get("quantization")
    if quantization is None:
        return _Weight(name, shape, dtype, dtype)
    stored = quantization.get("dtype") if isinstance(quantization, dict) else None
    if stored not in _QUANTIZED or dtype not in _RESULTS[stored]:
        raise files.damage(f"{what} is {dtype}, and its quantization {short_repr(quantization)}")
    if stored == "float16":
        return _Weight(name, shape, dtype, stored)
    scale, minimum = quantization.get("scale"), quantization.get("min")
    if not (_is_finite(scale) and _is_finite(minimum)):
        raise files.damage(f"{what} is stored as {stored}, without the numbers scale and min")
    return _Weight(name, shape, dtype, stored, float(scale), float(minimum))


def _shape(value: Any, what: str, files: ModelFiles) -> tuple[int, ...]:
    is_shape = isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)
    try:
        if is_shape:
            return tuple(TensorShape(value))
    except (OpError, OverflowError, ValueError):
        pass  # too large
    raise files.damage(f"{what} has the shape {short_repr(value)}, which is none")


def _is_finite(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def _content(paths: Iterable[str], weights: Iterable[_Weight], files: ModelFiles) -> bytes:
    """The bytes of a group; read where the files are large enough, and the memory limit allows it."""
    sizes = {path: files.size(path) for path in paths}
    given = sum(map(sizes.__getitem__, paths))
    weights = [*weights]
    needed = sum(weight.least_bytes for weight in weights)
    if given < needed:
        raise _wrong_size(paths, given, f"at least {needed}", files)
    budget = current_budget()
    if budget is not None:
        budget.check_memory(given + _decoded_bytes(weights), f"the weights of {files.path}")
    return b"".join(files.read(path, sizes[path]) for path in paths)


def _decoded_bytes(weights: Iterable[_Weight]) -> int:
    return sum(
        weight.count * _TYPES[weight.dtype].itemsize
        for weight in weights
        if weight.dtype != weight.stored
    )


def _wrong_size(paths: Iterable[str], given: int, needed: str, files: ModelFiles) -> DataLossError:
    """The error that files have other sizes than their weights."""
    from opkernel.graph.io.file_kind import FileKind, file_kind
    from opkernel.graph.io.next_step import next_step

    paths = [*paths]
    for path in filter(os.path.isfile, paths):
        kind = file_kind(path)
        if kind in (FileKind.GIT_LFS, FileKind.HTML):
            return DataLossError(f"{path} is {kind}{next_step(path, kind)}")
    names = ", ".join(os.path.basename(path) for path in paths) or "no files"
    return files.damage(f"its weights take {needed} bytes, and {names} hold {given}")


class _Decoder:
    """Takes the weights of a group from its bytes, one after the other."""

    def __init__(self, data: bytes, files: ModelFiles) -> None:
        self._data = data
        self._files = files
        self._offset = 0

    def next(self, weight: _Weight) -> Array:
        """The next weight."""
        if weight.stored == _STRING:
            return self._strings(weight)
        kind = _TYPES[weight.stored]
        if self._offset + weight.least_bytes > len(self._data):
            raise self._ends_within(weight)
        stored = np.frombuffer(self._data, kind, weight.count, self._offset)
        self._offset += weight.least_bytes
        return _dequantized(stored, weight).reshape(weight.shape)

    def _strings(self, weight: _Weight) -> Array:
        data, start = self._data, self._offset
        if start + weight.least_bytes > len(data):
            raise self._ends_within(weight)
        found = np.empty(weight.count, object)
        for number in range(weight.count):
            begin = start + _LENGTH.itemsize
            start = begin + int.from_bytes(data[start:begin], "little")
            if start > len(data):
                raise self._ends_within(weight)
            found[number] = data[begin:start]
        self._offset = start
        return found.reshape(weight.shape)

    def _ends_within(self, weight: _Weight) -> DataLossError:
        return self._files.damage(f"its files end within the weight {short_repr(weight.name)}")

    def check_end(self, paths: Iterable[str]) -> None:
        """Raise DataLossError where bytes are left."""
        if self._offset != len(self._data):
            raise _wrong_size(paths, len(self._data), str(self._offset), self._files)


def _dequantized(stored: Array, weight: _Weight) -> Array:
    """The values of stored numbers."""
    if weight.dtype == "bool":
        return np.not_equal(stored.view(np.uint8), 0)
    if weight.stored == weight.dtype:
        return stored
    if weight.stored == "float16":
        return stored.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # a scale may be any number
        values = stored * weight.scale + weight.minimum
        if weight.dtype == "int32":
            values = np.floor(values + 0.5)  # as JavaScript rounds
        return values.astype(weight.dtype)
