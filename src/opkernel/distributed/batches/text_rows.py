"""Rows of text files: CSV with a header, and JSON lines. The model's inputs say which types the values have.

A process reads a file from its first row to its last, and again from the first row for a row before.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np

from opkernel.distributed.batches.rows import FileRows, check_columns, reading
from opkernel.errors import DataLossError, InvalidArgumentError, OpError
from opkernel.escaping import json_value
from opkernel.graph import TensorSpec
from opkernel.records import dataclass
from opkernel.serving.json_tensors import from_json
from opkernel.types import Array, DataType

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
TEXT_ENDINGS = (*_DELIMITERS, ".jsonl", ".ndjson")

_TRUTH = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class TextRows(FileRows):
    """The rows of a text file.

    Attributes:
        inputs: The inputs to read, by name, and whether each must be there.
        delimiter: What separates the values of a row of CSV; empty for JSON lines.
    """

    inputs: Mapping[str, tuple[TensorSpec, bool]]
    delimiter: str
    are_separate = True

    def read(self) -> Mapping[str, Array]:
        """The inputs of these rows.

        Raises:
            DataLossError: the file is damaged, or is not text in UTF-8.
            InvalidArgumentError: a row lacks an input, or a value is not of the input's type.
        """
        stat = os.stat(self.path)
        reader = _reader(self.path, self.delimiter, stat.st_mtime_ns, stat.st_size)
        rows = [self._parsed(row) for row in reader.rows(self.start, self.stop)]
        return {name: np.stack([row[name] for row in rows]) for name in rows[0]}

    def _parsed(self, row: _Row) -> dict[str, Array]:
        """The values of a row: of the inputs that are required, and of others that it has."""
        values = row.values()
        of_text = _scalar_of_text if self.delimiter else from_json
        parsed = {}
        for name, (spec, is_required) in self.inputs.items():
            if is_required or name in values:
                try:
                    parsed[name] = _value(values, name, spec, of_text)
                except OpError as error:
                    error.message = f"{row.where}, {name!r}: {error.message}"
                    raise
        return parsed


def text_rows(path: str, inputs: Mapping[str, TensorSpec], required: set[str]) -> TextRows:
    """All rows of a file.

    Args:
        path: The file. Its name ends as one of `TEXT_ENDINGS` does; other files are JSON lines.
        inputs: What the model takes.
        required: The inputs that have no value of their own.

    Raises:
        DataLossError: the file is damaged, or is not text in UTF-8.
        InvalidArgumentError: it has no column for a required input.
    """
    delimiter = _DELIMITERS.get(os.path.splitext(path)[1].lower(), "")
    wanted = {name: (spec, name in required) for name, spec in inputs.items()}
    with reading(path):
        if delimiter:
            check_columns(path, _header(path, delimiter), inputs, required)
        count = sum(1 for _ in _rows(path, delimiter))
        return TextRows(path, 0, count, wanted, delimiter)


@dataclass(frozen=True)
class _Row:
    """A row, which is parsed when its values are asked for: a bad one leaves the others good.

    Attributes:
        where: The file and the line, for messages.
        content: A line of JSON, or the values of a row of CSV.
        header: The names of the columns of CSV.
    """

    where: str
    content: str | Sequence[str]
    header: Sequence[str] = ()

    def values(self) -> Mapping[str, Any]:
        """The values by name; JSON that is not an object has one, without a name.

        Raises:
            InvalidArgumentError: it is not JSON, or has not as many values as the header has names.
        """
        if not isinstance(self.content, str):
            if len(self.content) != len(self.header):
                raise InvalidArgumentError(
                    f"{self.where} has {len(self.content)} values, and the header names {len(self.header)} columns"
                )
            return dict(zip(self.header, self.content, strict=True))
        try:
            value = json_value(self.content)
        except ValueError as error:
            raise InvalidArgumentError(f"{self.where} is not JSON: {error}") from None
        return value if isinstance(value, dict) else {"": value}


def _rows(path: str, delimiter: str) -> Iterator[_Row]:
    lines = _lines(path, delimiter)
    header = _names(lines) if delimiter else ()
    for number, content in lines:
        yield _Row(f"{path}, line {number}", content, header)


def _header(path: str, delimiter: str) -> Sequence[str]:
    """The names of the columns of CSV.

    Raises:
        InvalidArgumentError: two are the same.
    """
    header = _names(_lines(path, delimiter))
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise InvalidArgumentError(f"{path}: two columns are named {twice!r}")
    return header


def _names(lines: Iterator[tuple[int, str | Sequence[str]]]) -> Sequence[str]:
    _, names = next(lines, (0, ()))
    return [name.strip() for name in names]


def _lines(path: str, delimiter: str) -> Iterator[tuple[int, str | Sequence[str]]]:
    """The lines that are not empty, with their numbers: the text of JSON lines, the values of CSV."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        if delimiter:
            lines = csv.reader(file, delimiter=delimiter, strict=True)
            yield from ((lines.line_num, values) for values in lines if values)
        else:
            yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())


def _value(
    row: Mapping[str, Any], name: str, spec: TensorSpec, of_text: Callable[[Any, DataType], Array]
) -> Array:
    """The value of an input in a row. A single value is also a tensor of one element."""
    key = "" if row.keys() == {""} else name
    if key not in row:
        raise InvalidArgumentError(f"there is no {name!r}; there are {', '.join(map(repr, row))}")
    value = of_text(row[key], spec.dtype.base)
    ones = [1] * (len(spec.shape.as_list()) - 1) if spec.shape.rank else []
    return value.reshape(ones) if not value.ndim and spec.shape.as_list()[1:] == ones else value


def _scalar_of_text(text: str, dtype: DataType) -> Array:
    """The scalar that a value of CSV stands for.

    Raises:
        InvalidArgumentError: it is not of the type.
    """
    if dtype is DataType.DT_STRING:
        return np.array(text.encode(), object)
    try:
        if dtype is DataType.DT_BOOL:
            return np.array(_TRUTH[text.strip().lower()])
        if "_" in text:  # which Python allows between digits
            raise ValueError(text)
        number = int(text) if dtype.is_integer else float(text)
    except (KeyError, ValueError):
        raise InvalidArgumentError(
            f"{text[:60]!r} is not a value of type {dtype.tf_name}"
        ) from None
    if dtype.is_integer:
        return from_json(number, dtype)  # which refuses what is out of range
    return np.array(number, dtype.numpy_dtype)


class _Reader:
    """A file that is read from its first row to its last, and again for a row before."""

    def __init__(self, path: str, delimiter: str) -> None:
        self._path, self._delimiter = path, delimiter
        self._next, self._rows = 0, _rows(path, delimiter)

    def rows(self, start: int, stop: int) -> list[_Row]:
        """The rows from one number to another."""
        with reading(self._path):
            if start < self._next:
                self._next, self._rows = 0, _rows(self._path, self._delimiter)
            found = [*islice(self._rows, start - self._next, stop - self._next)]
            self._next = stop
        if len(found) != stop - start:
            raise DataLossError(f"{self._path} has become shorter: row {stop - 1} is not there")
        return found


@lru_cache(maxsize=1)
def _reader(path: str, delimiter: str, time_ns: int, size: int) -> _Reader:
    """The file that this process reads; its time and size tell it from an earlier one."""
    return _Reader(path, delimiter)


def forget_text() -> None:
    """Give up what this process keeps of the file that it has read."""
    _reader.cache_clear()
