"""The loops that read Example messages; protocol buffers read what is expected."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.data import Dataset
from opkernel.data.example_features import FixedLenFeature
from opkernel.data.parsed_examples import parse_example_dataset
from opkernel.errors import InvalidArgumentError
from opkernel.libraries import is_installed
from opkernel.proto import Example
from opkernel.providers.loops import loops_run
from opkernel.types import DataType

FORMS = pytest.mark.parametrize(
    "form", ["numpy", "plain", *(["compiled"] if is_installed("numba") else [])]
)
KINDS = {"float": "float_list", "int64": "int64_list", "string": "bytes_list"}
LONG = "k" * 200


def field(tag: int, content: bytes) -> bytes:
    size, length = len(content), b""
    while size >= 0x80:
        length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([tag]) + length + bytes([size]) + content


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    text = b""
    while number >= 0x80:
        text, number = text + bytes([number & 0x7F | 0x80]), number >> 7
    return text + bytes([number])


def loose(kind: str, values: Any) -> bytes:
    """A feature each of whose numbers has a tag."""
    if kind == "float":
        return field(0x12, b"".join(b"\x0d" + np.float32(one).tobytes() for one in values))
    return field(0x1A, b"".join(b"\x08" + varint(one) for one in values))


def packed(kind: str, values: Any) -> bytes:
    if kind == "float":
        return field(0x12, field(0x0A, np.array(values, "<f4").tobytes()))
    if kind == "int64":
        return field(0x1A, field(0x0A, b"".join(map(varint, values))))
    return field(0x0A, b"".join(field(0x0A, one) for one in values))


def drawn_values(random: Any, kind: str) -> Any:
    size = int(random.choice([0, 1, 2, 5, 40]))
    if kind == "float":
        return random.normal(size=size).astype(np.float32)
    if kind == "int64":
        return [
            int(n) >> int(random.integers(64)) for n in random.integers(-(2**63), 2**63 - 1, size)
        ]
    return [random.bytes(int(random.choice([0, 1, 30, 127, 128, 300]))) for _ in range(size)]


def drawn_record(random: Any) -> bytes:
    """An Example in one of many forms: fields in any order, several maps, keys that stand twice, unknown fields."""
    maps: list[bytes] = [b""]
    for key, kind in random.permutation([*KEYS.items(), ("other", "int64"), ("a", "float")]):
        if random.random() < 0.2:
            continue
        values = drawn_values(random, str(kind))
        writes = packed if kind == "string" or random.random() < 0.6 else loose
        feature = b"" if random.random() < 0.1 else writes(str(kind), values)
        if feature and random.random() < 0.05:
            feature += b"\x28\x05"
        parts = [field(0x0A, str(key).encode()), field(0x12, feature)]
        entry = parts[::-1] if random.random() < 0.05 else parts
        maps[-1] += field(0x0A, b"".join(entry))
        if random.random() < 0.1:
            maps.append(b"")
    ends = [field(0x22, b"unknown")] if random.random() < 0.1 else []
    return b"".join([*(field(0x0A, one) for one in maps), *ends])


KEYS = {"a": "float", "b": "float", "n": "int64", LONG: "int64", "s": "string", "": "string"}


def parsed(records: Any) -> Any:
    types = [*KEYS.values()]
    return raw_ops.ParseExampleV2(
        serialized=np.array(records, object),
        names=np.empty(0, object),
        sparse_keys=np.empty(0, object),
        dense_keys=np.empty(0, object),
        ragged_keys=np.array([key.encode() for key in KEYS], object),
        dense_defaults=[],
        num_sparse=0,
        sparse_types=[],
        ragged_value_types=types,
        ragged_split_types=["int64"] * len(types),
        dense_shapes=[],
    )


def expected(records: Any) -> list[list[Any]]:
    """For each key the values of each record, as protocol buffers read them."""
    found: list[list[Any]] = [[] for _ in KEYS]
    for record in records:
        values = Example.FromString(record).features.feature
        for column, (key, kind) in zip(found, KEYS.items(), strict=True):
            column.append(list(getattr(values[key], KINDS[kind]).value) if key in values else [])
    return found


@FORMS
def test_messages_of_many_forms(form: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("opkernel.ops.parsing.feature_spans._PART", 1 << 12)
    random = np.random.default_rng(5)
    records = [drawn_record(random) for _ in range(60)]
    with loops_run(form):
        found = parsed(records)
    for column, values, splits in zip(
        expected(records), found.ragged_values, found.ragged_row_splits, strict=True
    ):
        assert splits.tolist() == [0, *np.cumsum([len(row) for row in column])]
        assert values.tolist() == [one for row in column for one in row]


@FORMS
def test_few_large_records(form: Any) -> None:
    random = np.random.default_rng(6)
    size = 2_000 if form == "plain" else 200_000
    numbers = [int(n) for n in random.integers(-(2**63), 2**63 - 1, size)]
    floats = random.normal(size=size).astype(np.float32)
    texts = [b"x" * int(n) for n in random.integers(0, 140, 3000)]
    for writes in (packed, loose):
        entries = [("n", writes("int64", numbers)), ("a", writes("float", floats))]
        entries.append(("s", packed("string", texts)))
        content = b"".join(
            field(0x0A, field(0x0A, key.encode()) + field(0x12, value)) for key, value in entries
        )
        with loops_run(form):
            found = parsed([field(0x0A, content)] * 2).ragged_values
        assert found[0].tolist() == floats.tolist() * 2
        assert found[2].tolist() == numbers * 2
        assert found[4].tolist() == texts * 2


WRONG = {
    "eleven bytes": field(0x1A, field(0x0A, b"\xff" * 10 + b"\x01")),
    "eleven bytes with a tag": field(0x1A, b"\x08" + b"\xff" * 10 + b"\x01"),
    "cut off": field(0x1A, field(0x0A, b"\x01\x80")),
    "cut off after a tag": field(0x1A, b"\x08\x01\x08"),
    "another tag": field(0x1A, b"\x08\x01\x10\x01"),
    "another type": field(0x12, field(0x0A, b"1234")),
    "floats past the end": b"\x12\x03\x0a\x05\x01",
}


@FORMS
@pytest.mark.parametrize("feature", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("times", [1, 50])
def test_damaged_features_are_refused(form: Any, feature: bytes, times: int) -> None:
    record = field(0x0A, field(0x0A, field(0x0A, b"n") + field(0x12, feature)))
    good = field(0x0A, field(0x0A, field(0x0A, b"n") + field(0x12, packed("int64", [1, 300]))))
    with loops_run(form), pytest.raises(InvalidArgumentError, match="Key: n"):
        parsed([*[good] * times, record])


@FORMS
def test_damaged_records(form: Any) -> None:
    """In each form the same records are refused, and the others give the same."""
    random = np.random.default_rng(7)
    base = [drawn_record(random) for _ in range(6)]
    for _ in range(40):
        damaged = bytearray(base[random.integers(6)] or b"\x0a\x00")
        for _ in range(random.integers(1, 3)):
            damaged[random.integers(len(damaged))] = random.integers(256)
        records = [*base, bytes(damaged[: random.integers(1, 400)])]
        results: list[Any] = []
        for one in ("numpy", form):
            with loops_run(one):
                try:
                    results.append([values.tolist() for values in parsed(records).ragged_values])
                except InvalidArgumentError as error:
                    results.append(error.message)
        assert repr(results[0]) == repr(results[1])


@FORMS
def test_sequences(form: Any) -> None:
    step = [packed("int64", [n, n + 1]) for n in range(300)]
    lists = field(0x0A, field(0x0A, b"d") + field(0x12, b"".join(field(0x0A, s) for s in step)))
    none = np.empty(0, object)
    with loops_run(form):
        found = raw_ops.ParseSequenceExampleV2(
            serialized=np.array([field(0x12, lists)] * 20, object),
            debug_name=none,
            context_sparse_keys=none,
            context_dense_keys=none,
            context_ragged_keys=none,
            feature_list_sparse_keys=none,
            feature_list_dense_keys=np.array([b"d"], object),
            feature_list_ragged_keys=none,
            feature_list_dense_missing_assumed_empty=[False],
            context_dense_defaults=[],
            Nfeature_list_dense=1,
            feature_list_dense_types=["int64"],
            feature_list_dense_shapes=[[2]],
        )
    assert found.feature_list_dense_values[0].tolist() == [[[n, n + 1] for n in range(300)]] * 20


@FORMS
def test_datasets(form: Any) -> None:
    record = field(0x0A, field(0x0A, field(0x0A, b"n") + field(0x12, packed("int64", [1, -300]))))
    parse = parse_example_dataset({"n": FixedLenFeature([2], DataType.DT_INT64)})
    with loops_run(form):
        (element,) = Dataset.from_tensors(np.array([record] * 30, object)).apply(parse)
    assert element["n"].tolist() == [[1, -300]] * 30
