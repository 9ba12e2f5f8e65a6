"""SavedModels as TensorFlow 1 writes them: graphs with Savers, initialisation and assets in collections."""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tests.interop.calls import Call, sparse

v1 = tf.compat.v1
F32 = np.float32
MODELS: dict[str, Any] = {}


def in_session(build):
    """What saves a model of TensorFlow 1, built in a graph of its own."""

    def save(directory):
        with tf.Graph().as_default(), v1.Session() as session:
            v1.set_random_seed(5)
            return build(str(directory), session)

    return save


def model(build):
    MODELS[build.__name__] = in_session(build)
    return build


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(F32)


def variable(name, value, **options):
    return v1.get_variable(name, initializer=np.asarray(value), **options)


@model
def simple_save(directory, session):
    x = v1.placeholder(tf.float32, [None, 3], name="x")
    y = tf.matmul(x, variable("w", numbers(3, 2))) + variable("b", numbers(2), trainable=False)
    session.run(v1.global_variables_initializer())
    v1.saved_model.simple_save(session, directory, {"x": x}, {"y": y})
    return [Call("signatures.serving_default", [], {"x": numbers(4, 3)})]


@model
def reference_variables(directory, session):
    x = v1.placeholder(tf.float32, [3], name="x")
    w = variable("w", numbers(3), use_resource=False)
    with tf.control_dependencies([v1.assign_add(w, tf.ones([3]))]):
        y = x * w.read_value()
    session.run(v1.global_variables_initializer())
    v1.saved_model.simple_save(session, directory, {"x": x}, {"y": y})
    return [Call("signatures.serving_default", [], {"x": numbers(3)})] * 3


@model
def partitioned(directory, session):
    x = v1.placeholder(tf.int64, [None], name="x")
    with v1.variable_scope("part", partitioner=v1.fixed_size_partitioner(3), use_resource=True):
        table = v1.get_variable("table", [7, 4], initializer=v1.glorot_uniform_initializer(seed=1))
    with v1.variable_scope(
        "ref", partitioner=v1.fixed_size_partitioner(2, axis=1), use_resource=False
    ):
        matrix = v1.get_variable(
            "matrix", [4, 4], initializer=v1.glorot_uniform_initializer(seed=2)
        )
    y = tf.matmul(tf.gather(tf.convert_to_tensor(table), x), tf.convert_to_tensor(matrix))
    session.run(v1.global_variables_initializer())
    v1.saved_model.simple_save(session, directory, {"x": x}, {"y": y})
    return [Call("signatures.serving_default", [], {"x": np.array([0, 3, 6, 5])})]


def word_table(directory):
    path = Path(f"{directory}.txt")
    path.write_text("zero\none\ntwo\n")
    return path, v1.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(
            tf.constant(str(path)),
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        -1,
    )


def build_with_table(directory, session, initialization):
    path, table = word_table(directory)
    x = v1.placeholder(tf.string, [None], name="x")
    y = table.lookup(x) + variable("offset", np.int64(10))
    session.run([v1.global_variables_initializer(), v1.tables_initializer()])
    builder = v1.saved_model.Builder(directory)
    info = v1.saved_model.build_signature_def(
        {"x": v1.saved_model.build_tensor_info(x)}, {"y": v1.saved_model.build_tensor_info(y)}, "m"
    )
    builder.add_meta_graph_and_variables(
        session,
        ["serve"],
        {"words": info},
        v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
        **{initialization: v1.tables_initializer()},
    )
    builder.save()
    path.unlink()
    words = np.array([b"two", b"zero", b"none"], object)
    return [Call("signatures.words", [], {"x": words})]


@model
def main_op(directory, session):
    return build_with_table(directory, session, "main_op")


@model
def legacy_init_op(directory, session):
    return build_with_table(directory, session, "legacy_init_op")


@model
def several_meta_graphs(directory, session):
    x = v1.placeholder(tf.float32, [None], name="x")
    y = x * variable("w", F32(3))
    z = x - 1.0
    session.run(v1.global_variables_initializer())
    builder = v1.saved_model.Builder(directory)
    info = v1.saved_model.build_tensor_info

    def signature(out):
        return {
            "serving_default": v1.saved_model.build_signature_def(
                {"x": info(x)}, {"out": info(out)}, "tensorflow/serving/predict"
            )
        }

    builder.add_meta_graph_and_variables(session, ["serve"], signature(y))
    builder.add_meta_graph(["serve", "gpu"], signature(z))
    builder.add_meta_graph(["train"], signature(y + z))
    builder.save()
    return [Call("signatures.serving_default", [], {"x": numbers(3)})]


@model
def sparse_signature(directory, session):
    x = v1.sparse_placeholder(tf.float32, [None, 4], name="x")
    y = tf.reduce_sum(x.values) * variable("w", F32(2))
    doubled = tf.SparseTensor(x.indices, x.values * 2.0, x.dense_shape)
    session.run(v1.global_variables_initializer())
    v1.saved_model.simple_save(session, directory, {"x": x}, {"y": y, "doubled": doubled})
    given = sparse([[0, 1], [2, 3]], np.array([4, 5], F32), [3, 4])
    return [Call("signatures.serving_default", [], {"x": given})]


@model
def loops(directory, session):
    v1.disable_control_flow_v2()
    try:
        x = v1.placeholder(tf.float32, [None], name="x")
        w = variable("w", F32(0.5))
        turns, total = v1.while_loop(
            lambda i, t: tf.reduce_sum(t) < 10.0, lambda i, t: (i + 1, t * (1.0 + w)), [0, x]
        )
        y = v1.cond(turns > 3, lambda: total * 2.0, lambda: total - w)
    finally:
        v1.enable_control_flow_v2()
    session.run(v1.global_variables_initializer())
    v1.saved_model.simple_save(session, directory, {"x": x}, {"y": y, "turns": turns})
    return [
        Call("signatures.serving_default", [], {"x": np.array(values, F32)})
        for values in ([1, 2], [0.1, 0.2, 0.3], [20])
    ]


@model
def training_signature(directory, session):
    x = v1.placeholder(tf.float32, [None, 3], name="x")
    y = v1.placeholder(tf.float32, [None, 1], name="y")
    w = variable("w", numbers(3, 1))
    step = v1.train.get_or_create_global_step()
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    train = v1.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
    with tf.control_dependencies([train]):
        done = tf.identity(loss)
    session.run(v1.global_variables_initializer())
    v1.saved_model.simple_save(session, directory, {"x": x, "y": y}, {"loss": done})
    return [Call("signatures.serving_default", [], {"x": numbers(4, 3), "y": numbers(4, 1)})] * 4


@model
def no_variables(directory, session):
    x = v1.placeholder(tf.float32, [], name="x")
    v1.saved_model.simple_save(session, directory, {"x": x}, {"y": tf.sqrt(x)})
    return [Call("signatures.serving_default", [], {"x": F32(9)})]
