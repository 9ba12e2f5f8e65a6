"""The order in which a C++ hash map gives its keys, which the keys' hashes tell.

Source: TensorFlow core/lib/hash/hash.cc (tsl/platform); libstdc++ bits/hashtable.h, hashtable_c++0x.cc.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.string_buffer import StringBatch
from opkernel.device.work_clock import WorkClock, in_time
from opkernel.ops.strings.hash_columns import murmur_hashes

Key = int | bytes

_MASK = (1 << 64) - 1
_SEED = 0xDECAFCAFFE
_MULTIPLIER = 0xC6A4A7935BD1E995
_SHIFT = 47
_OF_WORD = 1 << 9
"""The work that hashing eight bytes is."""

_BUCKETS = (
    *(13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061),
    *(712697, 1447153, 2938679, 5967347, 12117689, 24607243, 49969847, 101473717, 206062531),
)
"""How many buckets a map has as it grows: each time the next prime of a list, from twice as many."""


def hash_of_key(key: Key | tuple[Key, ...]) -> int:
    """The hash of a key: integers stand for themselves, strings are hashed by Hash64."""
    if isinstance(key, int):
        return key & _MASK
    if isinstance(key, bytes):
        return hash64(key)
    combined = 0
    for part in key:
        combined ^= (
            hash_of_key(part) + 0x9E3779B97F4A7800 + (combined << 10) + (combined >> 4) & _MASK
        )
    return combined


def hash64(data: bytes, seed: int = _SEED) -> int:
    """MurmurHash64A, an int in [0, 2**64); the seed is one, too."""
    whole = len(data) - len(data) % 8
    h = seed ^ len(data) * _MULTIPLIER & _MASK
    for at in in_time(range(0, whole, 8), _OF_WORD):
        k = int.from_bytes(data[at : at + 8], "little") * _MULTIPLIER & _MASK
        h = (h ^ (k ^ k >> _SHIFT) * _MULTIPLIER & _MASK) * _MULTIPLIER & _MASK
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    h = (h ^ h >> _SHIFT) * _MULTIPLIER & _MASK
    return h ^ h >> _SHIFT


def _more_buckets(num_buckets: int, num_keys: int) -> int:
    """How many buckets a map grows to."""
    wanted = max(12, 2 * num_buckets, num_keys + 2)
    return next(n for n in (*_BUCKETS, wanted | 1) if n >= wanted)


def _hashes_of(keys: list[Key]) -> Any:
    """As `hash_of_key`, of many keys, uint64."""
    texts = [key for key in keys if isinstance(key, bytes)]
    if texts:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return murmur_hashes(*StringBatch(texts, lengths).joined())
    if keys and isinstance(keys[0], int) and (numbers := np.array(keys)).dtype == np.int64:
        return numbers.view(np.uint64)
    return np.array([key & _MASK for key in keys if isinstance(key, int)], np.uint64)


def _order_of(hashes: Any) -> tuple[Any, int]:
    """The order of a map to which keys with these hashes were added one by one, and how many buckets it has.

    Between two times that the map grows, the last key of each bucket is the first of its keys, and the bucket whose first
    key came last is at the front.
    """
    order, num_buckets = np.zeros(0, np.int64), 1
    while order.size < hashes.size:
        num_buckets = _more_buckets(num_buckets, order.size)
        added = np.concatenate([order, np.arange(order.size, min(hashes.size, num_buckets))])
        buckets = hashes[added] % np.uint64(num_buckets)
        _, first, number = np.unique(buckets, return_index=True, return_inverse=True)
        order = added[np.argsort(first[number], kind="stable")[::-1]]
    return order, num_buckets


def order_in_map(keys: list[Key]) -> Any:
    """The numbers of keys, which are added to a map one by one, in the order of the map, int64."""
    order, _ = _order_of(_hashes_of(keys))
    check_time("ordering the keys of a table")
    return order


class HashMapOrder:
    """The order in which a `std::unordered_map` of libstdc++ gives its keys.

    The map is one linked list, in which the keys of a bucket stand together. A new key goes before the
    other keys of its bucket; the first key of a bucket goes to the front.

    Args:
        keys: The keys to begin with, in the order in which they came.
    """

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        given = [*keys]
        hashes = _hashes_of(given)
        order, self._num_buckets = _order_of(hashes)
        check_time("ordering the keys of a table")
        in_order: list[Key] = [given[i] for i in order.tolist()]
        buckets = (hashes[order] % np.uint64(self._num_buckets)).tolist()
        before: list[Key | None] = [None, *in_order]
        # of None, the front
        self._next: dict[Key | None, Key | None] = dict(zip(before, [*in_order, None], strict=True))
        # for each bucket, the key before it: of the keys of a bucket, the first comes last here
        self._before: dict[int, Key | None] = dict(zip(buckets[::-1], before[-2::-1], strict=True))

    def __len__(self) -> int:
        return len(self._next) - 1

    def __iter__(self) -> Iterator[Key]:
        key = self._next[None]
        while key is not None:
            yield key
            key = self._next[key]

    def insert(self, key: Key) -> None:
        """Add a key that is not there."""
        if self._num_buckets == 1 or len(self) + 1 > self._num_buckets:
            self._grow()
        self._link(key)

    def erase(self, key: Key) -> None:
        """Take out a key that is there."""
        bucket = self._bucket(key)
        before = self._before[bucket]
        is_first = self._next[before] == key
        clock = WorkClock("looking for a key")
        while self._next[before] != key:
            clock.spend(_OF_WORD)
            before = self._next[before]
        after = self._next.pop(key)
        self._next[before] = after
        if after is not None and self._bucket(after) != bucket:
            self._before[self._bucket(after)] = before
        if is_first and (after is None or self._bucket(after) != bucket):
            del self._before[bucket]

    def _bucket(self, key: Key) -> int:
        return hash_of_key(key) % self._num_buckets

    def _link(self, key: Key) -> None:
        bucket = self._bucket(key)
        if bucket in self._before:
            before = self._before[bucket]
            self._next[key], self._next[before] = self._next[before], key
            return
        front = self._next[None]
        self._next[key], self._next[None] = front, key
        self._before[bucket] = None
        if front is not None:
            self._before[self._bucket(front)] = key

    def _grow(self) -> None:
        """Distribute the keys, in the present order, among more buckets."""
        keys = list(self)
        self._num_buckets = _more_buckets(self._num_buckets, len(keys))
        self._next, self._before = {None: None}, {}
        for key in keys:
            self._link(key)
