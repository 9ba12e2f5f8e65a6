"""Quantised tensors in programs; the kernels of the CPU, which TensorFlow's tests check, are the reference."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.ops.quantized.calls import plain, quantized
from tests.ops.quantized.test_uniform_against_tensorflow import (
    Drawn,
    draw_add,
    draw_clip,
    draw_convolution,
    draw_dot,
)
from tests.xla.recorded import compiled

from opkernel import raw_ops
from opkernel.errors import OpError, UnimplementedError
from opkernel.opdef import global_op_registry
from opkernel.types import DataType, as_dtype

pytestmark = pytest.mark.jax

CALLS = 8
QINT8, QINT32 = DataType.DT_QINT8, DataType.DT_QINT32


def outcome(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call gives, or the status code of its error."""
    try:
        return call(*args, **kwargs)
    except OpError as error:
        return int(error.code)


@pytest.mark.parametrize(
    ("draw_call", "types"),
    [
        (draw_add, {"T": QINT32}),
        (draw_clip, {"T": QINT32}),
        (draw_convolution, {"Tin": QINT8}),
        (draw_dot, {"Tin": QINT8}),
    ],
)
def test_drawn_calls(draw_call, types):
    draw = Drawn(5)
    for _ in range(CALLS):
        op, inputs, attrs = draw_call(draw)
        if attrs.get("batch_group_count", 1) > 1 and attrs["feature_group_count"] > 1:
            continue  # XLA has no such convolution
        given = {k: quantized(*v) if isinstance(v, tuple) else v for k, v in inputs.items()}
        expected = outcome(lambda: plain(getattr(raw_ops, op)(**given, **attrs)))  # noqa: B023  # called at once
        names = [arg.name for arg in global_op_registry().look_up_op_def(op).input_arg]
        attrs |= {"Tout": as_dtype(attrs["Tout"])} if "Tout" in attrs else {}
        found = outcome(compiled, op, [plain(given[name]) for name in names], attrs | types)
        if isinstance(expected, int) or isinstance(found, int):
            assert [found] == [expected], (op, attrs)
        else:
            np.testing.assert_array_equal(found[0], expected, err_msg=str((op, attrs)))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("MIN_COMBINED", [1.0235295, 2.5764709, 1.0549021]),
        ("SCALED", [0.02362205, 2.3622048, 0.07086614]),
    ],
)
def test_dequantize(mode, expected):
    levels = np.array([1, 100, 3], np.int8)
    ends = np.float32(-1), np.float32(3)
    attrs = {"T": QINT8, "mode": mode, "axis": -1, "dtype": DataType.DT_FLOAT}
    (found,) = compiled("Dequantize", [levels, *ends], attrs)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_mode_that_is_not_compiled():
    with pytest.raises(UnimplementedError, match="MIN_FIRST"):
        compiled(
            "Dequantize",
            [np.zeros(2, np.int8), np.float32(-1), np.float32(1)],
            {"T": QINT8, "mode": "MIN_FIRST"},
        )
