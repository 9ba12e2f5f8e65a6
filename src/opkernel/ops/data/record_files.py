"""Datasets of the lines and records of files, which are read one after the other.

A state has the number of the file and of the records that were read from it; a restored pass reads them again.

Source: TensorFlow core/kernels/data/text_line_dataset_op.cc, tf_record_dataset_op.cc,
fixed_length_record_dataset_op.cc, experimental/matching_files_dataset_op.cc.
"""

from __future__ import annotations

import os
from typing import Any

from opkernel.device.budget import check_time
from opkernel.device.opened_files import open_file
from opkernel.device.permissions import Permissions
from opkernel.errors import DataLossError, InvalidArgumentError, NotFoundError, OutOfRangeError
from opkernel.kernel import Step
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.files.reader_formats import (
    FileReader,
    FixedLengthRecordReader,
    TextLineReader,
    TFRecordReader,
)
from opkernel.ops.files.whole_files import matching_paths
from opkernel.types import DataType, PartialTensorShape, object_scalar

__all__ = [
    "FixedLengthRecordDataset",
    "MatchingFilesDataset",
    "NamesIterator",
    "TFRecordDataset",
    "TextLineDataset",
]

_COMPRESSIONS = ("", "ZLIB", "GZIP")


class _RecordIterator(DatasetIterator):
    state = ("file", "records")

    def start(self) -> None:
        self.file = self.records = 0
        self._reader: FileReader | None = None

    def restored(self, step: Step) -> None:
        if self.records and self._is_open(step):
            assert self._reader is not None
            for _ in range(self.records):
                self._reader.next()
                check_time("reading records again")

    def next(self, step: Step) -> Element | None:
        while self._reader is not None or self._is_open(step):
            assert self._reader is not None
            try:
                found = self._reader.next()
            except DataLossError:
                if self.dataset.leaves_damaged_files:
                    self._next_file()
                raise
            if found is not None:
                self.records += 1
                return (object_scalar(found[1]),)
            self._next_file()
        return None

    def _is_open(self, step: Step) -> bool:
        """Open the file whose turn it is; False where there is none."""
        dataset = self.dataset
        step.check()
        if self.file >= len(dataset.filenames):
            return False
        reader = dataset.reader(self.file)
        name = dataset.filenames[self.file]
        try:
            dataset.check_file(name)
            reader.open(dataset.permissions, name)
            dataset.go_to_first(reader, self.file)
        except BaseException:
            reader.finish_work()
            raise
        self._reader = reader
        return True

    def _next_file(self) -> None:
        self.close()
        self.file, self.records = self.file + 1, 0

    def close(self) -> None:
        if self._reader is not None:
            self._reader.finish_work()
        self._reader = None


class RecordDataset(DatasetBase):
    """The records of files, as strings.

    Attributes:
        filenames: The files, in order.
        permissions: Which files may be read.
        leaves_damaged_files: Whether the pass goes on with the next file after a DataLossError.
    """

    iterator_type = _RecordIterator
    leaves_damaged_files = False

    def __init__(self, node: DatasetNode) -> None:
        super().__init__([DataType.DT_STRING], [PartialTensorShape([])])
        names = node.tensor("filenames")
        if names.ndim > 1:
            raise InvalidArgumentError("`filenames` must be a scalar or a vector.")
        self.filenames: list[bytes] = [*names.reshape(-1)]
        self.permissions: Permissions = node.permissions
        if node.scalar("buffer_size") < 0:
            raise InvalidArgumentError("`buffer_size` must be >= 0 (0 == default)")
        has_compression = node.has_input("compression_type")
        given = (
            node.scalar("compression_type").decode("utf-8", "replace") if has_compression else ""
        )
        self.compression = self.checked_compression(given)

    def checked_compression(self, given: str) -> str:
        """The compression of the files.

        Raises:
            InvalidArgumentError: there is no such compression.
        """
        if given not in _COMPRESSIONS:
            raise InvalidArgumentError("Unsupported compression_type.")
        return given

    def reader(self, number: int) -> FileReader:
        """A reader for the file of a number."""
        raise NotImplementedError(f"{type(self).__name__} does not override reader")

    def check_file(self, name: bytes) -> None:
        """Raise InvalidArgumentError where a file cannot be one of whole records."""

    def go_to_first(self, reader: FileReader, number: int) -> None:
        """Leave out what comes before the first wanted record of a file that has just been opened."""


@dataset_op("TextLineDataset", doc="The lines of files.", traits="reads_files")
class TextLineDataset(RecordDataset):
    """The lines of files without their ends."""

    def reader(self, number: int) -> FileReader:
        return TextLineReader(0, "TextLineDataset", self.compression, strips_returns=True)


@dataset_op(
    "TFRecordDataset",
    "TFRecordDatasetV2",
    doc="The records of TFRecord files.",
    traits="reads_files",
)
class TFRecordDataset(RecordDataset):
    """The records of TFRecord files."""

    leaves_damaged_files = True

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self._offsets: list[int] = (
            node.vector("byte_offsets") if node.has_input("byte_offsets") else []
        )
        if self._offsets and len(self._offsets) != len(self.filenames):
            raise InvalidArgumentError("`byte_offsets` must be of same size as `filenames`")

    def checked_compression(self, given: str) -> str:
        return given if given in _COMPRESSIONS else ""

    def reader(self, number: int) -> FileReader:
        return TFRecordReader(self.compression, "TFRecordDataset")

    def go_to_first(self, reader: FileReader, number: int) -> None:
        """Begin at the offset of the file.

        Raises:
            InvalidArgumentError: the offset is negative or beyond the end of the file.
        """
        offset = self._offsets[number] if self._offsets else 0
        if offset < 0 or not reader.skip(offset):
            raise OutOfRangeError(f"The offset {offset} is not in {self.filenames[number]!r}")


class _WholeRecordReader(FixedLengthRecordReader):
    """Reports, once, that a file ends within a record."""

    def next(self) -> tuple[int, bytes] | None:
        found = super().next()
        if found is None and self.forget_rest():
            raise DataLossError(
                f"The body of {self.state.current_work!r} is not an exact multiple of the record "
                "length."
            )
        return found


@dataset_op(
    "FixedLengthRecordDataset",
    "FixedLengthRecordDatasetV2",
    doc="The records of files of records that are `record_bytes` long.",
    traits="reads_files",
)
class FixedLengthRecordDataset(RecordDataset):
    """Records of one length."""

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        sizes: dict[str, int] = {}
        for name in ("header_bytes", "record_bytes", "footer_bytes"):
            sizes[name] = node.scalar(name)
            if sizes[name] < (name == "record_bytes"):
                what = "> 0" if name == "record_bytes" else ">= 0"
                raise InvalidArgumentError(f"`{name}` must be {what}")
        self._header, self._record, self._footer = sizes.values()

    def reader(self, number: int) -> FileReader:
        sizes = (self._header, self._record, self._footer, 0)
        return _WholeRecordReader(*sizes, self.compression, "FixedLengthRecordDataset")

    def check_file(self, name: bytes) -> None:
        if self.compression:
            return
        with open_file(self.permissions, name) as file:
            size = os.fstat(file.fileno()).st_size
        body = size - self._header - self._footer
        if body % self._record:
            raise InvalidArgumentError(
                f"Excluding the header ({self._header} bytes) and footer ({self._footer} bytes), "
                f'input file "{os.fsdecode(name)}" has body length {body} bytes, which is not an '
                f"exact multiple of the record length ({self._record} bytes)."
            )


class NamesIterator(DatasetIterator):
    """Gives the names that the dataset has found when the pass began."""

    state = ("names", "index")

    def start(self) -> None:
        self.names: list[bytes] | None = None
        self.index = 0

    def next(self, step: Step) -> Element | None:
        if self.names is None:
            self.names = self.dataset.found()
        if self.index >= len(self.names):
            return None
        self.index += 1
        return (object_scalar(self.names[self.index - 1]),)


@dataset_op(
    "MatchingFilesDataset",
    "ExperimentalMatchingFilesDataset",
    doc="The names of the files that match patterns: those of each pattern in order.",
    traits="reads_files",
)
class MatchingFilesDataset(DatasetBase):
    """The names of files."""

    iterator_type = NamesIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__([DataType.DT_STRING], [PartialTensorShape([])])
        patterns: Any = node.tensor("patterns")
        if patterns.ndim > 1:
            raise InvalidArgumentError("`patterns` must be a scalar or a vector.")
        self._patterns = [*patterns.reshape(-1)]
        self._permissions = node.permissions

    def found(self) -> list[bytes]:
        """The names without those of directories: of the first pattern in order, then of the next.

        Raises:
            NotFoundError: there are none.
        """
        found = [sorted(matching_paths(self._permissions, pattern)) for pattern in self._patterns]
        names = [path for paths in found for path in paths if not os.path.isdir(path)]
        if not names:
            raise NotFoundError("Don't find any matched files")
        return names
