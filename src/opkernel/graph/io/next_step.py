"""next_step: what to do with a file that opkernel does not read as it is, as the end of a message."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice

from opkernel.graph.io.file_kind import FileKind, file_kind, tfjs_model_file

_LOAD = "; load it with opkernel.load({path!r}), or make it a GraphDef: opkernel freeze {path} -o graph.pb"
_CHECKPOINT = (
    "; it has values without a graph: opkernel checkpoint ls {path} lists them, "
    "opkernel.load_checkpoint({path!r}) reads them. The graph is in "
    "the .meta file beside it, or in the saved_model.pb of the directory above"
)
_ARCHIVE = "; if it is the archive of a model, opkernel.load({path!r}) takes it as it is"
_NEXT_STEP = {
    **{kind: _LOAD for kind in FileKind if kind.may_be_saved},
    **dict.fromkeys((FileKind.GZIP, FileKind.TAR, FileKind.ZIP), _ARCHIVE),
    **dict.fromkeys(
        (FileKind.GRAPH_DEF, FileKind.GRAPH_DEF_TEXT),
        "; load it with opkernel.load_graph({path!r})",
    ),
    FileKind.TFLITE: (
        "; take the SavedModel or Keras model that it was converted from, or run it with LiteRT "
        "(pip install ai-edge-litert):\n"
        "    from ai_edge_litert.interpreter import Interpreter\n"
        "    run = Interpreter(model_path={path!r}).get_signature_runner()"
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
    FileKind.CHECKPOINT: _CHECKPOINT,
    FileKind.CHECKPOINT_INDEX: _CHECKPOINT,
    FileKind.CHECKPOINT_DATA: _CHECKPOINT,
    FileKind.CHECKPOINT_STATE: _CHECKPOINT,
    FileKind.TFJS_LAYERS: (
        "; convert it where tensorflowjs is installed:\n"
        "    pip install tensorflowjs\n"
        "    tensorflowjs_converter --input_format tfjs_layers_model --output_format tfjs_graph_model "
        "{path} graph_model\n"
        "and load the directory graph_model"
    ),
    FileKind.TFJS_SCRIPT: (
        "; write it and its weights, which are wrapped too, as plain files with Node.js:\n"
        "    cd {folder}\n"
        "    node -e \"for (const f of fs.readdirSync('.').filter(f => f.endsWith('.js'))) { "
        "const v = require('./' + f), to = f.split('.')[0]; typeof v === 'string' "
        "? fs.writeFileSync(to, Buffer.from(v, 'base64')) "
        ": fs.writeFileSync(to + '.json', JSON.stringify(v)) }\"\n"
        "and load the directory"
    ),
    FileKind.TFJS_WEIGHTS: "; load the tensorflowjs_model.pb or model.json beside it",
    FileKind.TEXT: "; opkernel reads GraphDefs (.pb, .pbtxt), SavedModels and MetaGraphs",
    FileKind.GIT_LFS: "; fetch the file with `git lfs pull`",
    FileKind.HTML: "; download the file itself",
}
_MOST_NAMED = 3
"""The files of a directory that a message names."""
_MOST_OPENED = 20
"""The files of a directory that are opened to find out what they are."""


def next_step(path: str | os.PathLike[str], kind: FileKind) -> str:
    """What to do with a file of a kind, as the end of a message; empty where nothing is known."""
    if kind is FileKind.DIRECTORY:
        return _models_within(path)
    if kind in (FileKind.KERAS, FileKind.HDF5):
        from opkernel.graph.io.keras_files import keras_advice  # loads json, mmap and zipfile

        return keras_advice(path, is_archive=kind is FileKind.KERAS)
    text = str(path)
    if kind is FileKind.TFJS_LAYERS and os.path.isdir(path):
        text = tfjs_model_file(path) or text
    step = _NEXT_STEP.get(kind, "").replace("{path!r}", repr(text)).replace("{path}", text)
    return step.replace("{folder}", os.path.dirname(text) or os.curdir)


def _models_within(directory: str | os.PathLike[str]) -> str:
    """What a message says of the files in a directory that may hold a model."""
    names = sorted(os.listdir(directory))
    if any(name.endswith(".index") for name in names):
        return f"{_of_checkpoint(directory)}"
    endings = (".pb", ".pbtxt", ".meta")
    models = [name for name in names if name.endswith(endings)]
    models += [f for f in names if os.path.isfile(os.path.join(directory, f, "saved_model.pb"))]
    models += _tfjs_models(directory, names)
    paths = [os.path.join(directory, name) for name in models[:_MOST_NAMED]]
    return f"; perhaps you mean {' or '.join(paths)}" if paths else ""


def _tfjs_models(directory: str | os.PathLike[str], names: Iterable[str]) -> Iterator[str]:
    """The files that are graph models of TensorFlow.js, of the first that may be."""
    for name in islice((name for name in names if name.endswith(".json")), _MOST_OPENED):
        path = os.path.join(directory, name)
        if os.path.isfile(path) and file_kind(path) is FileKind.TFJS_GRAPH:
            yield name


def _of_checkpoint(directory: str | os.PathLike[str]) -> str:
    """What a message says of a directory with a checkpoint, such as `variables/` of a SavedModel."""
    parent = os.path.dirname(os.path.abspath(directory))
    if os.path.isfile(os.path.join(parent, "saved_model.pb")):
        return f"; it holds the variables of a SavedModel: load {parent}"
    return (
        f"; it holds checkpoints, values without a graph: opkernel checkpoint ls {directory} lists them, "
        f"and a .meta file beside them would be their graph"
    )
