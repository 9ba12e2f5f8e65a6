"""Python values and arrays in the place of a tensor whose type is known.

Source: TensorFlow python/framework/tensor_conversion.py, python/ops/math_ops.py.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.messages import short_repr
from opkernel.types import DataType, as_dtype


def array_like_tensor(value: Any, dtype: DataType) -> Any:
    """The value; an array of another type as one of `dtype`, where that loses no more than digits.

    Raises:
        InvalidArgumentError: a float is wanted as an integer, or an integer is out of range.
    """
    wanted = dtype.numpy_dtype
    if not isinstance(value, np.ndarray | np.generic) or value.dtype == wanted:
        return value
    if "O" in (value.dtype.kind, wanted.kind) or value.dtype.kind in "SU" or dtype.is_quantized:
        return value
    source = as_dtype(value.dtype)
    if not _may_become(source, dtype):
        raise InvalidArgumentError(
            f"An array of {source.tf_name} cannot take the place of a tensor of {dtype.tf_name}"
        )
    converted = value.astype(wanted)
    if dtype.is_integer and not np.array_equal(converted, value):
        raise InvalidArgumentError(f"{short_repr(value)} does not fit {dtype.tf_name}")
    return converted


def _may_become(source: DataType, wanted: DataType) -> bool:
    if source.is_bool or wanted.is_bool:
        return False
    if source.is_complex:
        return wanted.is_complex
    return source.is_integer or not wanted.is_integer
