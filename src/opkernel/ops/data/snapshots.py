"""Elements that the first whole pass writes to files, and later ones read from there.

A folder has one folder for each pipeline, named by the number of its graph. That folder's `snapshot.metadata` names the
run, which is written at the end of the pass: passes that are given up leave nothing to read.

Source: TensorFlow core/kernels/data/experimental/snapshot_dataset_op.cc.
"""

from __future__ import annotations

import os
import secrets
import time

from opkernel.errors import DataLossError, InvalidArgumentError, NotFoundError
from opkernel.kernel import Step
from opkernel.ops.data.captured_function import CapturedFunction
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element
from opkernel.ops.data.dataset_graphs import fingerprint_of
from opkernel.ops.data.dataset_op import DatasetNode, dataset_op
from opkernel.ops.data.iterator_resource import check_types
from opkernel.ops.data.loaded_datasets import (
    FileElementsDataset,
    ReadByFunctionIterator,
    checked_run,
    shards_of,
)
from opkernel.ops.data.saved_datasets import WritingIterator, shard_of
from opkernel.ops.data.selections import SelectionDataset
from opkernel.ops.data.snapshot_files import (
    RunWriters,
    ShardWriters,
    checked_compression,
    read_metadata,
    write_metadata,
)
from opkernel.proto import SnapshotMetadataRecord
from opkernel.types import DataType, object_scalar

__all__ = ["SnapshotDataset", "SnapshotDatasetV2"]

_READ, _WRITE, _PASS = "read", "write", "passthrough"
_MODES = ("", "auto", _READ, _WRITE, _PASS)


class _SnapshotIterator(WritingIterator):
    """Reads what an earlier pass has written; writes if none has. A state has how far the pass is."""

    state = ("input", "mode", "run_id", "files", "is_over")

    def start(self) -> None:
        super().start()
        self.input: DatasetIterator | None = None
        self.mode = self.run_id = ""
        self.is_over = False

    def restored(self, step: Step) -> None:
        if self.mode:
            self.input = self._pass()

    def next(self, step: Step) -> Element | None:
        dataset = self.dataset
        if self.is_over:
            return None
        if self.input is None:
            self.mode, self.run_id = dataset.begun()
            self.input = self._pass()
        if self.mode == _WRITE and self._writers is None:
            self._writers = dataset.writers(self.run_id)
        element = self.input.next(step)
        if self._writers is not None and element is None:
            self.is_over = True
            dataset.finish(self._writers, self.run_id)
        elif self._writers is not None and element is not None:
            self._writers.write(dataset.shard_of(step, element), element, self.files)
        return element

    def _pass(self) -> DatasetIterator:
        dataset = self.dataset
        source = dataset.written(self.run_id) if self.mode == _READ else dataset.input
        found: DatasetIterator = source.iterator()
        return found


class _Snapshot(SelectionDataset):
    """The elements of another dataset, which are kept in files."""

    iterator_type = _SnapshotIterator
    version: int

    def __init__(self, node: DatasetNode, folder: str, prefixes: tuple[str, str]) -> None:
        super().__init__(node)
        path = os.path.join(os.fsdecode(node.scalar("path")), folder)
        self._read_folder, self._folder = (prefix + path for prefix in prefixes)
        self._permissions = node.permissions
        self._compression = checked_compression(node.attr("compression"))
        self.mode = ""

    def begun(self) -> tuple[str, str]:
        """How a pass that begins now is to go on: the mode, and the run."""
        if self.mode == _PASS:
            return _PASS, ""
        if self.mode != _WRITE:
            record = read_metadata(self._permissions, self._read_folder)
            if record is not None and (record.finalized or self.mode == _READ):
                if record.version != self.version:
                    raise DataLossError(f"A snapshot of version {self.version} is needed")
                check_types(self.dtypes, [DataType(number) for number in record.dtype])
                return _READ, checked_run(record, self._read_folder)
            if self.mode == _READ:
                raise NotFoundError("Metadata file does not exist.")
        return _WRITE, self.new_run()

    def new_run(self) -> str:
        """The name of a new run."""
        return str(secrets.randbits(64))

    def writers(self, run_id: str) -> ShardWriters:
        """What writes the elements of a run."""
        facts = self._compression, self.version, self.dtypes
        return ShardWriters(self._permissions, os.path.join(self._folder, run_id), *facts)

    def shard_of(self, step: Step, element: Element) -> int:
        """The shard of an element."""
        return 0

    def finish(self, writers: ShardWriters, run_id: str) -> None:
        """Make a run the one that is read."""
        writers.finish()
        record = SnapshotMetadataRecord(
            graph_hash=os.path.basename(self._folder),
            run_id=run_id,
            creation_timestamp=time.time_ns() // 1000,
            version=self.version,
            dtype=[int(dtype) for dtype in self.dtypes],
            finalized=True,
        )
        write_metadata(self._permissions, self._folder, record)

    def written(self, run_id: str) -> DatasetBase:
        """The elements of a run."""
        raise NotImplementedError(f"{type(self).__name__} does not override written")

    def cardinality(self) -> int:
        return self.input.cardinality()


class _WrittenShards(DatasetBase):
    """What the function of a snapshot makes of its shards."""

    iterator_type = ReadByFunctionIterator

    def __init__(
        self, snapshot: DatasetBase, function: CapturedFunction, shards: DatasetBase
    ) -> None:
        super().__init__(snapshot.dtypes, snapshot.shapes)
        self._function, self._shards = function, shards

    def read(self, step: Step) -> DatasetBase:
        """The dataset."""
        return self._function.dataset(step, (object_scalar(self._shards),))


@dataset_op(
    "SnapshotDatasetV2",
    doc="The elements of `input_dataset`, which a whole pass writes to files for later ones.",
    traits="reads_files writes_files",
)
class SnapshotDatasetV2(_Snapshot):
    """Elements in shards, which functions choose and read."""

    version = 2

    def __init__(self, node: DatasetNode) -> None:
        number = node.attr("hash") if node.attr("hash_valid") else fingerprint_of(node.dataset())
        prefixes = tuple(os.fsdecode(node.attr(f"{name}_prefix")) for name in ("reader", "writer"))
        super().__init__(node, str(number % 2**64), (prefixes[0], prefixes[1]))
        nested = [DataType.DT_VARIANT]
        self._reader_func = node.function("reader_func", "reader_func_other_args", nested)
        self._shard_func = node.function("shard_func", "shard_func_other_args", self.dtypes)

    def shard_of(self, step: Step, element: Element) -> int:
        return shard_of(self._shard_func, step, element)

    def written(self, run_id: str) -> DatasetBase:
        run = os.path.join(self._read_folder, run_id)
        facts = self._compression, self.version
        shards = shards_of(self._permissions, run, facts, self.dtypes, self.shapes)
        return _WrittenShards(self, self._reader_func, shards)


@dataset_op(
    "SnapshotDataset",
    doc="The elements of `input_dataset`, which a whole pass writes to a file for later ones.",
    traits="reads_files writes_files",
)
class SnapshotDataset(_Snapshot):
    """Elements in the files of a run, one after the other."""

    version = 1

    def __init__(self, node: DatasetNode) -> None:
        name = os.fsdecode(node.attr("snapshot_name"))
        folder = f"custom-{name}" if name else f"{fingerprint_of(node.dataset()):016x}"
        prefixes = [os.fsdecode(node.attr(f"{one}_path_prefix")) for one in ("reader", "writer")]
        super().__init__(node, folder, (prefixes[0], prefixes[1]))
        self.mode = os.fsdecode(node.attr("mode"))
        self._is_named = bool(name)
        if self.mode not in _MODES:
            raise InvalidArgumentError(
                f"mode must be either '' or one of {', '.join(_MODES[1:])}, not {self.mode!r}"
            )

    def new_run(self) -> str:
        return "custom" if self._is_named else f"{secrets.randbits(64):016x}"

    def writers(self, run_id: str) -> ShardWriters:
        facts = self._compression, self.version, self.dtypes
        return RunWriters(self._permissions, os.path.join(self._folder, run_id), *facts)

    def written(self, run_id: str) -> DatasetBase:
        run = os.path.join(self._read_folder, run_id)
        facts = self._compression, self.version
        return FileElementsDataset(self._permissions, run, facts, self.dtypes, self.shapes)
