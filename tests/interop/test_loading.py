"""What `load` takes: directories, files, archives, tags; and what it refuses."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)
from opkernel.proto import SavedModel

DATA = Path(__file__).parent / "data"
SAVED_MODELS = Path(__file__).parents[1] / "data" / "saved_models"
F32 = np.float32
X = np.ones((1, 3), F32)


def test_a_directory_its_file_and_its_archives_are_the_same_model(sample, tmp_path):
    directory = sample("linear")
    archives = []
    for ending in ("tar", "tar.gz", "tgz"):
        path = tmp_path / f"archive.{ending}"
        with tarfile.open(path, "w" if ending == "tar" else "w:gz") as tar:
            tar.add(directory, "models/1")
        archives.append(path)
    expected = opkernel.load(directory)(X).tolist()
    for path in (str(directory), directory / "saved_model.pb", DATA / "linear.zip", *archives):
        assert opkernel.load(path)(X).tolist() == expected


def test_an_archive_is_unpacked_for_as_long_as_the_model_lives(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = opkernel.load(DATA / "linear.zip")
    assert len([*tmp_path.iterdir()]) == 1
    assert model(X).shape == (1, 2)
    del model
    import gc

    gc.collect()
    assert [*tmp_path.iterdir()] == []


def test_text_and_binary_may_lie_side_by_side(sample):
    directory = sample("text_format")
    assert opkernel.load(directory / "saved_model.pbtxt")(np.ones((1, 2), F32)).shape == (1, 2)


@pytest.mark.parametrize("tags", [None, "serve", ["serve"], {"serve"}])
def test_the_metagraph_with_the_tag_serve_is_the_usual_one(sample, tags):
    model = opkernel.load(sample("several_meta_graphs"), tags=tags)
    assert model.signatures["serving_default"](x=np.ones(1, F32))["out"].tolist() == [3]


def test_metagraphs_are_chosen_by_their_tags(sample):
    directory = sample("several_meta_graphs")
    for tags, expected in ((["gpu", "serve"], 0), ("train", 3)):
        model = opkernel.load(directory, tags=tags)
        assert model.tags == sorted([tags] if isinstance(tags, str) else tags)
        assert model.signatures["serving_default"](x=np.ones(1, F32))["out"].tolist() == [expected]
    with pytest.raises(NotFoundError, match=r"{tpu}; it has {serve}, {gpu, serve}, {train}"):
        opkernel.load(directory, tags="tpu")


def test_a_graph_for_a_newer_tensorflow_is_refused(sample):
    def change(meta_graph):
        meta_graph.graph_def.versions.min_consumer = 10**6

    for name in ("linear", "partitioned"):
        directory = sample(name, change)
        with pytest.raises(InvalidArgumentError, match=r"min consumer(.|\n)*saved_model.pb"):
            opkernel.load(directory)


def test_a_newer_format_is_refused(sample):
    directory = sample("linear")
    file = directory / "saved_model.pb"
    message = SavedModel.FromString(file.read_bytes())
    message.saved_model_schema_version = 2
    file.write_bytes(message.SerializeToString())
    with pytest.raises(UnimplementedError, match=r"saved_model.pb has version 2"):
        opkernel.load(directory)


def test_a_model_in_chunks_is_refused_with_a_way_out(tmp_path):
    (tmp_path / "saved_model.cpb").write_bytes(b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f")
    for path in (tmp_path, tmp_path / "saved_model.cpb"):
        with pytest.raises(UnimplementedError, match=r"in chunks .*experimental_image_format"):
            opkernel.load(path)


def test_variables_of_another_model_are_warned_about(sample):
    directory = sample("linear")
    other = sample("shared_names")
    shutil.rmtree(directory / "variables")
    shutil.copytree(other / "variables", directory / "variables")
    model = opkernel.load(directory)
    with (
        pytest.warns(UserWarning, match=r"variables.index is not the one that was saved"),
        pytest.raises(DataLossError, match="the value of variable 'w' was not saved"),
    ):
        model.w.numpy()


def test_a_damaged_fingerprint_is_refused(sample):
    directory = sample("linear")
    (directory / "fingerprint.pb").write_bytes(b"\xff")
    with pytest.raises(DataLossError, match=r"fingerprint.pb is damaged"):
        opkernel.load(directory).w.numpy()


def test_assets_are_readable_to_their_model_alone(sample, tmp_path):
    model = opkernel.load(sample("asset"))
    assert model.content() == b"what the asset holds"
    secret = tmp_path / "secret"
    secret.write_text("no")

    def point_outside(name):
        def change(meta_graph):
            meta_graph.asset_file_def[0].filename = name

        return change

    for name in ("../../secret", str(secret), "/etc/passwd", "a/../../x", "\0"):
        shutil.rmtree(tmp_path / "asset")
        model = opkernel.load(sample("asset", point_outside(name)))
        with pytest.raises(InvalidArgumentError, match="lies outside of"):
            model.content()
    shutil.rmtree(tmp_path / "asset")
    directory = sample("asset")
    file = directory / "assets" / "asset.bin"
    file.unlink()
    file.symlink_to(secret)
    with pytest.raises(PermissionDeniedError, match="may not read this file"):
        opkernel.load(directory).content()
    allowed = opkernel.Permissions(read=[secret])
    assert opkernel.load(directory, permissions=allowed).content() == b"no"


@pytest.mark.parametrize("load", [opkernel.load, opkernel.load_as_session])
def test_a_model_that_holds_datasets(load):
    """A dataset that functions share, and datasets that a function makes; the values are TensorFlow's."""
    model = load(SAVED_MODELS / "datasets")
    for count, total in ((5, 30), (100, 285)):
        assert model.signatures["total"](count=np.int64(count)) == {"total": total}
    found = model.signatures["batches"](values=np.array([7, 8, 9]))
    assert (found["count"], found["whole"].tolist()) == (2, [7, 8, 9])


def test_other_files_are_told_what_they_are(tmp_path):
    for name, data, message in (
        ("model.h5", b"\x89HDF\r\n\x1a\n", r"HDF5(.|\n)*export"),
        ("model.tflite", b"\0\0\0\0TFL3", "TensorFlow Lite"),
        ("saved_model.pb", b"", "an empty file"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(InvalidArgumentError, match=message):
            opkernel.load(path)
    with pytest.raises(NotFoundError, match="nowhere"):
        opkernel.load(tmp_path / "nowhere")


def test_a_loaded_model_needs_few_modules():
    """Loading, and a call, import neither the command line nor NumPy's rare parts twice."""
    program = (
        "import sys, opkernel\n"
        f"model = opkernel.load({str(DATA / 'linear.zip')!r})\n"
        "model([[1.0, 2.0, 3.0]])\n"
        "wrong = [m for m in sys.modules if m.startswith(('opkernel.cli', 'opkernel.drawing', 'tensorflow'))]\n"
        "assert not wrong, wrong\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
