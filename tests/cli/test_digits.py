"""The trained network of the examples, through the command line and through a session."""

import json
from pathlib import Path

import numpy as np
from tests.cli.conftest import Command

import opkernel

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
MODEL = DIGITS / "digits.pb"
LABELS = [5, 7, 6, 5, 7, 0, 5, 3]


def test_the_command_line_gives_what_a_session_gives(command: Command, tmp_path: Path):
    path = tmp_path / "results.npz"
    done = command(
        "run", MODEL, "--input", f"images=@{DIGITS}/images.npy",
        "--fetch", "probabilities", "--fetch", "digit", "--output", path,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    with opkernel.Session(opkernel.load_graph(MODEL)) as session:
        feeds = {"images:0": np.load(DIGITS / "images.npy")}
        probabilities, digit = session.run(["probabilities:0", "digit:0"], feeds)
    with np.load(path) as results:
        assert list(results) == ["probabilities:0", "digit:0"]
        np.testing.assert_array_equal(results["probabilities:0"], probabilities, strict=True)
        np.testing.assert_array_equal(results["digit:0"], digit, strict=True)


def test_it_recognises_the_images(command: Command):
    done = command(
        "run", MODEL, "--input", f"images=@{DIGITS}/images.npy", "--fetch", "digit", "--json"
    )
    assert json.loads(done.output)["digit:0"]["value"] == LABELS


def test_its_signature(command: Command):
    shown = json.loads(command("show", MODEL, "--json").output)
    assert [(i["name"], i["dtype"], i["shape"]) for i in shown["inputs"]] == [
        ("images:0", "float32", [None, 8, 8, 1])
    ]
    assert [output["name"] for output in shown["outputs"]] == ["probabilities:0", "digit:0"]
    assert shown["not_runnable"] == {}
