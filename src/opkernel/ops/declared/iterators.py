"""Shapes of ops on iterators over datasets, and on collectors of their statistics.

Source: TensorFlow core/ops/dataset_ops.cc, experimental_dataset_ops.cc.
"""

from opkernel.opdef import OpShapeInferenceFn, dataset_iterator_shape, no_outputs, scalar_shape
from opkernel.opdef.common_shapes.shape_rule import shape_rule

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "AnonymousIterator": scalar_shape,
    "AnonymousIteratorV2": shape_rule("-> [], []"),
    "AnonymousIteratorV3": scalar_shape,
    "AnonymousMultiDeviceIterator": shape_rule("-> [], []"),
    "AnonymousMultiDeviceIteratorV3": scalar_shape,
    "DeleteIterator": no_outputs,
    "DeleteMultiDeviceIterator": no_outputs,
    "DeserializeIterator": no_outputs,
    "ExperimentalIteratorGetDevice": scalar_shape,
    "ExperimentalStatsAggregatorHandle": scalar_shape,
    "ExperimentalStatsAggregatorSummary": scalar_shape,
    "Iterator": scalar_shape,
    "IteratorFromStringHandle": scalar_shape,
    "IteratorFromStringHandleV2": scalar_shape,
    "IteratorGetDevice": scalar_shape,
    "IteratorGetModelProto": scalar_shape,
    "IteratorGetNext": dataset_iterator_shape,
    "IteratorGetNextAsOptional": scalar_shape,
    "IteratorGetNextSync": dataset_iterator_shape,
    "IteratorToStringHandle": scalar_shape,
    "IteratorV2": scalar_shape,
    "MakeIterator": no_outputs,
    "MultiDeviceIterator": scalar_shape,
    "MultiDeviceIteratorFromStringHandle": scalar_shape,
    "MultiDeviceIteratorGetNextFromShard": dataset_iterator_shape,
    "MultiDeviceIteratorInit": scalar_shape,
    "MultiDeviceIteratorToStringHandle": scalar_shape,
    "OneShotIterator": scalar_shape,
    "SerializeIterator": shape_rule("-> [?]"),
    "StatsAggregatorHandle": scalar_shape,
    "StatsAggregatorHandleV2": scalar_shape,
    "StatsAggregatorSetSummaryWriter": no_outputs,
    "StatsAggregatorSummary": scalar_shape,
}
