"""`run` and `freeze` beside TensorFlow's saved_model_cli and its readers; models of the shared material."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command

MODELS = Path(__file__).parent / "saved_models"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "models"
RUNS = {
    "two": ["--tag_set", "serve", "--signature_def", "serving_default",
            "--input_exprs", "x=[[0, 0.25, 0.5], [0.75, 1, 1.25]]"],
    "scale": ["--tag_set", "serve", "--signature_def", "scale",
              "--input_exprs", "x=[1, -2, 3];factor=2.5"],
    "one": ["--tag_set", "serve", "--signature_def", "predict", "--input_exprs", "x=[[1, 2, 3, 4], [5, 6, 7, 8]]"],
    "files": ["--tag_set", "serve", "--signature_def", "scale", "--inputs", "x=x.npy;factor=f.npz[f]"],
}  # fmt: skip
FOLDERS = {"scale": "two", "files": "two"}


def saved_model_cli(folder: Path, *arguments: str) -> None:
    """Run TensorFlow's tool."""
    tool = [sys.executable, "-m", "tensorflow.python.tools.saved_model_cli"]
    subprocess.run([*tool, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", RUNS)
def test_the_same_arguments_give_the_same_files(
    name: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tf: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.arange(5, dtype=np.float32))
    np.savez("f.npz", f=np.float32(3))
    words = ["run", "--dir", str(MODELS / FOLDERS.get(name, name)), *RUNS[name], "--outdir"]
    saved_model_cli(tmp_path, *words, "theirs")
    done = command(*words, "ours")
    assert done.exit_code == 0, done.output
    theirs, ours = Path("theirs"), Path("ours")
    names = sorted(one.name for one in theirs.iterdir())
    assert names == sorted(one.name for one in ours.iterdir())
    for one in names:
        np.testing.assert_allclose(np.load(ours / one), np.load(theirs / one), rtol=1e-6)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("model", "signature", "given"),
    [
        ("two", "serving_default", {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}),
        ("two", "look_up", {"words": np.array([b"sat", b"dog"], object)}),
        ("one", "numbers", {"word": np.array([b"a", b"z"], object)}),
    ],
)
def test_tensorflow_runs_what_is_frozen(
    model: str, signature: str, given: dict[str, Any], command: Command, tmp_path: Path, tf: Any
) -> None:
    out = tmp_path / "frozen.pb"
    parts = ["--tag_set", "serve", "--signature_def", signature]
    done = command("freeze", MODELS / model, *parts, "-o", out, "--json")
    report = json.loads(done.stdout)
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        original = v1.saved_model.load(session, ["serve"], str(MODELS / model))
        definition = original.signature_def[signature]
        feeds = {definition.inputs[name].name: value for name, value in given.items()}
        fetches = {name: info.name for name, info in definition.outputs.items()}
        expected = session.run(fetches, feeds)
    graph_def = v1.GraphDef.FromString(out.read_bytes())
    with tf.Graph().as_default(), v1.Session() as session:
        tf.import_graph_def(graph_def, name="")
        for name in report["run_first"]:
            session.run(name)
        tensors = {one["name"]: one["tensor"] for one in report["inputs"]}
        feeds = {tensors[name]: value for name, value in given.items()}
        found = session.run({one["name"]: one["tensor"] for one in report["outputs"]}, feeds)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the models are not here")
def test_a_shared_model_gives_tensorflows_answers(command: Command, tmp_path: Path) -> None:
    folder = SHARED / "saved_dense"
    with np.load(folder / "case.npz") as case:
        feeds = {key.removeprefix("feed:"): case[key] for key in case if key.startswith("feed:")}
        expected = {key.removeprefix("fetch:"): case[key] for key in case if key.startswith("fetch:")}  # fmt: skip
    np.savez(tmp_path / "given.npz", **feeds)
    given = [part for name in feeds for part in ("--input", f"{name}=@{tmp_path}/given.npz")]
    model = folder / "saved_model"
    assert command("run", model, *given, "--outdir", tmp_path / "out").exit_code == 0
    for name, value in expected.items():
        found = np.load(tmp_path / "out" / f"{name}.npy")
        assert np.abs(found - value).max() <= 1e-4 * max(np.abs(value).max(), 0.1)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the models are not here")
def test_a_shared_model_that_lacks_kernels_is_shown(command: Command) -> None:
    done = command("show", SHARED / "saved_text" / "saved_model", "--json")
    (found,) = json.loads(done.stdout)["meta_graphs"]
    assert found["signature_names"] == ["serving_default"]
    for use in found["used"].values():
        assert use["needed_by"] == ["serving_default"]
