"""Parts of variables in programs; expected values are those of NumPy's own indexing."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops

pytestmark = pytest.mark.jax

VALUE = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
CHANGES: dict[str, Any] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Min": np.minimum,
    "Max": np.maximum,
    "Update": lambda old, new: new,
}


def changed(op: str, before: np.ndarray, /, **given: Any) -> np.ndarray:
    """What a variable holds after an op of a compiled function, whose tensors are no constants."""
    variable = opkernel.Variable(before)
    handle = "ref" if "Nd" in op or "Strided" in op else "resource"
    fixed = {name: given.pop(name) for name in [*given] if name in ("begin", "end", "strides")}

    @opkernel.function(jit_compile=True)
    def change(tensors: dict[str, Any]) -> None:
        getattr(raw_ops, op)(**{handle: variable.handle}, **tensors, **fixed)

    change(given)
    return variable.numpy()


@pytest.mark.parametrize("change", CHANGES)
def test_rows(change):
    rows = np.array([[3, 3], [0, 9]], np.int32)  # one twice, and one that is not there
    updates = np.full((2, 2, 3), 2, np.float32)
    expected = VALUE.copy()
    for row in (3, 3, 0):
        expected[row] = CHANGES[change](expected[row], 2)
    for given in (updates, np.float32(2)):
        found = changed(f"ResourceScatter{change}", VALUE, indices=rows, updates=given)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("change", ["Add", "Sub", "Min", "Max", "Update"])
def test_slices(change):
    points = np.array([[3, 2], [0, 0], [-1, 0]], np.int64)
    updates = np.array([5, 6, 7], np.float32)
    expected = VALUE.copy()
    for (row, column), update in zip(points[:2], updates[:2], strict=True):
        expected[row, column] = CHANGES[change](expected[row, column], update)
    found = changed(f"ResourceScatterNd{change}", VALUE, indices=points, updates=updates)
    np.testing.assert_array_equal(found, expected)


def test_integers_are_divided_towards_zero():
    value = np.array([-7, 7, 9], np.int32)
    indices, updates = np.array([0, 1], np.int32), np.array([2, -2], np.int32)
    found = changed("ResourceScatterDiv", value, indices=indices, updates=updates)
    assert found.tolist() == [-3, -3, 9]


def test_a_slice_is_assigned_to():
    fixed = {"begin": [1, 0], "end": [4, 2], "strides": [2, 1]}
    found = changed("ResourceStridedSliceAssign", VALUE, value=np.float32(0), **fixed)
    expected = VALUE.copy()
    expected[1:4:2, :2] = 0
    np.testing.assert_array_equal(found, expected)


def test_rows_and_slices_are_gathered():
    variable = opkernel.Variable(VALUE.reshape(2, 2, 3))

    @opkernel.function(jit_compile=True)
    def gather(indices, points):
        handle = variable.handle
        return (
            raw_ops.ResourceGather(resource=handle, indices=indices, dtype="float"),
            raw_ops.ResourceGather(resource=handle, indices=indices, dtype="float", batch_dims=1),
            raw_ops.ResourceGatherNd(resource=handle, indices=points, dtype="float"),
        )

    indices, points = np.array([[1, 0], [1, 1]]), np.array([[1, 0, 2], [0, 1, 1]])
    rows, of_batches, found = gather(indices, points)
    value = VALUE.reshape(2, 2, 3)
    np.testing.assert_array_equal(rows, value[indices])
    np.testing.assert_array_equal(of_batches, np.stack([value[0][[1, 0]], value[1][[1, 1]]]))
    np.testing.assert_array_equal(found, value[tuple(points.T)])
