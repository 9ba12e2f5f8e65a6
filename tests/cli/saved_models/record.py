"""Records the models of this folder and TensorFlow's answers: `python record.py`, where TensorFlow is installed.

two/    TF2: variables, a table with an asset, a signature that reads a file, one that asks for Python
one/    TF1, as text: tags `serve` and `serve, train`, a table, an init op, a partitioned variable
meta/   TF1: model.ckpt.meta beside its checkpoint
answers.json  what TensorFlow computes
"""

import json
import os
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
X = np.arange(6, dtype=np.float32).reshape(2, 3) / 4
WORDS = ["a", "cat", "sat"]


class Two(tf.Module):
    def __init__(self, words: str) -> None:
        super().__init__()
        self.kernel = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2) - 2, name="kernel")
        self.bias = tf.Variable(np.array([1, -1], np.float32), name="bias")
        self.steps = tf.Variable(0, dtype=tf.int64, trainable=False, name="steps")
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                words,
                tf.string,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            ),
            -1,
        )

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
    def __call__(self, x):
        return {"scores": tf.nn.relu(x @ self.kernel + self.bias), "sum": tf.reduce_sum(x, 1)}

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.float32, name="x"),
            tf.TensorSpec([], tf.float32, name="factor"),
        ]
    )
    def scale(self, x, factor):
        return {"scaled": x * factor}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
    def look_up(self, words):
        return {"ids": self.table.lookup(words)}

    @tf.function(input_signature=[])
    def count(self):
        return {"steps": self.steps.assign_add(1)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.string, name="path")])
    def peek(self, path):
        return {"content": tf.io.read_file(path)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
    def ask(self, x):
        return {"y": tf.numpy_function(lambda x: x, [x], tf.float32)}


def two() -> dict[str, object]:
    words = os.path.join(tempfile.mkdtemp(), "words.txt")
    with open(words, "w") as file:
        file.write("\n".join(WORDS) + "\n")
    model = Two(words)
    path = os.path.join(HERE, "two")
    names = ("scale", "look_up", "count", "peek", "ask")
    signatures = {name: getattr(model, name) for name in names}
    tf.saved_model.save(model, path, {"serving_default": model.__call__, **signatures})
    found = model(X)
    return {
        "scores": found["scores"].numpy().tolist(),
        "sum": found["sum"].numpy().tolist(),
        "ids": model.look_up(["sat", "dog", "a"])["ids"].numpy().tolist(),
    }


def graph_of_one() -> tuple[object, object, object, object]:
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [None, 4], name="x")
    w = v1.get_variable(
        "w",
        [4, 2],
        initializer=v1.random_uniform_initializer(seed=1),
        partitioner=v1.fixed_size_partitioner(2),
    )
    y = tf.identity(tf.matmul(x, w), name="y")
    word = v1.placeholder(tf.string, [None], name="word")
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([10, 20], tf.int64)), -1
    )
    return x, y, word, tf.identity(table.lookup(word), name="number")


def one() -> dict[str, object]:
    v1 = tf.compat.v1
    given = np.arange(8, dtype=np.float32).reshape(2, 4)
    with tf.Graph().as_default(), v1.Session() as session:
        x, y, word, number = graph_of_one()
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        builder = v1.saved_model.Builder(os.path.join(HERE, "one"))
        signatures = {
            "predict": v1.saved_model.predict_signature_def({"x": x}, {"y": y}),
            "numbers": v1.saved_model.predict_signature_def({"word": word}, {"number": number}),
        }
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            signatures,
            main_op=v1.tables_initializer(),
            strip_default_attrs=True,
        )
        builder.add_meta_graph(["serve", "train"], {"step": signatures["predict"]})
        builder.save(as_text=True)
        found = session.run({"y": y, "number": number}, {x: given, word: ["b", "z"]})
    return {name: value.tolist() for name, value in found.items()}


def meta() -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        graph_of_one()
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        os.makedirs(os.path.join(HERE, "meta"))
        v1.train.Saver().save(session, os.path.join(HERE, "meta", "model.ckpt"))
        os.remove(os.path.join(HERE, "meta", "checkpoint"))


if __name__ == "__main__":
    for name in ("one", "two", "meta"):
        shutil.rmtree(os.path.join(HERE, name), ignore_errors=True)
    answers = {"two": two(), "one": one()}
    meta()
    with open(os.path.join(HERE, "answers.json"), "w") as file:
        json.dump(answers, file, indent=1)
        file.write("\n")
