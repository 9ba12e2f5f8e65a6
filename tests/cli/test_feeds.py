import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.cli.conftest import Command


def fed(command: Command, model: Path, name: str, value: str) -> Any:
    """What `NAME=VALUE` feeds, as JSON tells it."""
    done = command("run", model, "--input", f"{name}={value}", "--fetch", f"{name}_out", "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)[f"{name}_out:0"]["value"]


def refusal(command: Command, model: Path, name: str, value: str, exit_code: int = 1) -> str:
    """The message for a value that cannot be fed."""
    done = command("run", model, "--input", f"{name}={value}", "--fetch", f"{name}_out")
    assert done.exit_code == exit_code, done.output
    assert done.output.count("\n") == 1
    return done.output


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("n", "3", 3),
        ("n", "3.0", 3),
        ("flag", "[true, 0]", [True, False]),
        ("byte", "[0, 255]", [0, 255]),
        ("x", "[[1, 0.5, 1e400]]", [[1.0, 0.5, "Infinity"]]),
        ("complex", "[1, 2.5]", ["(1+0j)", "(2.5+0j)"]),
        ("text", "plain text", "plain text"),
        ("text", "123", "123"),
        ("text", '"a \\"quoted\\" string"', 'a "quoted" string'),
        ("text", '[["a"], ["b"]]', [["a"], ["b"]]),
        ("text", "[not json", "[not json"),
        ("text", "a=b", "a=b"),
        ("text", "", ""),
    ],
)
def test_values_on_the_command_line_take_the_type_of_the_tensor(
    command: Command, model: Path, name: str, value: str, expected
):
    assert fed(command, model, name, value) == expected


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("n", "1.5", "of type int32: 1.5 (float64) does not fit"),
        ("n", "NaN", "of type int32"),
        ("n", "3000000000", "of type int32"),
        ("byte", "-1", "of type uint8"),
        ("byte", "[1, 300]", "of type uint8"),
        ("flag", "2", "of type bool: 2 (int64) does not fit"),
        ("x", "null", "of type float32"),
        ("x", "[[1, 2], [3]]", "of type float32"),
        ("x", '"one"', "of type float32: could not convert string to float"),
        ("text", "[1, 2]", "of type string: expected bytes or text"),
    ],
)
def test_values_that_do_not_fit_the_type_are_refused(
    command: Command, model: Path, name: str, value: str, reason: str
):
    message = refusal(command, model, name, value)
    assert message.startswith("Error: INVALID_ARGUMENT: Cannot feed")
    assert f"'{name}:0'" in message
    assert reason in message


def test_deep_json_is_refused(command: Command, model: Path):
    assert "is neither JSON nor @FILE" in refusal(command, model, "x", "[" * 100_000, 2)


def test_npy(command: Command, model: Path, tmp_path: Path):
    np.save(tmp_path / "x.npy", np.arange(3.0).reshape(1, 3))
    assert fed(command, model, "x", f"@{tmp_path}/x.npy") == [[0.0, 1.0, 2.0]]


def test_npy_of_another_type(command: Command, model: Path, tmp_path: Path):
    np.save(tmp_path / "n.npy", np.float32(2.5))
    assert "2.5 (float32) does not fit" in refusal(command, model, "n", f"@{tmp_path}/n.npy")
    np.save(tmp_path / "n.npy", np.int64(7))
    assert fed(command, model, "n", f"@{tmp_path}/n.npy") == 7


def test_npy_of_a_type_that_numpy_lacks(command: Command, model: Path, tmp_path: Path):
    np.save(tmp_path / "b.npy", np.array([1.5, -2], ml_dtypes.bfloat16))
    assert fed(command, model, "brain", f"@{tmp_path}/b.npy") == [1.5, -2.0]
    assert "another type" in refusal(command, model, "x", f"@{tmp_path}/b.npy")


def test_npy_of_strings(command: Command, model: Path, tmp_path: Path):
    np.save(tmp_path / "s.npy", np.array([b"a", b"bc"]))
    assert fed(command, model, "text", f"@{tmp_path}/s.npy") == ["a", "bc"]
    np.save(tmp_path / "s.npy", np.array(["a", "é"]))
    assert fed(command, model, "text", f"@{tmp_path}/s.npy") == ["a", "é"]


def test_any_file_is_fed_to_a_string_tensor_as_its_bytes(
    command: Command, model: Path, tmp_path: Path
):
    (tmp_path / "image.png").write_bytes(b"\x89PNG\r\n")
    assert fed(command, model, "text", f"@{tmp_path}/image.png") == "\\x89PNG\r\n"


def test_npz_keys(command: Command, model: Path, tmp_path: Path):
    path = tmp_path / "feeds.npz"
    arrays: dict[str, Any] = {"feed:n": np.int32(1), "n:0": np.int32(2)}
    np.savez(path, **arrays)
    assert fed(command, model, "n", f"@{path}:feed:n") == 1
    assert fed(command, model, "n", f"@{path}") == 2, "the array under the tensor's own name"
    missing = refusal(command, model, "n", f"@{path}:nope", 2)
    assert "has no array 'nope'; it holds feed:n, n:0" in missing
    unclear = refusal(command, model, "x", f"@{path}", 2)
    assert "needs a key, as in @FILE.npz:KEY; it holds feed:n, n:0" in unclear
    np.savez(path, only=np.int32(3))
    assert fed(command, model, "n", f"@{path}") == 3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("page.npy", b"<!DOCTYPE html><html>", "page.npy is an HTML page"),
        ("empty.npy", b"", "empty.npy is an empty file, not NumPy arrays"),
        ("cut.npy", b"\x93NUMPY\x01\x00v\x00{'descr'", "DATA_LOSS: Cannot read arrays from"),
    ],
)
def test_files_that_hold_no_arrays_are_named(
    command: Command, model: Path, tmp_path: Path, name: str, content: bytes, message: str
):
    (tmp_path / name).write_bytes(content)
    assert message in refusal(command, model, "x", f"@{tmp_path}/{name}")


def test_pickles_are_not_loaded(command: Command, model: Path, tmp_path: Path):
    np.save(tmp_path / "o.npy", np.array([None], dtype=object), allow_pickle=True)
    assert "DATA_LOSS" in refusal(command, model, "x", f"@{tmp_path}/o.npy")
