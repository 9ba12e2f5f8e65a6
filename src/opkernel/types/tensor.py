"""Tensors to and from `TensorProto`, in every encoding that TensorFlow writes.

A TensorProto holds its elements either as bytes (`tensor_content`: the memory of the array, or for
strings their lengths and then the strings) or one by one in a field for the type, where the last
value given stands for all that are missing and no value at all stands for zeros. As in
TensorFlow's `Tensor::FromProto`, bytes win over values, values beyond the last element are not
looked at, and numbers that do not fit a smaller integer type wrap around.

The size that a proto asks for is checked before memory is taken.

Source: TensorFlow core/framework/tensor.cc, python/framework/tensor_util.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from opkernel.errors import (
    DataLossError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnimplementedError,
)
from opkernel.proto import DecodeError, ResourceHandleProto, TensorProto, VariantTensorDataProto
from opkernel.types.dtype import DataType, as_dtype
from opkernel.types.python_values import array_from_python
from opkernel.types.resource_handle import ResourceHandle
from opkernel.types.shape import TensorShape
from opkernel.types.variant_value import OpaqueVariant, Variant, variant_from_proto
from opkernel.types.varints import read_varints, strings_of_lengths

if TYPE_CHECKING:
    import numpy.typing as npt

_MAX_PROTO_BYTES = 2**31

DEFAULT_LIMIT_BYTES = _MAX_PROTO_BYTES
"""The most memory that `tensor_from_proto` takes unless told otherwise: the limit of a proto."""

_MAX_NUMPY_DIMENSIONS = 64
_MAX_VARINT_BYTES = 5
Array: TypeAlias = np.ndarray[Any, Any]
"""An array of any dtype and shape."""

decoded_charge: ContextVar[Callable[[int, str, bool], None] | None] = ContextVar(
    "charge", default=None
)
"""Is called for each tensor before it is decoded.

It gets the tensor's bytes, its description, and whether the proto holds these bytes.
"""


def charge_decoded(num_bytes: int, what: str, is_stored: bool = False) -> None:
    """Call what charges for memory that is about to be decoded, and looks at the clock; as `decoded_charge`."""
    charge = decoded_charge.get()
    if charge is not None:
        charge(num_bytes, what, is_stored)


def tensor_from_proto(
    proto: TensorProto, *, limit_bytes: int | None = DEFAULT_LIMIT_BYTES
) -> Array:
    """The tensor of a TensorProto (Tensor::FromProto).

    Args:
        proto: The proto, which may come from anywhere.
        limit_bytes: The most memory to take for the elements; None for no limit.

    Returns:
        An array of the proto's shape and of `numpy_dtype`. Where the proto holds the elements as
        bytes the array is a read-only view of a copy of them. Strings are bytes in an object
        array; resources and variants are object arrays of ResourceHandle and Variant.

    Raises:
        InvalidArgumentError: the dtype or shape is invalid, or the content does not fit them.
        ResourceExhaustedError: the elements would take more than `limit_bytes`, or than a budget has
            left.
        UnimplementedError: the tensor has more dimensions than NumPy arrays may have.
    """
    dtype = DataType(proto.dtype)
    if dtype.is_ref or dtype is DataType.DT_INVALID:
        raise InvalidArgumentError(
            f"Cannot parse tensor from proto: no tensor has type {dtype.string}"
        )
    shape = TensorShape.from_proto(proto.tensor_shape)
    count = shape.num_elements()
    content = proto.tensor_content
    if not content or count == 0:
        _check_memory(dtype, shape, count, limit_bytes)
        return _reshape(_extend(_values(proto, dtype), count, dtype), shape)
    if dtype.can_memcpy:
        if len(content) != count * dtype.size:
            from opkernel.types.tensor_tokens import held_tensor  # most protos hold their elements

            held: Array | None = held_tensor(content, dtype, shape)
            if held is not None:
                return held
        _check_memory(dtype, shape, count, None, is_stored=len(content) == count * dtype.size)
        return _reshape(_view_content(content, dtype, shape, count), shape)
    _check_memory(dtype, shape, count, limit_bytes)
    return _reshape(_objects_of_content(content, dtype, shape, count), shape)


def tensor_to_proto(value: npt.ArrayLike, dtype: DataType | None = None) -> TensorProto:
    """The TensorProto of a tensor.

    Elements of fixed size are written as `tensor_content`, bit by bit as they are in memory;
    strings, resources and variants as values.

    Args:
        value: An array (or NumPy scalar), or a Python value that NumPy makes one of. As in
            TensorFlow, Python floats become float32, and Python ints int32 where they fit.
        dtype: The type to write; by default the array's type. It must be given to tell quantised
            types from their integers.

    Raises:
        InvalidArgumentError: the value is no tensor, an array is not of type `dtype`, a Python
            value does not fit it, or the content is larger than the 2 GiB that a proto may have.
    """
    array, dtype = _as_tensor(value, dtype)
    proto = TensorProto(dtype=dtype, tensor_shape=TensorShape(array.shape).to_proto())
    if dtype.can_memcpy:
        if array.nbytes >= _MAX_PROTO_BYTES:
            raise InvalidArgumentError(
                f"A TensorProto holds less than 2 GiB; got {dtype.string} tensor of "
                f"{array.nbytes} bytes, shape {TensorShape(array.shape)}"
            )
        proto.tensor_content = array.tobytes()
    elif dtype is DataType.DT_STRING:
        proto.string_val.extend(map(_as_bytes, array.flat))
    elif dtype is DataType.DT_RESOURCE:
        proto.resource_handle_val.extend(_protos(array, ResourceHandle))
    else:
        proto.variant_val.extend(_protos(array, Variant))
    return proto


# -- the checks ---------------------------------------------------------------------------------


def _check_memory(
    dtype: DataType,
    shape: TensorShape,
    count: int,
    limit_bytes: int | None,
    *,
    is_stored: bool = False,
) -> None:
    size_bytes = count * dtype.numpy_dtype.itemsize
    if limit_bytes is not None and size_bytes > limit_bytes:
        raise ResourceExhaustedError(
            f"Tensor of shape {shape} and type {dtype.string} takes {size_bytes} bytes; "
            f"the limit is {limit_bytes}"
        )
    if decoded_charge.get() is not None:
        what = f"tensor with shape{list(shape)} and type {dtype.string}"
        charge_decoded(size_bytes, what, is_stored)


def _reshape(flat: Array, shape: TensorShape) -> Array:
    if len(shape) > _MAX_NUMPY_DIMENSIONS:
        raise UnimplementedError(
            f"Tensors of more than {_MAX_NUMPY_DIMENSIONS} dimensions; got {len(shape)}"
        )
    try:
        return flat.reshape(shape)
    except ValueError:  # an empty shape: NumPy multiplies its other sizes
        raise InvalidArgumentError(f"No NumPy array can have shape {shape}") from None


def _content_error(dtype: DataType, shape: TensorShape, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Cannot parse tensor from proto: {dtype.string} tensor of shape {shape}: tensor_content {why}"
    )


# -- tensor_content -----------------------------------------------------------------------------


def _view_content(content: bytes, dtype: DataType, shape: TensorShape, count: int) -> Array:
    size_bytes = count * dtype.size
    if len(content) != size_bytes:
        raise _content_error(dtype, shape, f"has {len(content)} bytes, expected {size_bytes}")
    if dtype.is_bool and content.count(0) + content.count(1) != size_bytes:
        raise _content_error(dtype, shape, "has a byte other than 0 and 1")
    return np.frombuffer(content, dtype.numpy_dtype)


def _objects_of_content(content: bytes, dtype: DataType, shape: TensorShape, count: int) -> Array:
    entries = _split_string_list(content, count)
    if entries is None:
        raise _content_error(dtype, shape, f"is not a list of {count} lengths and strings")
    try:
        if dtype is DataType.DT_RESOURCE:
            protos = map(ResourceHandleProto.FromString, entries)
            return _object_array(map(ResourceHandle.from_proto, protos), count)
        if dtype is DataType.DT_VARIANT:
            variants = map(VariantTensorDataProto.FromString, entries)
            return _object_array(map(variant_from_proto, variants), count)
    except DecodeError as error:
        raise _content_error(dtype, shape, f"holds a malformed message: {error}") from None
    return _object_array(entries, count)


def _split_string_list(content: bytes, count: int) -> list[bytes] | None:
    """The strings of a list of lengths followed by the strings; None where it is none."""
    if count > len(content):
        return None
    try:
        lengths, position = read_varints(content, count, _MAX_VARINT_BYTES)
    except DataLossError:
        return None
    is_list = position + sum(lengths) == len(content)
    return strings_of_lengths(content, position, lengths) if is_list else None


# -- values -------------------------------------------------------------------------------------


class _ValueField(NamedTuple):
    """A repeated field of TensorProto: the type of its numbers, and the values that they make."""

    name: str
    wire_dtype: npt.DTypeLike
    decode: Callable[[Array, DataType], Array]


def _cast(numbers: Array, dtype: DataType) -> Array:
    return numbers.astype(dtype.numpy_dtype, copy=False)


def _reinterpret_16_bits(numbers: Array, dtype: DataType) -> Array:
    return numbers.astype(np.uint16).view(dtype.numpy_dtype)


def _pair(numbers: Array, dtype: DataType) -> Array:
    return numbers[: len(numbers) // 2 * 2].view(dtype.numpy_dtype)


_INT_VAL = _ValueField("int_val", np.int32, _cast)
_HALF_VAL = _ValueField("half_val", np.int32, _reinterpret_16_bits)

_FIELD_OF_TYPE = {
    DataType.DT_FLOAT: _ValueField("float_val", np.float32, _cast),
    DataType.DT_DOUBLE: _ValueField("double_val", np.float64, _cast),
    DataType.DT_HALF: _HALF_VAL,
    DataType.DT_BFLOAT16: _HALF_VAL,
    DataType.DT_INT64: _ValueField("int64_val", np.int64, _cast),
    DataType.DT_UINT32: _ValueField("uint32_val", np.uint32, _cast),
    DataType.DT_UINT64: _ValueField("uint64_val", np.uint64, _cast),
    DataType.DT_BOOL: _ValueField("bool_val", np.bool_, _cast),
    DataType.DT_COMPLEX64: _ValueField("scomplex_val", np.float32, _pair),
    DataType.DT_COMPLEX128: _ValueField("dcomplex_val", np.float64, _pair),
}


def value_field(dtype: DataType) -> str:
    """The field of a TensorProto that holds the elements of a type one by one, of numbers or strings."""
    is_string = dtype is DataType.DT_STRING
    return "string_val" if is_string else _FIELD_OF_TYPE.get(dtype, _INT_VAL).name


_NO_VALUES = frozenset({"dtype", "tensor_shape", "version_number"})


def holds_values(proto: TensorProto) -> bool:
    """Whether a TensorProto has the value of any element; without one, all its elements are zero, or empty."""
    return any(field.name not in _NO_VALUES for field, _ in proto.ListFields())


def _values(proto: TensorProto, dtype: DataType) -> Array:
    """The values that the proto gives, be they fewer or more than the elements."""
    if dtype is DataType.DT_STRING:
        return _object_array(proto.string_val, len(proto.string_val))
    if dtype is DataType.DT_RESOURCE:
        handles = map(ResourceHandle.from_proto, proto.resource_handle_val)
        return _object_array(handles, len(proto.resource_handle_val))
    if dtype is DataType.DT_VARIANT:
        variants = map(variant_from_proto, proto.variant_val)
        return _object_array(variants, len(proto.variant_val))
    if dtype.is_floating and dtype.size == 1:
        return np.frombuffer(proto.float8_val, dtype.numpy_dtype)
    field = _FIELD_OF_TYPE.get(dtype, _INT_VAL)
    numbers = getattr(proto, field.name)
    return field.decode(np.fromiter(numbers, field.wire_dtype, len(numbers)), dtype)


def _object_array(values: Iterable[object], count: int) -> Array:
    return np.fromiter(values, object, count)


_DEFAULT_OF_TYPE: dict[DataType, object] = {
    DataType.DT_STRING: b"",
    DataType.DT_RESOURCE: ResourceHandle(),
    DataType.DT_VARIANT: OpaqueVariant(),
}


def _extend(values: Array, count: int, dtype: DataType) -> Array:
    """`count` elements: the values, then the last of them again, or else defaults."""
    given = len(values)
    if given >= count:
        return values[:count]
    if given == 0 and dtype.can_memcpy:
        return np.zeros(count, dtype.numpy_dtype)
    elements = np.empty(count, dtype.numpy_dtype)
    elements[:given] = values
    if given:
        elements[given:] = values[-1:]
    else:
        elements.fill(_DEFAULT_OF_TYPE[dtype])
    return elements


# -- arrays to write ----------------------------------------------------------------------------


def _as_tensor(value: npt.ArrayLike, dtype: DataType | None) -> tuple[Array, DataType]:
    """The array to write, and its type."""
    if not isinstance(value, np.ndarray | np.generic):
        value = array_from_python(value, None if dtype is None else dtype.base)
    array = np.asarray(value)
    found = _dtype_of(array)
    wanted = found if dtype is None else dtype.base
    if wanted.numpy_dtype != found.numpy_dtype or (found.is_quantized and wanted is not found):
        raise InvalidArgumentError(f"A tensor of type {found} cannot be written as {wanted}")
    if array.dtype.names is not None:
        array = array[found.tf_name]
    return array.astype(wanted.numpy_dtype, copy=False), wanted


def _dtype_of(array: Array) -> DataType:
    first = array.flat[0] if array.dtype == object and array.size else None
    if isinstance(first, ResourceHandle):
        return DataType.DT_RESOURCE
    if isinstance(first, Variant):
        return DataType.DT_VARIANT
    return as_dtype(array.dtype)


def _as_bytes(element: object) -> bytes:
    if isinstance(element, bytes):
        return element
    if isinstance(element, str):
        return element.encode("utf-8", "surrogateescape")
    raise InvalidArgumentError(
        f"Elements of string tensors are bytes or str; got {type(element).__name__}"
    )


def _protos(array: Array, kind: type[Any]) -> list[Any]:
    for element in array.flat:
        if not isinstance(element, kind):
            raise InvalidArgumentError(
                f"Expected elements of type {kind.__name__}; got {type(element).__name__}"
            )
    return [element.to_proto() for element in array.flat]
