"""DecodeRaw, DecodePaddedRaw, DecodeCSV, DecodeCompressed, DecodeJSONExample, ParseTensor, SerializeTensor."""

import contextlib
import gzip
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import DataType, raw_ops
from opkernel.errors import DataLossError, InvalidArgumentError, UnimplementedError
from opkernel.proto import Example


def strings(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, object)


def test_raw_bytes() -> None:
    found = raw_ops.DecodeRaw(
        bytes=strings(b"\x01\x00\x02\x00", b"\xff\xff\x00\x01"), out_type="int16"
    )
    assert found.tolist() == [[1, 2], [-1, 256]]
    swapped = raw_ops.DecodeRaw(bytes=strings(b"\x00\x01"), out_type="int16", little_endian=False)
    assert swapped.tolist() == [[1]]
    pair = np.array([1 + 2j], ">c8").tobytes()
    complex_ = raw_ops.DecodeRaw(bytes=strings(pair), out_type="complex64", little_endian=False)
    assert complex_.tolist() == [[1 + 2j]]
    assert raw_ops.DecodeRaw(bytes=strings(), out_type="int32").shape == (0, 0)
    with pytest.raises(InvalidArgumentError, match="same size"):
        raw_ops.DecodeRaw(bytes=strings(b"a", b"ab"), out_type="uint8")
    with pytest.raises(InvalidArgumentError, match="multiple of 2"):
        raw_ops.DecodeRaw(bytes=strings(b"abc"), out_type="int16")


def test_padded_raw_bytes() -> None:
    found = raw_ops.DecodePaddedRaw(
        input_bytes=strings(b"a", b"abcd", b""), fixed_length=2, out_type="uint8"
    )
    assert found.tolist() == [[97, 0], [97, 98], [0, 0]]
    for length in (0, -1, 3):
        with pytest.raises(InvalidArgumentError, match="fixed_length"):
            raw_ops.DecodePaddedRaw(
                input_bytes=strings(b"a"), fixed_length=length, out_type="int16"
            )


def csv(record: bytes, defaults: list[Any], **attrs: Any) -> list[Any]:
    columns = raw_ops.DecodeCSV(records=strings(record), record_defaults=defaults, **attrs)
    return [column.tolist()[0] for column in columns]


TEXT = np.array([b""], object)
NONE = np.zeros(0, np.int32)


def test_csv() -> None:
    number = np.array([7], np.int32)
    assert csv(b"1,a", [number, TEXT]) == [1, b"a"]
    assert csv(b",", [number, TEXT]) == [7, b""]
    assert csv(b'"1","a ""b"", c"', [number, TEXT]) == [1, b'a "b", c']
    assert csv(b'"a\nb",2', [TEXT, number]) == [b"a\nb", 2]
    assert csv(b"NA;x", [number, TEXT], na_value="NA", field_delim=";") == [7, b"x"]
    assert csv(b"1,2,3", [number], select_cols=[2]) == [3]
    (none,) = raw_ops.DecodeCSV(records=strings(), record_defaults=[number])
    assert none.shape == (0,)
    assert csv(b'"1"', [TEXT], use_quote_delim=False) == [b'"1"']


@pytest.mark.parametrize(
    "record", [b"1", b"1,2,3", b'1,"2', b'1,2"', b'1,"2"x', b"x,2", b",2", b"1,2\n"]
)
def test_wrong_records_are_refused(record: bytes) -> None:
    with pytest.raises(InvalidArgumentError):
        csv(record, [NONE, TEXT])


@given(st.lists(st.binary(max_size=50)), st.sampled_from(["ZLIB", "GZIP", ""]))
def test_compressed_strings(texts: list[bytes], kind: str) -> None:
    packs: dict[str, Any] = {"ZLIB": zlib.compress, "GZIP": gzip.compress, "": bytes}
    given = np.array([packs[kind](text) for text in texts], object)
    assert raw_ops.DecodeCompressed(bytes=given, compression_type=kind).tolist() == texts


@pytest.mark.parametrize(("kind", "pack"), [("ZLIB", zlib.compress), ("GZIP", gzip.compress)])
def test_a_compressed_string_that_ends_early_gives_what_it_has(
    kind: str, pack: Callable[[bytes], bytes]
) -> None:
    text = np.random.default_rng(1).bytes(500)
    packed = pack(text)
    for size in (0, 1, 30, 300, len(packed) - 3):
        (found,) = raw_ops.DecodeCompressed(bytes=strings(packed[:size]), compression_type=kind)
        assert text.startswith(found)
        assert len(found) >= min(size - 30, len(text))


def test_damaged_compressed_strings_are_refused() -> None:
    packed = zlib.compress(b"text" * 50)
    for text in (b"x" + packed, packed[:9] + b"\0" + packed[10:]):
        with pytest.raises(DataLossError):
            raw_ops.DecodeCompressed(bytes=strings(text), compression_type="ZLIB")
    with pytest.raises(InvalidArgumentError, match="compressions"):
        raw_ops.DecodeCompressed(bytes=strings(packed), compression_type="LZ4")
    with pytest.raises(UnimplementedError, match="ZSTD"):
        raw_ops.DecodeCompressed(bytes=strings(packed), compression_type="ZSTD")


def test_json_becomes_the_message_that_it_says() -> None:
    text = b"""{"features": {"feature": {
        "f": {"floatList": {"value": [1.5, "NaN"]}}, "b": {"bytesList": {"value": ["YQ=="]}},
        "i": {"int64List": {"value": ["-1", 300]}}, "e": {}}}}"""
    (found,) = raw_ops.DecodeJSONExample(json_examples=strings(text))
    feature = Example.FromString(found).features.feature
    assert list(feature["b"].bytes_list.value) == [b"a"]
    assert list(feature["i"].int64_list.value) == [-1, 300]
    np.testing.assert_equal(list(feature["f"].float_list.value), [1.5, np.nan])
    assert feature["e"].WhichOneof("kind") is None
    small = b'{"features":{"feature":{"a":{"int64List":{"value":["1"]}}}}}'
    (unpacked,) = raw_ops.DecodeJSONExample(json_examples=strings(small))
    assert unpacked == b"\n\x0b\n\t\n\x01a\x12\x04\x1a\x02\x08\x01"
    for wrong in (b"{]", b"1", b'{"features": 1}', b'{"nope": {}}'):
        with pytest.raises(InvalidArgumentError, match="JSON"):
            raw_ops.DecodeJSONExample(json_examples=strings(wrong))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "int8", "complex128", "object"])
def test_serialized_tensors_come_back(dtype: str) -> None:
    values = np.array([[0, 1, 2], [3, 4, 5]])
    if dtype == "object":
        tensor, out_type = np.array([[b"a", b""], [b"\xff", b"b"]], object), DataType.DT_STRING
    else:
        out_type = DataType[
            f"DT_{ {'float32': 'FLOAT'}.get(dtype, dtype.upper()) }".replace(" ", "")
        ]
        tensor = values.astype(out_type.numpy_dtype)
    serialized = raw_ops.SerializeTensor(tensor=tensor)
    back = raw_ops.ParseTensor(serialized=serialized, out_type=out_type)
    assert back.tolist() == tensor.tolist()
    with pytest.raises(InvalidArgumentError, match="mismatch"):
        raw_ops.ParseTensor(serialized=serialized, out_type="uint16")


def test_damaged_tensors_are_refused() -> None:
    serialized = bytes(raw_ops.SerializeTensor(tensor=np.arange(6.0)))
    rng = np.random.default_rng(5)
    for _ in range(300):
        damaged = bytearray(serialized)
        damaged[rng.integers(len(damaged))] = rng.integers(256)
        with contextlib.suppress(InvalidArgumentError):
            raw_ops.ParseTensor(serialized=bytes(damaged[: rng.integers(1, 70)]), out_type="double")
