"""Writes the SavedModels that `variables.py` measures; needs TensorFlow and Keras.

    python benchmarks/write_saved_models.py DIRECTORY

Keras exports with random weights, of a fixed seed, and any batch: `dense` (one layer of 4 x 3), `mlp`, `conv_bn` (convolutions with batch
norm), `mobilenet_v2`, `transformer` (two encoder layers, 32 tokens) and `lstm` (20 steps).
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tensorflow import keras
from tensorflow.keras import layers


def dense() -> Any:
    return keras.Sequential([layers.Input((4,)), layers.Dense(3, "relu")])


def mlp() -> Any:
    sizes = [layers.Dense(512, "relu"), layers.Dense(512, "relu"), layers.Dense(10, "softmax")]
    return keras.Sequential([layers.Input((784,)), *sizes])


def conv_bn() -> Any:
    x = images = layers.Input((32, 32, 3))
    for filters in (16, 32, 64):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.MaxPooling2D()(layers.ReLU()(layers.BatchNormalization()(x)))
    return keras.Model(images, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def mobilenet_v2() -> Any:
    return keras.applications.MobileNetV2(weights=None)


def transformer() -> Any:
    words = layers.Input((32,), dtype="int32")
    x = layers.Embedding(1000, 128)(words)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 32)(x, x))
        wide = layers.Dense(512, "gelu")(x)
        x = layers.LayerNormalization()(x + layers.Dense(128)(wide))
    return keras.Model(words, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))


def lstm() -> Any:
    return keras.Sequential([layers.Input((20, 16)), layers.LSTM(64), layers.Dense(5)])


MODELS: list[Callable[[], Any]] = [dense, mlp, conv_bn, mobilenet_v2, transformer, lstm]


def with_random_statistics(model: Any) -> Any:
    """The model, whose batch norms have statistics and scales that folding cannot ignore."""
    random = np.random.default_rng(0)
    for weights in model.variables:
        if weights.path.endswith(("moving_variance", "gamma")):
            weights.assign(random.uniform(0.5, 1.5, weights.shape))
        elif weights.path.endswith(("moving_mean", "beta")):
            weights.assign(random.normal(size=weights.shape) * 0.1)
    return model


def main() -> None:
    keras.utils.set_random_seed(0)
    for make in MODELS:
        path = Path(sys.argv[1]) / make.__name__
        with_random_statistics(make()).export(str(path), verbose=False)


if __name__ == "__main__":
    main()
