"""FusedResizeAndPadConv2D."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

DRAW = np.random.default_rng(0)
IMAGES, FILTERS = DRAW.normal(size=(2, 5, 4, 3)), DRAW.normal(size=(3, 2, 3, 4))
PADDINGS = np.array([[0, 0], [1, 2], [2, 1], [0, 0]], np.int32)


def fused(dtype: Any, size: Any, paddings: Any = PADDINGS, align_corners: bool = False) -> Any:
    return raw_ops.FusedResizeAndPadConv2D(
        input=IMAGES.astype(dtype),
        size=np.array(size, np.int32),
        paddings=paddings,
        filter=FILTERS.astype(dtype),
        resize_align_corners=align_corners,
        mode="REFLECT",
        strides=[1, 1, 1, 1],
        padding="SAME",
    )


@pytest.mark.parametrize("align_corners", [False, True])
def test_it_is_its_three_parts(align_corners: bool) -> None:
    resized = raw_ops.ResizeBilinear(
        images=IMAGES.astype(np.float32),
        size=np.array([7, 6], np.int32),
        align_corners=align_corners,
    )
    wanted = raw_ops.Conv2D(
        input=raw_ops.MirrorPad(input=resized, paddings=PADDINGS, mode="REFLECT"),
        filter=FILTERS.astype(np.float32),
        strides=[1, 1, 1, 1],
        padding="SAME",
    )
    for dtype, tolerance in ((np.float32, 1e-4), (np.float64, 1e-4), (np.float16, 0.1)):
        found = fused(dtype, [7, 6], align_corners=align_corners)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, atol=tolerance)


def test_errors() -> None:
    with pytest.raises(InvalidArgumentError, match="two elements"):
        fused(np.float32, [7])
    with pytest.raises(InvalidArgumentError, match="only support spatial"):
        fused(np.float32, [7, 6], np.array([[1, 0], [0, 0], [0, 0], [0, 0]], np.int32))
