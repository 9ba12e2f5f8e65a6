"""Writes the models of `tfjs/` with TensorFlow and the converter of TensorFlow.js:

    pip install --no-deps --target DIR tensorflowjs
    PYTHONPATH=.:DIR .venv-tensorflow/bin/python tests/interop/make_tfjs_samples.py

Each is an archive of a model, with an input of its signature and TensorFlow's answer for the SavedModel that it was made of.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import tempfile
import types
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

SAMPLES = Path(__file__).parent / "tfjs"
v1 = tf.compat.v1


def converter() -> Any:
    """The module that converts SavedModels; what it imports besides TensorFlow is not used for them."""
    for name in ("tensorflow_decision_forests", "tensorflow_hub"):
        sys.modules[name] = types.ModuleType(name)
    (found,) = [
        Path(one) / "tensorflowjs" for one in sys.path if (Path(one) / "tensorflowjs").is_dir()
    ]
    for name, path in (("tensorflowjs", found), ("tensorflowjs.converters", found / "converters")):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(path)]
    return importlib.import_module("tensorflowjs.converters.tf_saved_model_conversion_v2")


def convolutional(directory: str) -> None:
    """Ops that the converter fuses: Prelu, depthwise convolutions, products with bias and activation."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((6, 6, 2), name="image"),
            layers.Conv2D(3, 3),
            layers.PReLU(shared_axes=[1, 2]),
            layers.DepthwiseConv2D(2, padding="same"),
            layers.ReLU(6.0),
            layers.DepthwiseConv2D(2),
            layers.PReLU(),
            layers.Flatten(),
            layers.Dense(4, activation="elu"),
            layers.PReLU(),
            layers.Dense(3, activation="softmax"),
        ]
    )
    draws = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(draws.normal(size=weight.shape, scale=0.4))
    model.export(directory, verbose=False)


def recurrent(directory: str) -> None:
    """A loop, as `Switch` and `Merge` or as `While`."""
    draws = np.random.default_rng(2)
    model = tf.keras.Sequential([tf.keras.layers.Input((4, 2)), tf.keras.layers.LSTM(3)])
    for weight in model.weights:
        weight.assign(draws.normal(size=weight.shape))
    model.export(directory, verbose=False)


def table(directory: str) -> None:
    """A table that the initializer makes."""

    class Ids(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            pairs = tf.lookup.KeyValueTensorInitializer(
                tf.constant(["a", "b", "c"]), tf.constant([10, 20, 30])
            )
            self.table = tf.lookup.StaticHashTable(pairs, -1)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
        def __call__(self, words: Any) -> Any:
            return {"ids": self.table.lookup(words) + 1}

    module = Ids()
    tf.saved_model.save(module, directory, signatures=module.__call__)


def shared_table(directory: str) -> None:
    """A table that both graphs name, of int64 values, which TensorFlow.js lacks."""
    graph = tf.Graph()
    with graph.as_default(), v1.Session() as session:
        words = v1.placeholder(tf.string, [None], name="words")
        pairs = tf.lookup.KeyValueTensorInitializer(
            tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)
        )
        ids = v1.lookup.StaticHashTable(pairs, -1).lookup(words, name="ids")
        start = v1.tables_initializer()
        session.run(start)
        v1.saved_model.simple_save(
            session, directory, {"words": words}, {"ids": ids}, legacy_init_op=start
        )


IMAGE = np.random.default_rng(3).random((2, 6, 6, 2), np.float32)
SERIES = np.random.default_rng(4).random((2, 4, 2), np.float32)
WORDS = np.array(["b", "zebra", "a"])
MODELS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "fused": (convolutional, IMAGE, {"metadata": {"labels": ["cat", "dog", "owl"]}}),
    "uint8": (convolutional, IMAGE, {"quantization_dtype_map": {"uint8": True}}),
    "uint16": (convolutional, IMAGE, {"quantization_dtype_map": {"uint16": True}}),
    "float16": (
        convolutional,
        IMAGE,
        {"quantization_dtype_map": {"float16": True}, "weight_shard_size_bytes": 300},
    ),
    "frames": (recurrent, SERIES, {}),
    "while": (recurrent, SERIES, {"control_flow_v2": True}),
    "table": (table, WORDS, {"skip_op_check": True}),
    "shared_table": (shared_table, WORDS, {"skip_op_check": True}),
}


def main() -> None:
    """Write all of them."""
    convert = converter().convert_tf_saved_model
    SAMPLES.mkdir(exist_ok=True)
    for name, (build, value, options) in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            saved, made = f"{folder}/saved", Path(folder, name)
            build(saved)
            signature = tf.saved_model.load(saved).signatures["serving_default"]
            (key,) = signature.structured_input_signature[1]
            answer = {
                k: one.numpy().tolist() for k, one in signature(**{key: tf.constant(value)}).items()
            }
            convert(saved, str(made), **options)
            call = {"inputs": {key: value.tolist()}, "outputs": answer}
            (made / "expected.json").write_text(json.dumps(call))
            with zipfile.ZipFile(SAMPLES / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for file in sorted(made.iterdir()):
                    archive.write(file, file.name)
            shutil.rmtree(saved)


if __name__ == "__main__":
    main()
