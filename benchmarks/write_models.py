"""Writes the frozen models that `models.py` measures; needs TensorFlow and Keras.

    python benchmarks/write_models.py DIRECTORY [MODEL ...]

Each is a GraphDef `NAME.pb` with random weights, of a fixed seed, and any batch: `mlp`,
`mobilenet_v2`, `resnet_50` and `bert_base` (128 tokens), and for inputs of any length `bert_mini` (4 layers, 256 wide) and `lstm`
(256 units). Their inputs and outputs are named by `models.MODELS` and `random_shapes.MODELS`. Files that are there already stay.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

TOKENS = 128
LAYERS, HEADS, WIDTH, WORDS = 12, 12, 768, 30_522


def frozen(model: Any, *, lowers_loops: bool = True) -> Any:
    """The GraphDef of a Keras model, its variables made constants; from `x` to `y`."""
    shape = [None, *model.inputs[0].shape[1:]]

    @tf.function(input_signature=[tf.TensorSpec(shape, tf.float32, name="x")])  # type: ignore[untyped-decorator]  # TensorFlow has no types
    def call(x: Any) -> Any:
        return tf.identity(model(x, training=False), name="y")

    function = convert_variables_to_constants_v2(
        call.get_concrete_function(), lower_control_flow=lowers_loops
    )
    return function.graph.as_graph_def()


def with_random_statistics(model: Any) -> Any:
    """The model, whose batch norms have statistics and scales that folding cannot ignore."""
    random = np.random.default_rng(0)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.set_weights([random.uniform(0.5, 1.0, w.shape) for w in layer.get_weights()])
    return model


def mlp() -> Any:
    dense = keras.layers.Dense
    layers = [keras.Input([64]), dense(128, "relu"), dense(128, "relu"), dense(10, "softmax")]
    return frozen(keras.Sequential(layers))


def mobilenet_v2() -> Any:
    return frozen(with_random_statistics(keras.applications.MobileNetV2(weights=None)))


def resnet_50() -> Any:
    return frozen(with_random_statistics(keras.applications.ResNet50(weights=None)))


class Bert:
    """BERT as it is published: post-norm layers, gelu by erf, an attention mask, a pooler.

    Args:
        layers, heads, width: Its sizes.
        is_any_length: Whether inputs may have another number of tokens than 128.
    """

    def __init__(
        self,
        layers: int = LAYERS,
        heads: int = HEADS,
        width: int = WIDTH,
        *,
        is_any_length: bool = False,
    ) -> None:
        self.random = np.random.default_rng(0)
        self.num_layers, self.num_heads, self.width = layers, heads, width
        self.length: Any = None if is_any_length else TOKENS

    @property
    def head_width(self) -> int:
        """The width of a head."""
        return self.width // self.num_heads

    def weights(self, *shape: int) -> Any:
        """A constant of random numbers."""
        return tf.constant(self.random.normal(0, 0.02, shape).astype(np.float32))

    def dense(self, x: Any, width: int) -> Any:
        """A layer without an activation."""
        product = tf.matmul(x, self.weights(x.shape[-1], width))
        return tf.nn.bias_add(product, self.weights(width))

    def normalised(self, x: Any) -> Any:
        """Layer norm."""
        mean = tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
        factor = tf.math.rsqrt(variance + 1e-12) * (1 + self.weights(self.width))
        return x * factor + (self.weights(self.width) - mean * factor)

    def heads(self, x: Any) -> Any:
        """`[batch, heads, tokens, width of a head]` of `[batch * tokens, width]`."""
        return tf.transpose(
            tf.reshape(x, [-1, self.length, self.num_heads, self.head_width]), [0, 2, 1, 3]
        )

    def attention(self, x: Any, mask: Any) -> Any:
        """What the heads gather of all tokens, side by side."""
        query, key, value = (self.heads(self.dense(x, self.width)) for _ in range(3))
        scores = tf.matmul(query, key, transpose_b=True) * self.head_width**-0.5
        mixed = tf.matmul(tf.nn.softmax(scores + mask), value)
        return tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [-1, self.width])

    def layer(self, x: Any, mask: Any) -> Any:
        """One of the layers: attention, and a network of two layers for each token."""
        x = self.normalised(x + self.dense(self.attention(x, mask), self.width))
        wide = self.dense(x, 4 * self.width)
        gelu = 0.5 * wide * (1 + tf.math.erf(wide * 2**-0.5))
        return self.normalised(x + self.dense(gelu, self.width))

    def embedded(self, tokens: Any, kinds: Any) -> Any:
        """The sum of the embeddings of words, kinds and places."""
        words = tf.gather(self.weights(WORDS, self.width), tokens)
        places = self.weights(TOKENS, self.width)
        if self.length is not TOKENS:
            places = places[: self.length]
        x = words + tf.gather(self.weights(2, self.width), kinds) + places
        return self.normalised(tf.reshape(x, [-1, self.width]))

    def graph(self) -> Any:
        """The GraphDef."""
        with tf.Graph().as_default() as graph:
            tokens, present, kinds = (
                tf.compat.v1.placeholder(tf.int32, [None, self.length], name)
                for name in ("tokens", "present", "kinds")
            )
            if self.length is None:
                self.length = tf.shape(tokens)[1]
            mask = (1 - tf.cast(present, tf.float32))[:, None, None, :] * -10000.0
            x = self.embedded(tokens, kinds)
            for _ in range(self.num_layers):
                x = self.layer(x, mask)
            states = tf.reshape(x, [-1, self.length, self.width], name="states")
            tf.tanh(self.dense(states[:, 0], self.width), name="pooled")
        return graph.as_graph_def()


def bert_base() -> Any:
    return Bert().graph()


def bert_mini() -> Any:
    return Bert(4, 4, 256, is_any_length=True).graph()


def lstm() -> Any:
    """An LSTM over inputs of any length, and a dense layer of its last state. The converter to ONNX takes no lowered loop."""
    layers = [keras.Input([None, 64]), keras.layers.LSTM(256), keras.layers.Dense(10)]
    return frozen(keras.Sequential(layers), lowers_loops=False)


WRITERS: dict[str, Callable[[], Any]] = {
    writer.__name__: writer for writer in (mlp, mobilenet_v2, resnet_50, bert_base, bert_mini, lstm)
}


def main() -> None:
    directory, names = Path(sys.argv[1]), sys.argv[2:] or list(WRITERS)
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = directory / f"{name}.pb"
        if not path.exists():
            tf.keras.utils.set_random_seed(0)
            partly = path.with_suffix(".partly")
            partly.write_bytes(WRITERS[name]().SerializeToString())
            partly.rename(path)


if __name__ == "__main__":
    main()
