"""Writes the models of `data/` with TensorFlow: `PYTHONPATH=. .venv-tensorflow/bin/python tests/interop/make_samples.py`.

Each is an archive of a SavedModel, with the calls and the answers of TensorFlow in `expected.json`.
"""

import json
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import tensorflow as tf
from tests.interop.calls import to_json
from tests.interop.tensorflow_answers import OBJECTS, SESSIONS, answer, session_answers

DATA = Path(__file__).parent / "data"
SAMPLES = [
    "asset",
    "captured",
    "composite",
    "control_flow",
    "custom_gradient",
    "cycle",
    "default_inputs",
    "decoded_images",
    "dense",
    "draws",
    "dropout",
    "features",
    "gru_with_mask",
    "linear",
    "main_op",
    "nested_modules",
    "optimizer_slots",
    "partitioned",
    "parsed_examples",
    "polymorphic",
    "random_contrast",
    "several_meta_graphs",
    "shared_names",
    "signatures",
    "small_convolutional",
    "structures",
    "stateless_draws",
    "tables",
    "text_format",
    "text_classifier",
    "transformer",
    "types_of_variables",
]


def record(name: str, directory: Path) -> dict[str, Any]:
    """Save a model in a directory, and give the calls with their answers."""
    if name in SESSIONS:
        calls = SESSIONS[name](directory)
        answers = session_answers(str(directory), calls)
    else:
        calls = OBJECTS[name](directory)
        loaded = tf.saved_model.load(str(directory))
        answers = [answer(loaded, call) for call in calls]
    return {
        "calls": [
            {
                "path": call.path,
                "args": to_json([*call.args]),
                "kwargs": to_json(dict(call.kwargs)),
                "result": to_json(result),
            }
            for call, result in zip(calls, answers, strict=True)
        ]
    }


def write(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder, name)
        expected = record(name, directory)
        directory.joinpath("expected.json").write_text(json.dumps(expected))
        with zipfile.ZipFile(
            DATA / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9
        ) as archive:
            for file in sorted(directory.rglob("*")):
                if file.is_file():
                    info = zipfile.ZipInfo(str(file.relative_to(directory)))
                    archive.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    for sample in sys.argv[1:] or SAMPLES:
        write(sample)
