"""`opkernel checkpoint`: tensors of checkpoints listed, shown, compared, exported."""

import json
import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.cli.conftest import Command

import opkernel
from opkernel.checkpoint.slices import SlicesWriter
from opkernel.checkpoint.tensor_slice import TensorSlice

TENSORS: dict[str, Any] = {
    "dense/kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
    "dense/bias": np.array([0.5, np.nan, -np.inf], np.float32),
    "scale": np.array(2.5, ml_dtypes.bfloat16),
    "steps": np.array([7, 9], np.int64),
    "words": np.array([b"a", b"", "né".encode()], object),
}
RECORDED = Path(__file__).parents[1] / "checkpoint" / "data"
SAVED_MODELS = Path(__file__).parents[1] / "data" / "saved_models"


def write(prefix: Path, **change: Any) -> Path:
    with opkernel.BundleWriter(prefix) as writer:
        for name, value in {**TENSORS, **change}.items():
            if value is not None:
                writer.add(name, value)
    return prefix


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    return write(tmp_path / "model.ckpt-7")


def output(command: Command, *arguments: object, exit_code: int = 0) -> str:
    result = command("checkpoint", *arguments)
    assert result.exit_code == exit_code, result.output
    return result.output


def test_the_list_of_tensors(command: Command, prefix: Path) -> None:
    assert output(command, "ls", prefix).splitlines() == [
        "5 tensors",
        "  key           type      shape      size",
        "  dense/bias    float32   [3]    12 bytes",
        "  dense/kernel  float32   [2,3]  24 bytes",
        "  scale         bfloat16  []      2 bytes",
        "  steps         int64     [2]    16 bytes",
        "  words         string    [3]",
        "54 bytes in all",
    ]
    assert "2 tensors" in output(command, "ls", prefix, "--name", "dense/")
    found = json.loads(output(command, "ls", prefix, "--json"))
    assert found[1] == {
        "key": "dense/kernel",
        "dtype": "float32",
        "shape": [2, 3],
        "bytes": 24,
        "slices": 0,
    }


def test_all_kinds_of_paths(command: Command, prefix: Path) -> None:
    opkernel.checkpoint.update_checkpoint_state(prefix.parent, str(prefix))
    model = prefix.parent / "model"
    shutil.copytree(SAVED_MODELS / "v1", model)
    old = SlicesWriter(prefix.parent / "old")
    old.add("x", [2], TensorSlice.whole(1), np.zeros(2, np.float32))
    old.finish()
    for path in (prefix, f"{prefix}.index", f"{prefix}.data-00000-of-00001", prefix.parent):
        assert "5 tensors" in output(command, "ls", path)
    for path in (model, model / "variables", model / "variables" / "variables.index"):
        assert "  w    float32  [3,2]  24 bytes       3" in output(command, "ls", path)
    assert "1 tensor\n" in output(command, "ls", prefix.parent / "old")


def test_paths_that_are_no_checkpoint(command: Command, prefix: Path) -> None:
    assert f"there is {prefix}" in output(command, "ls", prefix.parent, exit_code=1)
    assert "There is no checkpoint" in output(
        command, "ls", prefix.parent / "model.ckpt-8", exit_code=1
    )
    (prefix.parent / "text").write_text("no table")
    assert "too short for a table" in output(command, "ls", prefix.parent / "text", exit_code=1)


def test_a_checkpoint_as_a_whole(command: Command, prefix: Path) -> None:
    assert output(command, "show", prefix).splitlines() == [
        f"checkpoint: {prefix}",
        "tensors: 5",
        "bytes: 54",
        "types: 1 bfloat16, 2 float32, 1 int64, 1 string",
        "partitioned: 0",
        "object graph: no",
    ]
    assert "object graph: yes" in output(command, "show", SAVED_MODELS / "v2")


def test_single_tensors(command: Command, prefix: Path) -> None:
    assert output(command, "show", prefix, "dense/bias", "words").splitlines() == [
        "key: dense/bias",
        "dtype: float32",
        "shape: [3]",
        "bytes: 12",
        "smallest: 0.5",
        "largest: 0.5",
        "mean: 0.5",
        "not finite: 2",
        "",
        "key: words",
        "dtype: string",
        "shape: [3]",
        "bytes: 4",
    ]
    shown = output(command, "show", RECORDED / "v2", "parted")
    assert "shape: [6,5]\n" in shown
    assert "slices: 0,2:-; 2,4:0,3; 2,4:3,2\n" in shown
    (found,) = json.loads(output(command, "show", prefix, "steps", "--json"))
    assert (found["smallest"], found["largest"], found["mean"]) == (7, 9, 8)


def test_one_value(command: Command, prefix: Path, tmp_path: Path) -> None:
    assert "float32[2,3]" in output(command, "get", prefix, "dense/kernel")
    found = json.loads(output(command, "get", prefix, "steps", "--json"))
    assert found["value"] == [7, 9]
    file = tmp_path / "kernel.npy"
    output(command, "get", prefix, "dense/kernel", "-o", file)
    assert np.load(file).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert "perhaps you mean steps" in output(command, "get", prefix, "step", exit_code=1)
    assert "written as .npy" in output(command, "get", prefix, "steps", "-o", "x.txt", exit_code=2)


def test_no_string_loses_its_end(command: Command, tmp_path: Path) -> None:
    prefix = write(tmp_path / "c", words=np.array([b"a\0"], object))
    refusal = output(command, "get", prefix, "words", "-o", tmp_path / "x.npy", exit_code=1)
    assert "ends with a zero byte" in refusal
    assert not (tmp_path / "x.npy").exists()
    other = write(tmp_path / "d", words=np.array([b"a"], object))
    assert "1 string of 1" in output(command, "diff", prefix, other, exit_code=1)


def test_differences(command: Command, prefix: Path, tmp_path: Path) -> None:
    other = write(
        tmp_path / "other",
        **{
            "dense/kernel": TENSORS["dense/kernel"] + np.float32(0.25),
            "steps": None,
            "scale": np.array(2.5),
            "words": np.array([b"a", b"b", b"c"], object),
            "new": np.zeros(2),
        },
    )
    found = json.loads(output(command, "diff", prefix, other, "--json", exit_code=1))
    assert {one["key"]: one["difference"] for one in found} == {
        "dense/kernel": "6 of 6 values, by up to 0.25",
        "new": f"only in {other}",
        "scale": "bfloat16 and float64",
        "steps": f"only in {prefix}",
        "words": "2 strings of 3",
    }
    assert output(command, "diff", prefix, prefix) == "5 tensors, all equal.\n"
    close = write(tmp_path / "close", **{"dense/kernel": TENSORS["dense/kernel"] + 0.001})
    output(command, "diff", prefix, close, exit_code=1)
    equal = output(command, "diff", prefix, write(tmp_path / "same"), "--atol", "0.01")
    assert equal == "5 tensors, all equal.\n"


def test_export_to_npz(command: Command, prefix: Path, tmp_path: Path) -> None:
    assert "5 tensors written" in output(command, "export", prefix, "-o", tmp_path / "all.npz")
    with np.load(tmp_path / "all.npz") as found:
        assert {*TENSORS} == {*found}
        assert found["words"].tolist() == [b"a", b"", "né".encode()]
    output(command, "export", prefix, "steps", "-o", tmp_path / "one.npz")
    with np.load(tmp_path / "one.npz") as found:
        assert found["steps"].tolist() == [7, 9]
    assert "written as .npz or" in output(
        command, "export", prefix, "-o", tmp_path / "x.txt", exit_code=2
    )


def test_export_to_safetensors(command: Command, prefix: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.safetensors"
    found = output(command, "export", prefix, "-o", file)
    assert "4 tensors written" in found
    assert "Left out: 1 tensor of strings (words)" in found
    length = int.from_bytes(file.read_bytes()[:8], "little")
    header, data = file.read_bytes()[8 : 8 + length], file.read_bytes()[8 + length :]
    assert length % 8 == 0
    assert json.loads(header) == {
        "steps": {"dtype": "I64", "shape": [2], "data_offsets": [0, 16]},
        "dense/bias": {"dtype": "F32", "shape": [3], "data_offsets": [16, 28]},
        "dense/kernel": {"dtype": "F32", "shape": [2, 3], "data_offsets": [28, 52]},
        "scale": {"dtype": "BF16", "shape": [], "data_offsets": [52, 54]},
    }
    assert data == b"".join(TENSORS[key].tobytes() for key in json.loads(header))
    complex_one = write(tmp_path / "c", steps=np.array([1j]))
    refusal = output(command, "export", complex_one, "steps", "-o", file, exit_code=1)
    assert "complex128" in refusal
    assert {one.suffix for one in tmp_path.iterdir()} == {
        ".index",
        ".data-00000-of-00001",
        ".safetensors",
    }


def test_the_library_reads_the_export(command: Command, tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    prefix = write(tmp_path / "c", scale=None, words=None)
    output(command, "export", prefix, "-o", tmp_path / "c.safetensors")
    found = numpy.load_file(tmp_path / "c.safetensors")
    assert {key: value.tobytes() for key, value in found.items()} == {
        key: TENSORS[key].tobytes() for key in ("dense/kernel", "dense/bias", "steps")
    }


@pytest.mark.parametrize("width", ["45", "80", "200"])
def test_lines_keep_to_the_width(
    command: Command, prefix: Path, width: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    for arguments in (
        ("ls", RECORDED / "v2"),
        ("show", RECORDED / "v2"),
        ("get", RECORDED / "v2", "float32/odd"),
    ):
        lines = output(command, *arguments).splitlines()
        assert max(map(len, lines)) <= int(width)
