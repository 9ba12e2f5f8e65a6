"""Models of `data/`, unpacked for tests that change them, and models that an installed TensorFlow saves."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.interop.calls import Call

from opkernel.proto import MetaGraphDef, SavedModel

DATA = Path(__file__).parent / "data"


@pytest.fixture
def sample(tmp_path: Path) -> Callable[..., Path]:
    """Gives the directory of a model, changed by a function of its MetaGraph if one is given."""

    def unpacked(name: str, change: Callable[[MetaGraphDef], object] | None = None) -> Path:
        directory = tmp_path / name
        with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
            archive.extractall(directory)
        if change is not None:
            file = directory / "saved_model.pb"
            message = SavedModel.FromString(file.read_bytes())
            change(message.meta_graphs[0])
            file.write_bytes(message.SerializeToString())
        return directory

    return unpacked


@pytest.fixture(scope="session")
def answers() -> Any:
    """What asks TensorFlow."""
    from tests.interop import tensorflow_answers

    return tensorflow_answers


@pytest.fixture(scope="session")
def saved(answers: Any, tmp_path_factory: Any) -> Any:
    """Gives the directory of a model and its calls; each is saved once."""
    root = tmp_path_factory.mktemp("models")
    done: dict[str, tuple[Path, list[Call]]] = {}

    def directory(name: str) -> tuple[Path, list[Call]]:
        if name not in done:
            build = {**answers.OBJECTS, **answers.SESSIONS}[name]
            done[name] = root / name, build(str(root / name))
        return done[name]

    return directory
