"""Strings sorted into buckets by a hash: StringToHashBucket, StringToHashBucketFast, StringToHashBucketStrong.

Source: TensorFlow core/ops/string_ops.cc, core/kernels/string_to_hash_bucket_op.h, string_to_hash_bucket_fast_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.input_checks import require_equal
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings.hashes import fingerprints, murmur_hashes, sip_hashes

STRING_TO_HASH_BUCKET = register_op(
    "StringToHashBucket",
    inputs=["string_tensor: string"],
    outputs=["output: int64"],
    attrs=["num_buckets: int >= 1"],
    shape_fn=unchanged_shape,
    doc="The number of the bucket of each string: its MurmurHash modulo `num_buckets`.",
)

STRING_TO_HASH_BUCKET_FAST = register_op(
    "StringToHashBucketFast",
    inputs=["input: string"],
    outputs=["output: int64"],
    attrs=["num_buckets: int >= 1"],
    shape_fn=unchanged_shape,
    doc="The number of the bucket of each string: its FarmHash fingerprint modulo `num_buckets`.",
)

STRING_TO_HASH_BUCKET_STRONG = register_op(
    "StringToHashBucketStrong",
    inputs=["input: string"],
    outputs=["output: int64"],
    attrs=["num_buckets: int >= 1", "key: list(int)"],
    shape_fn=unchanged_shape,
    doc="The number of the bucket of each string: its SipHash under `key` modulo `num_buckets`.",
)


def _buckets(hashes: Any, num_buckets: int) -> Any:
    return (hashes % np.uint64(num_buckets)).astype(np.int64)


@register_kernel(STRING_TO_HASH_BUCKET)
def string_to_hash_bucket(string_tensor: Any, *, num_buckets: int) -> Any:
    return _buckets(murmur_hashes(string_tensor), num_buckets)


@register_kernel(STRING_TO_HASH_BUCKET_FAST)
def string_to_hash_bucket_fast(input: Any, *, num_buckets: int) -> Any:
    return _buckets(fingerprints(input), num_buckets)


@register_kernel(STRING_TO_HASH_BUCKET_STRONG, factory=True)
def string_to_hash_bucket_strong(*, num_buckets: int, key: list[int]) -> Callable[[Any], Any]:
    require_equal(len(key), 2, "Key must have 2 elements, not {}")
    first, second = key
    return lambda tensor: _buckets(sip_hashes(tensor, (first, second)), num_buckets)
