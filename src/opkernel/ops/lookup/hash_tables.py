"""Tables: their common interface, and tables on a hash map: one that is filled once, and one that changes.

The keys' hashes give the order of a C++ hash map.

Source: TensorFlow core/framework/lookup_interface.{h,cc}, core/kernels/lookup_table_op.{h,cc},
initializable_lookup_table.cc, core/lib/hash/hash.cc (tsl/platform); libstdc++ bits/hashtable.h,
hashtable_c++0x.cc.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.work_clock import WorkClock, in_time
from opkernel.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from opkernel.kernel import ResourceBase, check_allocation
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require, require_equal
from opkernel.types import DataType, TensorShape

Shape = tuple[int, ...]


class LookupInterface(ResourceBase):
    """A table of values by key; used from any thread.

    Args:
        key_dtype: The type of the keys.
        value_dtype: The type of the values.
        key_shape: The shape of a key.
        value_shape: The shape of a value.
    """

    is_initializable: ClassVar[bool] = False

    def __init__(
        self,
        key_dtype: DataType,
        value_dtype: DataType,
        key_shape: Shape = (),
        value_shape: Shape = (),
    ) -> None:
        self.key_dtype = key_dtype
        self.value_dtype = value_dtype
        self.key_shape = key_shape
        self.value_shape = value_shape

    def debug_string(self) -> str:
        """The number of keys."""
        return f"A lookup table of size: {self.size}"

    @property
    def size(self) -> int:
        """The number of keys."""
        raise NotImplementedError

    def find(self, keys: Any, default: Any) -> Any:
        """The values of keys [batch..., key...], as [batch..., value...].

        Keys that the table lacks have `default`: one value for all, or one for each key.
        """
        raise NotImplementedError

    def insert(self, keys: Any, values: Any) -> None:
        """Set the values of keys."""
        raise NotImplementedError

    def remove(self, keys: Any) -> None:
        """Forget keys; those that it lacks are passed over."""
        raise NotImplementedError

    def import_values(self, keys: Any, values: Any) -> None:
        """Have these keys and values and no others."""
        raise NotImplementedError

    def export_values(self) -> tuple[Any, Any]:
        """All keys and values."""
        raise NotImplementedError

    def check_find(self, keys: Any, default: Any) -> None:
        """Raise InvalidArgumentError unless the shapes fit."""
        wanted = self._values_shape(keys, self.key_shape, self.value_shape)
        if default.shape not in (self.value_shape, wanted):
            raise InvalidArgumentError(
                f"Expected shape {TensorShape(self.value_shape)} or {TensorShape(wanted)} for "
                f"default value, got {TensorShape(default.shape)}"
            )

    def check_keys(self, keys: Any) -> None:
        """Raise InvalidArgumentError unless the last dimensions are those of a key."""
        rank = len(self.key_shape)
        if keys.ndim < rank or keys.shape[keys.ndim - rank :] != self.key_shape:
            raise InvalidArgumentError(
                f"Input key shape {TensorShape(keys.shape)} must end with the table's key shape "
                f"{TensorShape(self.key_shape)}"
            )

    def check_insert(self, keys: Any, values: Any) -> None:
        """Raise InvalidArgumentError unless there is a value for each key."""
        self._check_values(keys, values, self.key_shape, self.value_shape)

    def check_import(self, keys: Any, values: Any) -> None:
        """`check_insert` for `import_values`."""
        self.check_insert(keys, values)

    def _values_shape(self, keys: Any, key_shape: Shape, value_shape: Shape) -> Shape:
        """The shape of the values of keys."""
        self.check_keys(keys)
        batch: Shape = keys.shape[: keys.ndim - len(key_shape)]
        return batch + value_shape

    def _check_values(self, keys: Any, values: Any, key_shape: Shape, value_shape: Shape) -> None:
        wanted = self._values_shape(keys, key_shape, value_shape)
        require_equal(wanted, values.shape, "Expected shape {} for value, got {}")


def flat_keys(keys: Any) -> list[Any]:
    """Scalar keys as Python values."""
    flat: list[Any] = keys.reshape(-1).tolist()
    return flat


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


class HashMapOrder:
    """The order in which a `std::unordered_map` of libstdc++ gives its keys.

    The map is one linked list, in which the keys of a bucket stand together. A new key goes before the
    other keys of its bucket; the first key of a bucket goes to the front.

    Args:
        keys: The keys to begin with, in the order in which they came.
    """

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._next: dict[Key | None, Key | None] = {None: None}  # of None, the front
        self._before: dict[int, Key | None] = {}  # for each bucket, the key before it
        self._num_buckets = 1
        for key in in_time(keys):
            self.insert(key)

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
        wanted = max(12, 2 * self._num_buckets, len(self) + 2)
        keys = list(self)
        self._num_buckets = next(n for n in (*_BUCKETS, wanted | 1) if n >= wanted)
        self._next, self._before = {None: None}, {}
        for key in keys:
            self._link(key)


_AT_ONCE = 1 << 12
"""So many keys are looked up or added at once."""
_OF_KEY = 150
"""The bytes that a key takes as a value of Python, and in a dict."""


def _making_keys(count: int) -> AbstractContextManager[object]:
    return making_bytes("keys of a table", _OF_KEY * count)


class MutableHashTable(LookupInterface):
    """A table that changes. Keys are scalars; values have one shape.

    The values are the rows of one array, which grows; a dict tells the row of a key.
    """

    def __init__(
        self, key_dtype: DataType, value_dtype: DataType, value_shape: tuple[int, ...] = ()
    ) -> None:
        super().__init__(key_dtype, value_dtype, (), value_shape)
        self._lock = threading.Lock()
        self._rows: dict[Any, int] = {}
        self._values = zeros((0, *value_shape), value_dtype)
        self._free: list[int] = []
        self._order: HashMapOrder | None = None  # known once somebody has asked for it

    def memory_used(self) -> int:
        """The bytes of the values."""
        return int(self._values.nbytes)

    @property
    def size(self) -> int:
        return len(self._rows)

    def find(self, keys: Any, default: Any) -> Any:
        dtype = self.value_dtype
        found = zeros(check_allocation((keys.size, *self.value_shape), dtype), dtype)
        with self._lock:
            get = self._rows.get
            found_rows = (
                get(key, -1)
                for start in in_time(range(0, keys.size, _AT_ONCE), _AT_ONCE << 8)
                for key in flat_keys(keys.reshape(-1)[start : start + _AT_ONCE])
            )
            rows = np.fromiter(found_rows, np.int64, keys.size)
            is_there = rows >= 0
            found[is_there] = self._values[rows[is_there]]
        per_key = default.shape != self.value_shape
        found[~is_there] = default.reshape(found.shape)[~is_there] if per_key else default
        return found.reshape(keys.shape + self.value_shape)

    def insert(self, keys: Any, values: Any) -> None:
        with self._lock, _making_keys(keys.size):
            self._insert(flat_keys(keys), values.reshape(-1, *self.value_shape))

    def remove(self, keys: Any) -> None:
        with self._lock, _making_keys(keys.size + len(self._rows)):
            order = self._known_order()
            for key in in_time(flat_keys(keys)):
                row = self._rows.pop(key, None)
                if row is not None:
                    self._free.append(row)
                    order.erase(key)

    def import_values(self, keys: Any, values: Any) -> None:
        with self._lock, _making_keys(keys.size):
            before = self._rows, self._free, self._order, self._values
            self._rows, self._free, self._order = {}, [], None
            self._values = zeros((0, *self.value_shape), self.value_dtype)
            try:
                self._insert(flat_keys(keys), values.reshape(-1, *self.value_shape))
            except BaseException:
                self._rows, self._free, self._order, self._values = before
                raise

    def export_values(self) -> tuple[Any, Any]:
        with self._lock, _making_keys(len(self._rows)):
            keys = list(self._known_order())
            check_allocation((len(keys), *self.value_shape), self.value_dtype)
            rows = np.fromiter(map(self._rows.__getitem__, in_time(keys)), np.int64, len(keys))
            array = np.empty(len(keys), self.key_dtype.numpy_dtype)
            array[:] = keys
            return array, self._values[rows]

    def _insert(self, keys: list[Any], values: Any) -> None:
        """Add keys with values, some at a time: where time is up, the first ones are there."""
        for start in in_time(range(0, len(keys), _AT_ONCE), _AT_ONCE << 10):
            some = slice(start, start + _AT_ONCE)
            rows = [self._row(key) for key in keys[some]]
            missing = len(self._rows) + len(self._free) - len(self._values)
            if missing > 0:
                self._grow(missing)
            self._values[rows] = values[some]

    def _known_order(self) -> HashMapOrder:
        if self._order is None:
            self._order = HashMapOrder(self._rows)
        return self._order

    def _row(self, key: Any) -> int:
        """The row of a key, which is given one if it is new."""
        row = self._rows.get(key)
        if row is None:
            row = self._free.pop() if self._free else len(self._rows)
            self._rows[key] = row
            if self._order is not None:
                self._order.insert(key)
        return row

    def _grow(self, missing: int) -> None:
        """Add rows: as many as are missing, or as many as there are."""
        shape = (max(missing, len(self._values)), *self.value_shape)
        more = zeros(check_allocation(shape, self.value_dtype), self.value_dtype)
        self._values = np.concatenate([self._values, more])


class HashTable(MutableHashTable):
    """A table that is filled once. Keys and values are scalars."""

    is_initializable = True
    _is_initialized = False

    @property
    def size(self) -> int:
        return len(self._rows) if self._is_initialized else 0

    def find(self, keys: Any, default: Any) -> Any:
        if not self._is_initialized:
            raise FailedPreconditionError("Table not initialized.")
        return super().find(keys, default.reshape(-1)[:1].reshape(()))  # one for all, always

    def insert(self, keys: Any, values: Any) -> None:
        raise UnimplementedError("Insert not supported by InitializableLookupTable implementations")

    def remove(self, keys: Any) -> None:
        raise UnimplementedError("Remove not supported by InitializableLookupTable implementations")

    def import_values(self, keys: Any, values: Any) -> None:
        """Fill the table; one that is filled must be given as many keys as it has.

        Raises:
            InvalidArgumentError: there are no keys.
            FailedPreconditionError: the table has another number of keys, or a key another value.
        """
        require(keys.size, "keys and values cannot be empty tensors.")
        with self._lock:
            if not self._is_initialized:
                self._fill(flat_keys(keys), values.reshape(-1))
                self._is_initialized = True
            elif keys.size != self.size:
                raise FailedPreconditionError("Table was already initialized with different data.")

    def export_values(self) -> tuple[Any, Any]:
        if not self._is_initialized:
            raise AbortedError("HashTable is not initialized.")
        return super().export_values()

    def _fill(self, keys: list[Any], values: Any) -> None:
        if not self._rows and len({*keys}) == len(keys):
            self._insert(keys, values)
            return
        for key, value in zip(in_time(keys), values, strict=True):
            row = self._rows.get(key)
            if row is None:
                self._insert([key], np.array([value], self._values.dtype))
            elif self._values[row] != value:
                raise FailedPreconditionError(
                    f"HashTable has different value for same key. Key {_text(key)} has "
                    f"{_text(self._values[row])} and trying to add value {_text(value)}"
                )


def _text(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
