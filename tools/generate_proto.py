"""Compile `protos/` into what `opkernel.proto` ships: a descriptor set and a typing stub.

Run after a change of a schema: `python tools/generate_proto.py` (needs the `dev` extra for protoc).
With `--check` nothing is written and the exit status says whether the shipped files are current.
"""

import keyword
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
SHIPPED = ROOT / "src" / "opkernel" / "proto"

_SCALARS = {
    FieldDescriptorProto.TYPE_DOUBLE: "float",
    FieldDescriptorProto.TYPE_FLOAT: "float",
    FieldDescriptorProto.TYPE_BOOL: "bool",
    FieldDescriptorProto.TYPE_STRING: "str",
    FieldDescriptorProto.TYPE_BYTES: "bytes",
}


_PACKAGES = ("tensorflow", "tensorflow.data", "tensorflow.data.experimental")


def compile_descriptors() -> bytes:
    """The serialized FileDescriptorSet of every schema, imports included and in order."""
    include = str(Path(protoc.__file__).parent / "_proto")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "descriptors.binpb"
        files = sorted(str(path) for path in PROTOS.rglob("*.proto"))
        arguments = ["protoc", f"-I{PROTOS}", f"-I{include}", "--include_imports"]
        if protoc.main([*arguments, f"--descriptor_set_out={out}", *files]) != 0:
            raise SystemExit("protoc failed")
        return out.read_bytes()


def _value_type(field: FieldDescriptorProto) -> str:
    if field.type == field.TYPE_MESSAGE:
        name = field.type_name.lstrip(".")
        for package in reversed(_PACKAGES):
            name = name.removeprefix(f"{package}.")
        return "Message" if name.startswith("google.") else name
    return _SCALARS.get(field.type, "int")


def _field_type(field: FieldDescriptorProto, maps: dict[str, DescriptorProto]) -> str:
    """The type that reading the field gives: a scalar, a message or protobuf's container."""
    of_messages = field.type == field.TYPE_MESSAGE
    entry = maps.get(field.type_name)
    if entry is not None:
        key, value = entry.field
        container = "MessageMap" if value.type == field.TYPE_MESSAGE else "ScalarMap"
        return f"{container}[{_value_type(key)}, {_value_type(value)}]"
    if field.label == field.LABEL_REPEATED:
        kind = "Composite" if of_messages else "Scalar"
        return f"Repeated{kind}FieldContainer[{_value_type(field)}]"
    return _value_type(field)


def _message(message: DescriptorProto, scope: str, indent: str) -> Iterator[str]:
    """The lines of a message's class."""
    path = f"{scope}.{message.name}"
    inner = indent + "    "
    yield f"{indent}class {message.name}(Message):"
    for enum in message.enum_type:
        yield from (f"{inner}{value.name}: int" for value in enum.value)
    for nested in message.nested_type:
        if not nested.options.map_entry:
            yield from _message(nested, path, inner)
    maps = {f".{path}.{m.name}": m for m in message.nested_type if m.options.map_entry}
    yield from _fields(message, maps, inner)
    yield ""


def _fields(
    message: DescriptorProto, maps: dict[str, DescriptorProto], indent: str
) -> Iterator[str]:
    """Scalars can be assigned; messages and containers are only read and filled in place.

    A field that is named like a keyword (`from`) is left to `getattr`.
    """
    fields = [field for field in message.field if not keyword.iskeyword(field.name)]
    arguments = ["self"] + ["*"] * bool(fields)
    for field in fields:
        kind = _field_type(field, maps)
        if kind in ("float", "bool", "str", "bytes", "int"):
            arguments.append(f"{field.name}: {kind} = ...")
            yield f"{indent}{field.name}: {kind}"
        else:
            arguments.append(f"{field.name}: Any = ...")
            yield f"{indent}@property"
            yield f"{indent}def {field.name}(self) -> {kind}: ..."
    if message.oneof_decl:
        yield f"{indent}def WhichOneof(self, oneof_group: str) -> str | None: ..."
    yield f"{indent}def __init__({', '.join(arguments)}) -> None: ..."


_HEADER = '''"""Written by tools/generate_proto.py from protos/; do not edit."""

from typing import Any

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
    ScalarMap,
)
from google.protobuf.message import DecodeError as DecodeError
from google.protobuf.message import Message as Message

__all__: list[str]
POOL: DescriptorPool

# The C core's descriptors and the Python ones share no type.
def message_class(descriptor: Any) -> type[Message]: ...
'''


def stub_text(descriptors: bytes) -> str:
    """The typing stub of `opkernel.proto`."""
    lines = [_HEADER]
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        if file.package in _PACKAGES:
            for message in file.message_type:
                lines.extend(_message(message, file.package, ""))
    return "\n".join(lines)


def main() -> int:
    descriptors = compile_descriptors()
    files = {
        SHIPPED / "descriptors.binpb": descriptors,
        SHIPPED / "__init__.pyi": stub_text(descriptors).encode(),
    }
    if "--check" in sys.argv[1:]:
        stale = [path for path, data in files.items() if path.read_bytes() != data]
        for path in stale:
            print(f"stale: {path.relative_to(ROOT)}; run tools/generate_proto.py")
        return 1 if stale else 0
    for path, data in files.items():
        path.write_bytes(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
