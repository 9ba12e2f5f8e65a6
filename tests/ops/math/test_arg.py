import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import int16, int32, uint16

NAN, INF = np.nan, np.inf
LOWEST = np.finfo(np.float32).min


def arg(op, x, dimension=0, **attrs):
    return getattr(raw_ops, op)(input=np.asarray(x), dimension=np.int32(dimension), **attrs)


def test_first_of_equal_elements():
    x = np.array([[1, 3, 3], [2, 0, 0]], np.int32)
    assert arg("ArgMax", x, 1).tolist() == [1, 0]
    assert arg("ArgMin", x, -1).tolist() == [0, 1]
    assert arg("ArgMax", np.array([False, True, True])) == 1


@pytest.mark.parametrize(
    ("x", "largest", "smallest"),
    [
        ([NAN, 1, 2], 2, 1),
        ([1, NAN, 0], 0, 2),
        ([NAN, NAN], 0, 0),
        ([NAN, -INF], 0, 1),
        ([-INF, LOWEST], 0, 0),
        ([5, INF, INF], 1, 0),
    ],
)
def test_nan_and_infinities(x, largest, smallest):
    x = np.array(x, np.float32)
    assert arg("ArgMax", x) == largest
    assert arg("ArgMin", x) == smallest


@pytest.mark.parametrize(
    ("dimension", "wanted"), [(2**63 - 1, [1, 0]), (2**32, [1, 1]), (2**32 - 2, [1, 1])]
)
def test_of_a_dimension_the_lower_32_bits_are_read(dimension, wanted):
    x = np.array([[1, 2], [4, 3]])
    assert raw_ops.ArgMax(input=x, dimension=np.int64(dimension)).tolist() == wanted


def test_output_type():
    x = np.zeros(40000, np.float32)
    x[-1] = 1
    assert arg("ArgMax", x).dtype == np.int64
    assert arg("ArgMax", x, output_type=int32) == 39999
    assert arg("ArgMax", x, output_type=uint16) == 39999
    assert arg("ArgMax", x, output_type=int16) == 39999 - 2**16
    with pytest.raises(InvalidArgumentError, match="output_type"):
        arg("ArgMin", x, output_type=int16)


@pytest.mark.parametrize(
    ("shape", "dimension", "message"),
    [
        ((2, 3), 2, r"Expected dimension in the range \[-2, 2\), but got 2"),
        ((), 0, r"Expected dimension in the range \[0, 0\), but got 0"),
        ((3, 0), 1, r"Reduction axis 1 is empty in shape \[3, ?0\]"),
        ((1,) * 8, 0, "only support up to 7 input dimensions, but got 8"),
        ((2,), [0], "dim must be a scalar"),
    ],
)
def test_errors(shape, dimension, message):
    with pytest.raises(InvalidArgumentError, match=message):
        arg("ArgMax", np.zeros(shape, np.float32), dimension)


def test_an_empty_result_is_no_error():
    assert arg("ArgMax", np.zeros((3, 0), np.float32), 0).shape == (0,)
