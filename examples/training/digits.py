"""The images of examples/digits, in which order training sees them, and the weights it begins with.

All of it follows from seeds, so that whoever trains sees the same in the same order.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

IMAGES = Path(__file__).resolve().parent.parent / "digits"
EPOCHS, STEPS_AN_EPOCH, BATCH = 60, 22, 64
SHAPES = {"conv1": (3, 3, 1, 16), "conv2": (3, 3, 16, 32), "dense": (512, 64), "out": (64, 10)}


def images_and_labels(name: str) -> tuple[Array, Array]:
    """The `training` or the `test` images, [count, 8, 8, 1] with values 0 to 16, and their digits."""
    with np.load(IMAGES / f"{name}_images.npz") as stored:
        images, labels = stored["images"], stored["labels"]
    return images[..., np.newaxis].astype(np.float32), labels.astype(np.int32)


def epochs(images: Array, labels: Array) -> Iterator[list[tuple[Array, Array]]]:
    """The batches of each epoch: the images in a new order, less those that fill no batch."""
    random = np.random.default_rng(0)
    for _ in range(EPOCHS):
        order = random.permutation(len(images))
        batches = order[: STEPS_AN_EPOCH * BATCH].reshape(STEPS_AN_EPOCH, BATCH)
        yield [(_shifted(images[batch], random), labels[batch]) for batch in batches]


def _shifted(images: Array, random: np.random.Generator) -> Array:
    """Move the whole batch by up to one pixel each way, so that the network forgives position."""
    down, right = random.integers(-1, 2, size=2)
    padded = np.pad(images, [(0, 0), (1, 1), (1, 1), (0, 0)])
    return padded[:, 1 + down : 9 + down, 1 + right : 9 + right]


def initial_weights() -> dict[str, Array]:
    """Two convolutions and two dense layers; He initialisation, biases zero."""
    random = np.random.default_rng(2)
    weights = {}
    for name, shape in SHAPES.items():
        deviation = np.sqrt(2 / np.prod(shape[:-1]))
        weights[f"{name}/kernel"] = random.normal(0, deviation, shape).astype(np.float32)
        weights[f"{name}/bias"] = np.zeros(shape[-1:], np.float32)
    return weights
