"""_TensorToHashBucketFast: buckets of integers by the hashes of their text, which optimisers put in the place of two nodes.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/tensor_to_hash_bucket_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.string_tensors import map_strings
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op, unchanged_shape
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.hashes import BY_COLUMNS, buckets
from opkernel.types import DataType

_OF_NUMBER = 1 << 12
"""The work of making text of a number."""

_SIGNED = (DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32, DataType.DT_INT64)
_UNSIGNED = (DataType.DT_UINT8, DataType.DT_UINT16, DataType.DT_UINT32, DataType.DT_UINT64)

TENSOR_TO_HASH_BUCKET_FAST = register_op(
    "_TensorToHashBucketFast(input: T) -> output: int64",
    attrs=[
        "T: {int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
        "num_buckets: int >= 1",
    ],
    shape_fn=unchanged_shape,
    doc="The buckets of StringToHashBucketFast for the texts that AsString makes of `input`.",
)


@register_kernel(TENSOR_TO_HASH_BUCKET_FAST, types={"T": (*_SIGNED, *_UNSIGNED)}, factory=True)
def tensor_to_hash_bucket_fast(*, T: DataType, num_buckets: int) -> Callable[[Any], Any]:
    if T in _UNSIGNED:  # TensorFlow has kernels that refuse them
        raise InvalidArgumentError(f"Type not supported: {T.string}")

    def compute(tensor: Any) -> Any:
        texts = map_strings(lambda number: b"%d" % number, np.asarray(tensor), _OF_NUMBER)
        return buckets(BY_COLUMNS.fingerprints(texts), num_buckets)

    return compute
