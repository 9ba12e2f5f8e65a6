"""Writes the checkpoints of `data/`: `PYTHONPATH=. .venv-tensorflow/bin/python tests/training/make_checkpoints.py`.

`objects` has the objects of object_graphs.py. `trained` has a model that Keras trained for three steps.
"""

from pathlib import Path

import numpy as np
import tensorflow as tf
from tests.training.object_graphs import everything

DATA = Path(__file__).parent / "data"


def main() -> None:
    model = everything(tf.Module, tf.Variable)
    tf.train.Checkpoint(model=model, step=tf.Variable(np.int64(7), name="step")).write(
        str(DATA / "objects")
    )
    model, optimizer = tf.Module(), tf.keras.optimizers.Adam(0.25)
    model.w = tf.Variable([1.0, 2.0], name="w")
    for grad in ([1.0, 0.0], [2.0, -1.0], [4.0, 1.0]):
        optimizer.apply_gradients([(tf.constant(grad), model.w)])
    tf.train.Checkpoint(model=model, optimizer=optimizer).write(str(DATA / "trained"))
    optimizer.apply_gradients([(tf.constant([1.0, 1.0]), model.w)])
    print("after another step:", model.w.numpy().tolist())


if __name__ == "__main__":
    main()
