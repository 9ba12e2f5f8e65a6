"""EditDistance."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InternalError, InvalidArgumentError, ResourceExhaustedError
from opkernel.ops.array.edit_distance import levenshtein_distance


def distance(hypothesis: Any, truth: Any, normalize: bool = True) -> Any:
    """Of two sparse tensors, each (indices, values, shape)."""
    parts = zip(("indices", "values", "shape"), hypothesis, truth, strict=True)
    inputs = {}
    for name, *pair in parts:
        for which, value in zip(("hypothesis", "truth"), pair, strict=True):
            dtype = object if name == "values" else np.int64
            inputs[f"{which}_{name}"] = np.array(value, dtype)
    return raw_ops.EditDistance(**inputs, normalize=normalize)


def test_sequences_of_one_tensor_only() -> None:
    hypothesis = ([[0, 0], [0, 1], [2, 0]], [b"a", b"b", b"c"], [3, 2])
    truth = ([[0, 0], [1, 0], [1, 1]], [b"a", b"x", b"y"], [3, 2])
    assert distance(hypothesis, truth, normalize=False).tolist() == [1, 2, 1]
    normalized = distance(hypothesis, truth)
    assert normalized.tolist() == [1, 1, np.inf]
    assert normalized.dtype == np.float32


def reference(first: str, second: str) -> int:
    if not first or not second:
        return len(first) + len(second)
    return min(
        reference(first[1:], second) + 1,
        reference(first, second[1:]) + 1,
        reference(first[1:], second[1:]) + (first[0] != second[0]),
    )


WORDS = st.text("abc", max_size=5)


@given(WORDS, WORDS)
def test_levenshtein_distance(first: str, second: str) -> None:
    found = levenshtein_distance(np.array(list(first)), np.array(list(second)))
    assert found == reference(first, second)


ONE = ([[0, 0]], [b"a"], [1, 1])


@pytest.mark.parametrize(
    ("hypothesis", "error", "message"),
    [
        (([[0], [0]], [b"a"], [1]), InvalidArgumentError, "hypothesis_values.NumElements"),
        (([[0]], [b"a"], [1]), InvalidArgumentError, "rank at least 2"),
        (([0], [b"a"], [1, 1]), InvalidArgumentError, "should be a matrix"),
        (([[0, 0, 0]], [b"a"], [1, 1, 1]), InvalidArgumentError, "matching ranks"),
        (([[7, 0]], [b"a"], [1, 1]), InternalError, "inner product 7"),
        (([[0, 0]], [b"a"], [2**62, 1]), ResourceExhaustedError, "OOM"),
    ],
)
def test_errors(hypothesis: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        distance(hypothesis, ONE)
