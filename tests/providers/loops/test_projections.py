"""Loops that transform images give what NumPy gives; tests of the op compare that with TensorFlow."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.providers.loops import loops_run
from opkernel.providers.loops.compiled_loop import Form
from opkernel.types import Array

pytest.importorskip("numba")

FORMS: tuple[Form, ...] = ("numpy", "plain", "compiled")


@pytest.mark.parametrize("mode", ["CONSTANT", "NEAREST", "REFLECT", "WRAP"])
@pytest.mark.parametrize("interpolation", ["NEAREST", "BILINEAR"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_forms(mode: Any, interpolation: str, dtype: str) -> None:
    draw = np.random.default_rng(0)
    images: Array = (draw.random((4, 6, 7, 3)) * 200).astype(dtype)
    transforms = draw.standard_normal((4, 8)).astype(np.float32)
    transforms[0, 6:] = -0.5, 0  # there is nothing where it divides by 0
    transforms[1, 2] = np.nan
    found = []
    for form in FORMS:
        with loops_run(form), np.errstate(all="ignore"):
            result = raw_ops.ImageProjectiveTransformV3(
                images=images,
                transforms=transforms,
                output_shape=[5, 9],
                fill_value=7.5,
                interpolation=interpolation,
                fill_mode=mode,
            )
        found.append(result)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0], strict=True)
    nothing = found[0][0, :, 2]
    assert (nothing == np.array(7.5, np.float32).astype(dtype)).all()
