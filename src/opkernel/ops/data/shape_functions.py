"""Shapes of datasets, iterators and what serves them, most of them scalars, and of ops that take one as a whole.

Source: TensorFlow core/ops/dataset_ops.cc, experimental_dataset_ops.cc.
"""

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    dataset_iterator_shape,
    scalar_shape,
)
from opkernel.opdef.common_shapes.rules import (
    check_csv_defaults,
    check_inputs,
    check_ranks_at_most,
    check_scalars,
    checked_no_outputs,
    checked_scalar,
    set_outputs,
    shape_rule,
)
from opkernel.ops.declared import tensorflow_op_defs

_DATASETS = [name for name in tensorflow_op_defs() if "Dataset" in name]
"""Ops that give a dataset, or ask or write one."""

_ITERATORS = [
    name for name in tensorflow_op_defs() if "Iterator" in name or "StatsAggregator" in name
]
"""Ops on iterators over datasets, and on collectors of their statistics."""


def _scalars(c: InferenceContext) -> None:
    """All outputs are scalars; the op does not look at its inputs."""
    set_outputs(c, [c.scalar() for _ in range(c.num_outputs())])


def _map_and_batch(c: InferenceContext) -> None:
    """The last three inputs are scalars, behind the arguments of the function."""
    check_scalars(c, *range(c.num_inputs() - 3, c.num_inputs()))
    scalar_shape(c)


def _padded_batch_v2(c: InferenceContext) -> None:
    """The size of the batch and the last input are scalars."""
    check_inputs(c, ".0")
    c.with_rank(c.input(c.num_inputs() - 1), 0)
    scalar_shape(c)


def _sleep(c: InferenceContext) -> None:
    check_ranks_at_most(c, 0, 0, 1)
    scalar_shape(c)


def _csv(c: InferenceContext) -> None:
    check_inputs(c, "?0000001")
    check_csv_defaults(c, 8, c.num_inputs())
    scalar_shape(c)


def _csv_v2(c: InferenceContext) -> None:
    """As `_csv`; the last input are columns, too."""
    check_inputs(c, "?0000001")
    c.with_rank(c.input(c.num_inputs() - 1), 1)
    check_csv_defaults(c, 8, c.num_inputs() - 1)
    scalar_shape(c)


_CHECKED = {
    "0": "ListSnapshotChunksDataset LoadDataset SnapshotChunkDataset",
    "?": "MatchingFilesDataset",
    ".0": (
        "AssertCardinalityDataset BatchDataset BytesProducedStatsDataset CacheDataset "
        "LatencyStatsDataset PaddedBatchDataset PrefetchDataset RepeatDataset SaveDatasetV2 "
        "SkipDataset SnapshotDataset SnapshotDatasetV2 TakeDataset"
    ),
    ".1": "AssertNextDataset AssertPrevDataset",
    "00": "RandomDataset SnapshotDatasetReader",
    ".00": "BatchDatasetV2 CacheDatasetV2 ShardDataset ShuffleDatasetV2",
    ".01": "DenseToSparseBatchDataset",
    "000": "RandomDatasetV2 RangeDataset SqlDataset",
    "?00": "TFRecordDataset TextLineDataset",
    ".000": (
        "GlobalShuffleDataset ParallelBatchDataset SamplingDataset ShuffleDataset "
        "SlidingWindowDataset"
    ),
    "?00?": "TFRecordDatasetV2",
    ".0000": "ShuffleAndRepeatDataset ShuffleDatasetV3 WindowDataset",
    "?0000": "FixedLengthRecordDataset FixedLengthRecordDatasetV2",
    ".00000": "ShuffleAndRepeatDatasetV2",
}
"""Ops that give a scalar, by the ranks of their inputs."""
_SERVING = (
    "AnonymousMemoryCache AnonymousRandomSeedGenerator AnonymousSeedGenerator DeleteMemoryCache "
    "DeleteRandomSeedGenerator DeleteSeedGenerator DummyIterationCounter DummyMemoryCache "
    "DummySeedGenerator ExperimentalThreadPoolHandle ThreadPoolHandle"
)
"""Caches, threads and random numbers of datasets."""
_ELEMENTS = (
    "DatasetToSingleElement GetElementAtIndex IteratorGetNext IteratorGetNextSync "
    "MultiDeviceIteratorGetNextFromShard ReduceDataset UncompressElement"
)
"""Ops whose outputs have the shapes of the attr `output_shapes`."""

DATA_SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys((*_DATASETS, "CompressElement", "ComputeBatchSize", "GetOptions"), _scalars),
    **dict.fromkeys((*_ITERATORS, "WindowOp"), _scalars),
    **dict.fromkeys(_SERVING.split(), _scalars),
    **{name: checked_scalar(ranks) for ranks, names in _CHECKED.items() for name in names.split()},
    **dict.fromkeys(_ELEMENTS.split(), dataset_iterator_shape),
    "CSVDataset": _csv,
    "CSVDatasetV2": _csv_v2,
    "InitializeTableFromDataset": checked_no_outputs("00"),
    "MapAndBatchDataset": _map_and_batch,
    "PaddedBatchDatasetV2": _padded_batch_v2,
    "SaveDataset": checked_no_outputs(".0"),
    "SerializeIterator": shape_rule("-> [?]"),
    "SleepDataset": _sleep,
}
DATA_SHAPE_FNS |= {
    name: DATA_SHAPE_FNS[name.removeprefix("Experimental")]
    for name in _DATASETS
    if name.startswith("Experimental")
}
"""Ops had the prefix when they were first known."""
