"""What a field is, as every supported protobuf tells it: by properties, by labels, by options."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from opkernel.opdef.text.debug_string import is_packed, is_repeated
from opkernel.proto import GraphDef, OpList, TensorProto

REPEATED = 3
"""The number of LABEL_REPEATED in descriptor.proto."""


class OldField:
    """A field as protobuf before 6 has it: with a label, and without the newer properties."""

    LABEL_REPEATED = REPEATED

    def __init__(self, field: Any) -> None:
        self._field = field
        message = descriptor_pb2.DescriptorProto()
        field.containing_type.CopyToProto(message)
        self.label = next(one.label for one in message.field if one.number == field.number)

    def __getattr__(self, name: str) -> Any:
        if name in ("is_repeated", "is_packed"):
            raise AttributeError(name)
        return getattr(self._field, name)


def fields(descriptor: Any, seen: set[str]) -> Iterator[Any]:
    """The fields of a message and of the messages in it."""
    if descriptor.full_name in seen:
        return
    seen.add(descriptor.full_name)
    for field in descriptor.fields:
        yield field
        if field.message_type is not None:
            yield from fields(field.message_type, seen)


@pytest.mark.parametrize("message", [GraphDef, OpList, descriptor_pb2.FileDescriptorSet])
def test_an_older_protobuf_tells_the_same(message: Any) -> None:
    found = list(fields(message.DESCRIPTOR, set()))
    assert len(found) > 20
    for field in found:
        old = OldField(field)
        assert is_repeated(old) is is_repeated(field), field.full_name
        assert is_packed(old) is is_packed(field), field.full_name


@pytest.mark.parametrize(
    ("message", "name", "repeated", "packed"),
    [
        (GraphDef, "node", True, False),
        (GraphDef, "versions", False, False),
        (TensorProto, "dtype", False, False),
        (TensorProto, "float_val", True, True),
        (TensorProto, "string_val", True, False),
        (descriptor_pb2.SourceCodeInfo.Location, "path", True, True),
        (descriptor_pb2.FileDescriptorProto, "public_dependency", True, False),
    ],
)
def test_lists_of_numbers_are_packed_where_the_file_says_so(
    message: Any, name: str, repeated: bool, packed: bool
) -> None:
    """Files of proto3 say so unless an option says otherwise; files of proto2 only by an option."""
    field = message.DESCRIPTOR.fields_by_name[name]
    for one in (field, OldField(field)):
        assert (is_repeated(one), is_packed(one)) == (repeated, packed)
