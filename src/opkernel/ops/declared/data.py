"""Shapes of datasets, all of them scalars, and of ops that take one as a whole.

Source: TensorFlow core/ops/dataset_ops.cc, experimental_dataset_ops.cc.
"""

from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    dataset_iterator_shape,
    no_outputs,
    scalar_shape,
)
from opkernel.opdef.common_shapes.rules import (
    check_csv_defaults,
    check_inputs,
    checked_no_outputs,
    checked_scalar,
)

_SCALAR_OF_ANYTHING = (
    "AutoShardDataset",
    "ChooseFastestBranchDataset",
    "ChooseFastestDataset",
    "CompressElement",
    "ComputeBatchSize",
    "ConcatenateDataset",
    "DataServiceDataset",
    "DataServiceDatasetV2",
    "DataServiceDatasetV3",
    "DataServiceDatasetV4",
    "DatasetCardinality",
    "DatasetFingerprint",
    "DatasetFromGraph",
    "DatasetToGraph",
    "DatasetToGraphV2",
    "DirectedInterleaveDataset",
    "FilterByLastComponentDataset",
    "FilterDataset",
    "FinalizeDataset",
    "FlatMapDataset",
    "GeneratorDataset",
    "GetOptions",
    "GroupByReducerDataset",
    "GroupByWindowDataset",
    "IgnoreErrorsDataset",
    "IndexFlatMapDataset",
    "InterleaveDataset",
    "LMDBDataset",
    "LegacyParallelInterleaveDatasetV2",
    "ListDataset",
    "MapDataset",
    "MaxIntraOpParallelismDataset",
    "ModelDataset",
    "NonSerializableDataset",
    "OptimizeDataset",
    "OptimizeDatasetV2",
    "OptionsDataset",
    "ParallelFilterDataset",
    "ParallelInterleaveDataset",
    "ParallelInterleaveDatasetV2",
    "ParallelInterleaveDatasetV3",
    "ParallelInterleaveDatasetV4",
    "ParallelMapDataset",
    "ParallelMapDatasetV2",
    "ParseExampleDataset",
    "ParseExampleDatasetV2",
    "PrivateThreadPoolDataset",
    "RebatchDataset",
    "RebatchDatasetV2",
    "RegisterDataset",
    "RegisterDatasetV2",
    "RewriteDataset",
    "ScanDataset",
    "SetStatsAggregatorDataset",
    "SnapshotNestedDatasetReader",
    "SparseTensorSliceDataset",
    "TakeWhileDataset",
    "TensorDataset",
    "TensorSliceDataset",
    "ThreadPoolDataset",
    "UnbatchDataset",
    "UniqueDataset",
    "UnwrapDatasetVariant",
    "WeightedFlatMapDataset",
    "WindowOp",
    "WrapDatasetVariant",
    "ZipDataset",
)
"""Ops that do not look at their inputs."""

_TWINS = (
    "AssertNextDataset",
    "AutoShardDataset",
    "BytesProducedStatsDataset",
    "CSVDataset",
    "ChooseFastestDataset",
    "DatasetCardinality",
    "DatasetToTFRecord",
    "DenseToSparseBatchDataset",
    "DirectedInterleaveDataset",
    "GroupByReducerDataset",
    "GroupByWindowDataset",
    "IgnoreErrorsDataset",
    "LMDBDataset",
    "LatencyStatsDataset",
    "MapAndBatchDataset",
    "MapDataset",
    "MatchingFilesDataset",
    "MaxIntraOpParallelismDataset",
    "NonSerializableDataset",
    "ParallelInterleaveDataset",
    "ParseExampleDataset",
    "PrivateThreadPoolDataset",
    "RandomDataset",
    "RebatchDataset",
    "ScanDataset",
    "SetStatsAggregatorDataset",
    "SleepDataset",
    "SlidingWindowDataset",
    "SqlDataset",
    "TakeWhileDataset",
    "ThreadPoolDataset",
    "UnbatchDataset",
    "UniqueDataset",
)
"""Ops that are also declared with the prefix `Experimental`, by which they were first known."""


def _map_and_batch(c: InferenceContext) -> None:
    """The last three inputs are scalars, behind the arguments of the function."""
    for i in range(c.num_inputs() - 3, c.num_inputs()):
        c.with_rank(c.input(i), 0)
    scalar_shape(c)


def _padded_batch_v2(c: InferenceContext) -> None:
    """The size of the batch and the last input are scalars."""
    check_inputs(c, ".0")
    c.with_rank(c.input(c.num_inputs() - 1), 0)
    scalar_shape(c)


def _sleep(c: InferenceContext) -> None:
    for i in range(2):
        c.with_rank_at_most(c.input(i), 0)
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


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(_SCALAR_OF_ANYTHING, scalar_shape),
    "AssertCardinalityDataset": checked_scalar(".0"),
    "AssertNextDataset": checked_scalar(".1"),
    "AssertPrevDataset": checked_scalar(".1"),
    "BatchDataset": checked_scalar(".0"),
    "BatchDatasetV2": checked_scalar(".00"),
    "BytesProducedStatsDataset": checked_scalar(".0"),
    "CSVDataset": _csv,
    "CSVDatasetV2": _csv_v2,
    "CacheDataset": checked_scalar(".0"),
    "CacheDatasetV2": checked_scalar(".00"),
    "DatasetToSingleElement": dataset_iterator_shape,
    "DatasetToTFRecord": no_outputs,
    "DenseToSparseBatchDataset": checked_scalar(".01"),
    "FixedLengthRecordDataset": checked_scalar("?0000"),
    "FixedLengthRecordDatasetV2": checked_scalar("?0000"),
    "GetElementAtIndex": dataset_iterator_shape,
    "GlobalShuffleDataset": checked_scalar(".000"),
    "LatencyStatsDataset": checked_scalar(".0"),
    "ListSnapshotChunksDataset": checked_scalar("0"),
    "LoadDataset": checked_scalar("0"),
    "MapAndBatchDataset": _map_and_batch,
    "MatchingFilesDataset": checked_scalar("?"),
    "PaddedBatchDataset": checked_scalar(".0"),
    "PaddedBatchDatasetV2": _padded_batch_v2,
    "ParallelBatchDataset": checked_scalar(".000"),
    "PrefetchDataset": checked_scalar(".0"),
    "RandomDataset": checked_scalar("00"),
    "RandomDatasetV2": checked_scalar("000"),
    "RangeDataset": checked_scalar("000"),
    "ReduceDataset": dataset_iterator_shape,
    "RepeatDataset": checked_scalar(".0"),
    "SamplingDataset": checked_scalar(".000"),
    "SaveDataset": checked_no_outputs(".0"),
    "SaveDatasetV2": checked_scalar(".0"),
    "ShardDataset": checked_scalar(".00"),
    "ShuffleAndRepeatDataset": checked_scalar(".0000"),
    "ShuffleAndRepeatDatasetV2": checked_scalar(".00000"),
    "ShuffleDataset": checked_scalar(".000"),
    "ShuffleDatasetV2": checked_scalar(".00"),
    "ShuffleDatasetV3": checked_scalar(".0000"),
    "SkipDataset": checked_scalar(".0"),
    "SleepDataset": _sleep,
    "SlidingWindowDataset": checked_scalar(".000"),
    "SnapshotChunkDataset": checked_scalar("0"),
    "SnapshotDataset": checked_scalar(".0"),
    "SnapshotDatasetReader": checked_scalar("00"),
    "SnapshotDatasetV2": checked_scalar(".0"),
    "SqlDataset": checked_scalar("000"),
    "TFRecordDataset": checked_scalar("?00"),
    "TFRecordDatasetV2": checked_scalar("?00?"),
    "TakeDataset": checked_scalar(".0"),
    "TextLineDataset": checked_scalar("?00"),
    "UncompressElement": dataset_iterator_shape,
    "WindowDataset": checked_scalar(".0000"),
}
SHAPE_FNS |= {f"Experimental{name}": SHAPE_FNS[name] for name in _TWINS}
