"""Gradients of graphs that TensorFlow wrote: ours have the values of `tf.gradients`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, import_graph_def
from opkernel.gradients.gradient_nodes import as_dense
from opkernel.proto import GraphDef

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(0)
Build = Callable[[Any, list[Any]], Any]


def dense_layers(tf: Any, xs: list[Any]) -> Any:
    x, w, b, v = xs
    hidden = tf.nn.relu(tf.nn.bias_add(x @ w, b))
    labels = tf.one_hot([0, 1, 1], 3)
    return tf.nn.softmax_cross_entropy_with_logits(labels, tf.nn.dropout(hidden, rate=0) @ v)


def convolutions(tf: Any, xs: list[Any]) -> Any:
    image, filters, scale, offset, deep = xs
    x = tf.nn.conv2d(image, filters, strides=2, padding="SAME")
    x, _, _ = tf.compat.v1.nn.fused_batch_norm(x, scale, offset)[:3]
    x = tf.nn.depthwise_conv2d(tf.nn.elu(x), deep, [1, 1, 1, 1], "SAME")
    pooled = tf.nn.max_pool2d(x, 2, 1, "VALID") + tf.nn.avg_pool2d(x, 2, 1, "VALID")
    return tf.reduce_mean(tf.image.resize(pooled, [5, 5]), [1, 2])


def attention(tf: Any, xs: list[Any]) -> Any:
    x, w = xs
    q, k, v = tf.split(tf.einsum("btd,de->bte", x, w), 3, axis=-1)
    weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 2.0)
    mixed = tf.transpose(tf.matmul(weights, v), [0, 2, 1])
    mean, variance = tf.nn.moments(mixed, [-1], keepdims=True)
    return (mixed - mean) * tf.math.rsqrt(variance + 1e-3)


def arrays(tf: Any, xs: list[Any]) -> Any:
    (x,) = xs
    parts = [*tf.unstack(tf.pad(x, [[1, 0], [0, 2]])), tf.tile(x[0, ::-1], [2])[:5]]
    rows = tf.gather(tf.stack(parts, 1), [0, 2, 2])
    chosen = tf.where(rows > 0, rows**3, tf.cumsum(rows, 1))
    best = tf.math.top_k(chosen, 2).values
    segments = tf.math.unsorted_segment_max(chosen, [1, 0, 1], 2)
    return tf.concat([best, tf.boolean_mask(segments, [True, True])[:, :2]], 0)


def recurrence(tf: Any, xs: list[Any]) -> Any:
    x, w, state = xs
    rows = tf.TensorArray(tf.float32, 4).unstack(x)

    def turn(i: Any, state: Any, states: Any) -> Any:
        state = tf.tanh((state + rows.read(i)) @ w)
        return i + 1, state, states.write(i, state)

    states = tf.TensorArray(tf.float32, 4)
    return tf.while_loop(lambda i, *_: i < 4, turn, (0, state, states))[2].stack()


def loops(tf: Any, xs: list[Any]) -> Any:
    """Loops and conditionals inside of each other."""
    x, w = xs

    def inner(j: Any, b: Any) -> Any:
        return j + 1, tf.sin(b @ w) * b

    def turn(i: Any, a: Any, unused: Any) -> Any:
        def repeated() -> Any:
            return tf.while_loop(lambda j, _: j < i, inner, (0, a))[1]

        def chosen() -> Any:
            return tf.cond(tf.reduce_sum(a) > 0, lambda: tf.exp(-a) * w, lambda: tf.tanh(a @ w))

        return i + 1, tf.cond(tf.equal(i % 2, 0), repeated, chosen), tf.round(unused + a)

    return tf.while_loop(lambda i, *_: i < 5, turn, (0, x, w))[1]


def lookups(tf: Any, xs: list[Any]) -> Any:
    table, weights = xs

    def turn(i: Any, a: Any) -> Any:
        return i + 1, tf.concat([a, tf.gather(table, [i, i]) * weights + a[:2]], 0)

    shapes = (tf.TensorShape([]), tf.TensorShape([None, 3]))
    return tf.while_loop(lambda i, _: i < 3, turn, (0, tf.ones([2, 3])), shape_invariants=shapes)[1]


def conditional(tf: Any, xs: list[Any]) -> Any:
    x, w = xs
    y = tf.cond(x[0, 0] > 0, lambda: tf.exp(x) @ w, lambda: tf.sin(w) * x)
    return tf.switch_case(tf.cast(x[0, 0] * 0 + 1, tf.int32), [lambda: y, lambda: y * y])


def call(tf: Any, xs: list[Any]) -> Any:
    @tf.function
    def layer(x: Any, w: Any) -> Any:
        return tf.nn.softplus(x @ w) * x

    return layer(layer(*xs), xs[1])


def embedding(tf: Any, xs: list[Any]) -> Any:
    table, weights = xs
    return tf.nn.embedding_lookup(table, [[1, 1], [3, 0]]) * weights


def values(*shapes: tuple[int, ...]) -> list[Any]:
    return [RANDOM.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


CASES: list[tuple[Build, list[Any]]] = [
    (dense_layers, values((3, 4), (4, 5), (5,), (5, 3))),
    (convolutions, values((2, 7, 7, 2), (3, 3, 2, 4), (4,), (4,), (3, 3, 4, 1))),
    (attention, values((2, 3, 4), (4, 6))),
    (arrays, values((2, 3))),
    (recurrence, values((4, 1, 3), (3, 3), (1, 3))),
    (loops, values((2, 2), (2, 2))),
    (lookups, values((4, 3), (3,))),
    (conditional, [abs(v) for v in values((2, 2), (2, 2))]),
    (conditional, [-abs(v) for v in values((2, 2), (2, 2))]),
    (call, values((2, 2), (2, 2))),
    (embedding, values((4, 3), (3,))),
]


@pytest.mark.parametrize(("build", "fed"), CASES)
@pytest.mark.parametrize("control_flow", ["v2", "v1"])
def test_values_of_gradients(build: Build, fed: list[Any], control_flow: str) -> None:
    tf = pytest.importorskip("tensorflow")
    getattr(tf.compat.v1, f"{'en' if control_flow == 'v2' else 'dis'}able_control_flow_v2")()
    with tf.Graph().as_default() as written:
        xs = [
            tf.compat.v1.placeholder(tf.float32, value.shape, name=f"x{i}")
            for i, value in enumerate(fed)
        ]
        y = tf.identity(build(tf, xs), name="y")
        content = written.as_graph_def().SerializeToString()
        gradients = [tf.convert_to_tensor(g) for g in tf.compat.v1.gradients(tf.sin(y), xs)]
        with tf.compat.v1.Session() as session:
            expected = session.run(gradients, dict(zip(xs, fed, strict=True)))
    graph, found = our_gradients(content, len(fed))
    feeds = {f"x{i}:0": value for i, value in enumerate(fed)}
    with Session(graph) as session:
        ours = session.run(found, feeds)
    with tf.Graph().as_default():  # our nodes are valid there
        tf.graph_util.import_graph_def(
            tf.compat.v1.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name=""
        )
        with tf.compat.v1.Session() as session:
            theirs = session.run([tensor.name for tensor in found], feeds)
    for actual, run_there, wanted in zip(ours, theirs, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(run_there, wanted, rtol=2e-4, atol=2e-5)


def our_gradients(content: bytes, number: int) -> tuple[Graph, list[Any]]:
    with Graph().as_default() as graph:
        import_graph_def(GraphDef.FromString(content), name="")
        xs = [graph.get_tensor_by_name(f"x{i}:0") for i in range(number)]
        y = opkernel.raw_ops.Sin(x=graph.get_tensor_by_name("y:0"))
        return graph, [as_dense(g) for g in opkernel.gradients(y, xs)]
