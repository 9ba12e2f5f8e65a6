import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InternalError
from opkernel.ops.array.fill import zeros
from opkernel.types import DataType, OpaqueVariant, ResourceHandle


@pytest.mark.parametrize("dtype", [np.bool_, np.uint64, np.complex64, ml_dtypes.bfloat16])
def test_zeros_and_ones(dtype):
    x = np.full((2, 1), 3, dtype)
    for result, value in ((raw_ops.ZerosLike(x=x), 0), (raw_ops.OnesLike(x=x), 1)):
        assert (result.tolist(), result.dtype) == ([[value]] * 2, x.dtype)


def test_the_zero_of_strings_is_empty():
    assert raw_ops.ZerosLike(x=[b"a", b"b"]).tolist() == [b"", b""]


def test_a_variant_has_a_zero_if_it_says_so():
    with pytest.raises(InternalError, match="ZEROS_LIKE Variant"):
        raw_ops.ZerosLike(x=np.array(OpaqueVariant(), object))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (DataType.DT_STRING, b""),
        (DataType.DT_RESOURCE, ResourceHandle()),
        (DataType.DT_VARIANT, OpaqueVariant()),
        (DataType.DT_QINT8, 0),
    ],
)
def test_what_stands_for_zero(dtype, value):
    array = zeros((2,), dtype)
    assert array.tolist() == [value, value]
    assert array.dtype == dtype.numpy_dtype
