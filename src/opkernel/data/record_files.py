"""Datasets of the lines and records of files, as classes.

Source: TensorFlow python/data/ops/readers.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.data.dataset import Dataset
from opkernel.data.structure import int64_of
from opkernel.data.structured_function import call_op
from opkernel.endpoints.array import reshape
from opkernel.graph import Tensor, TensorSpec
from opkernel.types import DataType

_Names = (
    str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]] | Tensor | Dataset
)
_STRING = TensorSpec([], DataType.DT_STRING)


class _RecordDataset(Dataset):
    """Strings that are read from files: names in order, or a dataset of names.

    Args:
        filenames: The names.
        op: The op that reads them.
        num_parallel_reads: From how many files records come in turn; AUTOTUNE, or None for one after the other.
        arguments: Its further inputs.
    """

    def __init__(
        self, filenames: _Names, op: str, num_parallel_reads: int | None, **arguments: Any
    ) -> None:
        def read(name: Any) -> Any:
            return Dataset(call_op(op, filenames=name, **arguments), _STRING)

        if not isinstance(filenames, Dataset):
            filenames = Dataset.from_tensor_slices(names_of(filenames))
        if num_parallel_reads is None:
            files = filenames.flat_map(read)
        else:
            files = filenames.interleave(
                read, num_parallel_reads, num_parallel_calls=num_parallel_reads
            )
        super().__init__(files.variant_tensor, _STRING)


def names_of(filenames: Any) -> Any:
    """A name of a file, or several, as a vector."""
    if isinstance(filenames, Tensor | np.ndarray):
        return reshape(filenames, [-1])
    if isinstance(filenames, str | bytes | os.PathLike):
        return [os.fsencode(filenames)]
    return np.array([os.fsencode(name) for name in filenames], object)


class TextLineDataset(_RecordDataset):
    """The lines of text files, without their ends.

    Args:
        filenames: The names of files, or a dataset of names.
        compression_type: "ZLIB", "GZIP", or None for files as they are.
        buffer_size: Ignored.
        num_parallel_reads: From how many files records come in turn, or AUTOTUNE; None for one after the other.
        name: Ignored.
    """

    def __init__(
        self,
        filenames: _Names,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        compression = compression_type or ""
        super().__init__(
            filenames,
            "TextLineDataset",
            num_parallel_reads,
            compression_type=compression,
            buffer_size=np.int64(0),
        )


class TFRecordDataset(_RecordDataset):
    """The records of TFRecord files.

    Args:
        filenames: The names of files, or a dataset of names.
        compression_type: "ZLIB", "GZIP", or None for files as they are.
        buffer_size: Ignored.
        num_parallel_reads: From how many files records come in turn, or AUTOTUNE; None for one after the other.
        name: Ignored.
    """

    def __init__(
        self,
        filenames: _Names,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        compression = compression_type or ""
        super().__init__(
            filenames,
            "TFRecordDataset",
            num_parallel_reads,
            compression_type=compression,
            buffer_size=np.int64(0),
        )


class FixedLengthRecordDataset(_RecordDataset):
    """The records of files of records of one length.

    Args:
        filenames: The names of files, or a dataset of names.
        record_bytes: The length of a record.
        header_bytes: How many bytes of each file come before the first record.
        footer_bytes: How many come after the last one.
        buffer_size: Ignored.
        compression_type: "ZLIB", "GZIP", or None for files as they are.
        num_parallel_reads: From how many files records come in turn, or AUTOTUNE; None for one after the other.
        name: Ignored.
    """

    def __init__(
        self,
        filenames: _Names,
        record_bytes: int,
        header_bytes: int = 0,
        footer_bytes: int = 0,
        buffer_size: int | None = None,
        compression_type: str | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            filenames,
            "FixedLengthRecordDatasetV2",
            num_parallel_reads,
            header_bytes=int64_of(header_bytes),
            record_bytes=int64_of(record_bytes),
            footer_bytes=int64_of(footer_bytes),
            buffer_size=np.int64(0),
            compression_type=compression_type or "",
        )
