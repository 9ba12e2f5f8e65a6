"""Every command that takes a model takes a graph model of TensorFlow.js."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

SAMPLE = Path(__file__).resolve().parents[1] / "interop" / "tfjs" / "fused.zip"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(SAMPLE) as archive:
        archive.extractall(tmp_path / "fused")
    return tmp_path / "fused"


@pytest.mark.parametrize(
    "arguments",
    [
        "show MODEL", "show MODEL --html OUT.html", "show MODEL --op Softmax", "shapes MODEL", "coverage MODEL",
        "place MODEL", "explain MODEL Identity", "run MODEL --random", "optimize MODEL -o OUT.pb",
        "freeze MODEL -o OUT.pb", "decompile MODEL -o OUT.py",
    ],
)  # fmt: skip
def test_commands(command: Command, folder: Path, tmp_path: Path, arguments: str) -> None:
    for model in (folder, folder / "model.json"):
        words = [str(model) if one == "MODEL" else one for one in arguments.split()]
        done = command(*[str(tmp_path / one) if one.startswith("OUT") else one for one in words])
        assert done.exit_code == 0, done.output


def test_it_is_shown_with_its_makers_and_its_metadata(command: Command, folder: Path) -> None:
    shown = command("show", folder).output
    assert (
        f"a TensorFlow.js graph model, {(folder / 'model.json').stat().st_size / 1000:.1f} kB"
        in shown
    )
    assert "written by TensorFlow 2.21.0" in shown
    assert "TensorFlow.js Converter" in shown
    assert "['cat', 'dog', 'owl']" in shown
    assert "Every op can run." in shown


def test_a_frozen_model_computes_the_same(command: Command, folder: Path, tmp_path: Path) -> None:
    call = json.loads((folder / "expected.json").read_text())
    ((name, value),) = call["inputs"].items()
    given = f"{name}={json.dumps(value)}"
    assert command("freeze", folder, "-o", tmp_path / "graph.pb").exit_code == 0
    for model, tensor in ((folder, "output_0"), (tmp_path / "graph.pb", "Identity:0")):
        done = command("run", model, "--input", given, "--json")
        assert done.exit_code == 0, done.output
        found = json.loads(done.output)
        assert tensor in found
        values = np.array(
            found[tensor]["value"] if isinstance(found[tensor], dict) else found[tensor]
        )
        np.testing.assert_allclose(values, call["outputs"]["output_0"], rtol=0, atol=1e-6)
