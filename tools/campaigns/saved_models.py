"""Damaged SavedModels: loading, listing signatures and calling them ends with an OpError, or works."""

import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import text_format
from tools.campaigns.damage import MUTATIONS, NODE_CHANGES
from tools.campaigns.messages import change_message

import opkernel
from opkernel.proto import MetaGraphDef, SavedModel

__all__ = ["case"]

_DATA = Path(__file__).parents[2] / "tests" / "data" / "saved_models"
_INPUTS: dict[str, dict[str, Any]] = {
    "serving_default": {"x": np.ones((2, 3), np.float32)},
    "look_up": {"words": np.array([b"two", b"none"], object)},
}
_FILES = [
    *["saved_model.pb"] * 10,
    "saved_model.pbtxt",
    "variables/variables.index",
    "variables/variables.data-00000-of-00001",
    "assets/vocabulary.txt",
    "fingerprint.pb",
]


def case(rng: random.Random) -> str:
    """Load a model, one file of which is damaged, and call a signature."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "model"
        shutil.copytree(_DATA / rng.choice(["v1", "v2", "v2"]), directory)
        _damage(directory, rng.choice(_FILES), rng)
        return _use(directory, rng)


def _damage(directory: Path, name: str, rng: random.Random) -> None:
    if name == "saved_model.pbtxt":
        _write_as_text(directory)
    file = directory / name
    if not file.exists():
        return
    if rng.random() < 0.05:
        file.unlink()
    elif name == "saved_model.pb" and rng.random() < 0.8:
        model = SavedModel.FromString(file.read_bytes())
        for _ in range(rng.choice([1, 1, 2, 4])):
            _change(model, rng)
        file.write_bytes(model.SerializeToString())
    else:
        file.write_bytes(rng.choice(MUTATIONS[:3])(file.read_bytes(), rng))


def _write_as_text(directory: Path) -> None:
    model = SavedModel.FromString((directory / "saved_model.pb").read_bytes())
    (directory / "saved_model.pb").unlink()
    (directory / "saved_model.pbtxt").write_text(text_format.MessageToString(model))


def _change(model: SavedModel, rng: random.Random) -> None:
    """Change nodes, or any field; half of these where the model is described, and not in its nodes."""
    if not model.meta_graphs:
        return
    meta_graph: MetaGraphDef = model.meta_graphs[0]
    kind = rng.random()
    if kind < 0.3 and meta_graph.graph_def.node:
        rng.choice(NODE_CHANGES)(meta_graph.graph_def, rng)
    elif kind < 0.6 and meta_graph.HasField("object_graph_def"):
        change_message(meta_graph.object_graph_def, rng)
    elif kind < 0.8:
        described = MetaGraphDef()
        described.CopyFrom(meta_graph)
        for part in ("graph_def", "object_graph_def"):
            described.ClearField(part)
        change_message(described, rng)
        for part in ("graph_def", "object_graph_def"):
            getattr(described, part).CopyFrom(getattr(meta_graph, part))
        meta_graph.CopyFrom(described)
    else:
        change_message(model, rng)


def _use(directory: Path, rng: random.Random) -> str:
    model = opkernel.load(directory)
    repr(model)
    repr([repr(one) for one in model.signatures.values()])
    repr([one.name for one in model.variables])
    name = rng.choice([*_INPUTS])
    if name not in model.signatures:
        return "without the signature"
    signature = model.signatures[name]
    if {*signature.inputs} != {*_INPUTS[name]}:
        return "with other inputs"
    repr(signature(**_INPUTS[name]))
    return "runs"
