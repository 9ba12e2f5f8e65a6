"""ParseExample and its kin; DecodeProtoV2, EncodeProto."""

import contextlib
import time
from typing import Any

import numpy as np
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as st

from opkernel import PartialTensorShape, raw_ops
from opkernel.data import Dataset
from opkernel.device.budget import Budget
from opkernel.errors import DataLossError, DeadlineExceededError, InvalidArgumentError
from opkernel.kernel import under_budget
from opkernel.ops.parsing.feature_maps import (
    map_of_example,
    map_of_message,
    map_of_sequence_example,
)
from opkernel.proto import Example, SequenceExample
from opkernel.runtime.calls.eager import execute
from opkernel.types.varints import varint


def example(**features: Any) -> bytes:
    """A serialized Example; floats, ints or bytes by the first value."""
    made = Example()
    for key, values in features.items():
        _fill(made.features.feature[key], values)
    return made.SerializeToString(deterministic=True)


def _fill(feature: Any, values: Any) -> None:
    kind = {float: "float_list", int: "int64_list", bytes: "bytes_list"}[type(values[0])]
    getattr(feature, kind).value.extend(values)


def keys(*names: str) -> np.ndarray[Any, Any]:
    return np.array([name.encode() for name in names], object)


def parse(records: Any, **wanted: Any) -> Any:
    """Dense a: float [2], sparse i: int64, ragged s: string."""
    return raw_ops.ParseExampleV2(
        serialized=np.array(records, object),
        names=keys(),
        sparse_keys=keys("i"),
        dense_keys=keys("a"),
        ragged_keys=keys("s"),
        dense_defaults=[np.array(wanted.get("default", [8.0, 9.0]), np.float32)],
        num_sparse=1,
        sparse_types=["int64"],
        ragged_value_types=["string"],
        ragged_split_types=["int32"],
        dense_shapes=[wanted.get("shape", [2])],
    )


RECORDS = [
    example(a=[1.0, 2.0], i=[3, -4], s=[b"x"]),
    example(i=[5]),
    example(other=[1], a=[6.0, 7.0], s=[b"", b"yz"]),
    b"",
]


FEW_AND_MANY = pytest.mark.parametrize("times", [1, 40])


@FEW_AND_MANY
def test_dense_sparse_and_ragged_features(times: int) -> None:
    found = parse(RECORDS * times)
    assert found.dense_values[0].tolist() == [[1, 2], [8, 9], [6, 7], [8, 9]] * times
    rows = [[4 * i + row, at] for i in range(times) for row, at in ((0, 0), (0, 1), (1, 0))]
    assert found.sparse_indices[0].tolist() == rows
    assert found.sparse_values[0].tolist() == [3, -4, 5] * times
    assert found.sparse_shapes[0].tolist() == [4 * times, 2]
    assert found.ragged_values[0].tolist() == [b"x", b"", b"yz"] * times
    splits = [3 * i + at for i in range(times) for at in (1, 1, 3, 3)]
    assert found.ragged_row_splits[0].tolist() == [0, *splits]


def test_features_of_varying_length_are_padded() -> None:
    records = [example(a=[1.0]), example(a=[2.0, 3.0]), example(i=[1])]
    found = parse(records, shape=PartialTensorShape([None]), default=[0.5])
    assert found.dense_values[0].tolist() == [[1, 0.5], [2, 3], [0.5, 0.5]]


def test_one_example() -> None:
    found = parse(RECORDS[0])
    assert found.dense_values[0].tolist() == [1, 2]
    assert (found.sparse_indices[0].tolist(), found.sparse_shapes[0].tolist()) == ([[0], [1]], [2])


UNPACKED = b"\n\x13\n\x11\n\x01a\x12\x0c\x12\x0a\r\x00\x00\x80?\r\x00\x00\x00@"
TWICE = example(a=[1.0, 2.0]) + example(a=[3.0, 4.0])


@FEW_AND_MANY
def test_other_forms_of_messages(times: int) -> None:
    assert parse([UNPACKED] * times).dense_values[0].tolist() == [[1, 2]] * times
    found = parse([TWICE, RECORDS[0]] * times).dense_values[0]
    assert found.tolist() == [[3, 4], [1, 2]] * times
    unknown_fields = b"\x18\x05" + RECORDS[0] + b"\x22\x01x"
    assert parse([unknown_fields] * times).sparse_values[0].tolist() == [3, -4] * times


@pytest.mark.parametrize(
    "record",
    [
        example(a=[1.0]),
        example(a=[1, 2]),
        example(i=[1.0]),
        RECORDS[0][:-1],
        b"\xff",
        b"\x0a\x05\x0a\xff\xff\xff\xff",
    ],
)
@FEW_AND_MANY
def test_examples_that_do_not_fit_are_refused(record: bytes, times: int) -> None:
    with pytest.raises(InvalidArgumentError):
        parse([*[RECORDS[0]] * times, record])


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


KEY, VALUE = field(1, b"i"), field(2, field(3, field(1, b"\x05")))
ENTRY = KEY + VALUE
MAP = field(1, field(1, ENTRY))
# From TensorFlow: the numbers that ParseSingleExample and ParseExampleV2 find, those that ParseSequenceExample finds,
# and those of ParseSingleSequenceExample; None for an error.
ODD_RECORDS: dict[str, tuple[bytes, list[int] | None, list[int] | None, list[int] | None]] = {
    "usual": (MAP, [5], [5], [5]),
    "value before key": (field(1, field(1, VALUE + KEY)), [5], None, [5]),
    "key": (field(1, field(1, KEY)), None, None, []),
    "value": (field(1, field(1, VALUE)), None, None, []),
    "two keys": (field(1, field(1, KEY + KEY)), [], None, []),
    "key, value, key": (field(1, field(1, ENTRY + KEY)), None, None, [5]),
    "another field in the map": (field(1, field(2, b"x") + field(1, ENTRY)), None, None, [5]),
    "another field": (field(7, b"x") + MAP, [5], [5], [5]),
    "a field 0": (b"\x00\x01" + MAP, [5], [5], None),
    "two maps": (MAP + MAP[:-1] + b"\x07", [7], [7], [7]),
    "a map past the end": (b"\x0a\x70" + MAP[2:], [5], [5], None),
    "an entry past the end": (b"\x0a\x20\x0a\x20" + ENTRY, [5], [5], None),
    "a feature past the end": (b"\x0a\x20\x0a\x20" + ENTRY[:-1], None, None, None),
    "another field past the end": (MAP + b"\x1a\x70abc", [5], [5], None),
    "another field of 4 bytes": (MAP + b"\x1d\x70abc", [5], [5], [5]),
    "another field of 3 bytes": (MAP + b"\x1d\x70ab", None, None, None),
    "a length of more than 32 bits": (b"\x0a\x8c\x80\x80\x80\x10" + MAP[2:], [5], [5], None),
    "a negative length": (b"\x0a\xff\xff\xff\xff\x0f" + MAP[2:], [5], [5], None),
    "a negative length of another field": (b"\x1a\xff\xff\xff\xff\x0f" + MAP, [5], [5], None),
}


@pytest.mark.parametrize("name", ODD_RECORDS)
@pytest.mark.parametrize("parser", [1, 2, 3])
@FEW_AND_MANY
def test_records_of_odd_forms(name: str, parser: int, times: int) -> None:
    record, *numbers = ODD_RECORDS[name]
    wanted = numbers[parser - 1]

    def numbers_found() -> Any:
        if parser == 1:
            return parse([record] * times).sparse_values[0]
        if parser == 2:
            return parse_sequences([record] * times).context_sparse_values[0]
        return np.repeat(parse_sequence(record).context_sparse_values[0], times)

    if wanted is None:
        with pytest.raises(InvalidArgumentError):
            numbers_found()
    else:
        assert numbers_found().tolist() == wanted * times


@pytest.mark.parametrize("read", [map_of_example, map_of_sequence_example, map_of_message])
def test_maps_of_many_entries_end_with_the_time(read: Any) -> None:
    entries = field(1, ENTRY) * 5000
    records = [b"\x0a" + varint(len(entries)) + entries, field(7, b"x") * 5000 + MAP]
    for record in records:
        with (
            under_budget(Budget(deadline=time.monotonic() - 1)),
            pytest.raises(DeadlineExceededError),
        ):
            read(record, 1)


# Of a feature that holds such bytes: the numbers that TensorFlow finds in it.
ODD_LISTS: dict[bytes, list[float] | None] = {
    b"\x1a\x03\x0a\x05\x01": [1],
    b"\x1a\x04\x0a\x01\x05\x07": [5],
    b"\x1a\x70\x0a\x01\x05": [5],
    b"\x12\x06\x0a\x07\x00\x00\x80\x3f": [1],
    b"\x12\x06\x0a\x05\x00\x00\x80\x3f": [1],
    b"\x12\x06\x0a\x08\x00\x00\x80\x3f": None,
}


@pytest.mark.parametrize("feature", ODD_LISTS)
@FEW_AND_MANY
def test_lists_of_odd_forms(feature: bytes, times: int) -> None:
    record = field(1, field(1, field(1, b"x") + field(2, feature)))
    wanted = ODD_LISTS[feature]

    def numbers_found() -> Any:
        return raw_ops.ParseExampleV2(
            serialized=np.array([record] * times, object),
            names=keys(),
            sparse_keys=keys("x"),
            dense_keys=keys(),
            ragged_keys=keys(),
            dense_defaults=[],
            num_sparse=1,
            sparse_types=["float" if feature[0] == 0x12 else "int64"],
            ragged_value_types=[],
            ragged_split_types=[],
            dense_shapes=[],
        ).sparse_values[0]

    if wanted is None:
        with pytest.raises(InvalidArgumentError):
            numbers_found()
    else:
        assert numbers_found().tolist() == wanted * times


def test_required_features() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Feature: a .*required"):
        parse(RECORDS, default=[])


LISTS = st.lists(st.one_of(st.just(()), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3)))


@given(LISTS)
def test_integers_come_back(rows: list[Any]) -> None:
    records = [example(i=list(row)) if row else b"" for row in rows]
    found = parse(records)
    assert found.sparse_values[0].tolist() == [n for row in rows for n in row]


def test_damaged_examples_give_clean_errors() -> None:
    rng = np.random.default_rng(7)
    for _ in range(1000):
        damaged = bytearray(RECORDS[rng.integers(3)])
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(len(damaged))] = rng.integers(256)
        with contextlib.suppress(InvalidArgumentError):
            parse([RECORDS[0], bytes(damaged[: rng.integers(1, 90)])])


def sequence(steps: list[Any]) -> bytes:
    made = SequenceExample()
    _fill(made.context.feature["c"], [1.0])
    for values in steps:
        _fill(made.feature_lists.feature_list["d"].feature.add(), values)
    return made.SerializeToString()


def parse_sequences(records: Any, may_be_missing: bool = True, shape: Any = (2,)) -> Any:
    return raw_ops.ParseSequenceExampleV2(
        serialized=np.array(records, object),
        debug_name=keys(),
        context_sparse_keys=keys("i"),
        context_dense_keys=keys("c"),
        context_ragged_keys=keys(),
        feature_list_sparse_keys=keys("d"),
        feature_list_dense_keys=keys("d"),
        feature_list_ragged_keys=keys("d"),
        feature_list_dense_missing_assumed_empty=[may_be_missing],
        context_dense_defaults=[np.array([0.0], np.float32)],
        context_dense_shapes=[[1]],
        Ncontext_sparse=1,
        context_sparse_types=["int64"],
        Nfeature_list_sparse=1,
        feature_list_sparse_types=["int64"],
        Nfeature_list_dense=1,
        feature_list_dense_types=["int64"],
        feature_list_dense_shapes=[shape],
        feature_list_ragged_value_types=["int64"],
        feature_list_ragged_split_types=["int64"],
    )


def parse_sequence(record: bytes) -> Any:
    """Sparse i: int64, of the context."""
    return raw_ops.ParseSingleSequenceExample(
        serialized=np.array(record, object),
        feature_list_dense_missing_assumed_empty=keys(),
        context_sparse_keys=[np.array(b"i", object)],
        context_dense_keys=[],
        feature_list_sparse_keys=[],
        feature_list_dense_keys=[],
        context_dense_defaults=[],
        debug_name=np.array(b"", object),
        context_sparse_types=["int64"],
    )


def test_sequences() -> None:
    found = parse_sequences([sequence([[1, 2], [3, 4]]), b"", sequence([[5, 6]])])
    assert found.context_dense_values[0].tolist() == [[1], [0], [1]]
    dense = found.feature_list_dense_values[0]
    assert dense.tolist() == [[[1, 2], [3, 4]], [[0, 0], [0, 0]], [[5, 6], [0, 0]]]
    assert found.feature_list_dense_lengths[0].tolist() == [2, 0, 1]
    indices = found.feature_list_sparse_indices[0]
    assert indices.tolist()[-2:] == [[2, 0, 0], [2, 0, 1]]
    assert found.feature_list_sparse_shapes[0].tolist() == [3, 2, 2]
    assert found.feature_list_ragged_outer_splits[0].tolist() == [0, 2, 2, 3]
    assert found.feature_list_ragged_inner_splits[0].tolist() == [0, 2, 4, 6]
    with pytest.raises(InvalidArgumentError, match="Feature list 'd' is required"):
        parse_sequences([b""], may_be_missing=False)
    with pytest.raises(InvalidArgumentError, match="unexpected number of values"):
        parse_sequences([sequence([[1, 2, 3]])])


def in_order(order: str, c: float, steps: list[list[int]]) -> bytes:
    """A SequenceExample with its fields in an order: context, lists, a field nobody asks for, a number, nothing."""
    whole = SequenceExample()
    _fill(whole.context.feature["c"], [c])
    for values in steps:
        _fill(whole.feature_lists.feature_list["d"].feature.add(), values)
    context, lists = whole.context.SerializeToString(), whole.feature_lists.SerializeToString()
    parts = {
        "c": b"\x0a" + bytes([len(context)]) + context,
        "l": b"\x12" + bytes([len(lists)]) + lists,
        "u": b"\x1a\x01x",
        "n": b"\x20\x05",
        "e": b"\x0a\x00",
    }
    return b"".join([parts[part] for part in order])


@pytest.mark.parametrize("count", [3, 50])  # few records are read one by one, many in step
def test_fields_in_any_order(count: int) -> None:
    orders = ["cl", "lc", "ucl", "clu", "cnl", "ecl", "cle"] * 8
    steps = [[[i, n] for n in range(1 + i % 3)] for i in range(count)]
    records = [
        in_order(order, float(i), own)
        for i, (order, own) in enumerate(zip(orders, steps, strict=False))
    ]
    found = parse_sequences(records)
    assert found.context_dense_values[0].tolist() == [[i] for i in range(count)]
    assert found.feature_list_dense_lengths[0].tolist() == [1 + i % 3 for i in range(count)]
    assert found.feature_list_ragged_values[0].tolist() == np.concatenate(steps).ravel().tolist()


def test_a_number_that_does_not_end_is_refused() -> None:
    number = b"\x83" + b"\xff" * 9 + b"\1"
    feature = b"\x1a\x0d\x0a\x0b" + number
    entry = b"\x0a\1i\x12" + bytes([len(feature)]) + feature
    features = b"\x0a" + bytes([len(entry)]) + entry
    with pytest.raises(InvalidArgumentError, match="more than ten bytes"):
        parse([b"\x0a" + bytes([len(features)]) + features])


def test_features_without_elements() -> None:
    with pytest.raises(InvalidArgumentError, match="is required"):
        parse([b""], shape=[0], default=[])
    found = parse([example(i=[1])], shape=PartialTensorShape([None, 0]), default=[[0.0]])
    assert found.dense_values[0].shape == (1, 0, 0)
    found = parse_sequences([b""], shape=[0])
    assert found.feature_list_dense_values[0].shape == (1, 0, 0)


SHAPE = "tensorflow.TensorShapeProto.Dim"


def decode(texts: list[bytes], field: str, dtype: Any, message: str = SHAPE, **attrs: Any) -> Any:
    sizes, (values,) = raw_ops.DecodeProtoV2(
        bytes=np.array(texts, object),
        message_type=message,
        field_names=[field],
        output_types=[dtype],
        **attrs,
    )
    return sizes.tolist(), values.tolist()


def test_fields_of_messages() -> None:
    assert decode([b"\x08\x05\x12\x01n", b""], "size", "int64") == ([[1], [0]], [[5], [0]])
    assert decode([b"\x08\x05\x12\x01n"], "name", "string") == ([[1]], [[b"n"]])
    text = decode([b"size: 7"], "size", "int64", message_format="text")
    assert text == ([[1]], [[7]])
    packed = decode([b"\x0a\x08\0\0\x80?\0\0\0@", b""], "value", "float32", "tensorflow.FloatList")
    assert packed == ([[2], [0]], [[1, 2], [0, 0]])
    with pytest.raises(InvalidArgumentError, match="Unknown field"):
        decode([b""], "nope", "int64")
    with pytest.raises(InvalidArgumentError, match="No descriptor"):
        decode([b""], "size", "int64", "no.Such")
    with pytest.raises(InvalidArgumentError, match="output type"):
        decode([b""], "size", "string")
    with pytest.raises(DataLossError):
        decode([b"\xff\xff"], "size", "int64")


def test_a_field_of_another_wire_type_is_unknown() -> None:
    assert decode([b"\x0d\0\0\0\0"], "size", "int64") == ([[0]], [[0]])
    assert decode([b"\x10\x05"], "name", "string") == ([[0]], [[b""]])


@pytest.fixture(scope="module")
def numbers() -> bytes:
    """The description of a message with a repeated field of each type of 32 bits, named by its number."""
    kinds = [kind for kind in range(1, 19) if kind in (2, 5, 7, 13, 15, 17)]
    file = descriptor_pb2.FileDescriptorProto(name="n.proto", package="n", syntax="proto3")
    message = file.message_type.add(name="N")
    for kind in kinds:
        message.field.add(name=f"r{kind}", number=kind, type=kind, label=3)
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (5, np.int64(2**40 + 5), b"\x2a\1\5"),
        (15, np.int64(2**40 + 5), b"\x7a\4\5\0\0\0"),
        (17, np.int64(-(2**40) - 3), b"\x8a\1\1\5"),
        (7, np.uint64(2**64 - 3), b"\x3a\4\xfd\xff\xff\xff"),
        (13, np.uint64(2**64 - 3), b"\x6a\5\xfd\xff\xff\xff\x0f"),
        (2, np.float64(-1e300), b"\x12\4\0\0\x80\xff"),
        (2, np.float64("nan"), b"\x12\4\0\0\xc0\x7f"),
    ],
)
def test_numbers_beyond_a_field_are_cast_as_in_tensorflow(
    numbers: bytes, kind: int, value: Any, expected: bytes
) -> None:
    attrs: dict[str, Any] = {"field_names": [f"r{kind}"], "message_type": "n.N"}
    attrs["descriptor_source"] = b"bytes://" + numbers
    inputs: dict[str, Any] = {
        "sizes": np.array([[1]], np.int32),
        "values": [value.reshape(1, 1)],
    }
    assert execute("EncodeProto", inputs, attrs).tolist() == [expected]
    inputs["sizes"][...] = -1
    with pytest.raises(InvalidArgumentError, match="must be between 0 and"):
        execute("EncodeProto", inputs, attrs)


def test_unsigned_fields_are_no_int64(numbers: bytes) -> None:
    for kind in (7, 13):
        with pytest.raises(InvalidArgumentError, match="output type"):
            decode([b""], f"r{kind}", "int64", "n.N", descriptor_source=b"bytes://" + numbers)


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3), min_size=1, max_size=3))
def test_encoded_fields_decode(rows: list[list[int]]) -> None:
    width = max(1, *map(len, rows))
    values = np.zeros((len(rows), width), np.int64)
    for row, own in zip(values, rows, strict=True):
        row[: len(own)] = own
    sizes = [[len(row)] for row in rows]
    encoded = execute(
        "EncodeProto",
        {"sizes": np.array(sizes, np.int32), "values": [values]},
        {"field_names": ["value"], "message_type": "tensorflow.Int64List"},
    )
    found = decode(encoded.tolist(), "value", "int64", "tensorflow.Int64List")
    assert found == (sizes, values.tolist())


@pytest.mark.tensorflow
def test_random_examples_parse_as_in_tensorflow(tf: Any) -> None:
    rng = np.random.default_rng(11)
    records = []
    for _ in range(500):
        features: dict[str, Any] = {}
        if rng.random() < 0.7:
            features["a"] = rng.normal(size=2).astype(np.float32).tolist()
        if rng.random() < 0.7:
            features["i"] = rng.integers(-(2**40), 2**40, rng.integers(1, 4)).tolist()
        if rng.random() < 0.7:
            features["s"] = [rng.bytes(rng.integers(0, 200)) for _ in range(rng.integers(1, 4))]
        records.append(example(**{key: features[key] for key in rng.permutation([*features])}))
    want = tf.raw_ops.ParseExampleV2(
        serialized=records,
        names=[],
        sparse_keys=["i"],
        dense_keys=["a"],
        ragged_keys=["s"],
        dense_defaults=[np.float32([8, 9])],
        num_sparse=1,
        sparse_types=[tf.int64],
        ragged_value_types=[tf.string],
        ragged_split_types=[tf.int32],
        dense_shapes=[[2]],
    )
    for a, b in zip(parse(records), want, strict=True):
        np.testing.assert_array_equal(a[0], b[0].numpy())


def _single(serialized: Any) -> Any:
    found = raw_ops.ParseSingleExample(
        serialized=serialized,
        dense_defaults=[keys()],
        num_sparse=0,
        sparse_keys=[],
        dense_keys=["s"],
        sparse_types=[],
        dense_shapes=[[]],
    )
    return found.dense_values[0]


def _of_version_2(serialized: Any) -> Any:
    found = raw_ops.ParseExampleV2(
        serialized=serialized,
        names=keys(),
        sparse_keys=keys(),
        dense_keys=keys("s"),
        ragged_keys=keys(),
        dense_defaults=[keys()],
        num_sparse=0,
        sparse_types=[],
        ragged_value_types=[],
        ragged_split_types=[],
        dense_shapes=[[]],
    )
    return found.dense_values[0]


@pytest.mark.parametrize("parse_one", [_single, _of_version_2])
def test_a_string_of_one_example_is_a_tensor_that_a_dataset_batches(parse_one: Any) -> None:
    records = np.array([example(s=[b"one"]), example(s=[b"two"])], object)
    (batch,) = Dataset.from_tensor_slices(records).map(parse_one).batch(2)
    assert batch.tolist() == [b"one", b"two"]
