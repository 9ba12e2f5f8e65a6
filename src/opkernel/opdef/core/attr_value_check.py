"""Whether attr values are of a type, allowed by an AttrDef, or equal.

Source: TensorFlow core/framework/attr_value_util.cc and op_def_util.cc (ValidateAttrValue).
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.opdef.core.declarations import FIELD_OF_KIND
from opkernel.opdef.text.attr_value_text import dtype_text
from opkernel.proto import AttrValue, NameAttrList, OpDef, TensorProto
from opkernel.types import DataType, ResourceHandle, Variant, tensor_from_proto

_V = TypeVar("_V", int, bytes)

_KIND_OF_FIELD = {field: kind for kind, field in FIELD_OF_KIND.items()}
_FIELDS_OF_LIST = {f"list({kind})": field for kind, field in FIELD_OF_KIND.items()}
_DTYPES = {int(dtype): dtype for dtype in DataType}

_LARGE_TENSOR_BYTES = 4096
_SMALL_PROTO_BYTES = 512


def with_context(error: OpError, context: str) -> OpError:
    """The same error with a line of context appended to its message."""
    return type(error)(f"{error.message}\n\t{context}", node=error.node, op=error.op)


def attr_value_has_type(value: AttrValue, type: str) -> None:
    """Check that the value is of an attr type such as "int" or "list(type)" (AttrValueHasType).

    An unset value counts as an empty list where a list is expected, as old graphs have it.

    Raises:
        InvalidArgumentError: it is not, or names an invalid or a reference type.
    """
    kind = value.WhichOneof("value")
    if kind == "placeholder":
        raise InvalidArgumentError("AttrValue had value with unexpected type 'placeholder'")
    is_list_type = type.startswith("list(")
    if kind == "list":
        _check_list_has_type(value.list, type)
    elif kind is not None and _KIND_OF_FIELD[kind] != type:
        raise InvalidArgumentError(
            f"AttrValue had value with type '{_KIND_OF_FIELD[kind]}' when '{type}' expected"
        )
    if kind in (None, "list") and not is_list_type:
        raise InvalidArgumentError(f"AttrValue missing value with expected type '{type}'")
    if type == "type":
        _check_dtype(value.type, "AttrValue has invalid DataType")
    elif type == "list(type)":
        for number in value.list.type:
            _check_dtype(number, "AttrValue contains invalid DataType")


def _check_list_has_type(values: AttrValue.ListValue, attr_type: str) -> None:
    """Check that no list but the one of the type has elements."""
    for list_type, field in _FIELDS_OF_LIST.items():
        if list_type != attr_type and getattr(values, field):
            raise InvalidArgumentError(
                f"AttrValue had value with type '{list_type}' when '{attr_type}' expected"
            )


def _check_dtype(number: int, invalid: str) -> None:
    dtype = _DTYPES.get(number)
    if dtype is None:
        raise InvalidArgumentError(f"AttrValue has invalid DataType enum: {number}")
    if dtype.is_ref:
        raise InvalidArgumentError(f"AttrValue must not have reference type value of {dtype}")
    if dtype is DataType.DT_INVALID:
        raise InvalidArgumentError(invalid)


def validate_attr_value(value: AttrValue, attr_def: OpDef.AttrDef) -> None:
    """Check that an attr's declaration allows the value: type, minimum, allowed values.

    Raises:
        InvalidArgumentError: it does not.
        UnimplementedError: the declaration lists allowed values of a type that has no such lists.
    """
    try:
        attr_value_has_type(value, attr_def.type)
    except OpError as error:
        raise with_context(error, f" for attr '{attr_def.name}'") from None
    if attr_def.has_minimum:
        _check_minimum(value, attr_def)
    if attr_def.HasField("allowed_values"):
        _check_allowed(value, attr_def)


def _check_minimum(value: AttrValue, attr_def: OpDef.AttrDef) -> None:
    if attr_def.type == "int":
        what, number = "Value", value.i
    else:
        field = _FIELDS_OF_LIST.get(attr_def.type)
        what, number = "Length", len(getattr(value.list, field)) if field else -1
    if number < attr_def.minimum:
        raise InvalidArgumentError(
            f"{what} for attr '{attr_def.name}' of {number} "
            f"must be at least minimum {attr_def.minimum}"
        )


def _check_allowed(value: AttrValue, attr_def: OpDef.AttrDef) -> None:
    allowed = attr_def.allowed_values.list
    match attr_def.type:
        case "type":
            _check_each_allowed([value.type], allowed.type, dtype_text, attr_def)
        case "list(type)":
            _check_each_allowed(value.list.type, allowed.type, dtype_text, attr_def)
        case "string":
            _check_each_allowed([value.s], allowed.s, _quoted, attr_def)
        case "list(string)":
            _check_each_allowed(value.list.s, allowed.s, _quoted, attr_def)
        case other:
            raise UnimplementedError(f"Support for allowed_values not implemented for type {other}")


def _check_each_allowed(
    values: Iterable[_V], allowed: Iterable[_V], text: Callable[[_V], str], attr_def: OpDef.AttrDef
) -> None:
    choices = list(allowed)
    for value in values:
        if value not in choices:
            raise InvalidArgumentError(
                f"Value for attr '{attr_def.name}' of {text(value)} is not in the list of "
                f"allowed values: {', '.join([text(choice) for choice in choices])}"
            )


def _quoted(value: bytes) -> str:
    return f'"{value.decode("utf-8", "backslashreplace")}"'


def are_attr_values_equal(a: AttrValue, b: AttrValue) -> bool:
    """Whether two values mean the same, however their tensors are encoded."""
    return _are_equal(a, b, only_protos_of_large=False)


def fast_are_attr_values_equal(a: AttrValue, b: AttrValue) -> bool:
    """As `are_attr_values_equal`, but very large tensors are compared as encoded."""
    return _are_equal(a, b, only_protos_of_large=True)


def _are_equal(a: AttrValue, b: AttrValue, *, only_protos_of_large: bool) -> bool:
    kind = a.WhichOneof("value")
    if kind != b.WhichOneof("value"):
        return False
    if kind == "tensor":
        return _are_tensors_equal(a.tensor, b.tensor, only_protos_of_large=only_protos_of_large)
    if kind == "func":
        return _are_funcs_equal(a.func, b.func, only_protos_of_large=only_protos_of_large)
    return _bytes_of(a) == _bytes_of(b)


def _are_funcs_equal(a: NameAttrList, b: NameAttrList, *, only_protos_of_large: bool) -> bool:
    return (
        a.name == b.name
        and a.attr.keys() == b.attr.keys()
        and all(
            _are_equal(value, b.attr[name], only_protos_of_large=only_protos_of_large)
            for name, value in a.attr.items()
        )
    )


def _are_tensors_equal(a: TensorProto, b: TensorProto, *, only_protos_of_large: bool) -> bool:
    # few tensors are compared
    from opkernel.opdef.text.tensor_summary import MAX_DECODED_BYTES, tensor_byte_size

    size = tensor_byte_size(a)
    if size != tensor_byte_size(b):
        return False
    proto_size = a.ByteSize()
    expands = proto_size < _SMALL_PROTO_BYTES and size > _LARGE_TENSOR_BYTES
    # Decoding must not take far more memory than the file that brought the proto.
    is_large = size > MAX_DECODED_BYTES and (only_protos_of_large or proto_size < size)
    if (expands or is_large) and _bytes_of(a) == _bytes_of(b):
        return True
    canonical = None if is_large else _canonical_tensor(a)
    return canonical is not None and canonical == _canonical_tensor(b)


def _canonical_tensor(proto: TensorProto) -> tuple[int, tuple[int, ...], bytes] | None:
    """The type, shape and elements of a tensor, however it is encoded; None if it is invalid."""
    try:
        array = np.asarray(tensor_from_proto(proto))
    except OpError:
        return None
    if array.dtype != object:
        return proto.dtype, array.shape, array.tobytes()
    elements = [item if isinstance(item, bytes) else _element_bytes(item) for item in array.flat]
    lengths = np.array([len(item) for item in elements], np.int64).tobytes()
    return proto.dtype, array.shape, lengths + b"".join(elements)


def _element_bytes(element: ResourceHandle | Variant) -> bytes:
    return element.to_proto().SerializeToString(deterministic=True)


def _bytes_of(message: AttrValue | TensorProto) -> bytes:
    return message.SerializeToString(deterministic=True)


def attr_value_hash(value: AttrValue) -> int:
    """A 64-bit hash, the same for values that `are_attr_values_equal`.

    It is the same in every process, but not TensorFlow's number.
    """
    from opkernel.opdef.core.fingerprint import fingerprint64  # few values are hashed

    return fingerprint64(_hashed_bytes(value))


def _hashed_bytes(value: AttrValue) -> bytes:
    # few tensors are compared
    from opkernel.opdef.text.tensor_summary import MAX_DECODED_BYTES, tensor_byte_size

    kind = value.WhichOneof("value")
    if kind == "tensor":
        is_large = tensor_byte_size(value.tensor) > MAX_DECODED_BYTES
        canonical = None if is_large else _canonical_tensor(value.tensor)
        return repr(canonical or (value.tensor.dtype, is_large)).encode()
    if kind == "func":
        entries = sorted((name, attr_value_hash(entry)) for name, entry in value.func.attr.items())
        return repr((value.func.name, entries)).encode()
    return _bytes_of(value)


def substitute_placeholders(
    value: AttrValue, substitute: Callable[[str], AttrValue | None]
) -> AttrValue | None:
    """The value with each placeholder replaced, in nested functions too (SubstitutePlaceholders).

    `substitute` gives the value for a placeholder's name. The result is None where it gives None,
    or where a value is not set at all.
    """
    match value.WhichOneof("value"):
        case None:
            return None
        case "placeholder":
            return substitute(value.placeholder)
    result = AttrValue.FromString(value.SerializeToString())
    functions = [result.func] if result.HasField("func") else list(result.list.func)
    for function in functions:
        for name in function.attr:
            replaced = substitute_placeholders(function.attr[name], substitute)
            if replaced is None:
                return None
            function.attr[name].CopyFrom(replaced)
    return result
