"""Train the network of examples/digits by opkernel alone, beside the record of TensorFlow's training.

    python examples/training/train.py [--steps 50] [--curve loss.svg] [--save digits.pb]

Ends with status 1 if it does not go as TensorFlow's did: one of the first 50 losses is further away than
1e-4, or the last epochs recognise on average a hundredth of the held-out images less, or more.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from digits import BATCH, EPOCHS, STEPS_AN_EPOCH, epochs, images_and_labels
from loss_curve import loss_curve
from network import Network

import opkernel

RECORD = Path(__file__).parent / "tensorflow.json"
CLOSE_STEPS, CLOSE = 50, 1e-4
LAST_EPOCHS, ALLOWED_PART = 10, 0.01


def train(
    network: Network, steps: int | None, record: dict[str, list[float]]
) -> tuple[list[float], list[int]]:
    """The loss of each step, and how many held-out images are recognised after each epoch."""
    held_out = images_and_labels("test")
    losses, recognised = list[float](), list[int]()
    for epoch, batches in enumerate(epochs(*images_and_labels("training"))):
        before = len(losses)
        rest = len(batches) if steps is None else steps - before
        losses += [network.train(*batch) for batch in batches[:rest]]
        if rest < len(batches):
            break
        recognised.append(network.recognised(*held_out))
        print(
            f"epoch {epoch + 1:2}: loss {np.mean(losses[before:]):.4f} "
            f"(TensorFlow {np.mean(record['losses'][before : len(losses)]):.4f}), "
            f"{recognised[-1]} of {len(held_out[1])} held-out images recognised "
            f"(TensorFlow {record['recognised'][epoch]})",
            flush=True,
        )
    return losses, recognised


def went_like_tensorflow(
    losses: list[float], recognised: list[int], record: dict[str, list[float]]
) -> bool:
    """Compare with the record, and print how far away it is."""
    count = min(CLOSE_STEPS, len(losses))
    difference = np.abs(np.subtract(losses[:count], record["losses"][:count])).max()
    print(f"{len(losses)} steps: loss {losses[0]:.4f} to {losses[-1]:.4f}")
    print(f"largest difference from TensorFlow's in the first {count} steps: {difference:.1e}")
    if len(recognised) < EPOCHS:
        return bool(difference <= CLOSE)
    ours, theirs = (np.mean(r[-LAST_EPOCHS:]) for r in (recognised, record["recognised"]))
    print(f"recognised in the last epochs: {ours:.1f}, TensorFlow {theirs:.1f}")
    allowed = ALLOWED_PART * len(images_and_labels("test")[1])
    return bool(difference <= CLOSE and abs(ours - theirs) <= allowed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, help=f"of {BATCH} images; {EPOCHS} epochs by default")
    parser.add_argument("--curve", type=Path, help="where to draw the loss of each step, as SVG")
    parser.add_argument("--save", type=Path, help="where to write the trained network, frozen")
    options = parser.parse_args()
    record = json.loads(RECORD.read_text())
    network = Network()
    losses, recognised = train(network, options.steps, record)
    if options.curve:
        theirs = record["losses"][: len(losses)]
        curve = loss_curve({"TensorFlow": theirs, "opkernel": losses}, STEPS_AN_EPOCH)
        options.curve.write_text(curve, encoding="utf-8")
    if options.save:
        opkernel.save_graph(network.frozen(), options.save)
    return 0 if went_like_tensorflow(losses, recognised, record) else 1


if __name__ == "__main__":
    sys.exit(main())
