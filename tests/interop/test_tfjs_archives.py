"""An archive of a TensorFlow.js graph model is a model, with the checks of any archive and of any such model."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import InvalidArgumentError, NotFoundError, ResourceExhaustedError
from opkernel.interop import archives

SAMPLES = Path(__file__).parent / "tfjs"
SAVED_MODEL = Path(__file__).parents[1] / "data" / "saved_models" / "v1"
FORMS = {"zip": "zip", "tar": "tar", "gztar": "tar.gz"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with zipfile.ZipFile(SAMPLES / "fused.zip") as archive:
        archive.extractall(tmp_path / "all" / "fused")
    return tmp_path / "all" / "fused"


def archived(folder: Path, form: str = "zip") -> Path:
    """An archive of the folder that a folder is in."""
    return Path(shutil.make_archive(str(folder.parents[1] / "model"), form, folder.parent))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("load", [opkernel.load, opkernel.load_as_session])
def test_it_gives_the_answers_of_the_folder(folder: Path, form: str, load: Any) -> None:
    call = json.loads((folder / "expected.json").read_text())
    path = archived(folder, form)
    assert path.name == f"model.{FORMS[form]}"
    shutil.rmtree(folder)
    with load(path) as model:
        found = model.signatures["serving_default"](
            **{name: np.array(value, np.float32) for name, value in call["inputs"].items()}
        )
        np.testing.assert_allclose(
            found["output_0"], call["outputs"]["output_0"], rtol=0, atol=1e-6
        )
        assert model.user_defined_metadata["labels"] == ["cat", "dog", "owl"]


def test_a_saved_model_comes_first(folder: Path) -> None:
    shutil.copytree(SAVED_MODEL, folder.parent / "saved")
    with opkernel.load_as_session(archived(folder)) as model:
        assert "look_up" in model.signatures


def test_several_models(folder: Path) -> None:
    shutil.copytree(folder, folder.parent / "other")
    with pytest.raises(
        InvalidArgumentError, match=r"holds 2 TensorFlow.js models \(fused, other\): unpack it"
    ):
        opkernel.load(archived(folder))


def test_a_layers_model(folder: Path) -> None:
    document = {"format": "layers-model", "modelTopology": {"class_name": "Sequential"}}
    (folder / "model.json").write_text(json.dumps(document))
    with pytest.raises(
        InvalidArgumentError, match=r"holds a TensorFlow.js layers model, which holds Keras layers"
    ):
        opkernel.load(archived(folder))


def test_no_model(folder: Path) -> None:
    (folder / "model.json").write_text('{"a": 1}')
    with pytest.raises(
        NotFoundError, match=r"no SavedModel \(no saved_model.pb\) and no TensorFlow.js graph model"
    ):
        opkernel.load(archived(folder))


def test_weights_lie_in_the_folder(folder: Path) -> None:
    (weights,) = folder.glob("*.bin")
    weights.rename(folder.parent / weights.name)
    document = json.loads((folder / "model.json").read_text())
    document["weightsManifest"][0]["paths"] = [f"../{weights.name}"]
    (folder / "model.json").write_text(json.dumps(document))
    with pytest.raises(InvalidArgumentError, match="outside"):
        opkernel.load(archived(folder))


def test_it_has_the_limits_of_archives(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_ALWAYS_BYTES", 1000)
    monkeypatch.setattr(archives, "_MOST_GROWTH", 1)
    with pytest.raises(ResourceExhaustedError, match="unpacks to more than"):
        opkernel.load(archived(folder))
