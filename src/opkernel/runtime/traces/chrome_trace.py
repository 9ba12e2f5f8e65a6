"""Traces in Chrome's JSON format, which chrome://tracing, Perfetto and others open.

Source: the Trace Event Format of Chromium's trace viewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from opkernel.escaping import json_text
from opkernel.file_errors import checked_path
from opkernel.proto import Message
from opkernel.runtime.traces.timeline import Slice, Timeline, arguments_of, timeline_of

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
