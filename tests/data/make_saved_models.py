"""Write `saved_models/`: SavedModels of TF1 and TF2, which campaigns damage, and one that holds datasets.

    pip install tensorflow-cpu==2.21.0
    python tests/data/make_saved_models.py

The first two, `v1` and `v2`, have `serving_default`, y = relu(x w + b), and `look_up`, the numbers of words in a vocabulary that is an asset.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import tensorflow as tf

FOLDER = Path(__file__).resolve().parent / "saved_models"
WEIGHTS = np.arange(6, dtype=np.float32).reshape(3, 2)
WORDS = ["one", "two", "three"]


class Model(tf.Module):
    """Variables, a list, a dict, a cycle, a table and functions that call each other."""

    def __init__(self, vocabulary: str) -> None:
        super().__init__()
        self.w = tf.Variable(WEIGHTS, name="w")
        self.layers = [tf.Variable([1.0, -1.0], name="b"), tf.Variable(0, trainable=False)]
        self.named = {"child": tf.Module()}
        self.named["child"].parent = self
        words = tf.lookup.TextFileInitializer(
            vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )  # fmt: skip
        self.table = tf.lookup.StaticHashTable(words, -1)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def serve(self, x):
        return {"y": self(x)}

    @tf.function
    def __call__(self, x, training=False):
        for _ in tf.range(1):
            x = tf.identity(x)
        y = tf.matmul(x, self.w) + self.layers[0]
        return y if training else tf.nn.relu(y)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def look_up(self, words):
        return {"numbers": self.table.lookup(words)}


def save_v2(vocabulary: str) -> None:
    model = Model(vocabulary)
    tf.saved_model.save(model, "v2", {"serving_default": model.serve, "look_up": model.look_up})


def save_v1(vocabulary: str) -> None:
    tf1 = tf.compat.v1
    with tf.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf.float32, [None, 3], name="x")
        words = tf1.placeholder(tf.string, [None], name="words")
        w = tf1.get_variable(
            "w",
            [3, 2],
            initializer=tf1.ones_initializer(),
            partitioner=tf1.fixed_size_partitioner(3),
            use_resource=False,
        )
        b = tf1.get_variable("b", initializer=np.array([1, -1], np.float32), use_resource=True)
        y = tf.nn.relu(tf.matmul(x, tf.convert_to_tensor(w)) + b, name="y")
        asset = tf.constant(vocabulary, name="vocabulary")
        tf1.add_to_collection(tf1.GraphKeys.ASSET_FILEPATHS, asset)
        initializer = tf.lookup.TextFileInitializer(
            asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )  # fmt: skip
        numbers = tf.lookup.StaticHashTable(initializer, -1).lookup(words)
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        predict = tf1.saved_model.predict_signature_def
        builder = tf1.saved_model.Builder("v1")
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {
                "serving_default": predict({"x": x}, {"y": y}),
                "look_up": predict({"words": words}, {"numbers": numbers}),
            },
            assets_collection=tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS),
            main_op=tf1.tables_initializer(),
        )
        builder.save()


class Datasets(tf.Module):
    """A dataset that functions share, and datasets that a function makes."""

    def __init__(self) -> None:
        super().__init__()
        self.squares = tf.data.Dataset.range(10).map(lambda x: x * x)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64, name="count")])
    def total(self, count):
        total = tf.constant(0, tf.int64)
        for square in self.squares.take(count):
            total += square
        return {"total": total}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="values")])
    def batches(self, values):
        batches = tf.data.Dataset.from_tensor_slices(values).shuffle(4, seed=3).batch(2)
        count = batches.reduce(tf.constant(0, tf.int64), lambda count, batch: count + 1)
        return {"count": count, "whole": tf.data.Dataset.from_tensors(values).get_single_element()}


def save_datasets() -> None:
    model = Datasets()
    tf.saved_model.save(model, "datasets", {"total": model.total, "batches": model.batches})


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    os.chdir(FOLDER)  # the path of the asset enters the files
    for name in ("v1", "v2", "datasets"):
        shutil.rmtree(name, ignore_errors=True)
    save_datasets()
    vocabulary = Path("vocabulary.txt")
    vocabulary.write_text("\n".join(WORDS) + "\n")
    save_v1(str(vocabulary))
    save_v2(str(vocabulary))
    vocabulary.unlink()


if __name__ == "__main__":
    main()
