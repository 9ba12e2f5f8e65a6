"""Models of `data/`: archives that are unpacked for tests that change them."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

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
