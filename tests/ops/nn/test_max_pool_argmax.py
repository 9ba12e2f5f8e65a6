import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError


@pytest.mark.parametrize("shape", [(), (2,), (1, 2, 3), (1, 1, 2, 3, 1)])
def test_images_have_4_dimensions(shape):
    windows = {"ksize": [1, 1, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    gradient, argmax = np.zeros((1, 1, 2, 3)), np.zeros((1, 1, 2, 3), np.int64)
    with pytest.raises(InvalidArgumentError, match="must be 4-dimensional"):
        raw_ops.MaxPoolGradWithArgmax(
            input=np.zeros(shape), grad=gradient, argmax=argmax, **windows
        )
    with pytest.raises(InvalidArgumentError, match="must be 4-dimensional"):
        raw_ops.MaxPoolWithArgmax(input=np.zeros(shape), **windows)
