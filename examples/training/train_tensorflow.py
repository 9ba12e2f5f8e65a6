"""Train the network of this folder with TensorFlow, and record how that went.

    pip install tensorflow-cpu==2.21.0
    TF_ENABLE_ONEDNN_OPTS=0 python examples/training/train_tensorflow.py [--save digits.pb]

Writes `tensorflow.json`: the loss of each step, and after each epoch how many of the held-out images are
recognised. TensorFlow's arithmetic differs in the last bits between machines, so another run gives
other weights, of about the same accuracy. `--save` writes the trained network as a frozen graph.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from digits import Array, epochs, images_and_labels, initial_weights

tf1 = tf.compat.v1


def logits(images: tf.Tensor, weights: dict[str, tf.Variable]) -> tf.Tensor:
    """The network: float32 images [batch, 8, 8, 1] with values 0 to 16 -> scores [batch, 10]."""
    x = images / 16
    for name in ("conv1", "conv2"):
        x = tf.nn.conv2d(x, weights[f"{name}/kernel"], strides=1, padding="SAME")
        x = tf.nn.relu(tf.nn.bias_add(x, weights[f"{name}/bias"]))
    x = tf.nn.max_pool2d(x, ksize=2, strides=2, padding="VALID")
    x = tf.reshape(x, [-1, 512])
    x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights["dense/kernel"]), weights["dense/bias"]))
    return tf.nn.bias_add(tf.matmul(x, weights["out/kernel"]), weights["out/bias"])


class Network:
    """The graph, its variables at their first values in a session."""

    def __init__(self) -> None:
        with tf.Graph().as_default() as graph:
            self.images = tf1.placeholder(tf.float32, [None, 8, 8, 1])
            self.labels = tf1.placeholder(tf.int32, [None])
            self.weights = {
                name: tf1.Variable(value, use_resource=True)
                for name, value in initial_weights().items()
            }
            scores = logits(self.images, self.weights)
            self.loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.labels, logits=scores)
            )
            self.digit = tf.argmax(scores, axis=1, output_type=tf.int32)
            self.step = tf1.train.AdamOptimizer(1e-3, epsilon=1e-7).minimize(self.loss)
            self.session = tf1.Session(graph=graph)
            self.session.run(tf1.global_variables_initializer())

    def train(self, images: Array, labels: Array) -> float:
        """One step; the loss before it."""
        feeds = {self.images: images, self.labels: labels}
        return float(self.session.run([self.loss, self.step], feeds)[0])

    def recognised(self, images: Array, labels: Array) -> int:
        """How many of the images are recognised."""
        digits = self.session.run(self.digit, {self.images: images})
        return int(np.sum(digits == labels))

    def frozen(self) -> bytes:
        """The graph for inference, the weights as constants in it."""
        values = self.session.run(self.weights)
        with tf.Graph().as_default() as graph:
            images = tf1.placeholder(tf.float32, [None, 8, 8, 1], name="images")
            weights = {name: tf.constant(value, name=name) for name, value in values.items()}
            scores = logits(images, weights)
            tf.nn.softmax(scores, name="probabilities")
            tf.argmax(scores, axis=1, name="digit")
        serialized: bytes = graph.as_graph_def().SerializeToString()
        return serialized


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", type=Path, help="where to write the frozen graph")
    options = parser.parse_args()
    held_out = images_and_labels("test")
    network = Network()
    losses: list[float] = []
    recognised: list[int] = []
    for batches in epochs(*images_and_labels("training")):
        losses += [network.train(*batch) for batch in batches]
        recognised.append(network.recognised(*held_out))
        mean = np.mean(losses[-len(batches) :])
        print(f"epoch {len(recognised):2}: loss {mean:.4f}, {recognised[-1]} recognised")
    record = {"losses": [round(loss, 7) for loss in losses], "recognised": recognised}
    (Path(__file__).parent / "tensorflow.json").write_text(f"{json.dumps(record)}\n")
    if options.save:
        options.save.write_bytes(network.frozen())


if __name__ == "__main__":
    main()
