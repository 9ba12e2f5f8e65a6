"""Rows of tables in Parquet files, read with pyarrow (the extra `parquet`)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from opkernel.distributed.batches.rows import Array
from opkernel.errors import DataLossError, InvalidArgumentError, OpError
from opkernel.interrupts import contextmanager
from opkernel.libraries import library
from opkernel.records import dataclass


@dataclass(frozen=True)
class TableRows:
    """The rows of a table from `start` to `stop`.

    Attributes:
        path: the file.
        columns: the columns that are read.
        step: how many rows are read at once.
        start: the first row.
        stop: the row after the last.
    """

    path: str
    columns: tuple[str, ...]
    step: int
    start: int
    stop: int
    are_files: ClassVar[bool] = False

    def __len__(self) -> int:
        return self.stop - self.start

    def part(self, start: int, stop: int) -> TableRows:
        """Some of the rows."""
        first = self.start
        return TableRows(self.path, self.columns, self.step, first + start, first + stop)

    def read(self) -> Mapping[str, Array]:
        """The columns of these rows.

        Raises:
            UnimplementedError: pyarrow is not installed.
            DataLossError: the file is damaged.
            InvalidArgumentError: a value is missing.
        """
        stat = os.stat(self.path)
        with _errors(self.path):
            table = _table(self.path, self.columns, self.step, stat.st_mtime_ns, stat.st_size)
            batch = table.rows(self.start, self.stop)
            return {name: _array(self.path, name, batch.column(name)) for name in self.columns}


def table_rows(path: str, names: Collection[str], step: int) -> TableRows:
    """All rows of a file.

    Args:
        path: The file.
        names: The columns to read, as far as it has them.
        step: How many rows to read at once.

    Raises:
        UnimplementedError: pyarrow is not installed.
        DataLossError: the file is damaged.
    """
    parquet = _parquet(path)
    with _errors(path), parquet.ParquetFile(path) as file:
        columns = tuple(name for name in file.schema_arrow.names if name in names)
        return TableRows(path, columns, step, 0, file.metadata.num_rows)


def _parquet(path: str) -> Any:
    return library("pyarrow.parquet", f"{path} is a Parquet file, which")


@contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except OpError:
        raise
    except (OSError, ValueError) as error:  # what pyarrow raises is also one of these
        raise DataLossError(f"Cannot read {path}: {error}") from error


class _Table:
    """A table that is read from its first row to its last, and anew for a row before."""

    def __init__(self, path: str, columns: tuple[str, ...], step: int) -> None:
        self._path, self._columns, self._step = path, columns, step
        self._rewind()

    def _rewind(self) -> None:
        file = _parquet(self._path).ParquetFile(self._path)
        self._next, self._batches = 0, file.iter_batches(self._step, columns=self._columns)

    def rows(self, start: int, stop: int) -> Any:
        """Rows that are read at once."""
        if start < self._next:
            self._rewind()
        for batch in self._batches:
            first, self._next = self._next, self._next + len(batch)
            if first == start and self._next >= stop:
                return batch.slice(0, stop - start)
        raise ValueError(f"its rows {start} to {stop} are not there")


@lru_cache(maxsize=1)
def _table(path: str, columns: tuple[str, ...], step: int, time_ns: int, size: int) -> _Table:
    """The table that this process reads; its time and size tell it from an earlier one."""
    return _Table(path, columns, step)


forget_table = _table.cache_clear
"""Close the last table."""


def _array(path: str, name: str, column: Any) -> Array:
    """A column; lists of one length become further axes."""
    if column.null_count:
        raise InvalidArgumentError(f"{path}: column {name!r} has rows without a value")
    values: Array = column.to_numpy(zero_copy_only=False)
    if values.dtype != object or not len(values) or not isinstance(values[0], np.ndarray):
        return values
    try:
        return np.stack([_stacked(one) for one in values])
    except ValueError as error:
        raise InvalidArgumentError(
            f"{path}: column {name!r} has lists of different lengths"
        ) from error


def _stacked(value: Any) -> Any:
    """A list of lists as one array."""
    if value.dtype == object and len(value) and isinstance(value[0], np.ndarray):
        return np.stack([_stacked(one) for one in value])
    return value
