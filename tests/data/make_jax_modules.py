"""Write `modules/` and `saved_models/jax`: StableHLO modules as jax2tf writes them, for tests and campaigns.

    pip install jax==0.10.2 tensorflow-cpu==2.21.0
    python tests/data/make_jax_modules.py

It prints what TensorFlow computes with the SavedModel. `modules/NAME.mlirbc` is the attr `module` of an XlaCallModule:

    two_sizes        (float[a,5], float[5,b]) -> matrix product, sums of columns, all numbers in a row
    three_platforms  (float[a]) -> twice the numbers; for CPU, CUDA and TPU
    calls_function   (float[3]) -> 1 + function 0 of its numbers, with a token
    lapack           (float[4,4], float[4,2]) -> the solution of a x = b
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax.experimental import jax2tf

FOLDER = Path(__file__).resolve().parent
WEIGHTS = (np.arange(6, dtype=np.float32).reshape(3, 2) - 2) / 4
BIAS = np.array([0.5, -0.25], np.float32)
X = np.array([[1, 2, 3], [0.5, -1, 0]], np.float32)


def floats(*shape: int | None) -> tf.TensorSpec:
    return tf.TensorSpec(shape, tf.float32)


def write_module(name: str, function: Any, specs: list[Any], **options: Any) -> None:
    converted = jax2tf.convert(function, **options)
    traced = tf.function(converted, autograph=False, input_signature=specs)
    graph_def = traced.get_concrete_function().graph.as_graph_def()
    bodies = [graph_def.node, *(one.node_def for one in graph_def.library.function)]
    nodes = [node for body in bodies for node in body if node.op == "XlaCallModule"]
    (FOLDER / "modules" / f"{name}.mlirbc").write_bytes(nodes[0].attr["module"].s)


def running_sums(x: Any) -> Any:
    function = jax2tf.call_tf(
        lambda a: tf.math.cumsum(tf.where(a > 0, a, -a)),
        call_tf_graph=True,
        ordered=True,
        output_shape_dtype=jax.ShapeDtypeStruct((3,), jnp.float32),
    )
    return function(x) + 1


class Model(tf.Module):
    """y = tanh(x w + b), computed by JAX."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = tf.Variable(WEIGHTS, name="w"), tf.Variable(BIAS, name="b")
        sizes = [None, None, "(n, 3)"]
        g = jax2tf.convert(lambda w, b, x: jnp.tanh(x @ w + b), polymorphic_shapes=sizes)
        self.f = tf.function(
            lambda x: {"y": g(self.w, self.b, x)},
            input_signature=[tf.TensorSpec([None, 3], tf.float32, "x")],
            autograph=False,
        )


def main() -> None:
    write_module(
        "two_sizes",
        lambda x, y: (x @ y, jnp.sum(x, 0), x.reshape(-1)),
        [floats(None, 5), floats(5, None)],
        polymorphic_shapes=["(b, 5)", "(5, c)"],
    )
    platforms = ("cpu", "cuda", "tpu")
    options = {"polymorphic_shapes": ["(b,)"], "native_serialization_platforms": platforms}
    write_module("three_platforms", lambda x: x * 2, [floats(None)], **options)
    write_module("calls_function", running_sums, [floats(3)])
    write_module("lapack", jnp.linalg.solve, [floats(4, 4), floats(4, 2)])
    model = Model()
    with tf.GradientTape() as tape:
        y = model.f(X)["y"]
        loss = tf.reduce_sum(y * y)
    print(y.numpy().tolist())
    print([grad.numpy().tolist() for grad in tape.gradient(loss, [model.w, model.b])])
    signatures = {"serving_default": model.f.get_concrete_function()}
    tf.saved_model.save(model, str(FOLDER / "saved_models" / "jax"), signatures=signatures)


if __name__ == "__main__":
    main()
