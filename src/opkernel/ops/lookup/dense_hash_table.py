"""MutableDenseHashTable: a table whose keys and values stand in arrays of buckets.

Source: TensorFlow core/kernels/lookup_table_op.cc.
"""

import math
import threading
from itertools import compress, repeat
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.work_clock import WorkClock, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require
from opkernel.ops.lookup.hash_map_order import hash_of_key
from opkernel.ops.lookup.hash_tables import LookupInterface
from opkernel.ops.lookup.integer_index import IntegerIndex
from opkernel.types import DataType, TensorShape

_MIN_BUCKETS = 4


_AT_ONCE = 1 << 12
"""So many keys are looked up or added at once."""
_OF_KEY, _OF_PROBE = 150, 1 << 9
"""The bytes that a key takes as a value of Python and in a dict, and the work of a look at a bucket."""


class MutableDenseHashTable(LookupInterface):
    """A table that changes, and is exported bucket by bucket. Keys and values are scalars or vectors.

    A dict tells the bucket of a key. Two keys cannot be used: they mark buckets that are empty and
    keys that were removed.

    Args:
        key_dtype: The type of the keys.
        value_dtype: The type of the values.
        value_shape: The shape of a value.
        empty_key: Marks the empty buckets.
        deleted_key: Marks the buckets of removed keys.
        num_buckets: To begin with; a power of 2.
        max_load_factor: How full the table may be before it grows.

    Raises:
        InvalidArgumentError: one of these is not as it must be.
    """

    def __init__(
        self,
        key_dtype: DataType,
        value_dtype: DataType,
        value_shape: tuple[int, ...],
        *,
        empty_key: Any,
        deleted_key: Any,
        num_buckets: int,
        max_load_factor: float,
    ) -> None:
        super().__init__(key_dtype, value_dtype, empty_key.shape, value_shape)
        if not 0 < max_load_factor < 1:
            raise InvalidArgumentError(
                f"max_load_factor must be between 0 and 1, got: {max_load_factor:g}"
            )
        for what, shape in (("value", value_shape), ("key", self.key_shape)):
            if len(shape) > 1:
                raise InvalidArgumentError(
                    f"Empty {what} must be a scalar or a vector, got shape {TensorShape(shape)}"
                )
        if deleted_key.shape != self.key_shape:
            raise InvalidArgumentError(
                "Empty and deleted keys must have same shape, got shapes: "
                f"{TensorShape(self.key_shape)} and {TensorShape(deleted_key.shape)}"
            )
        self._key_size, self._value_size = math.prod(self.key_shape), math.prod(value_shape)
        (self._empty,) = self._keys(empty_key.reshape(1, *self.key_shape))
        (self._deleted,) = self._keys(deleted_key.reshape(1, *self.key_shape))
        require(self._empty != self._deleted, "Empty and deleted keys cannot be equal")
        if num_buckets < _MIN_BUCKETS or num_buckets & num_buckets - 1:
            raise InvalidArgumentError(
                f"Number of buckets must be at least 4 and a power of 2, got: {num_buckets}"
            )
        self._max_load_factor = max_load_factor
        self._lock = threading.Lock()
        self._buckets: dict[Any, int] = {}
        self._index: IntegerIndex | None = None  # of the buckets; not known where they changed
        self._allocate(num_buckets)

    def memory_used(self) -> int:
        """The bytes of the buckets."""
        return int(self._key_buckets.nbytes + self._value_buckets.nbytes)

    @property
    def size(self) -> int:
        return len(self._buckets)

    def find(self, keys: Any, default: Any) -> Any:
        wanted = self._usable_keys(keys)
        dtype = self.value_dtype
        found = zeros(check_allocation((len(wanted), self._value_size), dtype), dtype)
        with self._lock:
            buckets = self._buckets_of(wanted)
            is_there = buckets >= 0
            found[is_there] = self._value_buckets[buckets[is_there]]
        found[~is_there] = default.reshape(-1)[: self._value_size]
        batch = keys.shape[: keys.ndim - len(self.key_shape)]
        return found.reshape(batch + self.value_shape)

    def _buckets_of(self, keys: Any) -> Any:
        """The buckets of keys, -1 of those that the table lacks."""
        parts = in_time(range(0, len(keys), _AT_ONCE), _AT_ONCE << 8)
        some = [self._known_buckets(keys[at : at + _AT_ONCE]) for at in parts]
        return np.concatenate([np.zeros(0, np.int64), *some])

    def insert(self, keys: Any, values: Any) -> None:
        new, rows = self._usable_keys(keys), values.reshape(-1, self._value_size)
        with self._lock:
            pending, num_buckets = self.size + len(new), len(self._key_buckets)
            while pending > num_buckets * self._max_load_factor:
                num_buckets *= 2
            if num_buckets != len(self._key_buckets):
                self._rebucket(num_buckets)
            for at in in_time(range(0, len(new), _AT_ONCE), _AT_ONCE << 10):
                buckets = self._buckets_to_set(new[at : at + _AT_ONCE])
                self._value_buckets[buckets] = rows[at : at + _AT_ONCE]

    def remove(self, keys: Any) -> None:
        gone = self._usable_keys(keys)
        with self._lock:
            buckets = self._buckets_of(gone)
            places = np.full(len(self._is_free), -1)  # of a key of each bucket
            known = np.flatnonzero(buckets >= 0)
            places[buckets[known]] = known
            self._index = None
            for place in in_time(places[places >= 0].tolist()):
                key = gone[place] if self.key_shape else gone[place].item()
                bucket = self._buckets.pop(key)
                self._key_buckets[bucket] = self._deleted
                self._is_free[bucket] = True

    def check_import(self, keys: Any, values: Any) -> None:
        """Raise InvalidArgumentError unless these are the buckets of such a table."""
        self._check_values(keys, values, self.key_shape or (1,), self.value_shape or (1,))
        if keys.shape != (len(keys), self._key_size):
            raise InvalidArgumentError(
                f"Expected keys of shape [?,{self._key_size}], got {TensorShape(keys.shape)}"
            )

    def import_values(self, keys: Any, values: Any) -> None:
        """Have these buckets."""
        imported = self._keys(keys)
        with self._lock:
            self._index = None
            self._key_buckets, self._value_buckets = np.array(keys), np.array(values)
            unused = (self._empty, self._deleted)
            self._buckets = {key: i for i, key in enumerate(imported) if key not in unused}
            self._is_free = np.array([key in unused for key in imported], bool)

    def export_values(self) -> tuple[Any, Any]:
        with self._lock:
            return self._key_buckets.copy(), self._value_buckets.copy()

    def _keys(self, keys: Any) -> list[Any]:
        """Keys as Python values: tuples where they are vectors.

        Raises:
            InvalidArgumentError: they are not a batch of one dimension.
        """
        self._check_batch(keys)
        with making_bytes("keys of a table", _OF_KEY * keys.size):
            flat: list[Any] = keys.reshape(-1).tolist()
        if not self.key_shape:
            return flat
        step = max(self._key_size, 1)
        return [tuple(flat[at : at + step]) for at in in_time(range(0, len(flat), step))]

    def _check_batch(self, keys: Any) -> None:
        count = len(keys) if keys.ndim else 1
        if keys.size != count * self._key_size:
            expected = TensorShape((count, *self.key_shape))
            raise InvalidArgumentError(
                f"Expected key shape {expected} got {TensorShape(keys.shape)}"
            )

    def _usable_keys(self, keys: Any) -> Any:
        """Keys as `_keys` gives them; single numbers in an array.

        Raises:
            InvalidArgumentError: they are not a batch of one dimension, or one is a key that cannot be used.
        """
        self._check_batch(keys)
        is_array = not self.key_shape and keys.dtype != object
        usable = keys.reshape(-1) if is_array else self._keys(keys)
        names = {self._empty: "empty_key", self._deleted: "deleted_key"}
        at = {_listed(usable).index(key): name for key, name in names.items() if key in usable}
        if at:
            raise InvalidArgumentError(f"Using the {at[min(at)]} as a table key is not allowed")
        return usable

    def _allocate(self, num_buckets: int) -> None:
        """Make buckets, which are empty."""
        key_shape, value_shape = (num_buckets, self._key_size), (num_buckets, self._value_size)
        self._key_buckets = zeros(check_allocation(key_shape, self.key_dtype), self.key_dtype)
        self._value_buckets = zeros(
            check_allocation(value_shape, self.value_dtype), self.value_dtype
        )
        self._key_buckets[:] = self._empty
        self._is_free = np.ones(num_buckets, bool)
        self._buckets = {}
        self._index = None

    def _rebucket(self, num_buckets: int) -> None:
        before = self._buckets, self._key_buckets, self._value_buckets, self._is_free
        in_order, values = sorted(self._buckets.items(), key=lambda item: item[1]), before[2]
        try:
            self._allocate(num_buckets)
            for key, bucket in in_time(in_order):
                self._value_buckets[self._add(key)] = values[bucket]
        except BaseException:
            self._buckets, self._key_buckets, self._value_buckets, self._is_free = before
            self._index = None
            raise

    def _known_buckets(self, keys: Any) -> Any:
        """The buckets of some keys, -1 of those that the table lacks."""
        if self._index is None and IntegerIndex.pays_for(keys, len(self._buckets)):
            self._index = IntegerIndex(self._buckets)
        if self._index is not None:
            return self._index.rows_of(keys)
        buckets = map(self._buckets.get, _listed(keys), repeat(-1))
        return np.fromiter(buckets, np.int64, len(keys))

    def _buckets_to_set(self, keys: Any) -> Any:
        """The buckets of some keys, new ones included."""
        buckets = self._known_buckets(keys)
        is_new = buckets < 0
        if is_new.any():
            new = [*compress(_listed(keys), is_new.tolist())]
            for key in in_time(dict.fromkeys(new)):
                self._add(key)
            buckets[is_new] = [self._buckets[key] for key in new]
        return buckets

    def _add(self, key: Any) -> int:
        """Give a new key a bucket."""
        bucket = self._free_bucket(key)
        self._index = None
        self._is_free[bucket] = False
        self._key_buckets[bucket] = key
        self._buckets[key] = bucket
        return bucket

    def _free_bucket(self, key: Any) -> int:
        """The first free bucket that a key leads to; there is one."""
        single = key[0] if isinstance(key, tuple) and len(key) == 1 else key
        mask = len(self._is_free) - 1
        bucket, num_probes = hash_of_key(single) & mask, 0
        clock = WorkClock("looking for a free bucket")
        while not self._is_free[bucket]:
            clock.spend(_OF_PROBE)
            num_probes += 1
            bucket = bucket + num_probes & mask
        return bucket


def _listed(keys: Any) -> list[Any]:
    """Keys as Python values."""
    found: list[Any] = keys.tolist() if isinstance(keys, np.ndarray) else keys
    return found
