"""Loops over the windows, boxes and crops of images give what NumPy gives; tests of the ops compare that with TensorFlow."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.providers.loops import loops_run
from opkernel.providers.loops.compiled_loop import Form
from opkernel.types import Array

pytest.importorskip("numba")

FORMS: tuple[Form, ...] = ("numpy", "plain", "compiled")
DRAW = np.random.default_rng(0)


def whole(dtype: str, *shape: int) -> Array:
    """Numbers with many ties, whose sums are exact."""
    numbers: Array = DRAW.integers(0, 9, shape).astype(dtype)
    return numbers


def forms_agree(op: str, tolerance: float = 0, **arguments: Any) -> list[Array]:
    """The outputs of an op, after a look whether all forms give the same."""
    found: list[Any] = []
    for form in FORMS:
        with loops_run(form):
            outputs = getattr(raw_ops, op)(**arguments)
        found.append(outputs if isinstance(outputs, tuple) else (outputs,))
    for other in found[1:]:
        for one, another in zip(found[0], other, strict=True):
            np.testing.assert_allclose(another, one, rtol=tolerance, atol=tolerance, strict=True)
    return [*found[0]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_largest_elements(dtype: str, padding: Any) -> None:
    x = whole(dtype, 3, 7, 8, 5)
    if dtype == "float32":
        x[DRAW.random(x.shape) < 0.1] = np.nan
    values, indices = forms_agree(
        "MaxPoolWithArgmax",
        input=x,
        ksize=[1, 3, 2, 1],
        strides=[1, 2, 2, 1],
        padding=padding,
        include_batch_in_index=True,
    )
    np.testing.assert_array_equal(x.reshape(-1)[indices], values)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("rate", [1, 2])
def test_gradients_of_dilation(padding: Any, rate: int) -> None:
    x, filters = whole("float32", 2, 7, 8, 3), whole("float32", 2, 3, 3)
    attrs: dict[str, Any] = {
        "strides": [1, 2, 1, 1],
        "rates": [1, rate, rate, 1],
        "padding": padding,
    }
    x[0, :5] = np.nan  # windows without a largest sum
    gradient = whole("float32", *raw_ops.Dilation2D(input=x, filter=filters, **attrs).shape)
    attrs |= {"input": x, "filter": filters, "out_backprop": gradient}
    for op in ("Dilation2DBackpropInput", "Dilation2DBackpropFilter"):
        (found,) = forms_agree(op, **attrs)
        assert found.sum() == gradient.sum()


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_gradients_of_fractional_pools(overlapping: bool, dtype: str) -> None:
    x, rows, columns = whole(dtype, 2, 9, 11, 3), np.array([0, 2, 5, 9]), np.array([0, 3, 4, 11])
    gradient = whole(dtype, 2, 3, 3, 3)
    y = np.empty_like(gradient)
    for i, j in np.ndindex(3, 3):
        window = x[
            :, rows[i] : rows[i + 1] + overlapping, columns[j] : columns[j + 1] + overlapping
        ]
        y[:, i, j] = window.max(axis=(1, 2))
    windows: dict[str, Any] = {
        "row_pooling_sequence": rows,
        "col_pooling_sequence": columns,
        "overlapping": overlapping,
    }
    (found,) = forms_agree(
        "FractionalMaxPoolGrad", orig_input=x, orig_output=y, out_backprop=gradient, **windows
    )
    assert found.sum() == gradient.sum()
    (found,) = forms_agree(
        "FractionalAvgPoolGrad", orig_input_tensor_shape=x.shape, out_backprop=gradient, **windows
    )
    if x.dtype.kind == "f":
        assert found.sum() == pytest.approx(gradient.sum(), rel=1e-5)
    for form in FORMS:
        with loops_run(form), pytest.raises(InvalidArgumentError, match="largest"):
            raw_ops.FractionalMaxPoolGrad(
                orig_input=x, orig_output=y + 1, out_backprop=gradient, **windows
            )


@pytest.mark.parametrize("depth", [1, 3, 4])
def test_outlines(depth: int) -> None:
    images = DRAW.random((2, 12, 15, depth)).astype(np.float32)
    corners = DRAW.standard_normal((2, 9, 2, 2)).astype(np.float32) * 0.7 + 0.5
    boxes = np.sort(corners, axis=2).reshape(2, 9, 4)
    boxes[0, 0, 0], boxes[1, 1] = np.nan, [0.9, 0.1, 0.2, 0.5]
    (found,) = forms_agree("DrawBoundingBoxes", images=images, boxes=boxes)
    assert (found != images).any()
    forms_agree("DrawBoundingBoxesV2", images=images, boxes=boxes, colors=images[0, :4, 0])
    forms_agree("DrawBoundingBoxes", images=images[:, :0], boxes=boxes + 10)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("crop", [(4, 3), (1, 1)])
def test_gradient_of_crops_by_boxes(dtype: str, crop: tuple[int, int]) -> None:
    forms_agree(
        "CropAndResizeGradBoxes",
        tolerance=1e-3,
        grads=whole("float32", 5, *crop, 3),
        image=whole(dtype, 2, 6, 7, 3),
        boxes=DRAW.standard_normal((5, 4)).astype(np.float32),
        box_ind=[0, 1, 1, 0, 1],
    )
