"""Tables on a hash map: one that is filled once, and one that changes.

Source: TensorFlow core/kernels/lookup_table_op.{h,cc}, initializable_lookup_table.cc.
"""

import threading
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from opkernel.kernel import check_allocation
from opkernel.ops.array.zeros import zeros
from opkernel.ops.lookup.hashing import HashMapOrder
from opkernel.ops.lookup.lookup_table import LookupInterface, array_of_keys, flat_keys
from opkernel.types import DataType

__all__ = ["HashTable", "MutableHashTable"]


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
        found = zeros(
            check_allocation((keys.size, *self.value_shape), self.value_dtype), self.value_dtype
        )
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
            return array_of_keys(keys, self.key_dtype), self._values[rows]

    def _insert(self, keys: list[Any], values: Any) -> None:
        """Add keys with values, some at a time: where time is up, the first ones are there."""
        for start in in_time(range(0, len(keys), _AT_ONCE), _AT_ONCE << 10):
            self._insert_some(keys[start : start + _AT_ONCE], values[start : start + _AT_ONCE])

    def _insert_some(self, keys: list[Any], values: Any) -> None:
        rows = [self._row(key) for key in keys]
        missing = len(self._rows) + len(self._free) - len(self._values)
        if missing > 0:
            self._grow(missing)
        self._values[rows] = values

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
        if keys.size == 0:
            raise InvalidArgumentError("keys and values cannot be empty tensors.")
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
            self._insert_new(key, value)

    def _insert_new(self, key: Any, value: Any) -> None:
        row = self._rows.get(key)
        if row is None:
            self._insert([key], np.array([value], self._values.dtype))
        elif self._values[row] != value:
            have = self._values[row]
            raise FailedPreconditionError(
                f"HashTable has different value for same key. Key {_text(key)} has "
                f"{_text(have)} and trying to add value {_text(value)}"
            )


def _text(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
