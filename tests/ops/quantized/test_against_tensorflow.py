"""Quantised ops give TensorFlow's integers exactly, and its floats within the last places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.quantized.calls import OP_CALLS, drawn, plain, quantized

from opkernel import raw_ops

RANGES = [(-1.0, 2.0), (-0.37, 0.83), (-5.0, 0.25), (-0.001, 8.5)]


def _as_tensorflow(tf: Any, value: Any, name: str) -> Any:
    tensor = tf.constant(value)
    return tf.bitcast(tensor, tf.as_dtype(name)) if name.startswith("q") else tensor


def _integers(tf: Any, tensor: Any) -> Any:
    if not tensor.dtype.is_quantized:
        return tensor.numpy()
    return tf.bitcast(tensor, tf.as_dtype(tensor.dtype.name[1:])).numpy()


@pytest.mark.tensorflow
@pytest.mark.parametrize("ends", RANGES)
@pytest.mark.parametrize("call", OP_CALLS)
def test_values_are_tensorflow_s(tf: Any, call: str, ends: tuple[float, float]) -> None:
    op, specs, attrs = OP_CALLS[call]
    rng = np.random.default_rng(len(call))
    values = {name: drawn(spec, rng, ends) for name, spec in specs.items()}
    ours = {
        name: quantized(kind, value) if kind.startswith("q") else value
        for name, (value, kind) in values.items()
    }
    theirs = {name: _as_tensorflow(tf, *value) for name, value in values.items()}
    their_attrs = {
        name: tf.as_dtype(value.replace("float", "float32"))
        if name.startswith(("T", "out_type"))
        else value
        for name, value in attrs.items()
    }
    got = getattr(raw_ops, op)(**ours, **attrs)
    wanted = getattr(tf.raw_ops, op)(**theirs, **their_attrs)
    wanted = wanted if isinstance(wanted, (tuple, list)) else [wanted]
    got = got if isinstance(got, (tuple, list)) else [got]
    for have, want in zip(got, wanted, strict=True):
        expected = _integers(tf, want)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(have, expected, rtol=2e-6, atol=1e-6)
        else:
            np.testing.assert_array_equal(plain(have), expected)
