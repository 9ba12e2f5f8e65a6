import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

INDICES = np.array([[0, 2], [-1, 3]])


@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8])
def test_one_hot(axis, dtype):
    result = raw_ops.OneHot(
        indices=INDICES.astype(dtype), depth=3, on_value=5, off_value=2, axis=axis
    )
    last = np.where(INDICES[..., None] == np.arange(3), 5, 2)
    np.testing.assert_array_equal(result, np.moveaxis(last, -1, axis))


def test_one_hot_of_a_scalar_in_strings():
    result = raw_ops.OneHot(indices=1, depth=2, on_value=b"on\0", off_value=b"")
    assert result.tolist() == [b"", b"on\0"]


def test_a_depth_of_0_is_an_empty_dimension():
    result = raw_ops.OneHot(indices=INDICES, depth=0, on_value=1.0, off_value=0.0)
    assert result.shape == (2, 2, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"axis": 3}, r"Expected axis to be -1 or between \[0, 2\].  But received: 3"),
        ({"depth": [2]}, r"depth must be a scalar, but got: \[1\]"),
        ({"on_value": [1]}, r"on_value must be a scalar, but got: \[1\]"),
        ({"off_value": [[1]]}, r"off_value must be a scalar, but got: \[1,1\]"),
        ({"depth": -1}, "depth must be non-negative, got: -1"),
    ],
)
def test_it_refuses(arguments, message):
    defaults = {"depth": 2, "on_value": 1, "off_value": 0}
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.OneHot(indices=INDICES, **defaults | arguments)
