"""StringToHashBucketFast: strings sorted into buckets by a fingerprint.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/string_to_hash_bucket_op.h, string_to_hash_bucket_fast_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.opdef.core.fingerprint import fingerprint64
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.elements import in_time

STRING_TO_HASH_BUCKET_FAST = register_op(
    "StringToHashBucketFast",
    inputs=["input: string"],
    outputs=["output: int64"],
    attrs=["num_buckets: int >= 1"],
    shape_fn=unchanged_shape,
    doc="The number of the bucket of each string: its FarmHash fingerprint modulo `num_buckets`.",
)


@register_kernel(STRING_TO_HASH_BUCKET_FAST, device="CPU", factory=True)
def string_to_hash_bucket_fast(*, num_buckets: int) -> Callable[[Any], Any]:
    def buckets(tensor: Any) -> Any:
        numbers = [fingerprint64(text) % num_buckets for text in in_time(tensor.flat)]
        return np.array(numbers, np.int64).reshape(tensor.shape)

    return buckets
