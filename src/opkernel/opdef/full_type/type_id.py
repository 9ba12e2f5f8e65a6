"""`FullTypeId`: the parts of full types.

Source: TensorFlow core/framework/full_type.proto, types.cc (map_dtype_to_tensor).
"""

import enum

from opkernel.proto import FullTypeDef
from opkernel.types import DataType


class FullTypeId(enum.IntEnum):
    """The kind of a full type. Being ints, the members go straight into a FullTypeDef."""

    TFT_UNSET = 0
    """Nothing is known."""
    TFT_VAR = 1
    """The type that the attr named by `s` holds."""
    TFT_ANY = 2
    """Any type at all."""
    TFT_PRODUCT = 3
    """Several types side by side, such as the types of a node's outputs."""
    TFT_NAMED = 4
    TFT_FOR_EACH = 20
    """A container, a template, and the variable that takes one value after another in it."""
    TFT_CALLABLE = 100
    TFT_BOOL = 200
    TFT_UINT8 = 201
    TFT_UINT16 = 202
    TFT_UINT32 = 203
    TFT_UINT64 = 204
    TFT_INT8 = 205
    TFT_INT16 = 206
    TFT_INT32 = 207
    TFT_INT64 = 208
    TFT_HALF = 209
    TFT_FLOAT = 210
    TFT_DOUBLE = 211
    TFT_COMPLEX64 = 212
    TFT_COMPLEX128 = 213
    TFT_STRING = 214
    TFT_BFLOAT16 = 215
    TFT_TENSOR = 1000
    TFT_ARRAY = 1001
    """A list of tensors (TensorList)."""
    TFT_OPTIONAL = 1002
    TFT_LITERAL = 1003
    TFT_ENCODED = 1004
    """A value, and the type that it is written as."""
    TFT_SHAPE_TENSOR = 1005
    """A tensor that holds a shape."""
    TFT_DATASET = 10102
    TFT_RAGGED = 10103
    TFT_ITERATOR = 10104
    TFT_MUTEX_LOCK = 10202
    TFT_LEGACY_VARIANT = 10203
    """The type of a variant tensor that does not tell its own type."""


_OF_DTYPE: dict[int, FullTypeId] = {
    DataType.DT_FLOAT: FullTypeId.TFT_FLOAT,
    DataType.DT_DOUBLE: FullTypeId.TFT_DOUBLE,
    DataType.DT_INT32: FullTypeId.TFT_INT32,
    DataType.DT_UINT8: FullTypeId.TFT_UINT8,
    DataType.DT_INT16: FullTypeId.TFT_INT16,
    DataType.DT_INT8: FullTypeId.TFT_INT8,
    DataType.DT_STRING: FullTypeId.TFT_STRING,
    DataType.DT_COMPLEX64: FullTypeId.TFT_COMPLEX64,
    DataType.DT_INT64: FullTypeId.TFT_INT64,
    DataType.DT_BOOL: FullTypeId.TFT_BOOL,
    DataType.DT_UINT16: FullTypeId.TFT_UINT16,
    DataType.DT_COMPLEX128: FullTypeId.TFT_COMPLEX128,
    DataType.DT_HALF: FullTypeId.TFT_HALF,
    DataType.DT_UINT32: FullTypeId.TFT_UINT32,
    DataType.DT_UINT64: FullTypeId.TFT_UINT64,
    DataType.DT_VARIANT: FullTypeId.TFT_LEGACY_VARIANT,
}


def map_dtype_to_tensor(dtype: int) -> FullTypeId:
    """The id of an element type; TFT_UNSET for a type without one, such as bfloat16."""
    return _OF_DTYPE.get(dtype, FullTypeId.TFT_UNSET)


def map_dtype_to_child_of_tensor(dtype: int) -> FullTypeDef:
    """The full type of a tensor of that element type."""
    element = FullTypeDef(type_id=map_dtype_to_tensor(dtype))
    return FullTypeDef(type_id=FullTypeId.TFT_TENSOR, args=[element])
