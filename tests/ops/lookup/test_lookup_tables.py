"""Lookup tables; expected values, errors and orders are TensorFlow's."""

import zlib
from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Session, raw_ops
from opkernel.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from opkernel.kernel import ANONYMOUS_NAME
from opkernel.types import DataType, float32, int32, int64, string


def text(*values: bytes) -> np.ndarray[Any, Any]:
    return np.array(values, object)


class Table:
    """A table that eager calls make and use."""

    def __init__(self, op: str, key: DataType, value: DataType, **attrs: Any) -> None:
        self.key, self.value = key, value
        if "empty_key" not in attrs:
            attrs["key_dtype"] = key
        self.handle = getattr(raw_ops, op)(value_dtype=value, **attrs)

    def _array(self, values: Any, dtype: DataType) -> Any:
        return np.array(values, dtype.numpy_dtype)

    def _with_values(self, op: Any, keys: Any, values: Any) -> None:
        keys, values = self._array(keys, self.key), self._array(values, self.value)
        op(table_handle=self.handle, keys=keys, values=values)

    def initialize(self, keys: Any, values: Any) -> None:
        self._with_values(raw_ops.InitializeTableV2, keys, values)

    def insert(self, keys: Any, values: Any) -> None:
        self._with_values(raw_ops.LookupTableInsertV2, keys, values)

    def import_(self, keys: Any, values: Any) -> None:
        self._with_values(raw_ops.LookupTableImportV2, keys, values)

    def remove(self, keys: Any) -> None:
        raw_ops.LookupTableRemoveV2(table_handle=self.handle, keys=self._array(keys, self.key))

    def find(self, keys: Any, default: Any) -> Any:
        found = raw_ops.LookupTableFindV2(
            table_handle=self.handle,
            keys=self._array(keys, self.key),
            default_value=self._array(default, self.value),
        )
        return found.tolist() if isinstance(found, np.ndarray | np.generic) else found

    def export(self) -> list[Any]:
        exported = raw_ops.LookupTableExportV2(
            table_handle=self.handle, Tkeys=self.key, Tvalues=self.value
        )
        return [part.tolist() for part in exported]

    @property
    def size(self) -> int:
        return int(raw_ops.LookupTableSizeV2(table_handle=self.handle))


def hash_table(key: DataType = int64, value: DataType = string) -> Table:
    return Table("AnonymousHashTable", key, value)


def mutable(key: DataType = string, value: DataType = float32) -> Table:
    return Table("AnonymousMutableHashTable", key, value)


def test_a_hash_table_is_filled_once() -> None:
    table = hash_table()
    assert table.size == 0
    with pytest.raises(FailedPreconditionError, match="Table not initialized"):
        table.find([1], b"z")
    with pytest.raises(AbortedError, match="HashTable is not initialized"):
        table.export()
    with pytest.raises(InvalidArgumentError, match="cannot be empty"):
        table.initialize([], [])
    table.initialize([1, 2], [b"a", b"b"])
    table.initialize([5, 6], [b"c", b"d"])  # as many: taken for the same
    with pytest.raises(FailedPreconditionError, match="already initialized with different data"):
        table.initialize([1], [b"a"])
    assert table.size == 2
    assert table.find([[1, 3], [2, 1]], b"z") == [[b"a", b"z"], [b"b", b"a"]]
    assert table.find(1, b"z") == b"a"
    assert table.find([1, 5], [b"x", b"y"]) == [b"a", b"x"]  # the first default serves all
    assert table.export() == [[2, 1], [b"b", b"a"]]
    for use in (lambda: table.insert([1], [b"b"]), lambda: table.remove([1])):
        with pytest.raises(UnimplementedError, match="not supported by InitializableLookupTable"):
            use()


def test_what_fills_a_hash_table_is_checked() -> None:
    table = hash_table()
    for keys, values, message in (
        ([1, 2], [b"a"], "the same size 2 vs 1"),
        ([[1, 2]], [[b"a", b"b"]], r"Keys must be a vector, but received shape \[1,2\]"),
        ([1, 2], [[b"a"], [b"b"]], "Values must be a vector"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            table.initialize(keys, values)
    message = "Key 1 has a and trying to add value b"
    with pytest.raises(FailedPreconditionError, match=message):
        table.initialize([1, 1], [b"a", b"b"])
    with pytest.raises(FailedPreconditionError, match=message):
        table.initialize([1], [b"b"])  # the first attempt left its traces
    assert table.size == 0
    table.initialize([1, 1], [b"a", b"a"])
    assert table.size == 1


def test_a_mutable_table_changes() -> None:
    table = mutable()
    assert table.export() == [[], []]
    table.insert([b"a", b"b"], [1, 2])
    table.insert([b"b", b"b"], [3, 4])
    assert table.find([[b"a", b"b"], [b"c", b"d"]], -1) == [[1, 4], [-1, -1]]
    assert table.find([b"c", b"a"], [5, 6]) == [5, 1]  # a default for each
    table.insert(b"q", 9)
    assert table.size == 3
    table.remove([b"a", b"zz"])
    assert table.size == 2
    table.insert([b"new"], [7])
    assert table.find([b"a", b"b", b"q", b"new"], 0) == [0, 4, 9, 7]
    table.import_([b"z"], [4])
    assert table.export() == [[b"z"], [4]]


def test_shapes_are_checked() -> None:
    table = mutable()
    with pytest.raises(InvalidArgumentError, match=r"Expected shape \[1\] for value, got \[\]"):
        table.insert([b"q"], 9)
    with pytest.raises(
        InvalidArgumentError, match=r"shape \[\] or \[2\] for default value, got \[1\]"
    ):
        table.find([b"a", b"c"], [5])
    with pytest.raises(InvalidArgumentError, match="not initializable"):
        table.initialize([b"a"], [1])


def test_values_may_be_vectors() -> None:
    table = Table("AnonymousMutableHashTableOfTensors", int64, float32, value_shape=[2])
    table.insert([1, 2], [[1, 2], [3, 4]])
    assert table.find([1, 3], [7, 8]) == [[1, 2], [7, 8]]
    assert table.find([3, 4], [[7, 8], [9, 10]]) == [[7, 8], [9, 10]]
    assert table.find([[1], [2]], [7, 8]) == [[[1, 2]], [[3, 4]]]
    assert table.find(1, [7, 8]) == [1, 2]
    with pytest.raises(
        InvalidArgumentError, match=r"Expected shape \[1,2\] for value, got \[1,3\]"
    ):
        table.insert([1], [[1, 2, 3]])
    with pytest.raises(InvalidArgumentError, match=r"must be a vector, got shape \[\]"):
        Table("AnonymousMutableHashTableOfTensors", int64, float32)


def test_keys_are_exported_in_the_order_of_a_cpp_hash_map() -> None:
    table = mutable(int64, int64)
    table.insert([5, 1, 9, 20, 33, 2, 18, 7, 100, 64], range(10))
    assert table.export() == [
        [64, 2, 7, 33, 20, 100, 9, 1, 18, 5],
        [9, 5, 7, 4, 3, 8, 2, 1, 6, 0],
    ]
    table.remove([9, 100])
    table.insert(range(50, 59), range(9))
    keys = [58, 57, 56, 55, 5, 18, 1, 53, 20, 33, 7, 2, 54, 64, 51, 50, 52]
    assert table.export()[0] == keys


def test_a_table_grows() -> None:
    table, count = mutable(int64, int64), 3000
    for start in range(0, count, 100):
        table.insert(range(start, start + 100), range(start, start + 100))
        table.remove([start])
    assert table.size == count - 30
    keys, values = table.export()
    assert sorted(keys) == [i for i in range(count) if i % 100]
    assert keys == values
    assert table.find(keys, -1) == keys


def dense(key: DataType = int64, empty: Any = 0, deleted: Any = -1, **attrs: Any) -> Table:
    attrs = {"initial_num_buckets": 8, **attrs}
    keys = [np.array(k, key.numpy_dtype) for k in (empty, deleted)]
    return Table(
        "AnonymousMutableDenseHashTable",
        key,
        float32,
        empty_key=keys[0],
        deleted_key=keys[1],
        **attrs,
    )


def test_a_dense_table_is_exported_bucket_by_bucket() -> None:
    table = dense()
    table.insert([11, 3, 19], [1, 2, 3])
    assert table.export()[0] == [[0], [0], [0], [11], [3], [0], [19], [0]]
    table.remove([11])
    assert table.export()[0] == [[0], [0], [0], [-1], [3], [0], [19], [0]]
    table.insert([27, 19], [5, 6])
    keys, values = table.export()
    assert keys == [[0], [0], [0], [27], [3], [0], [19], [0]]
    assert values == [[0], [0], [0], [5], [2], [0], [6], [0]]
    table.insert([1, 2, 4, 5], [7, 8, 9, 10])
    keys = [0, 1, 2, 3, 19, 4, 5, 0, 0, 0, 0, 27, 0, 0, 0, 0]
    assert table.export()[0] == [[key] for key in keys]
    assert table.find([3, 11, 27], [-1, -2, -3]) == [2, -1, 5]
    assert table.size == 7


def test_a_dense_table_of_vectors() -> None:
    table = dense(empty=[0, 0], deleted=[-1, -1], value_shape=[2])
    table.insert([[1, 2], [3, 4]], [[1, 2], [3, 4]])
    assert table.find([[1, 2], [2, 1]], [9, 9]) == [[1, 2], [9, 9]]
    assert table.export()[0][3] == [1, 2]
    assert table.export()[0][7] == [3, 4]
    for keys, message in (
        ([1, 2], r"Expected key shape \[2,2\] got \[2\]"),
        ([[1, 2, 3]], r"\[1,3\] must end with the table's key shape \[2\]"),
        ([[0, 0]], "empty_key as a table key"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            table.find(keys, [9, 9])


def test_a_dense_table_of_strings() -> None:
    table = dense(string, b"", b"$")
    table.insert([b"a", b"bcd", b"hello world", b"x"], [1, 2, 3, 4])
    keys = [b"x", b"", b"", b"", b"a", b"", b"bcd", b"hello world"]
    assert table.export()[0] == [[key] for key in keys]
    assert table.find([b"a", b"q"], -1) == [1, -1]


def test_the_two_keys_of_a_dense_table_cannot_be_used() -> None:
    table = dense()
    for key, name in ((0, "empty_key"), (-1, "deleted_key")):
        for use in (
            lambda key=key: table.insert([key], [1]),
            lambda key=key: table.find([key], 1),
            lambda key=key: table.remove([key]),
        ):
            with pytest.raises(InvalidArgumentError, match=f"Using the {name} as a table key"):
                use()


def test_a_dense_table_is_imported_as_it_was_exported() -> None:
    table, other = dense(), dense()
    table.insert([11, 3, 19], [1, 2, 3])
    other.import_(*table.export())
    assert other.size == 3
    assert other.export() == table.export()
    assert other.find([3, 11, 4], -1) == [2, 1, -1]
    with pytest.raises(
        InvalidArgumentError, match=r"Expected shape \[2,1\] for value, got \[1,1\]"
    ):
        other.import_([[3], [0]], [[1]])


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"initial_num_buckets": 6}, "at least 4 and a power of 2, got: 6"),
        ({"max_load_factor": 1.5}, "between 0 and 1, got: 1.5"),
        ({"deleted": 0}, "Empty and deleted keys cannot be equal"),
        ({"empty": [0]}, r"must have same shape, got shapes: \[1\] and \[\]"),
        ({"value_shape": [2, 3]}, r"Empty value must be a scalar or a vector, got shape \[2,3\]"),
        ({"empty": [[0]], "deleted": [[1]]}, "Empty key must be a scalar or a vector"),
    ],
)
def test_dense_tables_that_cannot_be(attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        dense(**attrs)


def test_signatures_and_shared_names() -> None:
    table = mutable(int64, float32)
    with pytest.raises(InvalidArgumentError, match="Signature mismatch, have: resource, int32"):
        raw_ops.LookupTableRemoveV2(table_handle=table.handle, keys=np.int32([1]))
    with pytest.raises(InvalidArgumentError, match="Signature mismatch"):
        raw_ops.LookupTableExportV2(table_handle=table.handle, Tkeys=int32, Tvalues=float32)
    shared = Table("HashTableV2", int64, float32, shared_name="lookup_test")
    with pytest.raises(InvalidArgumentError, match="string->float with int64-float for table"):
        Table("HashTableV2", string, float32, shared_name="lookup_test")
    raw_ops.DestroyResourceOp(resource=shared.handle)
    with pytest.raises(NotFoundError):
        _ = shared.size
    assert ANONYMOUS_NAME not in str(shared.handle)


def test_tables_in_sessions_and_by_reference() -> None:
    attrs = {"key_dtype": string, "value_dtype": int64}
    with Graph().as_default() as graph:
        table = raw_ops.HashTable(**attrs, shared_name="t")
        initialize = raw_ops.InitializeTable(
            table_handle=table, keys=text(b"a", b"b"), values=np.int64([10, 11])
        )
        by_name = raw_ops.HashTableV2(**attrs, shared_name="t")
        found = raw_ops.LookupTableFindV2(
            table_handle=by_name, keys=text(b"b", b"c"), default_value=np.int64(-1)
        )
        size = raw_ops.LookupTableSize(table_handle=table)
        own = raw_ops.HashTableV2(**attrs, use_node_name_sharing=True, name="node")
        same = raw_ops.HashTableV2(**attrs, shared_name="node")
        fill = raw_ops.InitializeTableV2(table_handle=own, keys=text(b"x"), values=np.int64([1]))
        size_of_same = raw_ops.LookupTableSizeV2(table_handle=same)
    with Session(graph) as session:
        with pytest.raises(FailedPreconditionError):
            session.run(found)
        session.run([initialize, fill])
        assert session.run(found).tolist() == [11, -1]
        assert session.run([size, size_of_same]) == [2, 1]


@pytest.mark.parametrize(
    ("key", "first", "checksum"),
    [
        (int64, [2999, 2995, 2994, 2990, 2989, 2988, 2985, 2983], 3993122070),
        (string, [2998, 2996, 2991, 2988, 2985, 2983, 2978, 2977], 968790689),
    ],
)
def test_the_order_of_many_keys(key: DataType, first: list[int], checksum: int) -> None:
    numbers = [i * 7919 % 10007 - 5000 for i in range(3000)]
    table = mutable(key, int64)
    table.insert(numbers if key is int64 else [b"%d" % n for n in numbers], range(3000))
    _, values = table.export()
    assert values[:8] == first
    assert zlib.crc32(np.array(values, "<i8").tobytes()) == checksum


@pytest.mark.parametrize("step", [1, 10**14])
@pytest.mark.parametrize("is_dense", [False, True])
def test_many_keys_that_repeat(step: int, is_dense: bool) -> None:
    """A dict tells what is expected, of keys that stand close to each other or far apart."""
    random, table, expected = np.random.default_rng(4), mutable(int64, int64), dict[int, int]()
    if is_dense:
        marks = {"empty_key": np.int64(2**62), "deleted_key": np.int64(2**62 + 1)}
        table = Table("AnonymousMutableDenseHashTable", int64, int64, **marks)
    for size in (9000, 3, 9000, 0, 20_000):
        keys = (random.integers(-3000, 3000, size) * step).tolist()
        values = random.integers(0, 10**9, size).tolist()
        table.insert(keys, values)
        expected.update(zip(keys, values, strict=True))
        table.remove(keys[:40])
        for one in keys[:40]:
            expected.pop(one, None)
        asked = [*range(-4000 * step, 4000 * step, step), -(2**63), 2**63 - 1]
        assert table.find(asked, -1) == [expected.get(one, -1) for one in asked]
        keys, values = (np.ravel(part).tolist() for part in table.export())
        found = {key: value for key, value in zip(keys, values, strict=True) if key < 2**62}
        assert found == expected
