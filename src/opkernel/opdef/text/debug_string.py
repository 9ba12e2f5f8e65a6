"""Messages as one line of protobuf's text format, as the C++ library prints them in errors.

The Python library's own printer differs in floats ("1.0" for "1") and is slow to import.

Floats have the shorter of two precisions that reads back as the same number (TensorFlow tsl/platform/numbers.cc,
LegacyPrecision).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from opkernel.opdef.text.escaping import c_escape


def is_repeated(field: Any) -> bool:
    """Whether the field is a list or a map; protobuf before 6 says so only by its label."""
    if hasattr(field, "is_repeated"):
        return bool(field.is_repeated)
    return bool(field.label == field.LABEL_REPEATED)


def is_packed(field: Any) -> bool:
    """Whether the numbers of a list are written as one; protobuf before 6 says so by options and syntax."""
    if hasattr(field, "is_packed"):
        return bool(field.is_packed)
    if not is_repeated(field) or field.cpp_type in (field.CPPTYPE_STRING, field.CPPTYPE_MESSAGE):
        return False
    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

    message, file = DescriptorProto(), FileDescriptorProto()
    field.containing_type.CopyToProto(message)
    field.file.CopyToProto(file)
    options = next(one.options for one in message.field if one.number == field.number)
    return bool(options.packed) if options.HasField("packed") else bool(file.syntax == "proto3")


def short_debug_string(message: Any) -> str:
    """The set fields in the order of their numbers, maps by key (ShortDebugString)."""
    return " ".join(_fields_text(message))


def _fields_text(message: Any) -> Iterator[str]:
    for field, value in message.ListFields():
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            for key_and_value in sorted(value.items()):
                text = " ".join(map(_field_text, entry.fields, key_and_value))
                yield f"{field.name} {{ {text} }}"
        elif is_repeated(field):
            for element in value:
                yield _field_text(field, element)
        else:
            yield _field_text(field, value)


def _field_text(field: FieldDescriptor, value: Any) -> str:
    if field.message_type is not None:
        inner = short_debug_string(value)
        return f"{field.name} {{ {inner} }}" if inner else f"{field.name} {{ }}"
    return f"{field.name}: {_scalar_text(field, value)}"


def _scalar_text(field: FieldDescriptor, value: Any) -> str:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
            return f'"{c_escape(data)}"'
        case FieldDescriptor.CPPTYPE_BOOL:
            return "true" if value else "false"
        case FieldDescriptor.CPPTYPE_ENUM:
            known = field.enum_type.values_by_number.get(value) if field.enum_type else None
            return str(value) if known is None else str(known.name)
        case FieldDescriptor.CPPTYPE_FLOAT:
            return float_text(value)
        case FieldDescriptor.CPPTYPE_DOUBLE:
            return double_text(value)
        case _:
            return str(value)


def float_text(value: float) -> str:
    """A float32 value in 6 digits or, where they do not suffice, in 9: "0.1", "0.333333343"."""
    short = _printf(value, 6)
    return short if ctypes.c_float(float(short)).value == value else _printf(value, 9)


def double_text(value: float) -> str:
    """A float64 value in 15 digits or, where they do not suffice, in 17."""
    short = _printf(value, 15)
    return short if float(short) == value else _printf(value, 17)


def _printf(value: float, digits: int) -> str:
    """The text of C's "%.*g"; Python's differs for negative NaNs alone."""
    if math.isnan(value) and math.copysign(1.0, value) < 0:
        return "-nan"
    return f"{value:.{digits}g}"
