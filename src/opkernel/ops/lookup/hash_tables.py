"""Tables: their common interface, and tables on a hash map: one that is filled once, and one that changes.

Source: TensorFlow core/framework/lookup_interface.{h,cc}, core/kernels/lookup_table_op.{h,cc},
initializable_lookup_table.cc.
"""

import threading
from contextlib import AbstractContextManager
from itertools import compress, repeat
from typing import Any, ClassVar

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from opkernel.kernel import ResourceBase, check_allocation
from opkernel.ops.array.fill import zeros
from opkernel.ops.input_checks import require, require_equal
from opkernel.ops.lookup.hash_map_order import HashMapOrder, order_in_map
from opkernel.ops.lookup.integer_index import IntegerIndex
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
        self._num_rows = 0  # of keys, and free
        self._order: HashMapOrder | None = None  # known once a key was removed
        self._index: IntegerIndex | None = None  # of the rows; not known where they changed

    def memory_used(self) -> int:
        """The bytes of the values."""
        return int(self._values.nbytes)

    @property
    def size(self) -> int:
        return len(self._rows)

    def find(self, keys: Any, default: Any) -> Any:
        dtype = self.value_dtype
        shape = check_allocation((keys.size, *self.value_shape), dtype)
        with self._lock:
            rows = self._rows_of(keys.reshape(-1))
            is_there = rows >= 0
            if is_there.all():
                return self._values[rows].reshape(keys.shape + self.value_shape)
            found = zeros(shape, dtype)
            found[is_there] = self._values[rows[is_there]]
        per_key = default.shape != self.value_shape
        found[~is_there] = default.reshape(found.shape)[~is_there] if per_key else default
        return found.reshape(keys.shape + self.value_shape)

    def _rows_of(self, keys: Any) -> Any:
        """The rows of keys, -1 of those that the table lacks."""
        rows = np.empty(keys.size, np.int64)
        for start in in_time(range(0, keys.size, _AT_ONCE), _AT_ONCE << 8):
            some = slice(start, start + _AT_ONCE)
            index = self._index_for(keys)
            rows[some] = index.rows_of(keys[some]) if index else self._known_rows(keys[some])
        return rows

    def _index_for(self, keys: Any) -> IntegerIndex | None:
        """The index of the keys of the table, if it can look for these and there are enough to make it for."""
        if self._index is None and IntegerIndex.pays_for(keys, len(self._rows)):
            self._index = IntegerIndex(self._rows)
        return self._index

    def _known_rows(self, keys: Any) -> Any:
        return np.fromiter(map(self._rows.get, keys.tolist(), repeat(-1)), np.int64, len(keys))

    def insert(self, keys: Any, values: Any) -> None:
        with self._lock, _making_keys(keys.size):
            self._insert(keys.reshape(-1), values.reshape(-1, *self.value_shape))

    def remove(self, keys: Any) -> None:
        with self._lock, _making_keys(keys.size + len(self._rows)):
            if self._order is None:
                self._order = HashMapOrder(self._rows)
            order = self._order
            for key in in_time(flat_keys(self._first_known(keys.reshape(-1)))):
                self._index = None
                self._free.append(self._rows.pop(key))
                order.erase(key)

    def _first_known(self, keys: Any) -> Any:
        """Those of the keys that the table has, each once, in order."""
        rows = self._rows_of(keys)
        places = np.flatnonzero(rows >= 0)[::-1]
        first = np.full(self._num_rows, keys.size)
        first[rows[places]] = places  # of several places of a row the last one stays
        return keys[np.sort(first[first < keys.size])]

    def import_values(self, keys: Any, values: Any) -> None:
        with self._lock, _making_keys(keys.size):
            before = self._rows, self._free, self._num_rows, self._order, self._values
            self._rows, self._free, self._num_rows, self._order = {}, [], 0, None
            self._index = None
            self._values = zeros((0, *self.value_shape), self.value_dtype)
            try:
                self._insert(keys.reshape(-1), values.reshape(-1, *self.value_shape))
            except BaseException:
                self._rows, self._free, self._num_rows, self._order, self._values = before
                self._index = None
                raise

    def export_values(self) -> tuple[Any, Any]:
        with self._lock, _making_keys(len(self._rows)):
            keys = [*(self._rows if self._order is None else self._order)]
            check_allocation((len(keys), *self.value_shape), self.value_dtype)
            rows = np.fromiter(map(self._rows.__getitem__, in_time(keys)), np.int64, len(keys))
            array = np.empty(len(keys), self.key_dtype.numpy_dtype)
            array[:] = keys
            if self._order is None:
                order = order_in_map(keys)
                array, rows = array[order], rows[order]
            return array, self._values[rows]

    def _insert(self, keys: Any, values: Any) -> None:
        """Add keys with values, some at a time: where time is up, the first ones are there."""
        for start in in_time(range(0, len(keys), _AT_ONCE), _AT_ONCE << 10):
            some = slice(start, start + _AT_ONCE)
            rows = self._rows_to_set(keys[some])
            missing = self._num_rows - len(self._values)
            if missing > 0:
                self._grow(missing)
            self._values[rows] = values[some]

    def _rows_to_set(self, keys: Any) -> Any:
        """The rows of keys, new ones included."""
        index = self._index_for(keys)
        if index is None:
            return self._added_rows(keys.tolist())
        rows = index.rows_of(keys)
        is_new = rows < 0
        if is_new.any():
            rows[is_new] = self._added_rows(keys[is_new].tolist())
        return rows

    def _added_rows(self, keys: list[Any]) -> Any:
        """The rows of keys; new ones are given rows that are free, and then further ones."""
        spare = self._free[: -len(keys) - 1 : -1]
        after = self._num_rows
        further = range(after, after + len(keys) - len(spare))
        self._index = None
        self._num_rows = further.stop
        del self._free[len(self._free) - len(spare) :]
        offered = np.array([*spare, *further], np.int64)
        given = map(self._rows.setdefault, keys, offered.tolist())
        rows = np.fromiter(given, np.int64, len(keys))
        is_new = rows == offered
        if not is_new.all():
            self._num_rows = max(after, int(rows.max(initial=-1)) + 1)
            left = offered[~is_new]
            self._free += left[left < self._num_rows].tolist()[::-1]
        if self._order is not None:
            for key in compress(keys, is_new.tolist()):
                self._order.insert(key)
        return rows

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
                self._fill(keys.reshape(-1), values.reshape(-1))
                self._is_initialized = True
            elif keys.size != self.size:
                raise FailedPreconditionError("Table was already initialized with different data.")

    def export_values(self) -> tuple[Any, Any]:
        if not self._is_initialized:
            raise AbortedError("HashTable is not initialized.")
        return super().export_values()

    def _fill(self, keys: Any, values: Any) -> None:
        texts = flat_keys(keys)
        if not self._rows and len({*texts}) == len(texts):
            self._insert(keys, values)
            return
        for at, (key, value) in enumerate(zip(in_time(texts), values, strict=True)):
            row = self._rows.get(key)
            if row is None:
                self._insert(keys[at : at + 1], values[at : at + 1])
            elif self._values[row] != value:
                raise FailedPreconditionError(
                    f"HashTable has different value for same key. Key {_text(key)} has "
                    f"{_text(self._values[row])} and trying to add value {_text(value)}"
                )


def _text(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
