"""The text by which checkpoints name a part of a tensor."""

import pytest

from opkernel.checkpoint import parse_shape_and_slice
from opkernel.errors import InternalError, InvalidArgumentError


@pytest.mark.parametrize(
    ("text", "shape"),
    [("3 4 -:0,2", (3, 2)), ("5 -", (5,)), ("2 3 1,1:-", (1, 3)), ("3 0,3", (3,)), ("0 -", (0,))],
)
def test_the_shape_is_that_of_the_slice(text, shape):
    assert parse_shape_and_slice(text)[2] == shape


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("-", InvalidArgumentError, "Need least two elements"),
        ("a -", InvalidArgumentError, "Non numerical dimension"),
        ("\u0662 -", InvalidArgumentError, "Non numerical dimension"),
        ("4 \u0660,2", InvalidArgumentError, "Expected a pair of numbers"),
        ("-2 -", InvalidArgumentError, "Negative dimension"),
        ("3 x", InvalidArgumentError, "Expected a pair of numbers or '-' but got 'x'"),
        ("3 0,0", InvalidArgumentError, "start = 0, length = 0"),
        ("3 -1,1", InvalidArgumentError, "start = -1, length = 1"),
        ("3 1,-1", InvalidArgumentError, "start = 1, length = -1"),
        ("3 1", InvalidArgumentError, "Expected a pair of numbers or '-' but got '1'"),
        ("3 0,1,1", InvalidArgumentError, "Expected a pair of numbers or '-' but got '0,1,1'"),
        ("3 0,9223372036854775808", InvalidArgumentError, "Expected a pair of numbers or '-'"),
        ("9223372036854775808 -", InvalidArgumentError, "Non numerical dimension"),
        ("3 -:-", InternalError, "Mismatching ranks"),
        ("3 3,1", InternalError, "Extent in dimension 0 out of bounds"),
        ("2 3 -:1,3", InternalError, "Extent in dimension 1 out of bounds"),
        ("3 1,3", InternalError, "Extent in dimension 0 out of bounds"),
    ],
)
def test_other_texts_are_refused(text, error, message):
    with pytest.raises(error) as refusal:
        parse_shape_and_slice(text)
    assert message in str(refusal.value)
