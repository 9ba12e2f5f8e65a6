"""Tables in Parquet files, read with pyarrow (the extra `parquet`)."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from opkernel.errors import DataLossError, InvalidArgumentError, OpError, UnimplementedError

__all__ = ["read_table"]


def read_table(path: str, names: Collection[str], batch_size: int) -> Iterator[dict[str, Any]]:
    """The columns of these names, some rows at a time.

    Raises:
        UnimplementedError: pyarrow is not installed.
        DataLossError: the file is damaged.
        InvalidArgumentError: a value is missing.
    """
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise UnimplementedError(
            f"{path} is a Parquet file, which needs the library pyarrow: "
            f"pip install 'opkernel[parquet]'"
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            columns = [name for name in file.schema_arrow.names if name in names]
            for batch in file.iter_batches(batch_size, columns=columns):
                yield {name: _array(path, name, batch.column(name)) for name in columns}
    except OpError:
        raise
    except (OSError, ValueError) as error:  # what pyarrow raises is also one of these
        raise DataLossError(f"Cannot read {path}: {error}") from error


def _array(path: str, name: str, column: Any) -> Any:
    """A column; lists of one length become further axes."""
    if column.null_count:
        raise InvalidArgumentError(f"{path}: column {name!r} has rows without a value")
    values = column.to_numpy(zero_copy_only=False)
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
