"""Datasets of what generators of Python give, and what becomes of their exceptions. Expected errors are TensorFlow's."""

from collections.abc import Iterator

import pytest

import opkernel
from opkernel import errors
from opkernel.data import Dataset


def test_generators_of_python():
    signature = (
        opkernel.TensorSpec([], opkernel.int32),
        opkernel.TensorSpec([None], opkernel.string),
    )
    dataset = Dataset.from_generator(
        lambda: iter([(1, ["a"]), (2, [])]), output_signature=signature
    )
    found = [(int(number), texts.tolist()) for number, texts in dataset]
    assert found == [(1, [b"a"]), (2, [])]
    with pytest.raises(errors.InvalidArgumentError, match="expected type was int32"):
        [*Dataset.from_generator(lambda: ["x"], output_types=opkernel.int32)]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError, errors.InvalidArgumentError),
        (UnicodeError, errors.InvalidArgumentError),
        (TypeError, errors.InvalidArgumentError),
        (NotImplementedError, errors.UnimplementedError),
        (MemoryError, errors.ResourceExhaustedError),
        (KeyError, errors.UnknownError),
        (RuntimeError, errors.UnknownError),
        (OSError, errors.UnknownError),
    ],
)
def test_what_a_generator_raises(raised: type[Exception], expected: type[Exception]) -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise raised("boom")

    elements = iter(Dataset.from_generator(failing, output_types=opkernel.int32))
    assert next(elements) == 1
    with pytest.raises(errors.OpError, match="boom") as found:
        next(elements)
    assert type(found.value) is expected
