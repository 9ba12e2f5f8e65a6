"""Type inference functions of ops that are known by their declaration alone.

What such an op declares of its full types stands in its OpDef. An op that is registered in a module
of the catalogue names its functions there.

Source: TensorFlow core/ops/dataset_ops.cc, experimental_dataset_ops.cc.
"""

from opkernel.opdef import TypeInferenceFn, full_type
from opkernel.opdef.full_type import FullTypeId

_SHARDED = full_type.container_map(FullTypeId.TFT_DATASET, 0, full_type.shard_tensor)
_AS_STRING = full_type.encode(FullTypeId.TFT_STRING, 0)
_FROM_STRING = full_type.decode(FullTypeId.TFT_STRING, 0)

FORWARD_TYPE_FNS: dict[str, TypeInferenceFn] = {
    "AutoShardDataset": _SHARDED,
    "DatasetFromGraph": _FROM_STRING,
    "DatasetToGraphV2": _AS_STRING,
}
"""The function that infers the full types of an op's outputs, by the op's name."""
