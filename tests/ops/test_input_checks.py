import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.ops import input_checks

SCALAR, VECTOR, MATRIX = np.zeros(()), np.zeros(3), np.zeros((2, 3))


@pytest.mark.parametrize(
    ("check", "accepted", "refused"),
    [
        (input_checks.require_scalar, (SCALAR,), (MATRIX,)),
        (input_checks.require_vector, (VECTOR,), (MATRIX,)),
        (input_checks.require_rank, (MATRIX, 2), (MATRIX, 1)),
        (input_checks.require_rank_at_least, (MATRIX, 1), (MATRIX, 3)),
        (input_checks.require_rank_at_most, (MATRIX, 2), (MATRIX, 1)),
        (input_checks.require_equal, (VECTOR.shape, (3,)), (MATRIX.shape, (3,))),
    ],
)
def test_the_message_tells_the_shape(check, accepted, refused):
    check(*accepted, "unused")
    with pytest.raises(InvalidArgumentError, match=r"^of x \{int32\}: \[2,3\]$"):
        check(*refused, "of x {int32}: {}")


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [((2, 3), (3,), r"^\[2,3\] vs\. \[3\]$"), (np.int64(2), 3, r"^2 vs\. 3$")],
)
def test_the_message_tells_both_that_differ(first, second, message):
    with pytest.raises(InvalidArgumentError, match=message):
        input_checks.require_equal(first, second, "{} vs. {}")
