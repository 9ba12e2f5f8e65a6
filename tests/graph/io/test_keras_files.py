"""A Keras file is refused with a recipe that names what the file needs."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import load_graph_def

DENSE = {"class_name": "Dense", "config": {"name": "dense", "units": 2}}
LAMBDA = {"class_name": "Lambda", "config": {"name": "double"}}
MINE = {"class_name": "Mine", "config": {"name": "mine"}}
REGISTERED = {"class_name": "Pack>Other", "config": {"name": "other"}}
OLD = {"class_name": "TFOpLambda", "config": {"name": "tf.nn.relu"}}
RECIPE = """; export it where Keras is installed:
    model = keras.saving.load_model('{path}', compile=False{arguments})
    model.export('saved_model')
and load the directory saved_model{notes}"""
NESTED = [
    {"class_name": "TimeDistributed", "config": {"name": "each", "layer": MINE}},
    {"class_name": "Sequential", "config": {"name": "inner", "layers": [LAMBDA]}},
]
CASES: dict[str, tuple[list[Any], str, str]] = {
    "plain": ([DENSE], "", ""),
    "lambda": (
        [DENSE, LAMBDA],
        ", safe_mode=False",
        "\nThe Lambda layers 'double' hold Python code, which safe_mode=False runs: trust the file first.",
    ),
    "custom": (
        [MINE, REGISTERED, MINE],
        ", custom_objects={'Mine': Mine, 'Pack>Other': Other}",
        "\nImport the author's classes first: 'Mine', 'Pack>Other'.",
    ),
    "nested": (
        NESTED,
        ", custom_objects={'Mine': Mine}, safe_mode=False",
        (
            "\nImport the author's classes first: 'Mine'.\n"
            "The Lambda layers 'double' hold Python code, which safe_mode=False runs: trust the file first."
        ),
    ),
    "Keras 2": (
        [OLD],
        "",
        "\nKeras 3 has no 'TFOpLambda': use Keras 2 (pip install tf_keras, import tf_keras as keras).",
    ),
}


def refusal(path: Path) -> str:
    with pytest.raises(InvalidArgumentError) as raised:
        load_graph_def(path)
    return raised.value.message


def write_keras(path: Path, config: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", config)
        archive.writestr("model.weights.h5", "")
    return path


def write_h5(path: Path, config: str) -> Path:
    """An HDF5 file as far as it is looked at: the name of the attribute, and its text."""
    training = (
        '{"loss": "mse", "optimizer_config": {"class_name": "Adam", "config": {"name": "a"}}}'
    )
    text = f"\x89HDF\r\n\x1a\n\0\0model_config\0\0{training}\0{config}\0\0"
    path.write_bytes(text.encode("latin-1") + bytes(range(256)))
    return path


@pytest.mark.parametrize("write", [write_keras, write_h5])
@pytest.mark.parametrize("case", CASES)
def test_the_recipe_names_what_the_file_needs(tmp_path: Path, case: str, write: Any) -> None:
    layers, arguments, notes = CASES[case]
    config = {"class_name": "Functional", "config": {"name": "m", "layers": layers}}
    path = write(tmp_path / "model", json.dumps(config))
    wanted = RECIPE.format(path=path, arguments=arguments, notes=notes)
    assert refusal(path).endswith(wanted)


def test_weights_have_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.weights.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + b"layers\0\0vars\0\0")
    assert "weights at most" in refusal(path)
    assert f"    model.load_weights('{path}')\n" in refusal(path)


@pytest.mark.parametrize("write", [write_keras, write_h5])
@pytest.mark.parametrize(
    "config", ["", "{", "[" * 100_000, "3", '{"config": 3}', '{"class_name": ']
)
def test_configurations_of_no_kind_give_the_plain_recipe_or_that_of_weights(
    tmp_path: Path, config: str, write: Any
) -> None:
    told = refusal(write(tmp_path / "model", config))
    assert "load_model(" in told or "load_weights(" in told


@pytest.mark.parametrize("bits", [1, 32, 255])
def test_a_damaged_archive_is_refused_whichever_byte_is_wrong(tmp_path: Path, bits: int) -> None:
    config = {"class_name": "Functional", "config": {"name": "m", "layers": [DENSE, MINE]}}
    path = write_keras(tmp_path / "model.keras", json.dumps(config))
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :])
        with pytest.raises(OpError):
            load_graph_def(path)


def test_names_are_no_code_of_the_recipe(tmp_path: Path) -> None:
    evil = {
        "class_name": "X}); import os; print({1: 1",
        "config": {"name": "a\n    os.system('x')"},
    }
    config = {"class_name": "Model", "config": {"layers": [evil, evil | {"class_name": "Lambda"}]}}
    lines = refusal(write_keras(tmp_path / "model", json.dumps(config))).splitlines()
    code = [line for line in lines if line.startswith("    ")]
    assert code == [
        f"    model = keras.saving.load_model('{tmp_path}/model', compile=False, safe_mode=False)",
        "    model.export('saved_model')",
    ]


# The recipes, run.

LAYERS: dict[str, str] = {
    "plain": "keras.layers.Dense(2)",
    "lambda": "keras.layers.Lambda(lambda x: x * 2)",
    "custom": "Mine()",
    "optimizer": "keras.layers.Dense(2, activation='relu')",
}


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:keras.*")
@pytest.mark.parametrize("ending", ["keras", "h5"])
@pytest.mark.parametrize("kind", LAYERS)
def test_the_recipe_runs(tmp_path: Path, kind: str, ending: str) -> None:
    keras = pytest.importorskip("keras")
    import numpy as np

    import opkernel

    def call(self: Any, x: Any) -> Any:
        return x + 1

    Mine = type("Mine", (keras.layers.Layer,), {"call": call})
    scope = {"keras": keras, "Mine": Mine}
    layer = eval(LAYERS[kind], scope)
    model = keras.Sequential([keras.layers.Input((2,)), layer])
    if kind == "optimizer":
        model.compile("adam", "mse")
    path = tmp_path / f"model.{ending}"
    model.save(path)
    recipe = [line.strip() for line in refusal(path).splitlines() if line.startswith("    ")]
    saved = str(tmp_path / "saved_model")
    exec("\n".join(recipe).replace("'saved_model'", repr(saved)), scope)
    x = np.array([[1, 2]], np.float32)
    found = opkernel.load(saved).signatures["serving_default"](x)
    np.testing.assert_allclose(next(iter(found.values())), model(x), rtol=1e-6)
