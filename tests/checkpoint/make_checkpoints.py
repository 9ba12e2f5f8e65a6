"""Writes the checkpoints of `data/` with TensorFlow: `PYTHONPATH=. .venv-tensorflow/bin/python tests/checkpoint/make_checkpoints.py`."""

from pathlib import Path

import tensorflow as tf
from tests.checkpoint.values import PARTS, SPECS, VALUES

DATA = Path(__file__).parent / "data"
V1_TYPES = ("float32", "float64", "int32", "int64", "uint8", "bool", "complex64", "float16")


def tensor(value):
    return tf.constant(value.tolist(), tf.string) if value.dtype == object else tf.constant(value)


def main():
    names = sorted(VALUES)
    values = [tensor(VALUES[name]) for name in names]
    path = str(DATA / "v2")
    slices = [*SPECS]
    tf.raw_ops.SaveV2(
        prefix=path,
        tensor_names=[*names, *["parted"] * len(slices)],
        shape_and_slices=[*[""] * len(names), *slices],
        tensors=[*values, *map(tf.constant, PARTS)],
    )
    old = [name for name in names if name.partition("/")[0] in (*V1_TYPES, "strings")]
    tf.raw_ops.SaveSlices(
        filename=str(DATA / "v1"),
        tensor_names=[*old, *["parted"] * len(slices)],
        shapes_and_slices=[*[""] * len(old), *slices],
        data=[*[tensor(VALUES[name]) for name in old], *map(tf.constant, PARTS)],
    )


if __name__ == "__main__":
    main()
