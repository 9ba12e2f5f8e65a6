"""Hashes, and buckets by them: Fingerprint, StringToHashBucket (MurmurHash64A), Fast (FarmHash), Strong (SipHash).

Source: TensorFlow core/ops/string_ops.cc, core/kernels/string_to_hash_bucket_op.h, string_to_hash_bucket_fast_op.cc,
core/ops/array_ops.cc, core/kernels/fingerprint_op.cc.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.string_buffer import joined_strings, parts_of_buffer
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, shard
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.input_checks import require, require_equal, require_rank_at_least, require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.strings import hash_columns
from opkernel.types import DataType

_BATCH = 1 << 17
"""Strings that are hashed together; the bytes of so many short ones are near the processor."""

_PART = 1 << 22
"""Bytes that are hashed between two looks at the clock."""

Algorithm = Callable[..., Any]
"""The hashes, as uint64, of the strings of a buffer: of its bytes, its splits, and the words of a key."""


@dataclass(frozen=True, slots=True)
class StringHashes:
    """The hashes of strings by functions as those of `hash_columns`."""

    fingerprint: Algorithm
    murmur_hash: Algorithm
    sip_hash: Algorithm

    def fingerprints(self, strings: Any) -> Any:
        """Fingerprint64 of each string, as uint64."""
        return _of_strings(strings, self.fingerprint)

    def murmur_hashes(self, strings: Any) -> Any:
        """MurmurHash64A of each string with TensorFlow's seed, as uint64."""
        return _of_strings(strings, self.murmur_hash)

    def sip_hashes(self, strings: Any, key: tuple[int, int]) -> Any:
        """SipHash-2-4 of each string under a key of two words, as uint64."""
        words = [np.uint64(word % 2**64) for word in key]
        return _of_strings(strings, self.sip_hash, *words)

    def row_fingerprints(self, rows: Any) -> Any:
        """Fingerprint64 of each row `[n, length]` of bytes, as uint64."""
        found = np.empty(len(rows), np.uint64)
        splits = np.arange(min(len(rows), _BATCH) + 1, dtype=np.int64) * rows.shape[1]
        for at in range(0, len(rows), _BATCH):
            some = rows[at : at + _BATCH]
            places = splits[: len(some) + 1]
            found[at : at + _BATCH] = _of_buffer(some.reshape(-1), places, self.fingerprint)
        return found


def _of_strings(strings: Any, algorithm: Algorithm, *key: Any) -> Any:
    flat = strings.reshape(-1)
    found = [
        _of_buffer(*joined_strings(flat[at : at + _BATCH]), algorithm, *key)
        for at in range(0, max(flat.size, 1), _BATCH)
    ]
    return (found[0] if len(found) == 1 else np.concatenate(found)).reshape(strings.shape)


def _of_buffer(data: Any, splits: Any, algorithm: Algorithm, *key: Any) -> Any:
    found = np.empty(splits.size - 1, np.uint64)

    def fill(part: slice) -> None:
        found[part] = algorithm(data, splits[part.start : part.stop + 1], *key)

    shard(fill, parts_of_buffer(splits, _PART))
    return found


BY_COLUMNS = StringHashes(
    hash_columns.fingerprints, hash_columns.murmur_hashes, hash_columns.sip_hashes
)

for _name, _input, _hash, *_attrs in (
    ("StringToHashBucket", "string_tensor", "MurmurHash"),
    ("StringToHashBucketFast", "input", "FarmHash fingerprint"),
    ("StringToHashBucketStrong", "input", "SipHash under `key`", "key: list(int)"),
):
    register_op(
        f"{_name}({_input}: string) -> output: int64",
        attrs=["num_buckets: int >= 1", *_attrs],
        shape_fn=unchanged_shape,
        doc=f"The number of the bucket of each string: its {_hash} modulo `num_buckets`.",
    )


def buckets(hashes: Any, num_buckets: int) -> Any:
    """The numbers of the buckets of hashes."""
    return (hashes % np.uint64(num_buckets)).astype(np.int64)


_METHOD, _SIZE = b"farmhash64", 8


def fingerprint_shape(c: InferenceContext) -> None:
    """The bytes of a hash for each row of the input."""
    c.with_rank_at_least(c.input(0), 1)
    c.with_rank(c.input(1), 0)
    method = c.input_tensor(1)
    if method is not None:
        _check_method(method, "Unsupported method")
    size = c.unknown_dim() if method is None else c.make_dim(_SIZE)
    c.set_output(0, c.matrix(c.dim(c.input(0), 0), size))


def _check_method(method: Any, complaint: str) -> None:
    if method.item() != _METHOD:
        text = method.item().decode("utf-8", "surrogateescape")
        raise InvalidArgumentError(f"{complaint}: {text}")


FINGERPRINT = register_op(
    "Fingerprint(data: T, method: string) -> fingerprint: uint8",
    attrs=["T: type"],
    shape_fn=fingerprint_shape,
    doc="The hash of each row of `data` by `method`, which is farmhash64, as bytes.",
)


def _fingerprint(hashes: StringHashes, data: Any, method: Any, T: DataType) -> Any:
    require_rank_at_least(data, 1, "`data` should have at least one dimension: []")
    require_scalar(method, "`method` should be a scalar string: {}")
    _check_method(method, "Unsupported fingerprint method")
    require(T.can_memcpy or T is DataType.DT_STRING, f"Data type not supported: {T.string}")
    if T is not DataType.DT_STRING:
        return _as_bytes(hashes.row_fingerprints(_rows_of(data)))
    of_strings = _as_bytes(hashes.fingerprints(data.reshape(-1)))
    if data.size == len(data):
        return of_strings
    rows = of_strings.reshape(len(data), data.size // max(len(data), 1) * _SIZE)
    return _as_bytes(hashes.row_fingerprints(rows))


def _rows_of(data: Any) -> Any:
    """The bytes of each row of a tensor."""
    if not data.size:
        return np.empty((len(data), 0), np.uint8)
    size = math.prod(data.shape[1:])
    return np.ascontiguousarray(data).reshape(len(data), size).view(np.uint8)


def _as_bytes(hashes: Any) -> Any:
    """Little-endian, a row each."""
    return hashes.astype("<u8", copy=False).view(np.uint8).reshape(-1, _SIZE)


def register_hashes(hashes: StringHashes, registry: KernelRegistry | None = None) -> None:
    """Register the kernels of Fingerprint and of the buckets of strings with hashes."""

    def murmur_buckets(string_tensor: Any, *, num_buckets: int) -> Any:
        return buckets(hashes.murmur_hashes(string_tensor), num_buckets)

    def farm_buckets(input: Any, *, num_buckets: int) -> Any:
        return buckets(hashes.fingerprints(input), num_buckets)

    def sip_buckets(*, num_buckets: int, key: list[int]) -> Callable[[Any], Any]:
        require_equal(len(key), 2, "Key must have 2 elements, not {}")
        words = key[0], key[1]
        return lambda tensor: buckets(hashes.sip_hashes(tensor, words), num_buckets)

    def fingerprint(data: Any, method: Any, *, T: DataType) -> Any:
        return _fingerprint(hashes, data, method, T)

    register_kernel("StringToHashBucket", registry=registry)(murmur_buckets)
    register_kernel("StringToHashBucketFast", registry=registry)(farm_buckets)
    register_kernel("StringToHashBucketStrong", registry=registry, factory=True)(sip_buckets)
    register_kernel(FINGERPRINT, registry=registry)(fingerprint)


register_hashes(BY_COLUMNS)
