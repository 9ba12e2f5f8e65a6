"""Files told apart by what is in them, whatever their names."""

import gzip
import io
import json
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.graph.builders import BASE_TEXT, const, parse

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph import FileKind, file_kind, kind_of_bytes
from opkernel.proto import GraphDef, MetaGraphDef, SavedModel

SAMPLES = Path(__file__).resolve().parents[2] / "data"


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "{}")
    return buffer.getvalue()


def tarred(name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    return buffer.getvalue()


def meta_graph(**fields) -> MetaGraphDef:
    message = MetaGraphDef(graph_def=parse(BASE_TEXT), **fields)
    message.meta_info_def.tensorflow_version = "2.21.0"
    message.meta_info_def.tags.append("serve")
    return message


def onnx_model() -> bytes:
    """The first fields of an ONNX ModelProto: ir_version, producer_name, graph, opset_import."""
    return b"\x08\x08\x12\x07pytorch" + b"\x3a\x04\x12\x02g1" + b"\x42\x02\x10\x11"


def large_constant() -> GraphDef:
    graph_def = parse(const("large"))
    graph_def.node[0].attr["value"].tensor.tensor_content = bytes(1 << 17)
    return graph_def


def numpy_file() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(3))
    return buffer.getvalue()


GRAPH = parse(BASE_TEXT).SerializeToString()
CONTENTS = {
    "graph": (GRAPH, FileKind.GRAPH_DEF),
    "graph, library first": (
        b"\x12\x05\n\x03\n\x01\n" + GRAPH, FileKind.GRAPH_DEF),
    "graph with versions only": (b"\x22\x03\x08\xda\x0e", FileKind.GRAPH_DEF),
    "graph with a large constant first": (
        large_constant().SerializeToString(), FileKind.GRAPH_DEF),
    "graph as text": (BASE_TEXT.encode(), FileKind.GRAPH_DEF_TEXT),
    "graph as text after comments": (
        b"\xef\xbb\xbf# made by hand\n\n  # node\n versions <producer: 3>", FileKind.GRAPH_DEF_TEXT),
    "saved model": (
        SavedModel(saved_model_schema_version=1, meta_graphs=[meta_graph()]).SerializeToString(),
        FileKind.SAVED_MODEL_FILE),
    "saved model as text": (b"saved_model_schema_version: 1\n", FileKind.SAVED_MODEL_TEXT),
    "meta graph": (meta_graph().SerializeToString(), FileKind.META_GRAPH),
    "meta graph as text": (b"meta_info_def {\n}\n", FileKind.META_GRAPH_TEXT),
    "html": (b"\n<!DOCTYPE html>\n<html lang=en><title>404</title>", FileKind.HTML),
    "html without doctype": (b"<HTML><body>", FileKind.HTML),
    "xml": (b"<?xml version='1.0'?><Error/>", FileKind.XML),
    "json": (json.dumps({"format": "figures"}).encode(), FileKind.JSON),
    "TensorFlow.js graph": (b'{"format": "graph-model", "generatedBy": "2.5.0"', FileKind.TFJS_GRAPH),
    "TensorFlow.js graph, nodes first": (
        b'{\n  "modelTopology": {"node": [{"name": "x", "op": "Placeholder"}', FileKind.TFJS_GRAPH),
    "TensorFlow.js graph, weights first": (
        b'{"weightsManifest": [{"paths": ["g.bin"], "weights": [', FileKind.TFJS_GRAPH),
    "TensorFlow.js layers": (b'{"format": "layers-model", "generatedBy": "keras v2.4.0"', FileKind.TFJS_LAYERS),
    "TensorFlow.js layers of 2018": (
        b'{"modelTopology":{"keras_version":"2.2.4","model_config":{"class_name":"Model"', FileKind.TFJS_LAYERS),
    "TensorFlow.js weights": (
        b'[{"paths":["group1-shard1of1"],"weights":[{"name":"a"', FileKind.TFJS_WEIGHTS),
    "TensorFlow.js in JavaScript": (
        b'!function(e){e.exports={format:"graph-model",modelTopology:{node:[{name:"x"', FileKind.TFJS_SCRIPT),
    "TensorFlow.js as a text in JavaScript": (
        b"export default JSON.parse('{\\\"modelTopology\\\":{\\\"node\\\":[')", FileKind.TFJS_SCRIPT),
    "JavaScript": (b"export const load = (a) => ({modelTopology: a.model});", FileKind.TEXT),
    "git lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", FileKind.GIT_LFS),
    "gzip": (gzip.compress(GRAPH), FileKind.GZIP),
    "keras": (zipped("metadata.json", "config.json", "model.weights.h5"), FileKind.KERAS),
    "pytorch": (zipped("archive/data.pkl", "archive/version"), FileKind.PYTORCH),
    "npz": (zipped("arr_0.npy"), FileKind.NUMPY),
    "zip": (zipped("readme.txt"), FileKind.ZIP),
    "zip cut off": (zipped("readme.txt")[:40], FileKind.ZIP),
    "npy": (numpy_file(), FileKind.NUMPY),
    "pickle": (b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00", FileKind.PICKLE),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(8), FileKind.HDF5),
    "tflite": (struct.pack("<I4s", 28, b"TFL3") + bytes(24), FileKind.TFLITE),
    "onnx": (onnx_model(), FileKind.ONNX),
    "checkpoint index": (
        bytes(40) + b"\x57\xfb\x80\x8b\x24\x75\x47\xdb", FileKind.CHECKPOINT_INDEX),
    "checkpoint state": (b'model_checkpoint_path: "ckpt-1"\n', FileKind.CHECKPOINT_STATE),
    "tar": (tarred("model/saved_model.pb"), FileKind.TAR),
    "empty zip": (zipped(), FileKind.ZIP),
    "keras without its configuration": (zipped("model.weights.h5"), FileKind.ZIP),
    "weights beside something else": (zipped("config.json", "weights.h5"), FileKind.ZIP),
    "arrays beside something else": (zipped("arr_0.npy", "readme.txt"), FileKind.ZIP),
    "json of a list": (b" [1, 2]", FileKind.JSON),
    "json of nothing": (b"{}", FileKind.JSON),
    "braces around words": (b"{node}", FileKind.TEXT),
    "graph as text with another first field": (b"library { }", FileKind.GRAPH_DEF_TEXT),
    "text that begins like a field": (b"nodes: none\n", FileKind.TEXT),
    "text of one character": (b"a", FileKind.UNKNOWN),
    "text of two characters": (b"ab", FileKind.TEXT),
    "text with a control character": (b"a\x01b", FileKind.UNKNOWN),
    "text with an escape sequence": (b"a\x1b[1mb", FileKind.TEXT),
    "long text cut within a character": (b"a" + "ö".encode() * (1 << 15), FileKind.TEXT),
    "text that is not utf-8": (b"a\xff\xff b", FileKind.UNKNOWN),
    "body of html": (b"<body>", FileKind.HTML),
    "onnx without anything else": (b"\x08\x08", FileKind.UNKNOWN),
    "saved model without graphs": (b"\x08\x01", FileKind.UNKNOWN),
    "message that may be anything": (b"\x2a\x00", FileKind.UNKNOWN),
    "text": ("Ein Wörterbuch.\n".encode(), FileKind.TEXT),
    "empty": (b"", FileKind.EMPTY),
    "noise": (np.random.default_rng(0).bytes(1000), FileKind.UNKNOWN),
    "zeros": (bytes(1000), FileKind.UNKNOWN),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTENTS)
def test_content_tells_the_kind(name: str, tmp_path: Path) -> None:
    content, kind = CONTENTS[name]
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    assert file_kind(path) is kind


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("saved_model.pb", FileKind.SAVED_MODEL_FILE),
        ("meta_graph.pb", FileKind.META_GRAPH),
        ("graph_with_functions.pb", FileKind.GRAPH_DEF),
        ("graph_with_functions.pbtxt", FileKind.GRAPH_DEF_TEXT),
    ],
)
def test_files_that_tensorflow_wrote(file: str, kind: FileKind) -> None:
    assert file_kind(SAMPLES / file) is kind


@pytest.mark.shared
def test_models_that_tensorflow_wrote(shared: Path) -> None:
    kinds = {path: file_kind(path) for path in sorted((shared / "models").rglob("*.*"))}
    names = {
        "graph.pb": FileKind.GRAPH_DEF,
        "saved_model.pb": FileKind.SAVED_MODEL_FILE,
        "variables.index": FileKind.CHECKPOINT_INDEX,
        "variables.data-00000-of-00001": FileKind.CHECKPOINT_DATA,
        "case.npz": FileKind.NUMPY,
        "manifest.json": FileKind.JSON,
    }
    assert {path.name: kind for path, kind in kinds.items() if path.name in names} == names
    assert file_kind(shared / "models" / "saved_dense" / "saved_model") is FileKind.SAVED_MODEL


def test_the_data_of_a_checkpoint_are_told_by_their_name(tmp_path: Path) -> None:
    path = tmp_path / "ckpt-1.data-00000-of-00002"
    path.write_bytes(GRAPH)
    assert file_kind(path) is FileKind.CHECKPOINT_DATA


def test_archives_and_models_may_be_loaded() -> None:
    assert {kind.name for kind in FileKind if kind.may_be_saved} == {
        "SAVED_MODEL", "SAVED_MODEL_FILE", "SAVED_MODEL_TEXT", "META_GRAPH", "META_GRAPH_TEXT",
        "ZIP", "GZIP", "TAR", "TFJS_GRAPH",
    }  # fmt: skip


def test_directories(tmp_path: Path) -> None:
    assert file_kind(tmp_path) is FileKind.DIRECTORY
    (tmp_path / "saved_model.pbtxt").write_text("")
    assert file_kind(tmp_path) is FileKind.SAVED_MODEL


def test_directories_of_tensorflow_js(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"name": "a package"}')
    assert file_kind(tmp_path) is FileKind.DIRECTORY
    (tmp_path / "model.json").write_text('{"format": "layers-model"}')
    assert file_kind(tmp_path) is FileKind.TFJS_LAYERS
    (tmp_path / "model.json").write_text('{"format": "graph-model"}')
    assert file_kind(tmp_path) is FileKind.TFJS_GRAPH


def test_a_graph_without_weights_is_known_by_the_list_beside_it(tmp_path: Path) -> None:
    (tmp_path / "tensorflowjs_model.pb").write_bytes(GRAPH)
    assert file_kind(tmp_path / "tensorflowjs_model.pb") is FileKind.GRAPH_DEF
    assert file_kind(tmp_path) is FileKind.DIRECTORY
    (tmp_path / "weights_manifest.json").write_text("[]")
    assert file_kind(tmp_path / "tensorflowjs_model.pb") is FileKind.TFJS_GRAPH
    assert file_kind(tmp_path) is FileKind.TFJS_GRAPH


@pytest.mark.parametrize("path", ["nowhere.pb", "no/where.pb"])
def test_what_is_not_there(path: str, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        file_kind(tmp_path / path)


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_cannot_be_there(path: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is not the path of a file"):
        file_kind(path)


def test_any_bytes_have_a_kind() -> None:
    generator = np.random.default_rng(1)
    for size in range(200):
        for start in (b"", b"\n", b"\x08\x01", b"\x12", GRAPH[:size]):
            assert isinstance(kind_of_bytes(start + generator.bytes(size)), FileKind)
    assert GraphDef.FromString(GRAPH).node
