"""What a field of a message is, asked in a way that every supported protobuf knows."""

from typing import Any

__all__ = ["is_packed", "is_repeated"]


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
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

    declared, file = FieldDescriptorProto(), FileDescriptorProto()
    field.CopyToProto(declared)
    field.file.CopyToProto(file)
    if declared.options.HasField("packed"):
        return bool(declared.options.packed)
    return bool(file.syntax == "proto3")
