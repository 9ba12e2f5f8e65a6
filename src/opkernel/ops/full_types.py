"""Type inference functions of ops that are known by their declaration alone.

What such an op declares of its full types stands in its OpDef. An op that is registered in a module
of the catalogue names its functions there.

Source: TensorFlow core/ops/dataset_ops.cc, experimental_dataset_ops.cc.
"""

from opkernel.opdef import TypeInferenceFn, full_type
from opkernel.opdef.full_type import FullTypeId

_BATCHED = full_type.container_map(FullTypeId.TFT_DATASET, 0, full_type.batch_tensor)
_SHARDED = full_type.container_map(FullTypeId.TFT_DATASET, 0, full_type.shard_tensor)
_AS_STRING = full_type.encode(FullTypeId.TFT_STRING, 0)
_FROM_STRING = full_type.decode(FullTypeId.TFT_STRING, 0)

FORWARD_TYPE_FNS: dict[str, TypeInferenceFn] = {
    "AutoShardDataset": _SHARDED,
    "BatchDatasetV2": _BATCHED,
    "DatasetFromGraph": _FROM_STRING,
    "DatasetToGraphV2": _AS_STRING,
    "IteratorGetNextAsOptional": full_type.map_covariant(
        FullTypeId.TFT_ITERATOR, FullTypeId.TFT_OPTIONAL, 0
    ),
    "MultiDeviceIteratorFromStringHandle": _FROM_STRING,
    "MultiDeviceIteratorToStringHandle": _AS_STRING,
    "RebatchDataset": _BATCHED,
    "RebatchDatasetV2": _BATCHED,
    "TensorSliceDataset": full_type.multiary_unstack(
        FullTypeId.TFT_DATASET, full_type.unstack_tensor
    ),
}
"""The function that infers the full types of an op's outputs, by the op's name."""

REVERSE_TYPE_FNS: dict[str, tuple[int, TypeInferenceFn]] = {
    "MakeIterator": (
        1,
        full_type.map_covariant(FullTypeId.TFT_DATASET, FullTypeId.TFT_ITERATOR, 0),
    ),
}
"""An input, and the function that infers the full types of the node that gives it."""
