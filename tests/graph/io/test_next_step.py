"""A file that is no GraphDef is refused with what to do next."""

import re
import zipfile
from pathlib import Path

import pytest

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph import load_graph_def


def refusal(path: Path) -> str:
    with pytest.raises(InvalidArgumentError) as raised:
        load_graph_def(path)
    return str(raised.value)


def touched(directory: Path, *names: str) -> Path:
    for name in names:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return directory


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"saved_model_schema_version: 1\n", "; load it with opkernel.load('{path}'), or make it a GraphDef: "),
        (b"\x1f\x8b\x08\x00", "archive of a model, opkernel.load('{path}') takes it"),
        (b"\x89HDF\r\n\x1a\n", "    model.load_weights('{path}')\n"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(24), "    run = Interpreter(model_path='{path}').get_signature_runner()"),
        (b"\x08\x08\x12\x07pytorch\x3a\x04\x12\x02g1\x42\x02\x10\x11", "    onnx2tf -i {path} -o saved_model -osd\n"),
        (b'model_checkpoint_path: "ckpt-1"\n', "opkernel.load_checkpoint('{path}') reads them"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "`git lfs pull`"),
        (b"<!DOCTYPE html><html>", "download the file itself"),
        (b'{"format": "layers-model"}', "tfjs_layers_model --output_format tfjs_graph_model {path} graph_model\n"),
        (b"module.exports={modelTopology:{node:[", "    node -e \"for (const f of fs.readdirSync"),
        (b"Some notes.\n", "opkernel reads GraphDefs (.pb, .pbtxt)"),
    ],
    ids=["SavedModel", "gzip", "Keras", "TFLite", "ONNX", "checkpoint", "Git LFS", "HTML", "TensorFlow.js layers",
         "TensorFlow.js script", "text"],
)  # fmt: skip
def test_files_of_other_kinds(tmp_path: Path, content: bytes, advice: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    assert advice.replace("{path}", str(path)) in refusal(path)


def test_a_file_of_pytorch_is_exported_where_pytorch_is(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("archive/data.pkl", "")
        archive.writestr("archive/version", "3")
    assert "torch.onnx.export(model, example_inputs, 'model.onnx')" in refusal(
        tmp_path / "model.pt"
    )


def test_models_in_a_directory_are_named(tmp_path: Path) -> None:
    directory = touched(tmp_path, "b.pbtxt", "a.pb", "notes.txt", "c.meta")
    names = [tmp_path / "a.pb", tmp_path / "b.pbtxt", tmp_path / "c.meta"]
    assert refusal(directory).endswith("; perhaps you mean " + " or ".join(map(str, names)))


def test_the_prefix_of_a_checkpoint_is_none_of_its_files(tmp_path: Path) -> None:
    prefix = touched(tmp_path, "model.ckpt-7.index") / "model.ckpt-7"
    message = refusal(prefix)
    assert message.startswith(f"{prefix} is a TensorFlow checkpoint, not a GraphDef")
    assert f"opkernel checkpoint ls {prefix} lists them" in message
    assert f"opkernel.load_checkpoint('{prefix}') reads them" in message
    with pytest.raises(NotFoundError):
        load_graph_def(tmp_path / "model.ckpt-8")


def test_a_tensorflow_js_model_of_any_name_is_named(tmp_path: Path) -> None:
    directory = touched(tmp_path, "notes.json", "hand.bin")
    (tmp_path / "hand.json").write_text('{"format": "graph-model"}')
    assert refusal(directory).endswith(f"; perhaps you mean {tmp_path / 'hand.json'}")


def test_so_are_directories_of_models_within_it(tmp_path: Path) -> None:
    directory = touched(tmp_path, "1/saved_model.pb", "2/other.pb", "3/saved_model.pb")
    assert refusal(directory).endswith(f"; perhaps you mean {tmp_path / '1'} or {tmp_path / '3'}")


def test_no_more_than_three_are_named(tmp_path: Path) -> None:
    told = refusal(touched(tmp_path, *(f"{n}.pb" for n in range(5))))
    assert re.findall(r"(\d)\.pb", told) == ["0", "1", "2"]


def test_nothing_is_proposed_of_a_directory_without_models(tmp_path: Path) -> None:
    told = refusal(touched(tmp_path, "notes.txt", "deeper/notes.txt"))
    assert told == f"{tmp_path} is a directory that holds no SavedModel, not a GraphDef"


def test_a_directory_of_checkpoints_says_how_to_look_into_it(tmp_path: Path) -> None:
    told = refusal(touched(tmp_path, "ckpt-1.index", "graph.pb"))
    assert f"checkpoints, values without a graph: opkernel checkpoint ls {tmp_path} lists" in told
    assert "perhaps" not in told


def test_the_variables_of_a_saved_model_belong_to_the_directory_above(tmp_path: Path) -> None:
    touched(tmp_path, "saved_model.pb", "variables/variables.index")
    told = refusal(tmp_path / "variables")
    assert told.endswith(f"; it holds the variables of a SavedModel: load {tmp_path}")
