"""Loops that crop images give what NumPy gives, bit by bit: places outside, on the edge, flipped boxes, all types."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.providers.loops import loops_run

pytest.importorskip("numba")

f32, i32 = np.float32, np.int32
FORMS: tuple[Any, ...] = ("numpy", "plain", "compiled")
TYPES = ["u1", "u2", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]


def boxes(draw: np.random.Generator, count: int, images: int) -> dict[str, Any]:
    places = draw.choice([-0.25, 0, 0.1, 1 / 3, 0.5, 0.9, 1, 1.2], (count, 4))
    return {"boxes": places.astype(f32), "box_ind": draw.integers(0, images, count).astype(i32)}


def same_in_all_forms(op: str, **arguments: Any) -> Any:
    found = []
    for form in FORMS:
        with loops_run(form):
            found.append(getattr(raw_ops, op)(**arguments))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0], strict=True)
    return found[0]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (6, 5)])
def test_crops(dtype: str, size: tuple[int, int]) -> None:
    draw = np.random.default_rng(1)
    image = (draw.random((3, 9, 8, 5)) * 100).astype(dtype)
    if dtype[0] == "f":
        image[draw.random(image.shape) < 0.1] = np.inf
    crops = same_in_all_forms(
        "CropAndResize",
        image=image,
        **boxes(draw, 40, 3),
        crop_size=np.array(size, i32),
        extrapolation_value=-7.0,
    )
    assert (crops == -7).any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(1, 1), (6, 5)])
def test_gradients_of_images(dtype: str, method: str, size: tuple[int, int]) -> None:
    draw = np.random.default_rng(2)
    same_in_all_forms(
        "CropAndResizeGradImage",
        grads=draw.standard_normal((60, *size, 3)).astype(f32),
        **boxes(draw, 60, 3),
        image_size=np.array([3, 9, 8, 3], i32),
        T=dtype,
        method=method,
    )


@pytest.mark.parametrize("form", ["numpy", "compiled"])
def test_many_boxes_in_parts(form: Any) -> None:
    """More than is computed at a time: each crop is its image, and gets back its gradient."""
    count, image = 700, np.arange(2 * 16 * 16 * 2, dtype=f32).reshape(2, 16, 16, 2)
    whole = np.tile(np.array([0, 0, 1, 1], f32), (count, 1))
    box_ind = np.arange(count, dtype=i32) % 2
    with loops_run(form):
        crops = raw_ops.CropAndResize(
            image=image, boxes=whole, box_ind=box_ind, crop_size=np.array([16, 16], i32)
        )
        back = raw_ops.CropAndResizeGradImage(
            grads=np.ones_like(crops),
            boxes=whole,
            box_ind=box_ind,
            image_size=np.array(image.shape, i32),
            T="float32",
        )
    np.testing.assert_allclose(crops, image[box_ind], rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(back, np.full_like(image, count // 2), rtol=1e-4)
