"""FileWriter, which writes the summaries of sessions, and a reader of event files.

Source: TensorFlow python/summary/writer/writer.py, python/summary/summary_iterator.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from opkernel.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from opkernel.graph import Graph
from opkernel.io import tf_record_iterator
from opkernel.io.events_file import EventsFile
from opkernel.messages import short_repr
from opkernel.ops.summary.file_writer import SummaryFileWriter
from opkernel.proto import DecodeError, Event, GraphDef, Summary
from opkernel.tracebacks import entrances


@entrances
class FileWriter:
    """Writes the summaries that sessions compute into an event file, as `tf.compat.v1.summary.FileWriter`.

        with opkernel.summary.FileWriter("logs", session.graph) as writer:
            writer.add_summary(session.run("Merge/MergeSummary:0"), global_step=1)

    Args:
        logdir: The directory; it is made where it is missing.
        graph: A Graph or GraphDef, which is written first.
        max_queue: So many events wait before they are written.
        flush_secs: The longest that they wait.
        filename_suffix: The end of the file's name.

    Raises:
        OpError: the file cannot be made.
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        graph: Graph | GraphDef | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str | None = None,
    ) -> None:
        if not isinstance(logdir, str | os.PathLike):
            raise InvalidArgumentError(f"logdir is a string, not {short_repr(logdir)}")
        self._logdir = os.fspath(logdir)
        file = EventsFile(self._logdir, filename_suffix or "")
        self._writer: SummaryFileWriter | None
        self._writer = SummaryFileWriter(file, max_queue, int(flush_secs * 1000))
        self._described: set[str] = set()
        if graph is not None:
            self.add_graph(graph)

    def get_logdir(self) -> str:
        """The directory."""
        return self._logdir

    def add_summary(self, summary: Summary | bytes, global_step: Any = None) -> None:
        """Write a summary.

        Args:
            summary: A Summary, or a serialized one, as summary ops give it.
            global_step: The step; 0 if not given.

        Raises:
            InvalidArgumentError: it is no summary, or the step is no int64.
            FailedPreconditionError: the writer is closed.
            OpError: the file cannot be written.
        """
        text = summary.SerializeToString() if isinstance(summary, Summary) else summary
        try:
            message = Summary.FromString(text)
        except (DecodeError, TypeError):
            raise InvalidArgumentError(f"{short_repr(summary)} is no Summary") from None
        for value in message.value:
            # TensorBoard needs the metadata of a tag once.
            if value.HasField("metadata") and value.tag in self._described:
                value.ClearField("metadata")
            elif value.HasField("metadata"):
                self._described.add(value.tag)
        self._add(Event(summary=message), global_step)

    def add_graph(self, graph: Graph | GraphDef, global_step: Any = None) -> None:
        """Write a graph.

        Args:
            graph: A Graph, or a GraphDef.
            global_step: The step; 0 if not given.

        Raises:
            InvalidArgumentError: it is no graph, or the step is no int64.
            FailedPreconditionError: the writer is closed.
            OpError: the file cannot be written.
        """
        if not isinstance(graph, Graph | GraphDef):
            raise InvalidArgumentError(f"{short_repr(graph)} is neither a Graph nor a GraphDef")
        graph_def = graph.as_graph_def(True) if isinstance(graph, Graph) else graph
        self._add(Event(graph_def=graph_def.SerializeToString()), global_step)

    def add_event(self, event: Event) -> None:
        """Write an event.

        Raises:
            InvalidArgumentError: the argument is no Event.
            FailedPreconditionError: the writer is closed.
            OpError: the file cannot be written.
        """
        if not isinstance(event, Event):
            raise InvalidArgumentError(f"{short_repr(event)} is no Event")
        self._open_writer().write_event(event.SerializeToString())

    def flush(self) -> None:
        """Write the waiting events into the file.

        Raises:
            FailedPreconditionError: the writer is closed.
            OpError: the file cannot be written.
        """
        self._open_writer().flush()

    def close(self) -> None:
        """Write the waiting events, and end the file. A second call does nothing.

        Raises:
            OpError: the file cannot be written.
        """
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _add(self, event: Event, step: Any) -> None:
        event.wall_time = time.time()
        try:
            event.step = 0 if step is None else int(np.asarray(step).item())
        except (ValueError, TypeError):
            raise InvalidArgumentError(f"A step is an int64, not {short_repr(step)}") from None
        self.add_event(event)

    def _open_writer(self) -> SummaryFileWriter:
        if self._writer is None:
            raise FailedPreconditionError("The FileWriter is closed")
        return self._writer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def summary_iterator(path: str | bytes | os.PathLike[str]) -> Iterator[Event]:
    """Iterate over the events of an event file.

    Args:
        path: The file.

    Returns:
        The events, in the order of the file. The first one has the version of the format.

    Raises:
        NotFoundError: the file does not exist.
        DataLossError: from `next`; the file is damaged or cut short.
    """
    return map(_event, tf_record_iterator(path))


def _event(record: bytes) -> Event:
    try:
        return Event.FromString(record)
    except DecodeError:
        raise DataLossError("A record of the event file is no Event") from None
