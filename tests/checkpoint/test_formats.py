"""What files of each format may say, and where their limits are."""

import os
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opkernel
from opkernel.checkpoint import BundleWriter, TensorSlice, merge_bundles
from opkernel.checkpoint.bundle_reader import read_strings, strings_as_bytes
from opkernel.checkpoint.bundle_writer import _write_index
from opkernel.checkpoint.crc32c import crc32c, mask
from opkernel.checkpoint.slices import SlicesWriter
from opkernel.checkpoint.sstable import Table, write_table
from opkernel.checkpoint.tensor_slice import slice_key
from opkernel.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    UnimplementedError,
)
from opkernel.proto import BundleEntryProto, SavedTensorSlices, TensorSliceProto
from opkernel.types import DataType

KINDS: list[Any] = [
    np.float16,
    np.float32,
    np.float64,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
]
KINDS += [np.uint16, np.complex64, np.complex128, np.bool_]


@pytest.mark.parametrize("dtype", KINDS)
def test_types_of_v1(tmp_path: Path, dtype: Any) -> None:
    value = np.array([[0, 1, 3], [0, 1, 100]]).astype(dtype)
    value[0, 1] = dtype(2.5 - 1.5j) if value.dtype.kind == "c" else 1
    writer = SlicesWriter(tmp_path / "c")
    writer.add("x", value.shape, TensorSlice.whole(2), value)
    writer.finish()
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        found = checkpoint.get("x")
        assert found.dtype == value.dtype
        assert found.tolist() == value.tolist()


REFUSED = {
    "uint32": InvalidArgumentError,
    "uint64": InvalidArgumentError,
    "bfloat16": UnimplementedError,
}
"""Types that SaveSlices of TensorFlow refuses: as an argument, or when it writes."""


@pytest.mark.parametrize("name", REFUSED)
def test_types_that_v1_has_not(tmp_path: Path, name: str) -> None:
    dtype = ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)
    with pytest.raises(REFUSED[name], match=rf"hold no {name} \(x\)"):
        SlicesWriter(tmp_path / "c").add("x", [2], TensorSlice.whole(1), np.zeros(2, dtype))


def test_slices_of_one_tensor_agree(tmp_path: Path) -> None:
    writer = SlicesWriter(tmp_path / "c")
    first, second = TensorSlice.parse("0,1"), TensorSlice.parse("1,1")
    writer.add("x", [2], first, np.zeros(1))
    with pytest.raises(InternalError, match="x was added with another type or shape"):
        writer.add("x", [3], second, np.zeros(1))
    with pytest.raises(InternalError, match="x was added with another type or shape"):
        writer.add("x", [2], second, np.zeros(1, np.float32))
    with pytest.raises(InvalidArgumentError, match="Slice 0,1 of tensor x was added before"):
        writer.add("x", [2], first, np.zeros(1))
    bundle = BundleWriter(tmp_path / "b")
    bundle.add_slice("x", [2], first, np.zeros(1))
    for shape, dtype in (([3], np.float64), ([2], np.float32)):
        with pytest.raises(InternalError, match="x was added with another type or shape"):
            bundle.add_slice("x", shape, second, np.zeros(1, dtype))
    bundle.discard()


def v1_file(path: Path, **changes: Any) -> SavedTensorSlices:
    """Write a file of V1 with a vector of 2 float32, whose messages are changed."""
    meta, data = SavedTensorSlices(), SavedTensorSlices()
    tensor = meta.meta.tensor.add(name="x", type=changes.get("type", 1))
    tensor.shape.dim.add(size=changes.get("size", 2))
    tensor.slice.append(changes.get("slice", TensorSlice.whole(1).to_proto()))
    meta.meta.versions.min_consumer = changes.get("min_consumer", 0)
    data.data.name = "x"
    if "content" in changes:
        data.data.data.tensor_content = changes["content"]
    else:
        data.data.data.float_val.extend(changes.get("values", [1.0, 2.0]))
    key = slice_key("x", changes.get("key", TensorSlice.whole(1)))
    with open(path, "wb") as file:
        first = changes.get("first", meta.SerializeToString())
        write_table(file, first, {key: changes.get("second", data.SerializeToString())})
    return meta


def proto(start: int, length: int) -> TensorSliceProto:
    result = TensorSliceProto()
    result.extent.add(start=start, length=length)
    return result


def test_elements_of_v1_stand_in_either_field(tmp_path: Path) -> None:
    for changes in ({}, {"content": np.array([1.0, 2.0], np.float32).tobytes()}):
        v1_file(tmp_path / "c", **changes)
        with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
            assert checkpoint.get("x").tolist() == [1.0, 2.0]
            assert checkpoint.slices("x") == []


def test_a_slice_that_is_all_of_a_tensor_is_told_of(tmp_path: Path) -> None:
    part = TensorSlice.parse("0,2")
    v1_file(tmp_path / "c", slice=part.to_proto(), key=part)
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        assert checkpoint.slices("x") == [part]
        assert checkpoint.get("x").tolist() == [1.0, 2.0]


WRONG: dict[str, tuple[type[OpError], dict[str, Any]]] = {
    "too many elements": (DataLossError, {"values": [1.0] * 3}),
    "too few elements": (DataLossError, {"values": [1.0]}),
    "too many bytes": (DataLossError, {"content": bytes(12)}),
    "no elements": (DataLossError, {"values": []}),
    "no type": (DataLossError, {"type": 0}),
    "a reference": (DataLossError, {"type": 101}),
    "a type that does not exist": (DataLossError, {"type": 99}),
    "a negative size": (DataLossError, {"size": -2}),
    "a slice beyond the tensor": (DataLossError, {"slice": proto(1, 2)}),
    "a slice from before the tensor": (DataLossError, {"slice": proto(-1, 2)}),
    "a slice of a negative length": (DataLossError, {"slice": proto(0, -1)}),
    "slices of another key": (DataLossError, {"key": TensorSlice.parse("0,1")}),
    "no message of the tensors": (DataLossError, {"first": b"\xff"}),
    "no message of the slice": (DataLossError, {"second": b"\xff"}),
    "a newer writer": (UnimplementedError, {"min_consumer": 2}),
    "resources": (UnimplementedError, {"type": 20}),
    "a shape that no array has": (UnimplementedError, {"size": 1 << 60}),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_files_of_v1(tmp_path: Path, what: str) -> None:
    error, changes = WRONG[what]
    v1_file(tmp_path / "c", **changes)
    with (
        pytest.raises(error, match=r"/c"),
        opkernel.load_checkpoint(tmp_path / "c") as checkpoint,
    ):
        checkpoint.get("x")


def test_a_writer_of_the_same_version_is_read(tmp_path: Path) -> None:
    v1_file(tmp_path / "c", min_consumer=1)
    assert dict(opkernel.list_variables(tmp_path / "c"))["x"] == (2,)


@pytest.mark.parametrize("changes", [{"type": 2}, {"size": 3}])
def test_files_of_v1_that_disagree(tmp_path: Path, changes: dict[str, int]) -> None:
    v1_file(tmp_path / "c-00000-of-00002")
    v1_file(tmp_path / "c-00001-of-00002", **changes)
    with pytest.raises(InternalError, match=r"Tensor x of .*00001-of-00002 is .* in another file"):
        opkernel.load_checkpoint(tmp_path / "c")


def bundle(prefix: Path, sizes: list[int], slices: list[TensorSlice] | None = None) -> None:
    """A checkpoint whose index claims a tensor of float64 of these sizes, without data."""
    entry = BundleEntryProto(dtype=2, crc32c=mask(crc32c(b"")))
    for size in sizes:
        entry.shape.dim.add(size=size)
    entry.slices.extend([part.to_proto() for part in slices or ()])
    Path(f"{prefix}.data-00000-of-00001").write_bytes(b"")
    with open(f"{prefix}.index", "wb") as file:
        _write_index(file, 1, {b"x": entry})


MOST_DIMENSIONS = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32


@pytest.mark.parametrize(
    ("sizes", "is_readable"),
    [
        ([0] * MOST_DIMENSIONS, True),
        ([0] * (MOST_DIMENSIONS + 1), False),
        ([0, (1 << 60) - 1], True),
        ([0, 1 << 60], False),
    ],
)
def test_shapes_that_arrays_have(tmp_path: Path, sizes: list[int], is_readable: bool) -> None:
    """As NumPy's `empty` takes them."""
    bundle(tmp_path / "c", sizes)
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        assert checkpoint.shape("x") == tuple(sizes)
        if is_readable:
            assert checkpoint.get("x").shape == np.empty(sizes).shape
        else:
            with pytest.raises(UnimplementedError, match="no array has"):
                checkpoint.get("x")
            with pytest.raises(ValueError, match=r"dimension|too big"):
                np.empty(sizes)


def test_overlapping_slices_of_as_many_elements_as_there_are(tmp_path: Path) -> None:
    """They are found by their elements where the count is right; TensorFlow has the same codes."""
    parts = [TensorSlice.parse("0,2"), TensorSlice.parse("1,2")]
    with BundleWriter(tmp_path / "c") as writer:
        for part in parts:
            writer.add_slice("x", [4], part, np.zeros(2))
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        assert checkpoint.get_slice("x", TensorSlice.parse("0,1")).tolist() == [0.0]
        with pytest.raises(InternalError, match="overlap"):
            checkpoint.get("x")
        with pytest.raises(InternalError, match="overlap"):
            checkpoint.get_slice("x", TensorSlice.parse("0,3"))
        with pytest.raises(InvalidArgumentError, match="do not cover 2,2"):
            checkpoint.get_slice("x", TensorSlice.parse("2,2"))


@pytest.mark.parametrize("change", [0, 1, -1])
def test_strings_have_as_many_bytes_as_they_say(change: int) -> None:
    data, crc = strings_as_bytes([b"one", b"", b"x" * 300])
    assert data[:4] == bytes([3, 0, 300 & 127 | 128, 2])
    lengths = struct.pack("<3I", 3, 0, 300)
    stored = struct.pack("<I", mask(crc32c(lengths)))
    assert data[4:] == stored + b"one" + b"x" * 300
    assert crc == crc32c(lengths + stored + b"one" + b"x" * 300)
    if not change:
        assert read_strings(data, 3) == ([b"one", b"", b"x" * 300], crc)
        return
    with pytest.raises(DataLossError):
        read_strings(data + b"x" if change > 0 else data[:-1], 3)
    with pytest.raises(DataLossError, match=r"2 bytes cannot hold 3 strings"):
        read_strings(data[:2], 3)
    with pytest.raises(DataLossError):
        read_strings(data, 2)


@pytest.mark.parametrize("is_big", [False, True])
def test_bytes_of_either_order(tmp_path: Path, is_big: bool) -> None:
    value = np.array([1.5, -2.0], ">f8" if is_big else "<f8")
    data = value.tobytes()
    (tmp_path / "c.data-00000-of-00001").write_bytes(data)
    entry_ = BundleEntryProto(dtype=2, size=16, crc32c=mask(crc32c(data)))
    entry_.shape.dim.add(size=2)
    header = opkernel.proto.BundleHeaderProto(num_shards=1, endianness=int(is_big))
    with open(tmp_path / "c.index", "wb") as file:
        write_table(file, header.SerializeToString(), {b"x": entry_.SerializeToString()})
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        assert checkpoint.get("x").tolist() == [1.5, -2.0]
        assert checkpoint.get("x").dtype == np.float64


def test_a_tensor_that_ends_with_its_file(tmp_path: Path) -> None:
    with BundleWriter(tmp_path / "c") as writer:
        writer.add("a", np.arange(3))
        writer.add("b", np.arange(1 << 20))  # is read in several pieces
    data = tmp_path / "c.data-00000-of-00001"
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        assert checkpoint.get("b").tolist() == [*range(1 << 20)]
    os.truncate(data, data.stat().st_size - 1)
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        assert checkpoint.get("a").tolist() == [0, 1, 2]
        with pytest.raises(OutOfRangeError, match=f"at byte 24, {(8 << 20) - 1} are there"):
            checkpoint.get("b")


@pytest.mark.parametrize("what", ["two tensors", "two types", "two shapes", "a slice and a whole"])
def test_checkpoints_that_cannot_be_merged(tmp_path: Path, what: str) -> None:
    first, second = TensorSlice.parse("0,1"), TensorSlice.parse("1,1")
    with BundleWriter(tmp_path / "a") as writer:
        if what == "two tensors":
            writer.add("x", np.zeros(2))
        else:
            writer.add_slice("x", [2], first, np.zeros(1))
    with BundleWriter(tmp_path / "b") as writer:
        if what in ("two tensors", "a slice and a whole"):
            writer.add("x", np.zeros(2))
        else:
            shape = [3] if what == "two shapes" else [2]
            dtype = np.float32 if what == "two types" else np.float64
            writer.add_slice("x", shape, second, np.zeros(1, dtype))
    prefixes = [str(tmp_path / name) for name in "ab"]
    with pytest.raises(InvalidArgumentError, match="Tensor x"):
        merge_bundles(prefixes, str(tmp_path / "whole"))
    assert not (tmp_path / "whole.index").exists()


def test_a_missing_checkpoint_may_be_left_out(tmp_path: Path) -> None:
    with BundleWriter(tmp_path / "a") as writer:
        writer.add("x", np.zeros(2))
    prefixes = [str(tmp_path / name) for name in ("a", "none")]
    with pytest.raises(InvalidArgumentError, match=r"There is no checkpoint .*/none"):
        merge_bundles(prefixes, str(tmp_path / "a"))
    merge_bundles(prefixes, str(tmp_path / "a"), allow_missing_files=True)
    assert dict(opkernel.list_variables(tmp_path / "a"))["x"] == (2,)


def test_a_type_may_be_told(tmp_path: Path) -> None:
    """Strings as objects or as bytes are strings; an array of objects alone tells no type."""
    with BundleWriter(tmp_path / "c") as writer:
        writer.add("x", np.array([b"a"], object), DataType.DT_STRING)
        writer.add("y", np.array([b"a"], object))
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        assert checkpoint.get("x").tolist() == checkpoint.get("y").tolist() == [b"a"]


# The key of a slice, by TensorFlow's OrderedCode: 0, the name, its rank, starts and lengths.
@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("a", "-", "00 61 0001 0101 80 7f"),
        ("a\0b", "1,63", "00 6100ff62 0001 0101 81 bf"),
        ("", "64,8191", "00  0001 0101 c040 dfff"),
        ("a", "8192,1048576", "00 61 0001 0101 e02000 f0100000"),
        ("a", "-:0,1", "00 61 0001 0102 80 7f 80 81"),
    ],
)
def test_keys_of_slices(name: str, text: str, key: str) -> None:
    assert slice_key(name, TensorSlice.parse(text)) == bytes.fromhex(key)


def test_a_data_file_that_ends_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BundleWriter(tmp_path / "c") as writer:
        writer.add("x", np.arange(9))
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        monkeypatch.setattr(os, "preadv", lambda *arguments: 0)
        with pytest.raises(OutOfRangeError, match="was cut short while it was read"):
            checkpoint.get("x")


def test_a_checkpoint_that_is_replaced_while_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader opens the new one, and gives up on one that is replaced again and again."""
    with BundleWriter(tmp_path / "c") as writer:
        writer.add("x", np.arange(9))
    for count, times in ((3, 4), (100, 17)):
        answers = iter([False] * count + [True])
        opened: list[str] = []
        monkeypatch.setattr(Table, "is_current", lambda table, answers=answers: next(answers))
        make = Table.__init__

        def noted(
            table: Table, path: str, *more: Any, make: Any = make, opened: Any = opened
        ) -> None:
            opened.append(path)
            make(table, path, *more)

        with monkeypatch.context() as patch:
            patch.setattr(Table, "__init__", noted)
            with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
                assert checkpoint.get("x").tolist() == [*range(9)]
        assert len(opened) == times
