"""One small model, y = relu(x w + b), in every form that commands take."""

from __future__ import annotations

import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from google.protobuf import json_format

import opkernel
from opkernel import Graph, raw_ops, save_graph
from opkernel.proto import MetaGraphDef, SavedModel

SAVED = Path(__file__).resolve().parents[1] / "data" / "saved_models"
"""`v1` and `v2`: SavedModels of TensorFlow 1 and 2 with variables (make_saved_models.py); the weights of `v1` are ones."""
WEIGHTS = np.arange(6, dtype=np.float32).reshape(3, 2)
BIAS = np.array([1, -1], np.float32)
X, Y, Y_OF_V1 = [[1.0, 2.0, 3.0]], [[17.0, 21.0]], [[7.0, 5.0]]
"""An input, its output, and its output by the weights of `v1`."""


def small_graph() -> Graph:
    """The model as a graph with constants."""
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[None, 3], name="x")
        w = raw_ops.Const(value=WEIGHTS, dtype=opkernel.float32, name="w")
        b = raw_ops.Const(value=BIAS, dtype=opkernel.float32, name="b")
        product = raw_ops.MatMul(a=x, b=w, name="MatMul")
        raw_ops.Relu(features=raw_ops.AddV2(x=product, y=b, name="add"), name="y")
    return graph


def graph_def(folder: Path) -> Path:
    save_graph(small_graph(), folder / "graph.pb")
    return folder / "graph.pb"


def text(folder: Path) -> Path:
    save_graph(small_graph(), folder / "graph.pbtxt")
    return folder / "graph.pbtxt"


def saved_v1(folder: Path) -> Path:
    return Path(shutil.copytree(SAVED / "v1", folder / "v1"))


def saved_v2(folder: Path) -> Path:
    return Path(shutil.copytree(SAVED / "v2", folder / "v2"))


def meta_graph(folder: Path) -> Path:
    """A MetaGraph file beside its checkpoint; its graph is that of `v1`, without the table of words."""
    message = SavedModel.FromString((SAVED / "v1" / "saved_model.pb").read_bytes())
    (found,) = message.meta_graphs
    for name in [one for one in found.signature_def if one != "serving_default"]:
        del found.signature_def[name]
    for name in [one for one in found.collection_def if "init_op" in one or "main_op" in one]:
        del found.collection_def[name]
    (folder / "model.ckpt.meta").write_bytes(found.SerializeToString())
    for end in ("index", "data-00000-of-00001"):
        shutil.copy(SAVED / "v1" / "variables" / f"variables.{end}", folder / f"model.ckpt.{end}")
    return folder / "model.ckpt.meta"


def checkpoint(folder: Path) -> Path:
    """The prefix of a checkpoint, which is no model."""
    return meta_graph(folder).with_suffix("")


def tfjs(folder: Path) -> Path:
    """A TensorFlow.js graph model, as its converter writes it."""
    (folder / "web").mkdir()
    message = small_graph().as_graph_def()
    weights = {"w": WEIGHTS, "b": BIAS}
    for node in message.node:
        if node.op == "Const":
            node.attr["value"].tensor.ClearField("tensor_content")
            node.attr["value"].tensor.ClearField("float_val")
    manifest = [
        {"name": name, "shape": value.shape, "dtype": "float32"} for name, value in weights.items()
    ]
    document = {
        "format": "graph-model",
        "modelTopology": json_format.MessageToDict(message),
        "weightsManifest": [{"paths": ["group1-shard1of1.bin"], "weights": manifest}],
        "signature": {
            "inputs": {"x": {"name": "x:0", "dtype": "DT_FLOAT"}},
            "outputs": {"y": {"name": "y:0", "dtype": "DT_FLOAT"}},
        },
    }
    (folder / "web" / "model.json").write_text(json.dumps(document))
    (folder / "web" / "group1-shard1of1.bin").write_bytes(
        b"".join(value.tobytes() for value in weights.values())
    )
    return folder / "web"


def tfjs_file(folder: Path) -> Path:
    return tfjs(folder) / "model.json"


def zipped(make: Callable[[Path], Path]) -> Callable[[Path], Path]:
    """The same in a `.zip` archive."""

    def made(folder: Path) -> Path:
        model, path = make(folder), folder / "archive.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for file in sorted(model.rglob("*")):
                archive.write(file, file.relative_to(folder))
        return path

    return made


def tarred(make: Callable[[Path], Path]) -> Callable[[Path], Path]:
    """The same in a `.tar.gz` archive."""

    def made(folder: Path) -> Path:
        model, path = make(folder), folder / "archive.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            archive.add(model, model.name)
        return path

    return made


MODELS: dict[str, Callable[[Path], Path]] = {
    "graph": graph_def,
    "text": text,
    "v1": saved_v1,
    "v2": saved_v2,
    "meta": meta_graph,
    "tfjs": tfjs,
    "tfjs-file": tfjs_file,
    "v1-zip": zipped(saved_v1),
    "v2-tar": tarred(saved_v2),
    "tfjs-zip": zipped(tfjs),
    "tfjs-tar": tarred(tfjs),
}


def no_signatures(folder: Path) -> Path:
    """A MetaGraph file as a training of TensorFlow 1 leaves it: nobody named its inputs and outputs."""
    path = meta_graph(folder)
    found = MetaGraphDef.FromString(path.read_bytes())
    found.signature_def.clear()
    path.write_bytes(found.SerializeToString())
    return path
