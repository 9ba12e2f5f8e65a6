"""Folders of images: decoded for models of numbers, as they are for models of strings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.distributed.batches.test_predict import joined

import opkernel
from opkernel import raw_ops
from opkernel.cli.commands import commands
from opkernel.distributed import predict
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 4, 5, 3), np.uint8)


def saved(path: Path, shape: list[int | None], dtype: Any = opkernel.float32) -> Path:
    """The graph same = x."""
    graph = opkernel.Graph()
    with graph.as_default():
        raw_ops.Identity(input=opkernel.placeholder(dtype, shape, name="x"), name="same")
    opkernel.save_graph(graph, path)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path / "model.pb", [None, 4, 5, 3])


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """PIXELS as a.png, b.PNG and c.png."""
    folder = tmp_path / "images"
    folder.mkdir()
    for name, pixels in zip(["a.png", "b.PNG", "c.png"], PIXELS, strict=True):
        (folder / name).write_bytes(np.asarray(raw_ops.EncodePng(image=pixels)).item())
    (folder / "notes.txt").write_text("no image")
    return folder


@pytest.mark.parametrize("concurrency", [None, 2])
def test_images_in_the_order_of_their_names(
    model: Path, images: Path, concurrency: int | None
) -> None:
    batches = [*predict(model, images, batch_size=2, concurrency=concurrency)]
    assert [one["same:0"].shape for one in batches] == [(2, 4, 5, 3), (1, 4, 5, 3)]
    np.testing.assert_allclose(joined(batches)["same:0"], PIXELS / np.float32(255), rtol=1e-6)
    (one,) = predict(model, images / "c.png")
    np.testing.assert_allclose(one["same:0"], PIXELS[2:] / np.float32(255), rtol=1e-6)


def test_the_model_decides_type_and_channels(images: Path, tmp_path: Path) -> None:
    whole = saved(tmp_path / "whole.pb", [None, None, None, 3], opkernel.uint8)
    np.testing.assert_array_equal(joined(predict(whole, images))["same:0"], PIXELS)
    grey = saved(tmp_path / "grey.pb", [None, 4, 5, 1], opkernel.uint8)
    assert joined(predict(grey, images))["same:0"].shape == (3, 4, 5, 1)
    text = saved(tmp_path / "text.pb", [None], opkernel.string)
    content = [path.read_bytes() for path in sorted(images.glob("*.[pP]*"))]
    assert joined(predict(text, images))["same:0"].tolist() == content


def test_images_that_cannot_be_decoded_are_set_aside(
    model: Path, images: Path, tmp_path: Path
) -> None:
    (images / "b.PNG").write_bytes((images / "b.PNG").read_bytes()[:50])
    small = np.asarray(raw_ops.EncodePng(image=PIXELS[0, :2])).item()
    (images / "d.png").write_bytes(small)
    found = predict(model, images, on_error="skip")
    np.testing.assert_allclose(joined(found)["same:0"], PIXELS[[0, 2]] / 255, rtol=1e-6)
    assert [row for row, _, _ in found.skipped] == [1, 3]
    assert "b.PNG: " in found.skipped[0][2]
    assert "d.png has 2 x 5 pixels, and the model takes 4 x 5" in found.skipped[1][2]
    free = saved(tmp_path / "free.pb", [None, None, None, 3])
    with pytest.raises(InvalidArgumentError, match=r"Row 1: .*b\.PNG"):
        next(predict(free, images))


def test_images_are_resized_if_that_is_asked_for(images: Path, tmp_path: Path) -> None:
    free = saved(tmp_path / "free.pb", [None, None, None, 3], opkernel.uint8)
    found = joined(predict(free, images, image_size=(2, 5)))["same:0"]
    halves = (PIXELS[:, ::2].astype(float) + PIXELS[:, 1::2]) / 2  # between each two rows
    np.testing.assert_array_equal(found, np.rint(halves))


def test_the_command_resizes_images(images: Path, tmp_path: Path) -> None:
    small = saved(tmp_path / "small.pb", [None, 2, 5, 3])
    words = ["predict", *map(str, (small, images, tmp_path / "out"))]
    assert CliRunner().invoke(commands, words).exit_code == 1
    done = CliRunner().invoke(commands, [*words, "--image-size", "2x5"])
    assert "image_size was '', and is '2x5'" in done.output
    done = CliRunner().invoke(commands, [*words, "--image-size", "2x5", "--overwrite"])
    assert done.output.startswith("3 rows in 1 part")
    with np.load(tmp_path / "out" / "part-00000.npz") as part:
        assert part["same:0"].shape == (3, 2, 5, 3)
    done = CliRunner().invoke(commands, [*words, "--image-size", "2"])
    assert "no height and width such as 224x224" in done.output


def test_models_that_take_no_images(images: Path, graph: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="one input, and the model takes 2: 'text', 'x'"):
        predict(graph, images)
    flat = saved(tmp_path / "flat.pb", [None, 60])
    with pytest.raises(InvalidArgumentError, match="images have four axes"):
        predict(flat, images)
    with pytest.raises(NotFoundError, match=r"no file .*nowhere\.png"):
        predict(flat, images / "nowhere.png")


def test_other_images_are_another_run(model: Path, images: Path, tmp_path: Path) -> None:
    [*predict(model, images, output=tmp_path / "out")]
    (images / "a.png").unlink()
    with pytest.raises(FailedPreconditionError, match="the input is another"):
        predict(model, images, output=tmp_path / "out")
