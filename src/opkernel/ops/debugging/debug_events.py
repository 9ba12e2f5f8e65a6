"""Event files of TensorFlow's second debugger (tfdbg2): TFRecords of DebugEvents, whose schema the package does not have.

A set has six files of one prefix. Here, the first holds the version of the format, and one has the tensors that nodes
watched; TensorFlow's Python fills the others with its graphs and its source. A directory has one set for each process.

Source: TensorFlow core/util/debug_events_writer.{h,cc}, core/protobuf/debug_event.proto.
"""

from __future__ import annotations

import os
import struct
import threading
import time

from opkernel.device.permissions import Permissions
from opkernel.file_errors import file_errors
from opkernel.io.record_format import record_parts
from opkernel.ops.debugging.publishing import field, utf8
from opkernel.records import dataclass
from opkernel.types.varints import varint

_TRACES = "graph_execution_traces"
_FILES = ("metadata", "source_files", "stack_frames", "graphs", "execution", _TRACES)
_VERSION = "debug.Event:1"
_METADATA, _TRACE = 3, 10
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND

_prefixes: dict[str, str] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class WatchedOutput:
    """An output of a node that a debugger watches.

    Attributes:
        context_id: Names the graph.
        op_name: Names the node.
        slot: The number of its output.
        mode: The TensorDebugMode: how the tensor tells of the output.
        run_id: Names the run of the debugger.
    """

    context_id: str
    op_name: str
    slot: int
    mode: int
    run_id: str

    def trace(self, tensor: bytes, device: str) -> bytes:
        """The GraphExecutionTrace of a serialized tensor of a device."""
        return (
            _text(1, self.context_id)
            + _text(2, self.op_name)
            + _number(3, self.slot)
            + _number(4, self.mode)
            + field(5, tensor)
            + _text(6, device)
        )


def write_trace(
    permissions: Permissions, root: str, watched: WatchedOutput, tensor: bytes, device: str
) -> None:
    """Append a serialized tensor of an output to the files of a directory, which are begun if need be.

    Raises:
        PermissionDeniedError: they may not be written.
        OpError: they cannot be written.
    """
    with _lock:
        prefix = _prefixes.get(root)
        if prefix is None:
            prefix = _begin(permissions, root, watched.run_id)
        _append(permissions, f"{prefix}.{_TRACES}", _event(_TRACE, watched.trace(tensor, device)))


def _begin(permissions: Permissions, root: str, run_id: str) -> str:
    host = os.uname().nodename if hasattr(os, "uname") else "localhost"
    prefix = os.path.join(root, f"tfdbg_events.{int(time.time()):010d}.{host}")
    metadata = _text(1, "opkernel") + _text(2, _VERSION) + _text(3, run_id)
    for name in _FILES:
        _append(
            permissions,
            f"{prefix}.{name}",
            _event(_METADATA, metadata) if name == _FILES[0] else b"",
        )
    _prefixes[root] = prefix
    return prefix


def _append(permissions: Permissions, path: str, event: bytes) -> None:
    with file_errors(path):
        directory, name = permissions.place_to_write(path, makes=len(path))
        with directory, open(directory.open(name, _APPEND), "ab") as file:
            if event:
                file.write(b"".join(record_parts(event)))


def _event(number: int, content: bytes) -> bytes:
    """A DebugEvent of now, of which a field is set."""
    return b"\x09" + struct.pack("<d", time.time()) + field(number, content)


def _text(number: int, text: str) -> bytes:
    return field(number, utf8(text)) if text else b""


def _number(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value % 2**64) if value else b""
