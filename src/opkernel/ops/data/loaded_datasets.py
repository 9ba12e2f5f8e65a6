"""Datasets of elements in files: what was saved, by shards, or the files of a distributed snapshot.

Source: TensorFlow core/kernels/data/experimental/load_dataset_op.cc, core/data/snapshot_utils.cc,
core/data/service/snapshot (of distributed snapshots).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from opkernel.device.budget import check_time
from opkernel.device.opened_files import read_whole
from opkernel.device.permissions import Permissions
from opkernel.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from opkernel.file_errors import file_errors
from opkernel.kernel import Step
from opkernel.ops.data.dataset import UNKNOWN_CARDINALITY, DatasetBase, DatasetIterator, Element
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.data.record_files import NamesIterator
from opkernel.ops.data.snapshot_files import (
    METADATA,
    SHARD_SUFFIX,
    SnapshotReader,
    checked_compression,
    read_metadata,
    snapshot_file,
)
from opkernel.ops.data.windows import WindowElements
from opkernel.proto import DistributedSnapshotMetadata, SnapshotMetadataRecord
from opkernel.types import DataType, PartialTensorShape, object_scalar

__all__ = ["ListSnapshotChunksDataset", "LoadDataset"]

_VERSION = 2
_CHUNKS, _DONE, _ERROR = "chunks", "DONE", "ERROR"


class _ReaderIterator(DatasetIterator):
    """Reads one file after the other; a restored pass reads the elements of the last one again."""

    state = ("file", "index")

    def start(self) -> None:
        self.file, self.index = 0, self.dataset.start_index
        self._reader: SnapshotReader | None = None

    def next(self, step: Step) -> Element | None:
        step.check()
        if self._reader is None and not self._is_open():
            return None
        while self._reader is not None:
            element = self._reader.next()
            if element is not None:
                self.index += 1
                return element
            self.close()
            self.file, self.index = self.file + 1, 0
            self._is_open()
        return None

    def _is_open(self) -> bool:
        """Open the file whose turn it is, and leave out what was read; False behind the last file."""
        dataset = self.dataset
        path = dataset.file(self.file)
        if path is None:
            return False
        try:
            reader = dataset.reader(path)
        except NotFoundError:
            if not self.file:
                raise
            return False
        for _ in range(self.index):
            if reader.next() is None:
                raise DataLossError(f"{path!r} has fewer elements than were read from it")
            check_time("reading elements again")
        self._reader = reader
        return True

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None


class FileElementsDataset(DatasetBase):
    """The elements of files of a shard, or of one file.

    Args:
        permissions: Which files may be read.
        path: The folder of the shard; the file where `is_file`.
        facts: The compression and the version.
        dtypes, shapes: What the elements are.
        is_file: Whether it is one file.
        start_index: How many elements are left out.
    """

    iterator_type = _ReaderIterator

    def __init__(
        self,
        permissions: Permissions,
        path: str,
        facts: tuple[str, int],
        dtypes: Sequence[DataType],
        shapes: Sequence[PartialTensorShape],
        *,
        is_file: bool = False,
        start_index: int = 0,
    ) -> None:
        super().__init__(dtypes, shapes)
        permissions.check_read(path)
        self._permissions, self._path, self._facts = permissions, path, facts
        self._is_file, self.start_index = is_file, start_index

    def file(self, number: int) -> str | None:
        """The file of a number; None where there can be none."""
        if self._is_file:
            return None if number else self._path
        return snapshot_file(self._path, number)

    def reader(self, path: str) -> SnapshotReader:
        """Reads a file."""
        return SnapshotReader(self._permissions, path, *self._facts, self.dtypes)


def shards_of(
    permissions: Permissions,
    run: str,
    facts: tuple[str, int],
    dtypes: Sequence[DataType],
    shapes: Sequence[PartialTensorShape],
) -> DatasetBase:
    """A dataset of the datasets of all shards of a run."""
    with file_errors(run):
        names = permissions.names_in(run)
    folders = [os.path.join(run, name) for name in names if name.endswith(SHARD_SUFFIX)]
    return dataset_of_datasets(
        [FileElementsDataset(permissions, one, facts, dtypes, shapes) for one in folders]
    )


def dataset_of_datasets(datasets: Sequence[DatasetBase]) -> DatasetBase:
    """A dataset whose elements are datasets."""
    elements = [(object_scalar(dataset),) for dataset in datasets]
    return WindowElements(elements, [DataType.DT_VARIANT], [PartialTensorShape([])])


class ReadByFunctionIterator(DatasetIterator):
    """Passes over what a function makes of the dataset of all shards."""

    state = ("input",)

    def start(self) -> None:
        self.input: DatasetIterator | None = None

    def restored(self, step: Step) -> None:
        self.input = self._begun(step)

    def next(self, step: Step) -> Element | None:
        if self.input is None:
            self.input = self._begun(step)
        return self.input.next(step)

    def _begun(self, step: Step) -> DatasetIterator:
        dataset: DatasetBase = self.dataset.read(step)
        if dataset.dtypes != self.dataset.dtypes:
            raise InvalidArgumentError(
                f"`reader_func` gives {dataset}, and should give {self.dataset}"
            )
        return dataset.iterator()


@dataset_op("LoadDataset", doc="The elements that SaveDataset has saved.", traits="reads_files")
class LoadDataset(DatasetBase):
    """The elements of a saved dataset."""

    iterator_type = ReadByFunctionIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node.dtypes, node.shapes)
        self._folder, self._permissions = os.fsdecode(node.scalar("path")), node.permissions
        nested = [DataType.DT_VARIANT]
        self._reader_func = node.function("reader_func", "reader_func_other_args", nested)
        self._compression = checked_compression(node.attr("compression"))
        self._chunks: list[str] | None = None
        self._metadata = SnapshotMetadataRecord()
        distributed = distributed_metadata(self._permissions, self._folder)
        if distributed is not None:
            self._compression = checked_compression(distributed.compression)
            self._chunks = chunk_files(self._permissions, self._folder)
        else:
            self._metadata = self._checked_metadata()

    def _checked_metadata(self) -> SnapshotMetadataRecord:
        found = read_metadata(self._permissions, self._folder)
        if found is None:
            raise NotFoundError(f"Could not find metadata file [{self._folder}]")
        if not found.finalized:
            raise DataLossError(f"The dataset in {self._folder!r} was not saved to its end")
        checked_run(found, self._folder)
        return found

    def read(self, step: Step) -> DatasetBase:
        """The dataset that the function makes of the dataset of all shards."""
        dtypes, shapes = self.dtypes, self.shapes
        if self._chunks is not None:
            facts = self._compression, _VERSION
            nested = dataset_of_datasets(
                [
                    FileElementsDataset(
                        self._permissions, chunk, facts, dtypes, shapes, is_file=True
                    )
                    for chunk in self._chunks
                ]
            )
        else:
            run = os.path.join(self._folder, self._metadata.run_id)
            facts = self._compression, self._metadata.version
            nested = shards_of(self._permissions, run, facts, dtypes, shapes)
        return self._reader_func.dataset(step, (object_scalar(nested),))

    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY if self._chunks is not None else self._metadata.num_elements


def checked_run(record: SnapshotMetadataRecord, folder: str) -> str:
    """The name of the run that metadata name.

    Raises:
        DataLossError: it is none: a part of a path that leads elsewhere.
    """
    run = record.run_id
    if os.path.basename(run) != run or run in ("", ".", ".."):
        raise DataLossError(f"The metadata of {folder!r} names no run: {run!r}")
    return run


def distributed_metadata(
    permissions: Permissions, folder: str
) -> DistributedSnapshotMetadata | None:
    """The metadata of a distributed snapshot, which is text; None for other folders."""
    from google.protobuf import text_format  # takes long to import, and few datasets need it

    try:
        text = read_whole(permissions, os.path.join(folder, METADATA)).decode()
        return text_format.Parse(text, DistributedSnapshotMetadata())
    except (NotFoundError, UnicodeDecodeError, text_format.ParseError, RecursionError):
        return None


def chunk_files(permissions: Permissions, folder: str) -> list[str]:
    """The files of a distributed snapshot, in order.

    Raises:
        UnavailableError: it is still being written.
        InternalError: writing it has failed.
    """
    with file_errors(folder):
        names = permissions.names_in(folder)
    if _ERROR in names:
        text = read_whole(permissions, os.path.join(folder, _ERROR)).decode("utf-8", "replace")
        raise InternalError(f"The snapshot in {folder!r} was not written: {text}")
    if _DONE not in names:
        raise UnavailableError(f"The snapshot in {folder!r} is still being written")
    chunks = os.path.join(folder, _CHUNKS)
    with file_errors(chunks):
        found = permissions.names_in(chunks)
    return [os.path.join(chunks, name) for name in sorted(found, key=_chunk_key)]


def _chunk_key(name: str) -> tuple[int, str]:
    """By the number in `chunk_STREAM_NUMBER_COUNT`."""
    parts = name.split("_")
    return (int(parts[2]) if len(parts) == 4 and parts[2].isdigit() else 0), name


@dataset_op(
    "SnapshotDatasetReader", doc="The elements of the files of a shard.", traits="reads_files"
)
def snapshot_dataset_reader(node: DatasetNode) -> DatasetBase:
    """The dataset of a shard's elements."""
    return FileElementsDataset(
        node.permissions,
        os.fsdecode(node.scalar("shard_dir")),
        (checked_compression(node.attr("compression")), node.attr("version")),
        node.dtypes,
        node.shapes,
        start_index=max(node.scalar("start_index"), 0),
    )


@dataset_op("SnapshotNestedDatasetReader", doc="A dataset of the datasets `inputs`.")
def snapshot_nested_dataset_reader(node: DatasetNode) -> DatasetBase:
    """The dataset of datasets."""
    return dataset_of_datasets(node.datasets("inputs"))


@dataset_op(
    "SnapshotChunkDataset",
    doc="The elements of a file of a distributed snapshot.",
    traits="reads_files",
)
def snapshot_chunk_dataset(node: DatasetNode) -> DatasetBase:
    """The dataset of a file's elements."""
    return FileElementsDataset(
        node.permissions,
        os.fsdecode(node.scalar("chunk_file")),
        (checked_compression(node.attr("compression")), _VERSION),
        node.dtypes,
        node.shapes,
        is_file=True,
    )


@dataset_op(
    "ListSnapshotChunksDataset",
    doc="The names of the files of a distributed snapshot.",
    traits="reads_files",
)
class ListSnapshotChunksDataset(DatasetBase):
    """The names of files."""

    iterator_type = NamesIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__([DataType.DT_STRING], [PartialTensorShape([])])
        self._folder = os.fsdecode(node.scalar("snapshot_path"))
        self._permissions = node.permissions
        self._permissions.check_read(self._folder)

    def found(self) -> list[bytes]:
        """The names."""
        return [os.fsencode(name) for name in chunk_files(self._permissions, self._folder)]
