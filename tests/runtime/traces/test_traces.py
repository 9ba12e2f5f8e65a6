"""Trace files: Perfetto's, read byte by byte by the numbers of its schema, and Chrome's."""

import io
import json
from collections import defaultdict

import pytest
from tests.runtime.traces.recorded import DEVICE, START, recorded_step

from opkernel.runtime.traces import write_chrome_trace, write_perfetto_trace

# Of protos/perfetto/trace/trace_packet.proto and track_event/*.proto.
TIMESTAMP, SEQUENCE_ID, TRACK_EVENT, INTERNED_DATA, SEQUENCE_FLAGS, TRACK_DESCRIPTOR = (
    8, 10, 11, 12, 13, 60,
)  # fmt: skip
ANNOTATIONS, TYPE, NAME_IID, TRACK_UUID, CATEGORIES, COUNTER_VALUE, FLOWS, ENDING_FLOWS = (
    4, 9, 10, 11, 22, 30, 47, 48,
)  # fmt: skip
SLICE_BEGIN, SLICE_END, COUNTER = 1, 2, 4


def fields(data):
    """The fields of a message: number to values, which are integers or bytes."""
    found, place = defaultdict(list), 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            value = data[place : place + size]
            place += size
            if key & 7 != 2:
                value = int.from_bytes(value, "little")
        found[key >> 3].append(value)
    return found


class Trace:
    """A Perfetto trace, taken apart."""

    def __init__(self, data):
        self.packets = [fields(packet) for packet in fields(data)[1]]
        self.texts: dict[int, dict[int, str]] = {
            2: {},
            3: {},
            29: {},
        }  # names of events, of annotations, their texts
        self.tracks, self.events = {}, defaultdict(list)
        for packet in self.packets:
            assert packet[SEQUENCE_ID] == [1]
            for interned in map(fields, packet[INTERNED_DATA]):
                for kind, texts in interned.items():
                    for text in map(fields, texts):
                        self.texts[kind][text[1][0]] = text[2][0].decode()
            for descriptor in map(fields, packet[TRACK_DESCRIPTOR]):
                self.tracks[descriptor[1][0]] = descriptor
            for event in map(fields, packet[TRACK_EVENT]):
                assert event[TRACK_UUID][0] in self.tracks
                self.events[event[TRACK_UUID][0]].append((packet[TIMESTAMP][0], event))

    def name(self, event):
        return self.texts[2][event[NAME_IID][0]]

    def annotations(self, event):
        found = {}
        for annotation in map(fields, event[ANNOTATIONS]):
            text = annotation.get(17)
            value = annotation[4][0] if text is None else self.texts[29][text[0]]
            found[self.texts[3][annotation[1][0]]] = value
        return found


@pytest.fixture(scope="module")
def trace():
    file = io.BytesIO()
    write_perfetto_trace(recorded_step(), file)
    return Trace(file.getvalue())


def test_the_sequence_begins_anew_and_packets_need_what_was_before(trace):
    assert trace.packets[0][SEQUENCE_FLAGS] == [1]
    assert all(p[SEQUENCE_FLAGS] == [2] for p in trace.packets[1:] if p[TRACK_EVENT])


def test_a_device_is_a_process_with_its_threads(trace):
    process, *others = trace.tracks.values()
    assert fields(process[3][0]) == {1: [1], 6: [DEVICE.encode()]}
    assert all(track[5] == process[1] for track in others)  # their parent
    (thread,) = (track for track in others if track[4])
    assert fields(thread[4][0]) == {1: [1], 2: [7], 5: [b"MainThread"]}
    assert [track[2][0] for track in others if track[2]] == [
        b"side by side 1",
        b"side by side 2",
        b"memory in use (cpu)",
    ]


def test_slices_are_pairs_in_order_one_within_the_other(trace):
    (thread,) = (uuid for uuid, track in trace.tracks.items() if track[4])
    shown = [
        (at - START, trace.name(event) if event[TYPE] == [SLICE_BEGIN] else "end")
        for at, event in trace.events[thread]
    ]
    assert shown == [
        (0, "PartitionedCall"),
        (10_000, "Mul"),
        (40_000, "end"),
        (40_000, "AddV2"),
        (90_000, "end"),
        (100_000, "end"),
        (100_000, "Neg"),
        (150_000, "end"),
    ]


def begins(trace):
    return {
        trace.annotations(event)["node"]: event
        for events in trace.events.values()
        for _, event in events
        if event[TYPE] == [SLICE_BEGIN]
    }


def test_slices_tell_what_they_are_of(trace):
    assert trace.annotations(begins(trace)["last"]) == {
        "node": "last",
        "inputs": "call:0, wait_2",
        "outputs": "float[262144]",
        "output bytes": 2**20,
        "kernel ns": 48_000,
        "ready before start ns": 2_000,
    }
    assert begins(trace)["last"][CATEGORIES] == [b"op"]


def test_flows_lead_along_the_edges(trace):
    events = begins(trace)
    starts = {flow: name for name, event in events.items() for flow in flow_ids(event[FLOWS])}
    edges = {
        (starts[flow], name)
        for name, event in events.items()
        for flow in flow_ids(event[ENDING_FLOWS])
    }
    assert edges == {
        ("call", "last"),
        ("call/a", "call/b"),
        ("wait_1", "call/b"),
        ("wait_2", "last"),
    }


def flow_ids(values):
    assert all(isinstance(value, int) for value in values)  # fixed64, each by itself
    return values


def test_memory_in_use_is_a_counter_of_bytes(trace):
    (uuid,) = (uuid for uuid, track in trace.tracks.items() if track[8])
    assert fields(trace.tracks[uuid][8][0]) == {3: [3]}  # the unit is bytes
    assert [(at - START, event[TYPE], event[COUNTER_VALUE][0]) for at, event in trace.events[uuid]] == [
        (40_000, [COUNTER], 8),
        (90_000, [COUNTER], 16),
        (100_000, [COUNTER], 24),
        (150_000, [COUNTER], 24 + 2**20),
        (160_000, [COUNTER], 0),
    ]  # fmt: skip


def test_several_steps_have_a_track_that_tells_them_apart(tmp_path):
    path = tmp_path / "steps.perfetto"
    write_perfetto_trace([recorded_step(), recorded_step(START + 10**6)], path)
    trace = Trace(path.read_bytes())
    (uuid,) = (uuid for uuid, track in trace.tracks.items() if track[2] == [b"steps"])
    assert [at - START for at, _ in trace.events[uuid]] == [0, 150_000, 10**6, 1_150_000]
    assert trace.name(trace.events[uuid][2][1]) == "step 2"


# Chrome's format


@pytest.fixture(scope="module")
def chrome():
    file = io.StringIO()
    write_chrome_trace(recorded_step(), file)
    return json.loads(file.getvalue())


def test_complete_events_are_in_microseconds_from_the_start(chrome):
    slices = [event for event in chrome["traceEvents"] if event["ph"] == "X"]
    assert {(e["args"]["node"], e["name"], e["ts"], e["dur"]) for e in slices} == {
        ("call", "PartitionedCall", 0.0, 100.0),
        ("call/a", "Mul", 10.0, 30.0),
        ("call/b", "AddV2", 40.0, 50.0),
        ("wait_1", "Wait", 5.0, 25.0),
        ("wait_2", "Wait", 20.0, 40.0),
        ("last", "Neg", 100.0, 50.0),
    }


def test_every_event_is_of_a_named_process_and_thread(chrome):
    names = {
        (event["name"], event["pid"], event["tid"]): event["args"].get("name")
        for event in chrome["traceEvents"]
        if event["ph"] == "M"
    }
    assert names["process_name", 1, 0] == DEVICE
    for event in chrome["traceEvents"]:
        if event["ph"] in "Xsf":
            assert names["thread_name", event["pid"], event["tid"]]


def test_arrows_bind_to_the_slices_at_both_ends(chrome):
    events = chrome["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]

    def slice_at(arrow):
        """The innermost slice that an end of an arrow lies in."""
        (*_, found) = sorted(
            (
                event
                for event in slices
                if event["tid"] == arrow["tid"]
                and event["ts"] <= arrow["ts"] <= event["ts"] + event["dur"]
            ),
            key=lambda event: event["ts"],
        )
        return found["args"]["node"]

    ends = {kind: {e["id"]: e for e in events if e["ph"] == kind} for kind in "sf"}
    assert all(event["bp"] == "e" for event in ends["f"].values())
    edges = {(slice_at(ends["s"][i]), slice_at(ends["f"][i])) for i in ends["s"]}
    assert edges == {
        ("call", "last"),
        ("call/a", "call/b"),
        ("wait_1", "call/b"),
        ("wait_2", "last"),
    }
    assert all(ends["s"][i]["ts"] <= ends["f"][i]["ts"] for i in ends["s"])


def test_counters_and_steps(chrome, tmp_path):
    counted = [(e["ts"], e["args"]["bytes"]) for e in chrome["traceEvents"] if e["ph"] == "C"]
    assert counted[0] == (40.0, 8)
    assert counted[-1] == (160.0, 0)
    path = tmp_path / "steps.json"
    write_chrome_trace([recorded_step(), recorded_step(START + 10**6)], path)
    events = json.loads(path.read_text())["traceEvents"]
    assert [e["ts"] for e in events if e["name"] in ("step 1", "step 2")] == [0.0, 1000.0]


def test_a_file_that_cannot_be_written_is_an_os_error(tmp_path):
    for write in (write_perfetto_trace, write_chrome_trace):
        with pytest.raises(OSError):  # noqa: PT011  # which one, the system says
            write(recorded_step(), tmp_path / "nowhere" / "trace")
