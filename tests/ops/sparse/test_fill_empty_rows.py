"""The gradients of rows that were filled, and what RaggedFillEmptyRows refuses."""

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import as_dtype


@pytest.mark.parametrize("kind", ["Sparse", "Ragged"])
@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float", "double", "complex64", "int8"])
def test_the_gradient_of_the_default_is_summed_in_order(kind, dtype):
    numbers = as_dtype(dtype).numpy_dtype
    gradients = (np.random.default_rng(0).normal(size=300) * 10).astype(numbers)
    found = np.array([5, 0, 299])
    given, default = getattr(raw_ops, f"{kind}FillEmptyRowsGrad")(
        reverse_index_map=found, grad_values=gradients
    )
    expected = numbers.type(0)
    with np.errstate(over="ignore"):
        for value in np.delete(gradients, found):
            expected = numbers.type(expected + value)
    np.testing.assert_array_equal(given, gradients[found])
    assert (default, np.asarray(default).dtype) == (expected, numbers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nrows": [3]}, r"nrows must be a scalar, saw: \[1\]"),
        ({"value_rowids": [[0, 1]]}, r"value_rowids must be a vector, saw: \[1,2\]"),
        ({"values": 1.0}, r"values must be a vector, saw: \[\]"),
        ({"values": [1.0]}, r"The length of `values` \(1\) must match .* `value_rowids` \(2\)"),
        ({"default_value": [0.0]}, r"default_value must be a scalar, saw: \[1\]"),
        ({"nrows": 1}, r"indices\(1, 0\) is invalid: 1 >= 1"),
        ({"nrows": 0}, r"dense_shape\[0\] = 0 but indices.shape\[0\] = 2"),
    ],
)
def test_ragged_rows_are_refused_with_tensorflows_messages(change, message):
    inputs = {"value_rowids": [0, 1], "values": [1.0, 2.0], "nrows": 3, "default_value": 0.0}
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.RaggedFillEmptyRows(**inputs | change)
