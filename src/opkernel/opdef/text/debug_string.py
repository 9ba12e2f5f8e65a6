"""Messages as one line of protobuf's text format, as the C++ library prints them in errors.

The Python library's own printer differs in floats ("1.0" for "1") and is slow to import.
"""

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from opkernel.opdef.text.escaping import c_escape
from opkernel.opdef.text.field_label import is_repeated
from opkernel.opdef.text.number_text import double_text, float_text


def short_debug_string(message: Any) -> str:
    """The set fields in the order of their numbers, maps by key (ShortDebugString)."""
    return " ".join(_fields_text(message))


def _fields_text(message: Any) -> Iterator[str]:
    for field, value in message.ListFields():
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            yield from _map_text(field, entry, value)
        elif is_repeated(field):
            for element in value:
                yield _field_text(field, element)
        else:
            yield _field_text(field, value)


def _map_text(field: FieldDescriptor, entry_type: Descriptor, entries: Any) -> Iterator[str]:
    key_field, value_field = entry_type.fields
    for key, value in sorted(entries.items()):
        entry = f"{_field_text(key_field, key)} {_field_text(value_field, value)}"
        yield f"{field.name} {{ {entry} }}"


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
