"""The element types of tensors: TensorFlow's `DataType` enum and its NumPy side.

Every fact about a type stands once, in the table `_ROWS` below; names, predicates and the
conversions from and to NumPy derive from it.
"""

import enum
import sys
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.messages import did_you_mean, short_repr

REF_OFFSET = 100
"""The number of a reference type, less the number of its base type."""

_REF_SUFFIX = "_ref"


class DataType(enum.IntEnum):
    """The type of a tensor's elements, numbered as in TensorFlow's `types.proto`.

    Members are ints and go straight into proto fields; `DataType(node.attr["T"].type)` reads one.
    A number that is no type raises InvalidArgumentError. `str()` gives the name of DataTypeString.

    Attributes:
        string: The name in op specs and messages: "float", "half", "float_ref" (DataTypeString).
        tf_name: The name in TensorFlow's Python API: "float32", "float16", "float32_ref".
        base: The type without reference (BaseType).
        ref: The reference type of `base` (MakeRefType); DT_INVALID has none and gives itself.
        is_ref: Whether this is a reference type. All predicates below are false for one.
        size: Bytes of one element of `base`; 0 where elements have no fixed size (string, resource,
            variant). Elements of fewer than 8 bits take a byte each.
        is_floating, is_complex, is_integer, is_unsigned, is_quantized, is_bool: Which kind of
            number it is; a quantised type is not an integer.
        is_numeric: Whether it is one of NUMBER_TYPES.
        can_memcpy: Whether elements are plain bytes (DataTypeCanUseMemcpy).
        always_on_host: Whether tensors live in host memory on every device (DataTypeAlwaysOnHost);
            this holds for string references, too.
    """

    DT_INVALID = 0
    DT_FLOAT = 1
    DT_DOUBLE = 2
    DT_INT32 = 3
    DT_UINT8 = 4
    DT_INT16 = 5
    DT_INT8 = 6
    DT_STRING = 7
    DT_COMPLEX64 = 8
    DT_INT64 = 9
    DT_BOOL = 10
    DT_QINT8 = 11
    DT_QUINT8 = 12
    DT_QINT32 = 13
    DT_BFLOAT16 = 14
    DT_QINT16 = 15
    DT_QUINT16 = 16
    DT_UINT16 = 17
    DT_COMPLEX128 = 18
    DT_HALF = 19
    DT_RESOURCE = 20
    DT_VARIANT = 21
    DT_UINT32 = 22
    DT_UINT64 = 23
    DT_FLOAT8_E5M2 = 24
    DT_FLOAT8_E4M3FN = 25
    DT_FLOAT8_E4M3FNUZ = 26
    DT_FLOAT8_E4M3B11FNUZ = 27
    DT_FLOAT8_E5M2FNUZ = 28
    DT_INT4 = 29
    DT_UINT4 = 30
    DT_INT2 = 31
    DT_UINT2 = 32
    DT_FLOAT4_E2M1FN = 33
    DT_FLOAT_REF = 101
    DT_DOUBLE_REF = 102
    DT_INT32_REF = 103
    DT_UINT8_REF = 104
    DT_INT16_REF = 105
    DT_INT8_REF = 106
    DT_STRING_REF = 107
    DT_COMPLEX64_REF = 108
    DT_INT64_REF = 109
    DT_BOOL_REF = 110
    DT_QINT8_REF = 111
    DT_QUINT8_REF = 112
    DT_QINT32_REF = 113
    DT_BFLOAT16_REF = 114
    DT_QINT16_REF = 115
    DT_QUINT16_REF = 116
    DT_UINT16_REF = 117
    DT_COMPLEX128_REF = 118
    DT_HALF_REF = 119
    DT_RESOURCE_REF = 120
    DT_VARIANT_REF = 121
    DT_UINT32_REF = 122
    DT_UINT64_REF = 123
    DT_FLOAT8_E5M2_REF = 124
    DT_FLOAT8_E4M3FN_REF = 125
    DT_FLOAT8_E4M3FNUZ_REF = 126
    DT_FLOAT8_E4M3B11FNUZ_REF = 127
    DT_FLOAT8_E5M2FNUZ_REF = 128
    DT_INT4_REF = 129
    DT_UINT4_REF = 130
    DT_INT2_REF = 131
    DT_UINT2_REF = 132
    DT_FLOAT4_E2M1FN_REF = 133

    string: str
    tf_name: str
    base: "DataType"
    ref: "DataType"
    is_ref: bool
    size: int
    is_floating: bool
    is_complex: bool
    is_integer: bool
    is_unsigned: bool
    is_quantized: bool
    is_bool: bool
    is_numeric: bool
    can_memcpy: bool
    always_on_host: bool
    _numpy_dtype: "np.dtype[Any] | None"

    @classmethod
    def _missing_(cls, value: object) -> "DataType":
        raise InvalidArgumentError(f"{short_repr(value)} is not the number of a DataType")

    def __str__(self) -> str:
        """The name that users write: "float32". Messages with TensorFlow's text have `string`, "float"."""
        return self.tf_name

    __format__ = enum.Enum.__format__  # an IntEnum would print its number

    def __repr__(self) -> str:
        """The expression that gives it: `opkernel.float32`, or `opkernel.float32.ref`."""
        if self is DataType.DT_INVALID:
            return "DataType.DT_INVALID"
        return f"opkernel.{self.base.tf_name}{'.ref' if self.is_ref else ''}"

    @classmethod
    def find(cls, name: str) -> "DataType | None":
        """The type of a name such as "float", "float32" or "float_ref"; None where there is none."""
        return _BY_NAME.get(name)

    @classmethod
    def from_string(cls, name: str) -> "DataType":
        """The type of a name such as "float", "float32" or "float_ref" (DataTypeFromString).

        Raises:
            InvalidArgumentError: no type has this name.
        """
        found = cls.find(name)
        if found is None:
            raise InvalidArgumentError(
                f"'{name}' is not the name of a DataType{did_you_mean(name, _BY_NAME)}"
            )
        return found

    @property
    def numpy_dtype(self) -> "np.dtype[Any]":
        """The NumPy dtype of arrays of this type (and of its reference) inside the system.

        Quantised types are stored as their integers; strings, resources and variants as objects.

        Raises:
            InvalidArgumentError: the type is DT_INVALID.
        """
        if self._numpy_dtype is None:
            if self is DataType.DT_INVALID:
                raise InvalidArgumentError(f"{self.name} has no NumPy dtype")
            _load_ml_dtypes()
            return self.numpy_dtype
        return self._numpy_dtype

    @property
    def as_numpy_dtype(self) -> "np.dtype[Any]":
        """The NumPy dtype that TensorFlow shows its users (tf.DType.as_numpy_dtype).

        This is `numpy_dtype`, but for quantised types, which are records: [("qint8", int8)].
        """
        if self.base.is_quantized:
            return np.dtype([(self.base.tf_name, self.numpy_dtype)])
        return self.numpy_dtype

    @property
    def min(self) -> Any:
        """The least finite value, a Python int or NumPy float (tf.DType.min).

        Raises:
            InvalidArgumentError: the type is neither floating nor an integer.
        """
        return self._number_info().min

    @property
    def max(self) -> Any:
        """The greatest finite value, a Python int or NumPy float (tf.DType.max).

        Raises:
            InvalidArgumentError: the type is neither floating nor an integer.
        """
        return self._number_info().max

    @property
    def limits(self) -> tuple[Any, Any]:
        """The range of intensities in an image of this type: (0, 1) or (0, max) (tf.DType.limits).

        Raises:
            InvalidArgumentError: TensorFlow defines none for the type.
        """
        dtype = self.base
        if dtype in (DataType.DT_FLOAT, DataType.DT_DOUBLE):
            return 0, 1
        if dtype.is_bool:
            return 0, True
        if dtype.is_integer and dtype.is_numeric:
            return 0, dtype.max
        raise InvalidArgumentError(f"{self.string} does not have defined limits")

    def _number_info(self) -> Any:
        if not (self.base.is_floating or self.base.is_integer):
            raise InvalidArgumentError(f"{self.string} has no least and no greatest value")
        import ml_dtypes  # slow to import

        number_info: Any = ml_dtypes.finfo if self.base.is_floating else ml_dtypes.iinfo
        return number_info(self.numpy_dtype)


class _Kind(enum.Enum):
    FLOATING = enum.auto()
    SIGNED = enum.auto()
    UNSIGNED = enum.auto()
    COMPLEX = enum.auto()
    QUANTIZED = enum.auto()
    BOOL = enum.auto()
    OPAQUE = enum.auto()


class _Row(NamedTuple):
    dtype: DataType
    string: str
    numpy_type: Any  # None for the type that is called `string` in ml_dtypes
    kind: _Kind
    tf_name: str = ""  # where it is not `string`


_ROWS = (
    _Row(DataType.DT_FLOAT, "float", np.float32, _Kind.FLOATING, "float32"),
    _Row(DataType.DT_DOUBLE, "double", np.float64, _Kind.FLOATING, "float64"),
    _Row(DataType.DT_INT32, "int32", np.int32, _Kind.SIGNED),
    _Row(DataType.DT_UINT8, "uint8", np.uint8, _Kind.UNSIGNED),
    _Row(DataType.DT_INT16, "int16", np.int16, _Kind.SIGNED),
    _Row(DataType.DT_INT8, "int8", np.int8, _Kind.SIGNED),
    _Row(DataType.DT_STRING, "string", object, _Kind.OPAQUE),
    _Row(DataType.DT_COMPLEX64, "complex64", np.complex64, _Kind.COMPLEX),
    _Row(DataType.DT_INT64, "int64", np.int64, _Kind.SIGNED),
    _Row(DataType.DT_BOOL, "bool", np.bool_, _Kind.BOOL),
    _Row(DataType.DT_QINT8, "qint8", np.int8, _Kind.QUANTIZED),
    _Row(DataType.DT_QUINT8, "quint8", np.uint8, _Kind.QUANTIZED),
    _Row(DataType.DT_QINT32, "qint32", np.int32, _Kind.QUANTIZED),
    _Row(DataType.DT_BFLOAT16, "bfloat16", None, _Kind.FLOATING),
    _Row(DataType.DT_QINT16, "qint16", np.int16, _Kind.QUANTIZED),
    _Row(DataType.DT_QUINT16, "quint16", np.uint16, _Kind.QUANTIZED),
    _Row(DataType.DT_UINT16, "uint16", np.uint16, _Kind.UNSIGNED),
    _Row(DataType.DT_COMPLEX128, "complex128", np.complex128, _Kind.COMPLEX),
    _Row(DataType.DT_HALF, "half", np.float16, _Kind.FLOATING, "float16"),
    _Row(DataType.DT_RESOURCE, "resource", object, _Kind.OPAQUE),
    _Row(DataType.DT_VARIANT, "variant", object, _Kind.OPAQUE),
    _Row(DataType.DT_UINT32, "uint32", np.uint32, _Kind.UNSIGNED),
    _Row(DataType.DT_UINT64, "uint64", np.uint64, _Kind.UNSIGNED),
    _Row(DataType.DT_FLOAT8_E5M2, "float8_e5m2", None, _Kind.FLOATING),
    _Row(DataType.DT_FLOAT8_E4M3FN, "float8_e4m3fn", None, _Kind.FLOATING),
    _Row(DataType.DT_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", None, _Kind.FLOATING),
    _Row(DataType.DT_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz", None, _Kind.FLOATING),
    _Row(DataType.DT_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", None, _Kind.FLOATING),
    _Row(DataType.DT_INT4, "int4", None, _Kind.SIGNED),
    _Row(DataType.DT_UINT4, "uint4", None, _Kind.UNSIGNED),
    _Row(DataType.DT_INT2, "int2", None, _Kind.SIGNED),
    _Row(DataType.DT_UINT2, "uint2", None, _Kind.UNSIGNED),
    _Row(DataType.DT_FLOAT4_E2M1FN, "float4_e2m1fn", None, _Kind.FLOATING),
)


def _describe(row: _Row) -> None:
    """Fill in the attributes of a type and of its reference."""
    base = row.dtype
    ref = DataType(base + REF_OFFSET)
    tf_name = row.tf_name or row.string
    numpy_dtype = None if row.numpy_type is None else np.dtype(row.numpy_type)
    small = 2 if base is DataType.DT_BFLOAT16 else 1  # the bytes of the types of ml_dtypes
    size = small if numpy_dtype is None else numpy_dtype.itemsize
    for dtype, suffix in ((base, ""), (ref, _REF_SUFFIX)):
        dtype.string = row.string + suffix
        dtype.tf_name = tf_name + suffix
        dtype.base = base
        dtype.ref = ref
        dtype.is_ref = dtype is ref
        dtype.size = 0 if row.kind is _Kind.OPAQUE else size
        dtype._numpy_dtype = numpy_dtype
        _set_predicates(dtype, None if dtype is ref else row.kind)


def _set_predicates(dtype: DataType, kind: _Kind | None) -> None:
    """Fill in the predicates; `kind` is None for a type for which none holds."""
    dtype.is_floating = kind is _Kind.FLOATING
    dtype.is_complex = kind is _Kind.COMPLEX
    dtype.is_integer = kind in (_Kind.SIGNED, _Kind.UNSIGNED)
    dtype.is_unsigned = kind is _Kind.UNSIGNED
    dtype.is_quantized = kind is _Kind.QUANTIZED
    dtype.is_bool = kind is _Kind.BOOL
    # TensorFlow's groups of numbers were left as they were when the smaller types came.
    dtype.is_numeric = (
        kind not in (None, _Kind.BOOL, _Kind.OPAQUE) and dtype < DataType.DT_FLOAT8_E5M2
    )
    dtype.can_memcpy = kind not in (None, _Kind.OPAQUE)
    dtype.always_on_host = dtype in (
        DataType.DT_STRING,
        DataType.DT_STRING_REF,
        DataType.DT_RESOURCE,
    )


def _describe_invalid() -> None:
    """Fill in the attributes of DT_INVALID, which is no row of the table."""
    invalid = DataType.DT_INVALID
    invalid.string = invalid.tf_name = "INVALID"
    invalid.base = invalid.ref = invalid
    invalid.is_ref = False
    invalid.size = 0
    invalid._numpy_dtype = None
    _set_predicates(invalid, None)


_describe_invalid()
for _row in _ROWS:
    _describe(_row)

_BY_NAME = {
    name: dtype
    for dtype in DataType
    if dtype is not DataType.DT_INVALID
    for name in (dtype.string, dtype.tf_name)
}


def _numpy_types() -> dict[object, DataType]:
    """From NumPy dtypes and scalar types to types; and Python's, where TensorFlow reads them."""
    found: dict[object, DataType] = {
        float: DataType.DT_FLOAT,
        bool: DataType.DT_BOOL,
        object: DataType.DT_STRING,
    }
    for row in _ROWS:
        if row.kind is _Kind.QUANTIZED:
            found[row.dtype.as_numpy_dtype] = row.dtype
        elif row.kind is not _Kind.OPAQUE and row.numpy_type is not None:
            found[row.numpy_type] = found[np.dtype(row.numpy_type)] = row.dtype
    return found


_BY_NUMPY_TYPE = _numpy_types()


def _load_ml_dtypes() -> None:
    """Take over the types of ml_dtypes, which takes a tenth as long to import as NumPy."""
    import ml_dtypes

    for row in _ROWS:
        if row.numpy_type is None:
            scalar_type = getattr(ml_dtypes, row.string)
            numpy_dtype = row.dtype._numpy_dtype = row.dtype.ref._numpy_dtype = np.dtype(
                scalar_type
            )
            _BY_NUMPY_TYPE[scalar_type] = _BY_NUMPY_TYPE[numpy_dtype] = row.dtype


_STRING_KINDS = "OSUT"


def as_dtype(value: object) -> DataType:
    """The DataType that a value stands for (tf.as_dtype).

    Args:
        value: A DataType, its number, its name, a NumPy dtype or scalar type, or one of Python's
            `float` (float32, as in TensorFlow), `bool` and `object` (string).

    Raises:
        InvalidArgumentError: it stands for none.
    """
    if isinstance(value, DataType):
        return value
    if isinstance(value, int):
        return DataType(value)
    if isinstance(value, str):
        return DataType.from_string(value)
    found = _BY_NUMPY_TYPE.get(value) if isinstance(value, type) else None
    return _from_numpy(value) if found is None else found


def _from_numpy(value: object) -> DataType:
    dtype = value
    if isinstance(value, type) and issubclass(value, np.generic):
        dtype = np.dtype(value)
    if isinstance(dtype, np.dtype):
        found = _BY_NUMPY_TYPE.get(dtype.type, _BY_NUMPY_TYPE.get(dtype))
        if found is not None:
            return found
        if dtype.kind in _STRING_KINDS:
            return DataType.DT_STRING
        if "ml_dtypes" in sys.modules and DataType.DT_BFLOAT16._numpy_dtype is None:
            _load_ml_dtypes()
            return _from_numpy(dtype)
    raise InvalidArgumentError(f"{short_repr(value)} does not stand for a DataType")
