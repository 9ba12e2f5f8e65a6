import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import get_registered_kernels_for_op


def dim_map(x, source="NHWC", destination="NCHW"):
    x = np.asarray(x, np.int32)
    return raw_ops.DataFormatDimMap(x=x, src_format=source, dst_format=destination)


def permute(x, source="NHWC", destination="NCHW"):
    x = np.asarray(x, np.int64)
    result = raw_ops.DataFormatVecPermute(x=x, src_format=source, dst_format=destination)
    assert result.dtype == np.int64
    return result.tolist()


def test_dimensions():
    assert dim_map([0, 1, 2, 3]).tolist() == [0, 2, 3, 1]
    assert dim_map([-4, -3, -2, -1]).tolist() == [0, 2, 3, 1]
    assert dim_map(3) == 1
    assert dim_map([4, 1], "NDHWC", "NCDHW").tolist() == [1, 2]
    assert dim_map([0, 1, 2, 3], "abcd", "dcba").tolist() == [3, 2, 1, 0]


def test_dimensions_that_do_not_exist():
    """Recorded from TensorFlow, which does not check them."""
    assert dim_map([-9, -8, -5, 4, 5, 100, -100]).tolist() == [1, 0, 1, 0, 2, 0, 0]
    assert dim_map([-9, -8, -6, 5], "NDHWC", "NCDHW").tolist() == [1, 1, 1, 0]


def test_sizes():
    assert permute([1, 2, 3, 4]) == [1, 4, 2, 3]
    assert permute([[1, 2], [3, 4], [5, 6], [7, 8]]) == [[1, 2], [7, 8], [3, 4], [5, 6]]
    assert permute([1, 2, 3, 4, 5], "NDHWC", "NCWHD") == [1, 5, 4, 3, 2]


def test_spatial_sizes():
    assert permute([1, 2], "NHWC", "NCWH") == [2, 1]
    assert permute([[1, 2], [3, 4]], "HWNC", "NCWH") == [[3, 4], [1, 2]]
    assert permute([1, 2, 3], "NDHWC", "NCWHD") == [3, 2, 1]
    with pytest.raises(InvalidArgumentError, match="must contain H, W"):
        permute([1, 2], "1234", "4321")


@pytest.mark.parametrize("run", [dim_map, permute])
@pytest.mark.parametrize(
    ("source", "destination", "message"),
    [
        ("NHW", "NCHW", "Source format must be of length 4 or 5, received src_format = NHW"),
        ("NHWC", "", "Destination format must be of length 4 or 5"),
        ("NHWC", "NHWX", "must determine a permutation, got NHWC and NHWX"),
        ("NNHW", "NNHW", "must determine a permutation"),
        ("NHWC", "NDHWC", "must determine a permutation"),
    ],
)
def test_formats(run, source, destination, message):
    with pytest.raises(InvalidArgumentError, match=message):
        run([1, 2, 3, 4], source, destination)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (1, "must be a vector or 2D tensor"),
        ([1, 2, 3], "must be of size 2 or 4"),
        ([[1, 2]] * 3, "must be of size 2 or 4"),
        ([[1, 2, 3]] * 4, "Second dimension of 2D input must be of size 2"),
        ([[[1, 2]]], "must be a vector or 2D tensor"),
    ],
)
def test_sizes_that_do_not_fit(x, message):
    with pytest.raises(InvalidArgumentError, match=message):
        permute(x)


@pytest.mark.parametrize("op", ["DataFormatDimMap", "DataFormatVecPermute"])
def test_kernels_with_the_label_host(op):
    labels = [kernel.label for kernel in get_registered_kernels_for_op(op).kernel]
    assert sorted(set(labels)) == ["", "host"]


def test_dimensions_that_overflow_when_counted_from_the_end():
    """Whatever is below all of them, or overflows when it is counted from the end, is the last."""
    x = np.array([5, 8, 127, 2**31 - 1, -6, -10, -128, -(2**31)], np.int32)
    result = raw_ops.DataFormatDimMap(x=x, src_format="NDHWC", dst_format="DHWNC")
    assert result.tolist() == [3, 2, 1, 4, 4, 3, 4, 4]
    x = np.array([2**40, 2**31 - 1, 2**63 - 1, -(2**63)], np.int64)
    result = raw_ops.DataFormatDimMap(x=x, src_format="NDHWC", dst_format="DHWNC")
    assert result.tolist() == [0, 1, 4, 4]
