"""Put the images of this folder into files: those to train with, and those held out.

    pip install scikit-learn==1.9.1
    python examples/digits/make_images.py

Writes `training_images.npz`, `test_images.npz` and `images.npy`, of which `README.md` tells.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

FOLDER = Path(__file__).parent
HELD_OUT = 360  # of 1797


def main() -> None:
    data = load_digits()
    order = np.random.default_rng(1797).permutation(len(data.images))
    parts = {"test_images": order[:HELD_OUT], "training_images": order[HELD_OUT:]}
    for name, chosen in parts.items():
        np.savez_compressed(
            FOLDER / f"{name}.npz",
            images=data.images[chosen].astype(np.uint8),
            labels=data.target[chosen].astype(np.uint8),
        )
    np.save(FOLDER / "images.npy", data.images[order[:8], ..., np.newaxis].astype(np.float32))


if __name__ == "__main__":
    main()
