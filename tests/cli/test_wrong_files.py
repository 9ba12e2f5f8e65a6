"""Files that are no GraphDef, or a damaged one, given to every command that takes a model."""

import gzip
import io
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

DATA = Path(__file__).resolve().parents[1] / "data"
GRAPH = (DATA / "graph_with_functions.pb").read_bytes()
TEXT = (DATA / "graph_with_functions.pbtxt").read_text()


def zipped(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def saved_array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


WRONG = {
    "empty": (b"", "DATA_LOSS", "is empty (0 bytes)"),
    "page": (b"<!DOCTYPE html>\n<html><body>404</body></html>", "INVALID_ARGUMENT", "HTML page"),
    "truncated": (GRAPH[:-100], "DATA_LOSS", "is truncated: it ends at byte 2343"),
    "saved_model": (
        (DATA / "saved_model.pb").read_bytes(),
        "INVALID_ARGUMENT",
        "is the saved_model.pb of a SavedModel under another name: call it saved_model.pb",
    ),
    "zip": (zipped(readme="x"), "NOT_FOUND", "holds no SavedModel (no saved_model.pb)"),
    "keras": (
        zipped(**{"config.json": "{}", "model.weights.h5": ""}),
        "INVALID_ARGUMENT",
        "is a Keras model (.keras), not a GraphDef; export it",
    ),
    "gzip": (gzip.compress(GRAPH), "INVALID_ARGUMENT", "unpack it with gunzip first"),
    "tflite": (b"\x1c\0\0\0TFL3" + bytes(100), "INVALID_ARGUMENT", "is a TensorFlow Lite model"),
    "onnx": (b"\x08\x08\x12\x07pytorch\x3a\x00", "INVALID_ARGUMENT", "is an ONNX model"),
    "syntax": (
        TEXT.replace('op: "Neg"', 'op: "Neg', 1).encode(),
        "INVALID_ARGUMENT",
        "is not a valid GraphDef in text format: error in line ",
    ),
    "numpy": (saved_array(), "INVALID_ARGUMENT", "is NumPy arrays (.npy or .npz), not a GraphDef"),
    "random": (random.Random(0).randbytes(5000), "INVALID_ARGUMENT", "is not a GraphDef"),
}
LINES = {"keras": 4, "onnx": 4, "tflite": 3}
"""The lines of messages that have a recipe."""


@pytest.mark.parametrize("verb", ["run", "show"])
@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_named_for_what_it_is(
    command: Command, tmp_path: Path, verb: str, kind: str
):
    content, code, message = WRONG[kind]
    path = tmp_path / "model.pb"
    path.write_bytes(content)
    done = command(verb, path)
    assert done.exit_code == 1
    assert done.output.startswith(f"Error: {code}: {path} ")
    assert message in done.output
    assert done.output.count("\n") == LINES.get(kind, 1)


@pytest.mark.parametrize("verb", ["run", "show"])
def test_directories(command: Command, tmp_path: Path, verb: str):
    done = command(verb, tmp_path)
    assert done.exit_code == 1
    assert done.output.endswith("is a directory that holds no SavedModel, not a GraphDef\n")
    (tmp_path / "graph.pb").touch()
    done = command(verb, tmp_path)
    assert done.output.endswith(f"not a GraphDef; perhaps you mean {tmp_path / 'graph.pb'}\n")
    (tmp_path / "saved_model.pb").write_bytes(b"")
    done = command(verb, tmp_path)
    assert done.exit_code == 1
    assert done.output.endswith("saved_model.pb is damaged: it has no MetaGraph\n")


@pytest.mark.parametrize("verb", ["run", "show"])
def test_the_prefix_of_a_checkpoint(command: Command, tmp_path: Path, verb: str):
    (tmp_path / "ckpt-1.index").touch()
    done = command(verb, tmp_path / "ckpt-1")
    assert done.exit_code == 1
    assert f"{tmp_path / 'ckpt-1'} is a TensorFlow checkpoint" in done.output
    assert f"opkernel checkpoint ls {tmp_path / 'ckpt-1'}" in done.output


@pytest.mark.parametrize("verb", ["run", "show"])
def test_a_file_that_does_not_exist(command: Command, verb: str):
    done = command(verb, "nope.pb")
    assert done.exit_code == 2
    assert "'nope.pb' does not exist" in done.output
    assert done.output.count("\n") == 1


def test_a_graph_that_breaks_a_rule(command: Command, text_model: Callable[[str], Path]):
    path = text_model('node { name: "y" op: "Identity" input: "x" }')
    done = command("show", path)
    assert done.exit_code == 1
    assert "Node 'y': Unknown input node 'x'" in done.output
