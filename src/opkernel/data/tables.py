"""Datasets of the rows of tables: of CSV files, and of what a query of a database gives.

Source: CsvDatasetV2 and SqlDatasetV2 in TensorFlow python/data/experimental/ops/readers.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.data.dataset import Dataset
from opkernel.data.record_files import names_of
from opkernel.data.structure import int64_of
from opkernel.data.structured_function import call_op
from opkernel.endpoints.tensors import convert, dtype_of
from opkernel.graph import Tensor, TensorSpec
from opkernel.types import DataType, as_dtype

_BUFFER_BYTES = 4 << 20


class CsvDataset(Dataset):
    """The records of CSV files; an element is a tuple with a scalar for each field.

    A wrong record is an InvalidArgumentError of its element, and the next call goes on with the next record.

    Args:
        filenames: The names of files.
        record_defaults: For each field its type (float32, float64, int32, int64 or string) if the field is required,
            or the value for fields that are empty.
        compression_type: "ZLIB", "GZIP", or None for files as they are.
        buffer_size: Ignored, but has to be positive.
        header: Whether the first record of each file is left out.
        field_delim: The character between fields.
        use_quote_delim: Whether fields may stand in double quotes.
        na_value: What stands for a missing value, beside the empty field.
        select_cols: The numbers of the columns to read, in order; None for all.
        exclude_cols: The numbers of the columns to leave out, in order; None for none.

    Raises:
        InvalidArgumentError: the lists of columns do not fit, or a default has more than one value.
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        defaults = [_default_of(one) for one in record_defaults]
        spec = tuple([TensorSpec([], dtype_of(default)) for default in defaults])
        variant = call_op(
            "CSVDatasetV2",
            output_shapes=[one.shape for one in spec],
            filenames=names_of(filenames),
            compression_type=compression_type or "",
            buffer_size=int64_of(_BUFFER_BYTES if buffer_size is None else buffer_size),
            header=header,
            field_delim=field_delim,
            use_quote_delim=use_quote_delim,
            na_value=na_value,
            select_cols=_columns(select_cols),
            record_defaults=defaults,
            exclude_cols=_columns(exclude_cols),
        )
        super().__init__(variant, spec)


def _default_of(given: Any) -> Any:
    """A default as a tensor: of a type, the empty one."""
    if not isinstance(given, DataType | type | np.dtype):
        return convert(given)
    return np.empty(0, as_dtype(given).numpy_dtype)


def _columns(given: Sequence[int] | None) -> Any:
    return np.empty(0, np.int64) if given is None else int64_of(given)


class SqlDataset(Dataset):
    """The rows that a query of an SQLite database gives; an element is a tuple with a scalar for each column.

    The database is only read.

    Args:
        driver_name: "sqlite".
        data_source_name: The file of the database.
        query: The query.
        output_types: The type of each column: string, bool, float64 or an integer up to int64.

    Raises:
        InvalidArgumentError: there is no such driver, or a type is another one.
    """

    def __init__(
        self,
        driver_name: str | Tensor,
        data_source_name: Any,
        query: str | Tensor,
        output_types: Sequence[Any],
    ) -> None:
        spec = tuple([TensorSpec([], as_dtype(dtype)) for dtype in output_types])
        is_tensor = isinstance(data_source_name, Tensor)
        variant = call_op(
            "SqlDataset",
            spec=spec,
            driver_name=driver_name,
            data_source_name=data_source_name if is_tensor else os.fsencode(data_source_name),
            query=query,
        )
        super().__init__(variant, spec)
