"""Loops that pool by windows of different sizes give what NumPy gives, and what the definition says."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.providers.loops import loops_run

pytest.importorskip("numba")

FORMS: tuple[Any, ...] = ("numpy", "plain", "compiled")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("kind", ["Avg", "Max"])
def test_windows(kind: str, overlapping: bool, dtype: str) -> None:
    draw = np.random.default_rng(1)
    value = (draw.standard_normal((2, 17, 23, 5)) * 100).astype(dtype)
    if value.dtype.kind == "f":
        value[draw.random(value.shape) < 0.05] = -np.inf
        value[draw.random(value.shape) < 0.05] = np.nan
    found = []
    for form in FORMS:
        with loops_run(form):
            found.append(
                getattr(raw_ops, f"Fractional{kind}Pool")(
                    value=value,
                    pooling_ratio=[1.0, 1.7, 2.3, 1.0],
                    overlapping=overlapping,
                    deterministic=True,
                    seed=3,
                    seed2=4,
                )
            )
    output, rows, columns = found[0]
    for other in found[1:]:
        for one, another in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, another, strict=True)
    for i, j in np.ndindex(output.shape[1:3]):
        beyond = int(overlapping)
        window = value[:, rows[i] : rows[i + 1] + beyond, columns[j] : columns[j + 1] + beyond]
        if kind == "Max":
            least = np.finfo(dtype).min if value.dtype.kind == "f" else np.iinfo(dtype).min
            expected = np.fmax(np.fmax.reduce(window, axis=(1, 2)), least)
        else:
            mean = window.astype(np.float64).mean(axis=(1, 2))
            expected = mean if value.dtype.kind == "f" else np.trunc(mean)
        np.testing.assert_allclose(output[:, i, j], expected, rtol=1e-4, atol=1e-4)
