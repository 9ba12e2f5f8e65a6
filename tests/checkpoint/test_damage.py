"""Damaged checkpoints are refused, with the file and the key, or give the values that were saved."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.checkpoint import BundleWriter, TensorSlice
from opkernel.checkpoint.bundle_writer import _write_index
from opkernel.checkpoint.slices import SlicesWriter
from opkernel.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    UnimplementedError,
)
from opkernel.proto import BundleEntryProto

VALUES = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "s": np.array([b"one", b"", b"three"], object),
}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkpoint of each format, of a few tensors, one of them in two slices."""
    with BundleWriter(tmp_path / "v2") as writer:
        for name, value in VALUES.items():
            writer.add(name, value)
        for row in range(2):
            part = TensorSlice.parse(f"{row},1:-")
            writer.add_slice("p", [2, 3], part, VALUES["a"][row : row + 1])
    old = SlicesWriter(tmp_path / "v1")
    for name, value in VALUES.items():
        old.add(name, value.shape, TensorSlice.whole(value.ndim), value)
    for row in range(2):
        old.add("p", [2, 3], TensorSlice.parse(f"{row},1:-"), VALUES["a"][row : row + 1])
    old.finish()
    return tmp_path


def all_of(path: Path) -> dict[str, Any]:
    with opkernel.load_checkpoint(path) as checkpoint:
        return {key: checkpoint.get(key).tolist() for key in checkpoint}


EXPECTED = {name: value.tolist() for name, value in {**VALUES, "p": VALUES["a"]}.items()}
FILES = [("v2", "v2.index"), ("v2", "v2.data-00000-of-00001"), ("v1", "v1")]


def damaged(data: bytes) -> Iterator[bytes]:
    """All truncations of a file, and all changes of one byte to some others."""
    for size in range(len(data)):
        yield data[:size]
    for place in range(len(data)):
        for change in (0x01, 0x80, 0xFF):
            yield data[:place] + bytes([data[place] ^ change]) + data[place + 1 :]


@pytest.mark.parametrize(("name", "file"), FILES)
def test_no_damage_gives_other_values(small: Path, name: str, file: str) -> None:
    whole = (small / file).read_bytes()
    refused = 0
    for data in damaged(whole):
        (small / file).write_bytes(data)
        try:
            found = all_of(small / name)
        except (DataLossError, NotFoundError, OutOfRangeError, UnimplementedError) as error:
            refused += name in error.message
            continue
        assert found == EXPECTED  # the footer is padded with bytes that say nothing
    assert refused > 3 * len(whole)


def entries(**change: Any) -> dict[bytes, BundleEntryProto]:
    entry = BundleEntryProto(dtype=1, size=24)
    entry.shape.dim.add(size=2)
    entry.shape.dim.add(size=3)
    for name, value in change.items():
        setattr(entry, name, value)
    return {b"a": entry}


WRONG: dict[str, dict[str, Any]] = {
    "no data file of this number": {"shard_id": 3},
    "a negative number of a data file": {"shard_id": -1},
    "beyond the end": {"offset": 1 << 40},
    "before the beginning": {"offset": -8},
    "a negative size": {"size": -24},
    "another size than the shape": {"size": 20},
    "more bytes than there are": {"size": 1 << 50},
    "another type": {"dtype": 2},
    "no type": {"dtype": 0},
    "a reference": {"dtype": 101},
    "a type that does not exist": {"dtype": 99},
    "a wrong checksum": {"crc32c": 1},
    "strings": {"dtype": 7},
    "variants": {"dtype": 21},
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_entries(tmp_path: Path, what: str) -> None:
    (tmp_path / "c.data-00000-of-00001").write_bytes(bytes(24))
    with open(tmp_path / "c.index", "wb") as file:
        _write_index(file, 1, entries(**WRONG[what]))
    error = OutOfRangeError if what == "beyond the end" else DataLossError
    with (
        opkernel.load_checkpoint(tmp_path / "c") as checkpoint,
        pytest.raises(error, match=r"Tensor a of checkpoint .*/c"),
    ):
        checkpoint.get("a")


def test_a_shape_that_the_slices_do_not_fill_takes_no_memory(tmp_path: Path) -> None:
    huge = entries(size=0)[b"a"]
    huge.shape.dim[0].size = 1 << 40
    huge.slices.add().extent.extend([TensorSlice.parse("0,1").to_proto().extent[0]] * 2)
    with open(tmp_path / "c.index", "wb") as file:
        _write_index(file, 1, {b"a": huge})
    with (
        opkernel.load_checkpoint(tmp_path / "c") as checkpoint,
        pytest.raises(InvalidArgumentError),
    ):
        checkpoint.get("a")


def test_a_file_that_is_cut_short_while_it_is_open(tmp_path: Path) -> None:
    with BundleWriter(tmp_path / "c") as writer:
        writer.add("a", np.ones(1 << 16))
        writer.add("b", np.ones(1 << 16))
    data = tmp_path / "c.data-00000-of-00001"
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        assert checkpoint.get("a").sum() == 1 << 16
        with open(data, "r+b") as file:
            file.truncate(100_000)
        for key in ("a", "b"):
            with pytest.raises(OutOfRangeError, match="cut short"):
                checkpoint.get(key)


def test_missing_data(small: Path) -> None:
    (small / "v2.data-00000-of-00001").unlink()
    with (
        opkernel.load_checkpoint(small / "v2") as checkpoint,
        pytest.raises(OpError, match="data-00000"),
    ):
        checkpoint.get("a")


CUT: dict[tuple[str, int | None], type[OpError]] = {
    ("index", 0): DataLossError,
    ("index", 48): DataLossError,
    ("index", -1): DataLossError,
    ("index", None): NotFoundError,
    ("data-00000-of-00001", 0): OutOfRangeError,
    ("data-00000-of-00001", 23): OutOfRangeError,
    ("data-00000-of-00001", None): NotFoundError,
}
"""Files with the sizes that they are cut to (None: missing), and what TensorFlow's RestoreV2 answers of `a`."""


@pytest.mark.parametrize(("part", "size"), CUT)
def test_files_that_end_early(small: Path, part: str, size: int | None) -> None:
    cut(small / f"v2.{part}", size)
    with pytest.raises(CUT[part, size]):
        raw_ops.RestoreV2(
            prefix=str(small / "v2"),
            tensor_names=["a"],
            shape_and_slices=[""],
            dtypes=[opkernel.float32],
        )


@pytest.mark.tensorflow
def test_files_that_end_early_are_refused_as_by_tensorflow(tf: Any, small: Path) -> None:
    whole = {path.name: path.read_bytes() for path in small.glob("v2.*")}

    def code(restore: Any, key: str, dtype: Any) -> Any:
        try:
            restore(
                prefix=str(small / "v2"),
                tensor_names=[key],
                shape_and_slices=[""],
                dtypes=[dtype],
            )
        except (tf.errors.OpError, OpError) as error:
            return int(getattr(error, "error_code", None) or error.code)
        return 0

    for name, data in whole.items():
        for size in (*range(0, len(data), 7), len(data) - 1, None):
            cut(small / name, size)
            for key, type_name in (("a", "float32"), ("s", "string")):
                found = code(raw_ops.RestoreV2, key, getattr(opkernel, type_name))
                assert found == code(tf.raw_ops.RestoreV2, key, getattr(tf, type_name)), (
                    name,
                    size,
                    key,
                )
            (small / name).write_bytes(data)


def cut(file: Path, size: int | None) -> None:
    """Cut a file to a size, of which a negative one counts from the end; delete it for None."""
    if size is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[: size if size >= 0 else file.stat().st_size + size])
