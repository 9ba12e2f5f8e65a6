"""Ways to damage any protobuf message: its numbers, texts, bytes, parts, at any depth."""

import random
from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from tools.campaigns.damage import EXTREMES, HOSTILE, MUTATIONS

from opkernel.opdef.text.debug_string import is_repeated

__all__ = ["change_message"]

_SMALL = [0, 1, 2, 3, 5, 7, 9, 20, 127]
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_ENUM: (0, 2**31 - 1),
}
_TEXTS = [*HOSTILE, "../../etc/passwd", "/etc/passwd", "serve", "serving_default", "x", "x:0", ":0"]


def change_message(message: Message, rng: random.Random) -> None:
    """Change one field, drawn from all that are set; maps and repeated fields also lose and gain items."""
    places = [*_places(message)]
    if places:
        owner, field = rng.choice(places)
        if is_repeated(field):
            _change_repeated(owner, field, rng)
        elif rng.random() < 0.15:
            owner.ClearField(field.name)
        elif field.message_type is None:
            _set(owner, field, _other(field, getattr(owner, field.name), rng))


def _places(message: Message) -> Iterator[tuple[Message, FieldDescriptor]]:
    """All fields that are set, and the messages that have them."""
    for field, value in message.ListFields():
        yield message, field
        if field.message_type is None:
            continue
        if not is_repeated(field):
            yield from _places(value)
        elif not field.message_type.GetOptions().map_entry:
            for item in value:
                yield from _places(item)
        elif field.message_type.fields_by_name["value"].message_type is not None:
            for key in sorted(value):
                yield from _places(value[key])


def _set(owner: Message, field: FieldDescriptor, value: Any) -> None:
    setattr(owner, field.name, value)


def _change_repeated(owner: Message, field: FieldDescriptor, rng: random.Random) -> None:
    items: Any = getattr(owner, field.name)
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    if is_map:
        _change_map(items, field, rng)
        return
    at, kind = rng.randrange(len(items)), rng.randrange(3)
    if kind == 0:
        del items[at]
    elif field.message_type is not None:
        other = items[rng.randrange(len(items))]
        items[at].CopyFrom(other) if kind == 1 else items.add().CopyFrom(other)
    elif kind == 1:
        items[at] = _other(field, items[at], rng)
    else:
        items.append(_other(field, items[at], rng))


def _change_map(items: Any, field: FieldDescriptor, rng: random.Random) -> None:
    """Lose a key, or give it another one's value."""
    assert field.message_type is not None  # that of the items
    keys, value = sorted(items), field.message_type.fields_by_name["value"]
    key, other = rng.choice(keys), rng.choice(keys)
    if rng.random() < 0.3:
        del items[key]
    elif value.message_type is not None:
        items[key].CopyFrom(items[other])
    else:
        items[key] = _other(value, items[other], rng)


def _other(field: FieldDescriptor, value: Any, rng: random.Random) -> Any:
    """Another value of the field's type."""
    if field.cpp_type in _RANGES:
        low, high = _RANGES[field.cpp_type]
        near = [value - 1, value + 1, *_SMALL]
        return min(max(rng.choice(EXTREMES + near), low), high)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return not value
    if field.cpp_type != FieldDescriptor.CPPTYPE_STRING:
        return rng.choice([0.0, -1.5, 1e30, float("inf"), float("nan")])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.choice(MUTATIONS[:3])(value, rng) if value else rng.randbytes(3)
    return rng.choice([*_TEXTS, value + "x", value[1:], value.upper()])
