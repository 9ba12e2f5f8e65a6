"""What a field of a message is, asked in a way that every supported protobuf knows."""

from typing import Any


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
