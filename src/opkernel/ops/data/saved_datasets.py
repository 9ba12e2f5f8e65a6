"""Datasets that are saved to files.

A saved dataset is a folder: `snapshot.metadata` names the run, which is a folder of shards. The metadata is written last.
So a save that is killed leaves the earlier dataset, or none.

Source: TensorFlow core/kernels/data/experimental/save_dataset_op.cc.
"""

from __future__ import annotations

import os
import secrets
import time
from contextlib import AbstractContextManager

from opkernel.device.budget import check_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelContext, Step
from opkernel.ops.data.captured_function import CapturedFunction
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element, InputIterator
from opkernel.ops.data.dataset_op import DatasetNode, KernelOfDatasets, dataset_op, declare
from opkernel.ops.data.selections import SelectionDataset
from opkernel.ops.data.snapshot_files import ShardWriters, checked_compression, write_metadata
from opkernel.ops.registration import register_kernel
from opkernel.proto import SnapshotMetadataRecord
from opkernel.types import DataType

__all__ = ["SaveDatasetOp", "SaveDatasetV2", "WritingIterator"]

_VERSION = 2


class _Saving:
    """One save: elements go to the shards of a new run.

    Args:
        node: Has the path, the compression and the function that chooses shards.
        source: The dataset that is saved.
    """

    def __init__(self, node: DatasetNode, source: DatasetBase) -> None:
        self._folder = os.fsdecode(node.scalar("path"))
        self._permissions = node.permissions
        self._permissions.check_write(self._folder)
        self._dtypes = source.dtypes
        self._compression = checked_compression(node.attr("compression"))
        self._shard_func: CapturedFunction | None = None
        if node.attr("use_shard_func"):
            self._shard_func = node.function("shard_func", "shard_func_other_args", source.dtypes)

    def begin(self, run_id: int) -> ShardWriters:
        """What writes the shards of a run."""
        folder = os.path.join(self._folder, str(run_id))
        facts = self._compression, _VERSION, self._dtypes
        return ShardWriters(self._permissions, folder, *facts)

    def shard_of(self, step: Step, element: Element) -> int:
        """The shard of an element."""
        return 0 if self._shard_func is None else shard_of(self._shard_func, step, element)

    def finish(self, writers: ShardWriters, run_id: int, count: int) -> None:
        """Make the run the one that is loaded."""
        writers.finish()
        record = SnapshotMetadataRecord(
            creation_timestamp=time.time_ns() // 1000,
            run_id=str(run_id),
            version=_VERSION,
            dtype=[int(dtype) for dtype in self._dtypes],
            num_elements=count,
            finalized=True,
        )
        write_metadata(self._permissions, self._folder, record)


def shard_of(function: CapturedFunction, step: Step, element: Element) -> int:
    """The shard that a function gives for an element.

    Raises:
        InvalidArgumentError: it gives something else than an int64.
    """
    results = function(step, element)
    if len(results) != 1 or function.gives[0] is not DataType.DT_INT64 or results[0].size != 1:
        raise InvalidArgumentError("`shard_func` must return a scalar int64.")
    return int(results[0].reshape(())[()])


declare("SaveDataset", doc="Writes the elements of a dataset to files.", traits="writes_files")


@register_kernel("SaveDataset")
class SaveDatasetOp(KernelOfDatasets):
    """Saves a dataset."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Save it.

        Raises:
            PermissionDeniedError: the files may not be written.
        """
        node, count, run_id = DatasetNode(self, ctx), 0, secrets.randbits(64)
        dataset = node.dataset()
        saving = _Saving(node, dataset)
        writers = saving.begin(run_id)
        try:
            with dataset.iterator() as iterator:
                while (element := iterator.next(ctx.step)) is not None:
                    writers.write(saving.shard_of(ctx.step, element), element)
                    count += 1
                    ctx.step.check()
                    check_time("saving a dataset")
            saving.finish(writers, run_id, count)
        finally:
            writers.discard()


class WritingIterator(DatasetIterator):
    """Writes elements as they pass. A restored pass goes on with further files of the same run.

    Attributes:
        files: How many files of each shard are complete.
    """

    def start(self) -> None:
        super().start()
        self.files = 0
        self._writers: ShardWriters | None = None

    def paused(self) -> AbstractContextManager[None]:
        """Complete the files that were begun: later elements go to further ones."""
        if self._writers is not None:
            self._writers.finish()
            self.files += 1
        return super().paused()

    def close(self) -> None:
        super().close()
        if self._writers is not None:
            self._writers.discard()


class _SaveIterator(WritingIterator, InputIterator):
    """Saves the elements."""

    state = ("input", "run_id", "files", "count", "is_over")

    def start(self) -> None:
        super().start()
        self.run_id = str(secrets.randbits(64))
        self.count = 0
        self.is_over = False

    def next(self, step: Step) -> Element | None:
        if self.is_over:
            return None
        saving = self.dataset.saving
        if self._writers is None:
            self._writers = saving.begin(int(self.run_id))
        element = self.input.next(step)
        if element is None:
            self.is_over = True
            saving.finish(self._writers, int(self.run_id), self.count)
            return None
        self._writers.write(saving.shard_of(step, element), element, self.files)
        self.count += 1
        return element


@dataset_op(
    "SaveDatasetV2",
    doc="The elements of `input_dataset`, which are written to files as they pass.",
    traits="writes_files",
)
class SaveDatasetV2(SelectionDataset):
    """The elements of another dataset, which are saved."""

    iterator_type = _SaveIterator

    def __init__(self, node: DatasetNode) -> None:
        super().__init__(node)
        self.saving = _Saving(node, self.input)

    def cardinality(self) -> int:
        return self.input.cardinality()
