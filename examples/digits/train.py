"""Train the network of this folder with TensorFlow, freeze it, and put the test images beside it.

    pip install tensorflow-cpu==2.21.0 scikit-learn==1.9.1
    python examples/digits/train.py

Writes `digits.pb` (the frozen graph), `test_images.npz` (the held-out images and their labels) and
`images.npy` (the first eight of them, as the graph takes them). TensorFlow's arithmetic differs in
the last bits between machines, so another run gives other weights, of about the same accuracy.
"""

from pathlib import Path

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

FOLDER = Path(__file__).parent
HELD_OUT = 360  # of 1797
EPOCHS, BATCH = 60, 64

Weights = dict[str, tf.Tensor]


def initial_weights() -> dict[str, tf.Variable]:
    """Two convolutions and two dense layers; He initialisation, biases zero."""
    tf.random.set_seed(0)
    shapes = {"conv1": (3, 3, 1, 16), "conv2": (3, 3, 16, 32), "dense": (512, 64), "out": (64, 10)}
    weights = {}
    for name, shape in shapes.items():
        deviation = np.sqrt(2.0 / np.prod(shape[:-1]))
        weights[f"{name}/kernel"] = tf.Variable(tf.random.normal(shape, stddev=deviation))
        weights[f"{name}/bias"] = tf.Variable(tf.zeros(shape[-1:]))
    return weights


def logits(images: tf.Tensor, weights: Weights) -> tf.Tensor:
    """The network: float32 images [batch, 8, 8, 1] with values 0 to 16 -> scores [batch, 10]."""
    x = images / 16.0
    for name in ("conv1", "conv2"):
        x = tf.nn.conv2d(x, weights[f"{name}/kernel"], strides=1, padding="SAME")
        x = tf.nn.relu(tf.nn.bias_add(x, weights[f"{name}/bias"]))
    x = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")
    x = tf.reshape(x, [-1, 512])
    x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights["dense/kernel"]), weights["dense/bias"]))
    return tf.nn.bias_add(tf.matmul(x, weights["out/kernel"]), weights["out/bias"])


def shifted(images: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Move the whole batch by up to one pixel each way, so that the network forgives position."""
    down, right = random.integers(-1, 2, size=2)
    padded = np.pad(images, [(0, 0), (1, 1), (1, 1), (0, 0)])
    return padded[:, 1 + down : 9 + down, 1 + right : 9 + right]


def train(images: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    weights = initial_weights()
    random = np.random.default_rng(0)
    optimizer = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def step(batch: tf.Tensor, expected: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            scores = logits(batch, weights)
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=expected, logits=scores)
            )
        variables = list(weights.values())
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    for epoch in range(EPOCHS):
        order = random.permutation(len(images))
        batches = [order[i : i + BATCH] for i in range(0, len(order) - BATCH + 1, BATCH)]
        losses = [step(shifted(images[b], random), labels[b]).numpy() for b in batches]
        print(f"epoch {epoch + 1}/{EPOCHS}: loss {np.mean(losses):.4f}")
    return {name: variable.numpy() for name, variable in weights.items()}


def freeze(weights: dict[str, np.ndarray]) -> tf.Graph:
    """The graph for inference, the trained weights as constants in it."""
    graph = tf.Graph()
    with graph.as_default():
        images = tf.compat.v1.placeholder(tf.float32, [None, 8, 8, 1], name="images")
        constants = {name: tf.constant(value, name=name) for name, value in weights.items()}
        scores = logits(images, constants)
        tf.nn.softmax(scores, name="probabilities")
        tf.argmax(scores, axis=1, name="digit")
    return graph


def main() -> None:
    data = load_digits()
    order = np.random.default_rng(1797).permutation(len(data.images))
    images = data.images[order].astype(np.float32)[..., np.newaxis]
    labels = data.target[order]
    weights = train(images[HELD_OUT:], labels[HELD_OUT:])
    graph = freeze(weights)
    (FOLDER / "digits.pb").write_bytes(graph.as_graph_def().SerializeToString())
    np.savez_compressed(
        FOLDER / "test_images.npz",
        images=images[:HELD_OUT, :, :, 0].astype(np.uint8),
        labels=labels[:HELD_OUT].astype(np.uint8),
    )
    np.save(FOLDER / "images.npy", images[:8])
    with tf.compat.v1.Session(graph=graph) as session:
        digits = session.run("digit:0", {"images:0": images[:HELD_OUT]})
    print(f"held-out accuracy in TensorFlow: {np.mean(digits == labels[:HELD_OUT]):.4f}")


if __name__ == "__main__":
    main()
