"""Classify handwritten digits with a network that TensorFlow trained, without TensorFlow.

    python examples/digits/demo.py [GRAPH]

Another graph has the same placeholder and results as `digits.pb`: `../training/train.py --save` writes one.
Ends with status 1 if fewer than 97 of 100 held-out images are recognised.
"""

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import opkernel

FOLDER = Path(__file__).parent
SHADES = np.array(list(" .:-=+*#%@"))
PER_ROW = 4
EXPECTED_ACCURACY = 0.97


def drawing(image: np.ndarray) -> list[str]:
    """The 8x8 image, values 0 to 16, as eight lines of sixteen characters."""
    shades = SHADES[image.astype(np.intp) * (len(SHADES) - 1) // 16]
    return ["".join(np.repeat(row, 2)) for row in shades]


def print_images(images: np.ndarray, captions: Iterable[str]) -> None:
    """Print images side by side, each over its caption."""
    panels = [[*drawing(i), f"{c:^16}"] for i, c in zip(images, captions, strict=True)]
    for start in range(0, len(panels), PER_ROW):
        for lines in zip(*panels[start : start + PER_ROW], strict=True):
            print("   ".join(lines))
        print()


def main() -> int:
    path = sys.argv[1] if len(sys.argv) > 1 else FOLDER / "digits.pb"
    held_out = np.load(FOLDER / "test_images.npz")
    images, labels = held_out["images"], held_out["labels"]

    start = time.perf_counter()
    graph = opkernel.load_graph(path)
    with opkernel.Session(graph) as session:
        feeds = {"images:0": images[..., np.newaxis].astype(np.float32)}
        digits, probabilities = session.run(["digit:0", "probabilities:0"], feeds)
    seconds = time.perf_counter() - start

    sure = probabilities.max(axis=1)
    captions = [f"{d} ({p:.0%}), is {t}" for d, p, t in zip(digits, sure, labels, strict=True)]
    wrong = np.flatnonzero(digits != labels)
    print("The first images that training did not see; under each: prediction, true label\n")
    print_images(images[: 2 * PER_ROW], captions[: 2 * PER_ROW])
    if 0 < len(wrong) <= 2 * PER_ROW:
        print("What it gets wrong\n")
        print_images(images[wrong], [captions[i] for i in wrong])

    right = len(labels) - len(wrong)
    print(f"{right} of {len(labels)} held-out images recognised ({right / len(labels):.1%}),")
    print(f"graph loaded and run in {seconds * 1e3:.0f} ms.")
    return 0 if right / len(labels) >= EXPECTED_ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())
