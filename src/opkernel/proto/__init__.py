"""TensorFlow's wire formats: messages with the names, fields and numbers of its .proto files.

The classes are built at import from `descriptors.binpb` (compiled from `protos/` by
`tools/generate_proto.py`) in a descriptor pool of our own. They are therefore free of generated
code, which ties a package to one major version of protobuf, and of the default pool, where
TensorFlow's own files of the same names would clash: both libraries can live in one process.

A message crosses between the two libraries as bytes:
`OpDef.FromString(tf_op_def.SerializeToString())`.
Fields that a file has and these schemas lack are kept in a round trip.
"""

import importlib
import os
from collections.abc import Callable, Iterator

from google.protobuf.descriptor import Descriptor
from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError, Message

from opkernel.messages import did_you_mean
from opkernel.slots import Slot

if api_implementation.Type() == "upb":
    # The C core imports it for the first message, and crashes if that is interrupted.
    importlib.import_module("google.protobuf.internal.well_known_types")
    # The two calls below, of protobuf's C core, are what its public modules come down to; going
    # through those costs 10 ms of imports (the Python implementation, text format) at each start.
    from google._upb._message import DescriptorPool, MessageMeta

    def message_class(descriptor: Descriptor) -> type[Message]:
        """The class of a message type of `POOL`; the same one at every call."""
        namespace = {"DESCRIPTOR": descriptor, "__module__": __name__}
        return MessageMeta(descriptor.name, (Message,), namespace)
else:
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    def message_class(descriptor: Descriptor) -> type[Message]:
        """The class of a message type of `POOL`; the same one at every call."""
        found = GetMessageClass(descriptor)
        for nested in descriptor.nested_types:
            setattr(found, nested.name, message_class(nested))
        return found


POOL = DescriptorPool()

_OP_DEF_TEXT: Slot[Callable[[Message], str]] = Slot("text of an OpDef")


def _serialized_files(descriptor_set: bytes) -> Iterator[bytes]:
    """Split a serialized FileDescriptorSet, which is (tag 1, varint length, file) repeated.

    Doing it here spares the import of the descriptor messages, which only this would use.
    """
    position = 0
    while position < len(descriptor_set):
        length, shift = 0, 0
        position += 1  # the tag
        while True:
            byte = descriptor_set[position]
            position += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield descriptor_set[position : position + length]
        position += length


_PACKAGES = ("tensorflow", "tensorflow.data", "tensorflow.data.experimental")
"""Whose messages can be imported from here, as in `tools/generate_proto.py`."""


def _load() -> dict[str, str]:
    """Fill the pool and return the full names of the top-level messages, by their names."""
    with open(os.path.join(os.path.dirname(__file__), "descriptors.binpb"), "rb") as file:
        data = file.read()
    files = [POOL.AddSerializedFile(file) for file in _serialized_files(data)]
    ours = [file for file in files if file.package in _PACKAGES]
    found = [message for file in ours for message in file.message_types_by_name.values()]
    return {message.name: message.full_name for message in sorted(found, key=lambda m: m.name)}


_names = _load()


def __getattr__(name: str) -> type[Message]:
    if name not in _names:
        hint = "" if name.startswith("_") else did_you_mean(name, _names)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}", name=name)
    descriptor = POOL.FindMessageTypeByName(_names[name])
    found = message_class(descriptor)
    if name == "OpDef":
        setattr(found, "__repr__", _op_def_text)  # noqa: B010  # mypy takes it for a mistake
    globals()[name] = found
    return found


def _op_def_text(op_def: Message) -> str:
    """An OpDef as it is registered."""
    return _OP_DEF_TEXT.get()(op_def)


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = ["POOL", "DecodeError", "Message", "message_class", *_names]
