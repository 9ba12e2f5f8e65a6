"""next_step: what to do with a file that is not what was asked for."""

from __future__ import annotations

import os

from opkernel.graph.io.file_kind import FileKind

_LOAD = "; load it with opkernel.load({path!r}), or make it a GraphDef: opkernel freeze {path} -o graph.pb"
_KERAS = (
    "; export it where Keras is installed:\n"
    "    model = keras.saving.load_model({path!r})\n"
    "    model.export('saved_model')\n"
    "and load the directory saved_model"
)
_CHECKPOINT = (
    "; it has values without a graph: opkernel.load_checkpoint({path!r}) reads them. The graph is in "
    "the .meta file beside it, or in the saved_model.pb of the directory above"
)
_NEXT_STEP = {
    FileKind.SAVED_MODEL: _LOAD,
    FileKind.SAVED_MODEL_FILE: _LOAD,
    FileKind.SAVED_MODEL_TEXT: _LOAD,
    FileKind.META_GRAPH: _LOAD,
    FileKind.META_GRAPH_TEXT: _LOAD,
    FileKind.GZIP: "; if it is the archive of a SavedModel, opkernel.load({path!r}) takes it as it is",
    FileKind.TAR: "; if it is the archive of a SavedModel, opkernel.load({path!r}) takes it as it is",
    FileKind.ZIP: "; if it is the archive of a SavedModel, opkernel.load({path!r}) takes it as it is",
    FileKind.GRAPH_DEF: "; load it with opkernel.load_graph({path!r})",
    FileKind.GRAPH_DEF_TEXT: "; load it with opkernel.load_graph({path!r})",
    FileKind.KERAS: _KERAS,
    FileKind.HDF5: _KERAS,
    FileKind.TFLITE: (
        "; take the SavedModel or Keras model that it was converted from, or run it with ai-edge-litert"
    ),
    FileKind.ONNX: (
        "; convert it where onnx2tf is installed:\n"
        "    pip install onnx2tf\n"
        "    onnx2tf -i {path} -o saved_model -osd\n"
        "and load the directory saved_model"
    ),
    FileKind.PYTORCH: (
        "; export it where PyTorch is installed:\n"
        "    torch.onnx.export(model, example_inputs, 'model.onnx')\n"
        "    onnx2tf -i model.onnx -o saved_model -osd\n"
        "and load the directory saved_model"
    ),
    FileKind.CHECKPOINT_INDEX: _CHECKPOINT,
    FileKind.CHECKPOINT_DATA: _CHECKPOINT,
    FileKind.CHECKPOINT_STATE: _CHECKPOINT,
    FileKind.TEXT: "; opkernel reads GraphDefs (.pb, .pbtxt), SavedModels and MetaGraphs",
    FileKind.GIT_LFS: "; fetch the file with `git lfs pull`",
    FileKind.HTML: "; download the file itself",
}
_MOST_NAMED = 3
"""The files of a directory that a message names."""


def next_step(path: str | os.PathLike[str], kind: FileKind) -> str:
    """What to do with a file of a kind, as the end of a message; empty where nothing is known."""
    if kind is FileKind.DIRECTORY:
        return _models_within(path)
    return (
        _NEXT_STEP.get(kind, "").replace("{path!r}", repr(str(path))).replace("{path}", str(path))
    )


def _models_within(directory: str | os.PathLike[str]) -> str:
    """What a message says of the files in a directory that may hold a model."""
    names = sorted(os.listdir(directory))
    if any(name.endswith(".index") for name in names):
        return f"{_of_checkpoint(directory)}"
    endings = (".pb", ".pbtxt", ".meta")
    models = [name for name in names if name.endswith(endings)]
    models += [f for f in names if os.path.isfile(os.path.join(directory, f, "saved_model.pb"))]
    paths = [os.path.join(directory, name) for name in models[:_MOST_NAMED]]
    return f"; perhaps you mean {' or '.join(paths)}" if paths else ""


def _of_checkpoint(directory: str | os.PathLike[str]) -> str:
    """What a message says of a directory with a checkpoint, such as `variables/` of a SavedModel."""
    parent = os.path.dirname(os.path.abspath(directory))
    if os.path.isfile(os.path.join(parent, "saved_model.pb")):
        return f"; it holds the variables of a SavedModel: load {parent}"
    return (
        f"; it holds checkpoints, values without a graph: opkernel checkpoint ls {directory} lists them, "
        f"and a .meta file beside them would be their graph"
    )
