"""A reader in a graph, with a queue of file names and nodes for all that one can do."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

from opkernel import Graph, Permissions, Session, raw_ops
from opkernel.checkpoint.crc32c import masked_crc32c
from opkernel.types import DataType, int64, string

MADE: "list[Reading]" = []


class Reading:
    """The nodes, and a session that runs them from any thread.

    Names of files are given, and found in keys, without the directory.
    """

    def __init__(
        self,
        reader: str,
        directory: Path,
        *,
        version: str = "V2",
        component_types: tuple[DataType, ...] = (string,),
        session: dict[str, Any] | None = None,
        **attrs: Any,
    ) -> None:
        self.directory = directory
        self.graph = Graph()
        if not version:
            self.graph.graph_def_versions.producer = 21  # most are deprecated from 26 on
        with self.graph.as_default():
            queue = getattr(raw_ops, f"FIFOQueue{version}")(component_types=list(component_types))
            self.handle = getattr(raw_ops, f"{reader}{version}")(**attrs)
            self.names = [raw_ops.Placeholder(dtype=dtype) for dtype in component_types]
            self.n = raw_ops.Placeholder(dtype=int64)
            self.state = raw_ops.Placeholder(dtype=string)
            on_queue = {"handle": queue}
            self._put = getattr(raw_ops, f"QueueEnqueue{version}")(
                components=self.names, **on_queue
            )
            self._close = getattr(raw_ops, f"QueueClose{version}")(**on_queue)

            def node(verb: str, **inputs: Any) -> Any:
                op = getattr(raw_ops, f"Reader{verb}{version}")
                return op(reader_handle=self.handle, **inputs)

            self._read = list(node("Read", queue_handle=queue))
            self._up_to = list(node("ReadUpTo", queue_handle=queue, num_records=self.n))
            self._counts = [node("NumRecordsProduced"), node("NumWorkUnitsCompleted")]
            self._serialize, self._reset = node("SerializeState"), node("Reset")
            self._restore = node("RestoreState", state=self.state)
        session = {"permissions": Permissions(read=directory)} if session is None else session
        self.session = Session(self.graph, **session)
        MADE.append(self)

    def put(self, *names: Any) -> "Reading":
        for name in names:
            path = str(self.directory / name).encode() if isinstance(name, str) else name
            self.session.run(self._put, {self.names[0]: np.array(path, object)})
        return self

    def put_element(self, *components: Any) -> None:
        self.session.run(self._put, dict(zip(self.names, components, strict=True)))

    def close_queue(self) -> "Reading":
        self.session.run(self._close)
        return self

    def read(self, **kwargs: Any) -> tuple[str, bytes]:
        key, value = self.session.run(self._read, **kwargs)
        return Path(key.decode()).name, value

    def read_up_to(self, n: Any, **kwargs: Any) -> list[tuple[str, bytes]]:
        keys, values = self.session.run(self._up_to, {self.n: n}, **kwargs)
        return [(Path(k.decode()).name, v) for k, v in zip(keys, values, strict=True)]

    @property
    def counts(self) -> tuple[int, int]:
        """The records, and the finished files."""
        records, files = self.session.run(self._counts)
        return int(records), int(files)

    def serialize(self, **kwargs: Any) -> bytes:
        state: bytes = self.session.run(self._serialize, **kwargs)
        return state

    def restore(self, state: Any, **kwargs: Any) -> None:
        self.session.run(self._restore, {self.state: state}, **kwargs)

    def reset(self, **kwargs: Any) -> None:
        self.session.run(self._reset, **kwargs)


def tf_record(*records: bytes) -> bytes:
    """A file of TFRecords."""
    written = b""
    for record in records:
        length = struct.pack("<Q", len(record))
        sums = [struct.pack("<I", masked_crc32c(part)) for part in (length, record)]
        written += length + sums[0] + record + sums[1]
    return written
