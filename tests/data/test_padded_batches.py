"""What padded batches are padded with. Expected values and errors are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

from opkernel.data import Dataset

FLOATS, INTEGERS = Dataset.from_tensor_slices(np.array([1, 2, 3], np.float32)), Dataset.range(3)
PADDED: list[tuple[Dataset, Any]] = [
    (FLOATS, 1),
    (FLOATS, True),
    (FLOATS, np.float64(1)),
    (INTEGERS, 1.5),
    (INTEGERS, 1),
    (Dataset.from_tensor_slices([b"a"]), 1),
    (Dataset.from_tensor_slices([True]), 1),
    (Dataset.zip((FLOATS, INTEGERS)), 1.0),
]


@pytest.mark.parametrize(("dataset", "value"), PADDED)
def test_padding_of_another_type_is_refused(dataset: Dataset, value: Any) -> None:
    with pytest.raises(TypeError, match="does not go with components"):
        dataset.padded_batch(2, padding_values=value)


def test_padding_is_a_scalar() -> None:
    with pytest.raises(ValueError, match="is a scalar"):
        FLOATS.padded_batch(2, padding_values=[1.0])


@pytest.mark.parametrize(
    ("rows", "value", "expected"),
    [
        (np.array([1, 2], np.float32), 1.5, [[1, 1.5], [2, 1.5]]),
        (np.array([1, 2], np.int32), 7, [[1, 7], [2, 7]]),
        (np.array([1, 2], np.int64), np.int64(7), [[1, 7], [2, 7]]),
        (np.array([b"a", b"b"], object), "x", [[b"a", b"x"], [b"b", b"x"]]),
        (np.array([b"a", b"b"], object), None, [[b"a", b""], [b"b", b""]]),
    ],
)
def test_padding_of_the_type_of_the_component(rows: Any, value: Any, expected: Any) -> None:
    dataset = Dataset.from_tensor_slices(rows[:, None])
    (batch,) = dataset.padded_batch(2, [2], value)
    assert batch.tolist() == expected
