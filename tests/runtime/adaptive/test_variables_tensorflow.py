"""Loaded models beside TensorFlow: before and after their variables become constants, and are assigned to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel

STEPS = 8


@pytest.mark.tensorflow
@pytest.mark.parametrize("load", [opkernel.load, opkernel.load_as_session])
def test_a_network_with_batch_norm_gives_what_tensorflow_gives(
    load: Any, tf: Any, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)

    class Network(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            shapes = {"filters": (3, 3, 3, 8), "gamma": (8,), "beta": (8,), "mean": (8,)}
            shapes |= {"variance": (8,), "kernel": (8, 5), "bias": (5,)}
            self.weights = {
                name: tf.Variable(random.uniform(0.5, 1.5, shape).astype(np.float32), name=name)
                for name, shape in shapes.items()
            }

        @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3], tf.float32, name="x")])
        def call(self, x: Any) -> Any:
            w = self.weights
            y = tf.nn.conv2d(x, w["filters"], 1, "SAME")
            y = tf.nn.batch_normalization(
                y, w["mean"], w["variance"], w["beta"], w["gamma"], np.float32(1e-3)
            )
            return {"y": tf.reduce_mean(tf.nn.relu(y), [1, 2]) @ w["kernel"] + w["bias"]}

    network = Network()
    tf.saved_model.save(network, str(tmp_path), signatures=network.call)
    model = load(tmp_path)
    signature = model.signatures["serving_default"]
    own = {one.name.partition(":")[0]: one for one in model.variables}
    x = random.standard_normal((4, 8, 8, 3)).astype(np.float32)
    for name in ("", "variance", "filters", "bias"):
        if name:
            value = network.weights[name].numpy() * np.float32(1.25)
            network.weights[name].assign(value)
            own[name].assign(value)
        expected = network.call(tf.constant(x))["y"].numpy()
        for _ in range(STEPS):
            np.testing.assert_allclose(signature(x=x)["y"], expected, rtol=1e-4, atol=1e-5)
