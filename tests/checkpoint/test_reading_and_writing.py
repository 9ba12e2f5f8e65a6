"""Checkpoints that TensorFlow wrote are read; what is written has TensorFlow's bytes."""

import gc
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.checkpoint.values import PARTED, PARTS, SPECS, VALUES

import opkernel
from opkernel.checkpoint import BundleWriter, TensorSlice, merge_bundles, parse_shape_and_slice
from opkernel.checkpoint.crc32c import _extended, crc32c, mask, unmask
from opkernel.checkpoint.slices import SlicesWriter
from opkernel.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)

DATA = Path(__file__).parent / "data"


def same(value: Any, expected: Any) -> bool:
    """Equal to the last bit."""
    if expected.dtype == object:
        return bool(value.dtype == object and value.tolist() == expected.tolist())
    return (
        value.dtype == expected.dtype
        and value.shape == expected.shape
        and value.tobytes() == expected.tobytes()
    )


def slices_of(name: str) -> list[tuple[Any, TensorSlice, Any]]:
    if name != "parted":
        return [(VALUES[name].shape, TensorSlice.whole(VALUES[name].ndim), VALUES[name])]
    specs = [parse_shape_and_slice(spec)[:2] for spec in SPECS]
    return [(*spec, part) for spec, part in zip(specs, PARTS, strict=True)]


def write_v2(prefix: Path) -> None:
    with BundleWriter(prefix) as writer:
        for name in sorted(VALUES):
            writer.add(name, VALUES[name])
        for spec, part in zip(SPECS, PARTS, strict=True):
            shape, tensor_slice, _ = parse_shape_and_slice(spec)
            writer.add_slice("parted", shape, tensor_slice, part)


@pytest.mark.parametrize("name", VALUES)
def test_values_of_v2(name: str) -> None:
    with opkernel.load_checkpoint(DATA / "v2") as checkpoint:
        assert same(checkpoint.get(name), VALUES[name])
        assert checkpoint.shape(name) == VALUES[name].shape
        assert checkpoint.slices(name) == []


def test_values_of_v1() -> None:
    with opkernel.load_checkpoint(DATA / "v1") as checkpoint:
        names = [name for name in checkpoint if name != "parted"]
        assert len(names) == 13
        assert all(same(checkpoint.get(name), VALUES[name]) for name in names)
        assert same(checkpoint.get("parted"), PARTED)
        assert checkpoint.slices("strings/vector") == []


@pytest.mark.parametrize("file", ["v1", "v2"])
def test_slices(file: str) -> None:
    with opkernel.load_checkpoint(DATA / file) as checkpoint:
        assert [str(one) for one in checkpoint.slices("parted")] == ["0,2:-", "2,4:0,3", "2,4:3,2"]
        for text in ("-:-", "1,3:1,3", "5,1:-", "-:4,1", "0,2:0,5"):
            part = TensorSlice.parse(text)
            assert same(checkpoint.get_slice("parted", part), PARTED[part.index()].copy())
        whole = checkpoint.get_slice("float32/matrix", TensorSlice.parse("1,1:0,2"))
        assert whole.tolist() == [[1, 2]]
        for text in ("-", "0,7:-", "-:3,3"):
            with pytest.raises(InvalidArgumentError, match="parted"):
                checkpoint.get_slice("parted", TensorSlice.parse(text))


def test_keys_and_unknown_ones() -> None:
    with opkernel.load_checkpoint(DATA / "v2.index") as checkpoint:
        assert checkpoint.keys() == sorted([*VALUES, "parted"])
        assert "parted" in checkpoint
        assert "" not in checkpoint
        assert checkpoint.get_variable_to_dtype_map()["parted"] is opkernel.float32
        with pytest.raises(NotFoundError, match=r"Key partd not found .*perhaps you mean parted"):
            checkpoint.get("partd")
    assert dict(opkernel.list_variables(DATA / "v2"))["parted"] == (6, 5)


@pytest.mark.parametrize("path", ["", "no such file", "a\0b"])
def test_no_checkpoint(path: str, tmp_path: Path) -> None:
    with pytest.raises((NotFoundError, InvalidArgumentError), match=r"no checkpoint|not the path"):
        opkernel.load_checkpoint(path)
    with pytest.raises(NotFoundError, match="names a checkpoint"):
        opkernel.load_checkpoint(tmp_path)


def test_files_have_the_bytes_of_tensorflow(tmp_path: Path) -> None:
    write_v2(tmp_path / "v2")
    for name in ("v2.index", "v2.data-00000-of-00001"):
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes()
    assert [one.name for one in sorted(tmp_path.iterdir())] == [
        "v2.data-00000-of-00001",
        "v2.index",
    ]
    writer = SlicesWriter(tmp_path / "v1")
    with opkernel.load_checkpoint(DATA / "v1") as checkpoint:
        for name in checkpoint:
            for shape, tensor_slice, part in slices_of(name):
                writer.add(name, shape, tensor_slice, part)
    writer.finish()
    assert (tmp_path / "v1").read_bytes() == (DATA / "v1").read_bytes()


def test_a_prefix_may_be_written_again(tmp_path: Path) -> None:
    for size in range(4):
        with BundleWriter(tmp_path / "c") as writer:
            writer.add("x", np.arange(size))
        with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
            assert checkpoint.get("x").tolist() == [*range(size)]
    assert len(list(tmp_path.iterdir())) == 3  # an index, and two files of data: one is empty


def test_merging(tmp_path: Path) -> None:
    for number in range(3):
        with BundleWriter(tmp_path / f"part{number}") as writer:
            writer.add(f"only/{number}", np.array(number))
            part = TensorSlice.parse(f"{2 * number},2:-")
            writer.add_slice("parted", [6, 5], part, PARTED[part.index()])
    prefixes = [str(tmp_path / f"part{number}") for number in range(3)]
    merge_bundles(prefixes, str(tmp_path / "whole"))
    with opkernel.load_checkpoint(tmp_path / "whole") as checkpoint:
        assert same(checkpoint.get("parted"), PARTED)
        assert [int(checkpoint.get(f"only/{i}")) for i in range(3)] == [0, 1, 2]
    assert {one.name.partition(".")[0] for one in tmp_path.iterdir()} == {"whole"}
    with pytest.raises(InvalidArgumentError, match="no checkpoint to be merged"):
        merge_bundles(prefixes, str(tmp_path / "whole"), allow_missing_files=True)


@pytest.mark.parametrize("size", [0, 2])
def test_a_slice_of_another_shape_than_its_value_is_refused(tmp_path: Path, size: int) -> None:
    part = TensorSlice.parse("0,1")
    writer = BundleWriter(tmp_path / "v2")
    with pytest.raises(InternalError, match=rf"cannot hold \[{size}\]"):
        writer.add_slice("y", [2], part, np.zeros(size))
    writer.discard()
    with pytest.raises(InternalError, match=rf"cannot hold \[{size}\]"):
        SlicesWriter(tmp_path / "v1").add("y", [2], part, np.zeros(size))


def test_what_cannot_be_written(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "c")
    writer.add("x", np.zeros(2))
    with pytest.raises(InvalidArgumentError, match="duplicate key: x"):
        writer.add("x", np.zeros(2))
    with pytest.raises(InvalidArgumentError, match="needs a key"):
        writer.add("", np.zeros(2))
    with pytest.raises(InternalError, match="another type or shape"):
        writer.add_slice("x", [2], TensorSlice.parse("0,1"), np.zeros(1))
    with pytest.raises(InvalidArgumentError, match="duplicate key: x"):
        writer.add_slice("x", [2], TensorSlice.parse("0,2"), np.zeros(2))
    with pytest.raises(UnimplementedError, match="resource"):
        writer.add("z", np.array(None, object), opkernel.types.resource)
    writer.discard()
    with pytest.raises(FailedPreconditionError, match="finished"):
        writer.add("y", np.zeros(2))
    assert not list(tmp_path.iterdir())
    with pytest.raises(NotFoundError, match="no/c"):
        BundleWriter(tmp_path / "no" / "c")


def test_an_error_in_the_block_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), BundleWriter(tmp_path / "c") as writer:
        writer.add("x", np.ones(math.floor(1 / 0)))
    assert not list(tmp_path.iterdir())


def test_a_writer_that_nobody_finishes_leaves_nothing(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "c")
    writer.add("x", np.zeros(2))
    assert len([*tmp_path.iterdir()]) == 1
    del writer
    gc.collect()
    assert [*tmp_path.iterdir()] == []


def test_checksums() -> None:
    # RFC 3720, appendix B.4
    assert crc32c(bytes(32)) == _extended(0, memoryview(bytes(32))) == 0x8A9136AA
    assert crc32c(bytes([0xFF] * 32)) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert unmask(mask(0x8A9136AA)) == 0x8A9136AA


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 20_000), st.integers(0, 20_000), st.integers(0, 2**32))
def test_the_checksum_of_parts_is_that_of_the_whole(size: int, cut: int, seed: int) -> None:
    """Whichever way the bytes are grouped, the result is that of one byte after the other."""
    data = np.random.default_rng(seed).bytes(size)
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0x82F63B78 if state & 1 else 0)
    expected = state ^ 0xFFFFFFFF
    view = memoryview(data)
    assert _extended(_extended(0, view[:cut]), view[cut:]) == expected


@pytest.mark.parametrize("file", ["v1", "v2"])
def test_closed_readers_say_so(file: str) -> None:
    checkpoint = opkernel.load_checkpoint(DATA / file)
    checkpoint.get("parted")
    checkpoint.close()
    checkpoint.close()
    with pytest.raises(FailedPreconditionError, match="is closed"):
        checkpoint.get("parted")
