"""Whether attr values are of a type, allowed by an AttrDef, or equal; and whether an OpDef makes sense.

An OpDef is checked for names, types, minima, defaults, and the references of args.

Source: TensorFlow core/framework/attr_value_util.cc and op_def_util.cc (ValidateAttrValue, ValidateOpDef).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.opdef import text as summaries
from opkernel.opdef.core.declarations import FIELD_OF_KIND, find_attr, split_attr_type
from opkernel.opdef.text.attr_value_text import dtype_text
from opkernel.proto import AttrValue, Message, NameAttrList, OpDef, TensorProto
from opkernel.types import REF_OFFSET, DataType, tensor_from_proto

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
        raise InvalidArgumentError(
            f"AttrValue must not have reference type value of {dtype.string}"
        )
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
    kind, is_list = split_attr_type(attr_def.type)
    if kind not in ("type", "string"):
        raise UnimplementedError(
            f"Support for allowed_values not implemented for type {attr_def.type}"
        )
    field = FIELD_OF_KIND[kind]
    text: Callable[[Any], str] = dtype_text if kind == "type" else _quoted
    choices = list(getattr(attr_def.allowed_values.list, field))
    for found in getattr(value.list, field) if is_list else [getattr(value, field)]:
        if found not in choices:
            raise InvalidArgumentError(
                f"Value for attr '{attr_def.name}' of {text(found)} is not in the list of "
                f"allowed values: {', '.join(map(text, choices))}"
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
    from opkernel.opdef.text.summary import MAX_DECODED_BYTES, tensor_byte_size

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
    elements = [
        item if isinstance(item, bytes) else _bytes_of(item.to_proto()) for item in array.flat
    ]
    lengths = np.array([len(item) for item in elements], np.int64).tobytes()
    return proto.dtype, array.shape, lengths + b"".join(elements)


def _bytes_of(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def attr_value_hash(value: AttrValue) -> int:
    """A 64-bit hash, the same for values that `are_attr_values_equal`.

    It is the same in every process, but not TensorFlow's number.
    """
    # few values are hashed
    from opkernel.opdef.core.fingerprint import fingerprint64
    from opkernel.opdef.text.summary import MAX_DECODED_BYTES, tensor_byte_size

    kind = value.WhichOneof("value")
    if kind == "tensor":
        is_large = tensor_byte_size(value.tensor) > MAX_DECODED_BYTES
        canonical = None if is_large else _canonical_tensor(value.tensor)
        return fingerprint64(repr(canonical or (value.tensor.dtype, is_large)).encode())
    if kind == "func":
        entries = sorted((name, attr_value_hash(entry)) for name, entry in value.func.attr.items())
        return fingerprint64(repr((value.func.name, entries)).encode())
    return fingerprint64(_bytes_of(value))


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


_OP_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*(?:>[A-Z][A-Za-z0-9_]*)*")
_LIST_KINDS = frozenset(f"list({kind})" for kind in FIELD_OF_KIND)


class _Invalid(Exception):
    """Breaks a rule; the text names the part and the rule."""


def validate_op_def(op_def: OpDef) -> None:
    """Check the whole declaration.

    Raises:
        InvalidArgumentError: it breaks a rule; the message names the part and the rule.
        UnimplementedError: an attr of a type other than "type" and "string" has a default and
            allowed values.
    """
    try:
        if not op_def.name.startswith("_") and not _OP_NAME.fullmatch(op_def.name):
            raise _Invalid(f"Invalid name: {op_def.name} (Did you use CamelCase?)")
        names: set[str] = set()
        for attr in op_def.attr:
            _add_name(attr.name, names)
            _validate_attr(attr, op_def)
        for what, args in (("input", op_def.input_arg), ("output", op_def.output_arg)):
            for arg in args:
                _add_name(arg.name, names)
                _validate_arg(arg, op_def, f" for {what} '{arg.name}'")
    except _Invalid as error:
        raise InvalidArgumentError(
            f"{error}; in OpDef: {summaries.short_debug_string(op_def)}"
        ) from None


def _add_name(name: str, names: set[str]) -> None:
    if name in names:
        raise _Invalid(f"Duplicate name: {name}")
    names.add(name)


def _validate_attr(attr: OpDef.AttrDef, op_def: OpDef) -> None:
    if DataType.find(attr.name) is not None:
        raise _Invalid(f"Attr can't have name {attr.name} that matches a data type")
    is_list = attr.type in _LIST_KINDS
    if not is_list and attr.type not in FIELD_OF_KIND:
        raise _Invalid(_wrong_type(attr))
    _validate_minimum(attr, is_list=is_list)
    if attr.HasField("allowed_values"):
        list_type = attr.type if is_list else f"list({attr.type})"
        try:
            attr_value_has_type(attr.allowed_values, list_type)
        except OpError as error:
            raise with_context(error, f" for attr '{attr.name}' in Op '{op_def.name}'") from None
    if attr.HasField("default_value"):
        try:
            validate_attr_value(attr.default_value, attr)
        except OpError as error:
            raise with_context(error, f" in Op '{op_def.name}'") from None


def _wrong_type(attr: OpDef.AttrDef) -> str:
    """The fault in the type of an attr."""
    is_list = attr.type.startswith("list(")
    rest = attr.type.removeprefix("list(")
    kind = next((kind for kind in FIELD_OF_KIND if rest.startswith(kind)), None)
    if kind is None:
        return f"Unrecognized type '{rest}' in attr '{attr.name}'"
    rest = rest.removeprefix(kind)
    if is_list and not rest.startswith(")"):
        return f"'list(' is missing ')' in attr {attr.name}'s type {attr.type}"
    extra = rest.removeprefix(")") if is_list else rest
    return f"Extra '{extra}' at the end of attr {attr.name}'s type {attr.type}"


def _validate_minimum(attr: OpDef.AttrDef, *, is_list: bool) -> None:
    if not attr.has_minimum:
        if attr.minimum != 0:
            raise _Invalid(
                f"Attr '{attr.name}' with has_minimum = false but minimum {attr.minimum} "
                "not equal to default of 0"
            )
    elif not is_list and attr.type != "int":
        raise _Invalid(f"Attr '{attr.name}' has minimum for unsupported type {attr.type}")
    elif is_list and attr.minimum < 0:
        raise _Invalid(
            f"Attr '{attr.name}' with list type must have a non-negative minimum, "
            f"not {attr.minimum}"
        )


def _validate_arg(arg: OpDef.ArgDef, op_def: OpDef, suffix: str) -> None:
    """Check an input or output; `suffix` names it in messages."""
    if arg.type == DataType.DT_INVALID and not arg.type_attr and not arg.type_list_attr:
        raise _Invalid(f"Missing type{suffix}")
    if arg.number_attr:
        _validate_length(arg, op_def, suffix)
    elif bool(arg.type) + bool(arg.type_attr) + bool(arg.type_list_attr) != 1:
        raise _Invalid(f"Exactly one of type, type_attr, type_list_attr must be set{suffix}")
    if arg.type_attr:
        _find_attr_of_type(op_def, arg.type_attr, "type", "type_attr", suffix)
    elif arg.type_list_attr:
        _find_attr_of_type(op_def, arg.type_list_attr, "list(type)", "type_list_attr", suffix)
    elif arg.type > REF_OFFSET:
        raise _Invalid(
            f"Illegal use of ref type '{dtype_text(arg.type)}'. Use 'Ref(type)' instead{suffix}"
        )


def _validate_length(arg: OpDef.ArgDef, op_def: OpDef, suffix: str) -> None:
    """Check an arg whose length an attr gives."""
    attr = _find_attr_of_type(op_def, arg.number_attr, "int", "length", suffix)
    use = f"Attr '{attr.name}' used as length{suffix}"
    if not attr.has_minimum:
        raise _Invalid(f"{use} must have minimum")
    if attr.minimum < 0:
        raise _Invalid(f"{use} must have minimum >= 0")
    if arg.type_list_attr:
        raise _Invalid(f"Can't have both number_attr and type_list_attr{suffix}")
    if bool(arg.type) + bool(arg.type_attr) != 1:
        raise _Invalid(f"Exactly one of type, type_attr must be set{suffix}")


def _find_attr_of_type(
    op_def: OpDef, name: str, attr_type: str, use: str, suffix: str
) -> OpDef.AttrDef:
    """The attr that an arg refers to; it must be there and of the type that the use needs."""
    attr = find_attr(op_def, name)
    if attr is None:
        raise _Invalid(f"No attr with name '{name}'{suffix}")
    if attr.type != attr_type:
        raise _Invalid(f"Attr '{name}' used as {use}{suffix} has type {attr.type} != {attr_type}")
    return attr
