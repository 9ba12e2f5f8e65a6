"""Traces as files: in Chrome's JSON format, which chrome://tracing, Perfetto and others open, and in Perfetto's.

In a Perfetto trace (https://ui.perfetto.dev and trace_processor open them) a device is a process, and each of its
threads a thread. Work on no thread has tracks of its own. A slice has the name of its op, so that equal ops have
equal colours and are summed up together. The slice tells its node, inputs and outputs. Each text is written once, and
then referred to by number.

Source: the Trace Event Format of Chromium's trace viewer; protos/perfetto/trace/track_event/track_event.proto of
Perfetto.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from opkernel.escaping import json_text
from opkernel.file_errors import checked_path
from opkernel.proto import POOL, Message, message_class
from opkernel.runtime.traces.timeline import Slice, Timeline, Track, arguments_of, timeline_of

_Event = dict[str, Any]


def write_chrome_trace(step_stats: Message | Sequence[Message], file: str | Path | TextIO) -> None:
    """Write the StepStats of a step, or of several, as JSON in Chrome's trace format.

    Times are in microseconds since the first node began.

    Args:
        step_stats: The StepStats, opkernel's or TensorFlow's.
        file: A path, or a file that is open for writing text.

    Raises:
        InvalidArgumentError: no file can have that path.
        OSError: the file cannot be written.
    """
    if isinstance(file, str | Path):
        with open(checked_path(file), "w", encoding="utf-8") as opened:
            write_chrome_trace(step_stats, opened)
        return
    lines = (json_text(event) for event in _events(timeline_of(step_stats)))
    file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
    file.write(",\n".join(lines))
    file.write("\n]}\n")


def _events(timeline: Timeline) -> Iterator[_Event]:
    pids = {device: pid for pid, device in enumerate(_devices(timeline), 1)}
    for device, pid in pids.items():
        yield _named("process_name", device, {"pid": pid, "tid": 0})
    places: dict[Slice, _Event] = {}
    for tid, track in enumerate(timeline.tracks, 1):
        place = {"pid": pids[track.device], "tid": tid}
        yield _named("thread_name", track.name, place)
        for one in track.slices:
            places[one] = place
            times = _times(timeline, one.start, one.end)
            what = {"ph": "X", "name": one.op, "cat": "op"}
            yield {**what, **times, **place, "args": arguments_of(one)}
    yield from _arrows(timeline, places)
    for counter in timeline.counters:
        place = {"pid": pids[counter.device], "tid": 0}
        for at, value in counter.values:
            ts = _times(timeline, at)
            yield {"ph": "C", "name": counter.name, **ts, **place, "args": {"bytes": value}}
    yield from _steps(timeline)


def _steps(timeline: Timeline) -> Iterator[_Event]:
    """A track that shows the steps, if there are several."""
    if len(timeline.steps) > 1:
        place = {"pid": 1, "tid": 0}
        yield _named("thread_name", "steps", place)
        for number, step in enumerate(timeline.steps, 1):
            yield {"ph": "X", "name": f"step {number}", **_times(timeline, *step), **place}


def _arrows(timeline: Timeline, places: dict[Slice, _Event]) -> Iterator[_Event]:
    """An arrow is a pair of events, each within the slice that it belongs to."""
    for number, (producer, consumer) in enumerate(timeline.arrows, 1):
        arrow = {"name": "tensor", "cat": "edge", "id": number}
        leaves = max(producer.start, min(producer.end, consumer.start) - 1)
        yield {"ph": "s", **arrow, **_times(timeline, leaves), **places[producer]}
        arrives = _times(timeline, consumer.start)
        yield {"ph": "f", "bp": "e", **arrow, **arrives, **places[consumer]}


def _devices(timeline: Timeline) -> list[str]:
    return list(dict.fromkeys(track.device for track in timeline.tracks))


def _named(what: str, name: str, place: _Event) -> _Event:
    return {"ph": "M", "name": what, **place, "args": {"name": name}}


def _times(timeline: Timeline, start: int, end: int | None = None) -> _Event:
    """When an event happened, in microseconds since the first node began."""
    times = {"ts": (start - timeline.start) / 1000}
    return times if end is None else {**times, "dur": (end - start) / 1000}


_Trace: Any = message_class(POOL.FindMessageTypeByName("perfetto.protos.Trace"))

_SLICE_BEGIN, _SLICE_END, _COUNTER = 1, 2, 4  # types of events
_SIZE_BYTES = 3  # a unit of counters
_CLEARED, _NEEDS_STATE = 1, 2  # a sequence begins; a packet needs the texts interned before it
_SEQUENCE = 1


def write_perfetto_trace(
    step_stats: Message | Sequence[Message], file: str | Path | BinaryIO
) -> None:
    """Write the StepStats of a step, or of several, as a Perfetto trace.

    Args:
        step_stats: The StepStats, opkernel's or TensorFlow's.
        file: A path, or a file that is open for binary writing.

    Raises:
        InvalidArgumentError: no file can have that path.
        OSError: the file cannot be written.
    """
    data = _PerfettoWriter(timeline_of(step_stats)).trace()
    if isinstance(file, str | Path):
        Path(checked_path(file)).write_bytes(data)
    else:
        file.write(data)


class _PerfettoWriter:
    """Writes one trace."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._trace = _Trace()
        self._interned: dict[tuple[str, str], int] = {}
        self._last_uuid = 0
        self._flows_from: dict[Slice, list[int]] = defaultdict(list)
        self._flows_to: dict[Slice, list[int]] = defaultdict(list)
        for number, (producer, consumer) in enumerate(timeline.arrows, 1):
            self._flows_from[producer].append(number)
            self._flows_to[consumer].append(number)

    def trace(self) -> bytes:
        """The whole trace."""
        self._packet(sequence_flags=_CLEARED)
        devices = dict.fromkeys(track.device for track in self._timeline.tracks)
        for pid, device in enumerate(devices, 1):
            process = self._track(process={"pid": pid, "process_name": device})
            self._steps(process)
            for track in self._timeline.tracks:
                if track.device == device:
                    self._slices(track, pid, process)
            for counter in self._timeline.counters:
                if counter.device == device:
                    unit = {"unit": _SIZE_BYTES}
                    uuid = self._track(name=counter.name, parent_uuid=process, counter=unit)
                    for at, value in counter.values:
                        self._event(at, uuid, _COUNTER).counter_value = value
        data: bytes = self._trace.SerializeToString()
        return data

    def _steps(self, process: int) -> None:
        """A track that shows the steps, if there are several."""
        if len(self._timeline.steps) < 2:
            return
        uuid = self._track(name="steps", parent_uuid=process)
        for number, (start, end) in enumerate(self._timeline.steps, 1):
            self._event(start, uuid, _SLICE_BEGIN, f"step {number}")
            self._event(end, uuid, _SLICE_END)

    def _slices(self, track: Track, pid: int, process: int) -> None:
        if track.is_thread and track.thread_id:
            thread = {"pid": pid, "tid": track.thread_id, "thread_name": track.name}
            uuid = self._track(parent_uuid=process, thread=thread)
        else:
            uuid = self._track(parent_uuid=process, name=track.name)
        under_way: list[Slice] = []
        for one in track.slices:
            while under_way and under_way[-1].end <= one.start:
                self._event(under_way.pop().end, uuid, _SLICE_END)
            self._begin(one, uuid)
            under_way.append(one)
        while under_way:
            self._event(under_way.pop().end, uuid, _SLICE_END)

    def _begin(self, one: Slice, uuid: int) -> None:
        event = self._event(one.start, uuid, _SLICE_BEGIN, one.op)
        event.flow_ids.extend(self._flows_from[one])
        event.terminating_flow_ids.extend(self._flows_to[one])
        for name, value in arguments_of(one).items():
            annotation = event.debug_annotations.add(
                name_iid=self._iid("debug_annotation_names", name)
            )
            if isinstance(value, int):
                annotation.int_value = value
            else:
                annotation.string_value_iid = self._iid("debug_annotation_string_values", value)

    def _event(self, at: int, uuid: int, kind: int, name: str = "") -> Any:
        packet = self._packet(timestamp=at, sequence_flags=_NEEDS_STATE)
        event = packet.track_event
        event.type, event.track_uuid = kind, uuid
        if name:
            event.name_iid = self._iid("event_names", name)
            event.categories.append("op")
        return event

    def _track(self, **descriptor: Any) -> int:
        """A new track; its number."""
        self._last_uuid += 1
        self._packet(track_descriptor={"uuid": self._last_uuid, **descriptor})
        return self._last_uuid

    def _packet(self, **fields: Any) -> Any:
        return self._trace.packet.add(trusted_packet_sequence_id=_SEQUENCE, **fields)

    def _iid(self, kind: str, text: str) -> int:
        """The number of a text, which the last packet brings along if it is new."""
        number = self._interned.get((kind, text))
        if number is None:
            number = self._interned[kind, text] = len(self._interned) + 1
            interned = self._trace.packet[-1].interned_data
            getattr(interned, kind).add(iid=number, str=text.encode())
        return number
