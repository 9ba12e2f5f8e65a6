import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError


@pytest.mark.parametrize("pred", [False, True])
@pytest.mark.parametrize("data", [np.float32(3), np.arange(3, dtype=np.int64)])
def test_the_side_that_was_not_chosen_is_an_empty_tensor(data, pred):
    sides = raw_ops.Switch(data=data, pred=pred)
    np.testing.assert_array_equal(sides[pred], data)
    assert (sides[not pred].shape, sides[not pred].dtype) == ((0,), np.float32)


def test_a_predicate_that_is_no_scalar():
    with pytest.raises(InvalidArgumentError, match="must be a scalar"):
        raw_ops.Switch(data=np.float32(3), pred=[True])
