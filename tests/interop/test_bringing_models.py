"""The recipes of docs/bringing_models.md, followed to the letter where their library is at hand."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "bringing_models.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text below a heading."""
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def command(line: str, directory: Path) -> str:
    """What a command of the page prints."""
    words = re.findall(r"'[^']*'|\S+", line)
    assert words[0] == "opkernel"
    done = subprocess.run(
        [sys.executable, "-m", "opkernel", *[word.strip("'") for word in words[1:]]],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore:__array__ implementation")  # of Keras with a newer NumPy
@pytest.mark.parametrize("file", ["model.keras", "model.h5"])
def test_a_keras_file(tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.chdir(tmp_path)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [tf.keras.Input([3], name="keras_tensor"), layers.Dense(2, activation="relu")]
    )
    model.save(file)
    expected = model(np.array([[1, 2, 3]], np.float32)).numpy()
    (recipe,) = re.findall(r"```python\n(.*?)```", section("Keras files"), re.DOTALL)
    exec(recipe.replace("model.keras", file), {})
    show, run = re.findall(r"^    (opkernel .*)$", section("Keras files"), re.MULTILINE)
    assert "serving_default" in command(show, tmp_path)
    shown = command(run, tmp_path)
    numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", shown.split("]")[1])]
    np.testing.assert_allclose(numbers, expected[0], rtol=1e-4, atol=1e-5)
    served = opkernel.load("saved_model").serve(np.array([[1, 2, 3]], np.float32))
    np.testing.assert_allclose(served, expected, rtol=1e-5)


def test_an_archive_as_hub_gives_it(sample: Any, tmp_path: Path) -> None:
    """A `.tar.gz` with the files of the SavedModel at its top, under `./`."""
    directory = sample(next((Path(__file__).parent / "data").glob("*.zip")).stem)
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as archive:
        archive.add(directory, arcname=".")
    (_, show) = re.findall(r"^    (\S+ .*)$", section("TensorFlow Hub"), re.MULTILINE)
    assert "MetaGraph" in command(show, tmp_path)
    whole, packed = opkernel.load(directory), opkernel.load(tmp_path / "model.tar.gz")
    assert [*packed.signatures] == [*whole.signatures]


def test_what_the_page_links_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)", PAGE)
    assert links
    assert all((ROOT / "docs" / link).exists() for link in links if "://" not in link)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_a_tfjs_model_in_javascript(tmp_path: Path) -> None:
    """The recipe unwraps the model and its weights."""
    folder = tmp_path / "fused"
    with zipfile.ZipFile(Path(__file__).parent / "tfjs" / "fused.zip") as archive:
        archive.extractall(folder)
    weights = folder / "group1-shard1of1.bin"
    document = (folder / "model.json").read_text().replace(weights.name, weights.stem)
    (folder / "model.min.js").write_text(f"module.exports = {document}")
    text = base64.b64encode(weights.read_bytes()).decode()
    (folder / f"{weights.stem}.min.js").write_text(f'module.exports = "{text}"')
    for file in (weights, folder / "model.json"):
        file.unlink()
    (recipe,) = re.findall(r"^    (node -e .*)$", section("TensorFlow.js"), re.MULTILINE)
    with pytest.raises(opkernel.errors.InvalidArgumentError) as raised:
        opkernel.load(folder / "model.min.js")
    assert recipe in raised.value.message
    subprocess.run(["/bin/sh", "-c", recipe], cwd=folder, check=True)
    with opkernel.load_as_session(folder) as model:
        assert list(model.signatures["serving_default"].outputs) == ["output_0"]
