"""The groups of types that attr specs and kernel registrations name, in the order of the enum.

Source: TensorFlow core/framework/types.h. None has reference types. The groups that
TensorFlow had before its 8-bit floats and its types of fewer than 8 bits do not have these.
"""

from opkernel.types.dtype import DataType

_BASE_TYPES = tuple(
    dtype for dtype in DataType if not dtype.is_ref and dtype is not DataType.DT_INVALID
)

ALL_TYPES = tuple(dtype for dtype in _BASE_TYPES if dtype is not DataType.DT_FLOAT4_E2M1FN)
"""Every type of a tensor (kAllTypes), but float4_e2m1fn, which TensorFlow's list lacks."""

NUMBER_TYPES = tuple(dtype for dtype in _BASE_TYPES if dtype.is_numeric)
"""The meaning of "numbertype" in an attr spec (kNumberTypes): complex and quantised types, too."""

QUANTIZED_TYPES = tuple(dtype for dtype in _BASE_TYPES if dtype.is_quantized)
"""The meaning of "quantizedtype" in an attr spec (kQuantizedTypes)."""

REAL_NUMBER_TYPES = tuple(
    dtype for dtype in NUMBER_TYPES if not dtype.is_complex and not dtype.is_quantized
)
"""The meaning of "realnumbertype" in an attr spec (kRealNumberTypes)."""

REAL_AND_QUANTIZED_TYPES = tuple(
    dtype
    for dtype in NUMBER_TYPES
    if not dtype.is_complex and dtype not in (DataType.DT_UINT32, DataType.DT_UINT64)
)
"""Types with an order, quantised ones included (kRealAndQuantizedTypes: no uint32, uint64)."""

FLOATING_TYPES = tuple(dtype for dtype in _BASE_TYPES if dtype.is_floating)
"""Types with a floating point (kDataTypeIsFloating)."""

COMPLEX_TYPES = tuple(dtype for dtype in _BASE_TYPES if dtype.is_complex)
"""The complex types (kDataTypeIsComplex)."""

INTEGER_TYPES = tuple(dtype for dtype in _BASE_TYPES if dtype.is_integer)
"""The integers that are not quantised (kDataTypeIsInteger)."""

SIGNED_TYPES = tuple(dtype for dtype in INTEGER_TYPES if not dtype.is_unsigned)
"""The signed integers (kDataTypeIsSigned)."""

UNSIGNED_TYPES = tuple(dtype for dtype in INTEGER_TYPES if dtype.is_unsigned)
"""The unsigned integers (kDataTypeIsUnsigned)."""
