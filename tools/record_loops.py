"""Record loops of TensorFlow 1 with TensorFlow's results: `.venv-tensorflow/bin/python tools/record_loops.py`.

Writes `tests/optimization/tensorflow_loops.npz`: for each model its GraphDef, a feed, and what TensorFlow computes of it.
Some loops are lowered as `convert_variables_to_constants_v2` lowers them by default, the others were built as loops of
TensorFlow 1. All but one know the number of turns by a size of a partly known shape.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

PLACE = Path(__file__).resolve().parent.parent / "tests/optimization/tensorflow_loops.npz"
UNITS = 2
NUMBERS = np.random.default_rng(1)
KERNEL, RECURRENT = (NUMBERS.standard_normal((size, 4 * UNITS)).astype("f4") for size in (3, UNITS))


def lstm(x: Any) -> Any:
    """An LSTM as Keras 2 has it: the number of steps is a size of the input."""
    x = tf.transpose(x, [1, 0, 2])
    steps, batch = tf.unstack(tf.shape(x)[:2])
    state = tf.zeros(tf.stack([batch, UNITS]))
    inputs = tf.TensorArray(tf.float32, size=steps).unstack(x)
    outputs = tf.TensorArray(tf.float32, size=steps)

    def step(t: Any, outputs: Any, h: Any, c: Any) -> Any:
        i, f, g, o = tf.split(inputs.read(t) @ KERNEL + h @ RECURRENT, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return t + 1, outputs.write(t, h), h, c

    start = tf.constant(0), outputs, state, state
    results = tf.while_loop(
        lambda t, *_: t < steps, step, start, maximum_iterations=steps, parallel_iterations=32
    )
    return tf.transpose(results[1].stack(), [1, 0, 2])


def nested(x: Any) -> Any:
    """A loop in a loop; both carry a size."""
    x = tf.transpose(x, [1, 0])
    turns, width = tf.unstack(tf.shape(x))

    def inner(j: Any, z: Any, n: Any) -> Any:
        return j + 1, z + tf.cast(n, tf.float32) * tf.ones(tf.stack([width])), n

    def outer(i: Any, y: Any, n: Any) -> Any:
        z = tf.while_loop(lambda j, z, n: j < n, inner, (tf.constant(0), y[0], turns))[1]
        return i + 1, y + z * tf.cast(n, tf.float32), n

    return tf.while_loop(lambda i, y, n: i < n, outer, (tf.constant(0), x, turns))[1]


def conditional(x: Any) -> Any:
    """A conditional in a loop; its sides compute with sizes."""
    turns = tf.shape(x)[1]

    def step(i: Any, y: Any, n: Any) -> Any:
        y = tf.cond(
            tf.equal(i % 2, 0),
            lambda: y + tf.cast(n + tf.shape(x)[1], tf.float32),
            lambda: y * tf.cast(tf.size(y[0]) + turns, tf.float32),
        )
        return i + 1, y, n

    return tf.while_loop(lambda i, y, n: i < n, step, (tf.constant(0), x, turns))[1]


def gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: tf.gradients(tf.reduce_sum(function(x)), x)[0]


def lowered(function: Callable[[Any], Any], shape: list[int | None]) -> tuple[Any, str]:
    """The GraphDef of a function whose loops TensorFlow has lowered, and the name of its result."""
    concrete = tf.function(function).get_concrete_function(tf.TensorSpec(shape, tf.float32, "x"))
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=True)
    return frozen.graph.as_graph_def(), frozen.outputs[0].name


def of_version_1(function: Callable[[Any], Any], shape: list[int | None]) -> tuple[Any, str]:
    """The GraphDef of a function with control flow of TensorFlow 1, and the name of its result."""
    tf.compat.v1.disable_control_flow_v2()
    with tf.Graph().as_default() as graph:
        result = tf.identity(function(tf.compat.v1.placeholder(tf.float32, shape, "x")), "y")
    tf.compat.v1.enable_control_flow_v2()
    return graph.as_graph_def(), result.name


MODELS = {
    "lstm": (lowered, lstm, [None, 4, 3]),
    "lstm_of_any_time": (lowered, lstm, [None, None, 3]),
    "conditional": (lowered, conditional, [None, 4]),
    "nested": (lowered, nested, [None, 4]),
    "lstm_1": (of_version_1, lstm, [None, 4, 3]),
    "nested_1": (of_version_1, nested, [None, 4]),
    "conditional_1": (of_version_1, conditional, [None, 4]),
    "gradient_1": (of_version_1, gradient(conditional), [None, 4]),
}


def main() -> int:
    arrays: dict[str, Any] = {}
    for name, (made, function, shape) in MODELS.items():
        graph_def, fetch = made(function, shape)
        feed = NUMBERS.standard_normal([2, 4, 3][: len(shape)]).astype("f4")
        with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
            tf.import_graph_def(graph_def, name="")
            arrays[f"{name}/{fetch}"] = session.run(fetch, {"x:0": feed})
        arrays[f"{name}/x:0"] = feed
        arrays[f"{name}/graph"] = np.frombuffer(graph_def.SerializeToString(), np.uint8)
    np.savez_compressed(PLACE, **arrays)
    return 0


if __name__ == "__main__":
    sys.exit(main())
