"""What StepStats tell, laid out: tracks, arrows, memory, and where the time went."""

import io

import pytest
from tests.runtime.traces.recorded import DEVICE, START, recorded_step

from opkernel.proto import StepStats
from opkernel.runtime.traces import profile_of, write_chrome_trace, write_perfetto_trace
from opkernel.runtime.traces.timeline import timeline_of


def test_what_a_thread_ran_is_nested_and_what_waited_lies_side_by_side():
    tracks = timeline_of(recorded_step()).tracks
    assert [(track.name, track.thread_id, [s.name for s in track.slices]) for track in tracks] == [
        ("side by side 1", 0, ["wait_1"]),
        ("side by side 2", 0, ["wait_2"]),
        ("MainThread", 7, ["call", "call/a", "call/b", "last"]),
    ]


def test_a_thread_that_overlaps_itself_has_more_tracks():
    step = recorded_step()
    step.dev_stats[0].node_stats.add(
        node_name="odd", thread_id=7, all_start_nanos=START + 90_000, all_end_rel_nanos=20_000
    )
    names = [track.name for track in timeline_of(step).tracks if "odd" in track_names(track)]
    assert names == ["MainThread, overlapping 1"]


def track_names(track):
    return [one.name for one in track.slices]


def test_labels_tell_the_op_and_the_inputs():
    slices = {
        one.name: one for track in timeline_of(recorded_step()).tracks for one in track.slices
    }
    assert (slices["call/b"].op, slices["call/b"].inputs) == (
        "AddV2",
        ["call/a", "call/a", "^wait_1"],
    )
    assert (slices["last"].op, slices["last"].outputs) == ("Neg", "float[262144]")
    assert (slices["wait_1"].op, slices["wait_1"].inputs) == ("Wait", [])
    assert slices["call"].inside == 80_000


def test_arrows_lead_from_producers_to_consumers():
    arrows = [(a.name, b.name) for a, b in timeline_of(recorded_step()).arrows]
    assert sorted(arrows) == [
        ("call", "last"),
        ("call/a", "call/b"),
        ("wait_1", "call/b"),
        ("wait_2", "last"),
    ]


def test_in_loops_arrows_lead_from_the_turn_before():
    step = StepStats()
    device = step.dev_stats.add(device=DEVICE)
    for turn in range(3):
        for offset, label in ((0, "add = AddV2(next, one)"), (10, "next = Identity(add)")):
            device.node_stats.add(
                node_name=label.split(" = ")[0],
                timeline_label=label,
                all_start_nanos=START + 100 * turn + offset,
                all_end_rel_nanos=5,
            )
    arrows = timeline_of(step).arrows
    found = [(a.name, a.start - START, b.name, b.start - START) for a, b in arrows]
    assert found == [
        ("add", 0, "next", 10),
        ("next", 10, "add", 100),
        ("add", 100, "next", 110),
        ("next", 110, "add", 200),
        ("add", 200, "next", 210),
    ]


def test_memory_in_use_changes_with_each_allocation():
    (counter,) = timeline_of(recorded_step()).counters
    assert (counter.device, counter.name) == (DEVICE, "memory in use (cpu)")
    assert [(at - START, value) for at, value in counter.values] == [
        (40_000, 8),
        (90_000, 16),
        (100_000, 24),
        (150_000, 24 + 2**20),
        (160_000, 0),
    ]


def test_steps_are_told_apart():
    timeline = timeline_of([recorded_step(), recorded_step(START + 10**6)])
    assert timeline.steps == [
        (START, START + 150_000),
        (START + 10**6, START + 10**6 + 150_000),
    ]
    assert len(timeline.arrows) == 8


def test_statistics_in_microseconds_alone_are_understood():
    step = StepStats()
    stats = step.dev_stats.add(device="d").node_stats.add(node_name="edge_1_y")
    stats.all_start_micros, stats.scheduled_micros = 1_000, 990
    stats.op_start_rel_micros, stats.op_end_rel_micros, stats.all_end_rel_micros = 1, 6, 7
    (track,) = timeline_of(step).tracks
    (one,) = track.slices
    assert (one.op, one.start, one.end, one.compute) == ("edge_1_y", 10**6, 1_007_000, 5_000)
    assert one.scheduled == 990_000


def test_nothing_gives_an_empty_timeline():
    timeline = timeline_of(StepStats())
    assert (timeline.tracks, timeline.counters, timeline.start) == ([], [], 0)
    assert profile_of(StepStats()).seconds == 0


@pytest.mark.parametrize("steps", [1, 2])
def test_the_profile_tells_the_own_time_of_each_node(steps):
    profile = profile_of([recorded_step(START + i * 10**6) for i in range(steps)])
    assert profile.steps == pytest.approx([150e-6] * steps)
    told = [(row.name, row.op, row.calls, round(row.seconds * 1e6)) for row in profile.nodes]
    assert sorted(told) == [
        ("call", "PartitionedCall", 1, 18),  # 98 without the 80 of what is inside
        ("call/a", "Mul", 1, 28),
        ("call/b", "AddV2", 1, 48),
        ("last", "Neg", 1, 48),
        ("wait_1", "Wait", 1, 23),
        ("wait_2", "Wait", 1, 38),
    ]
    assert [row.seconds for row in profile.nodes] == sorted(
        (row.seconds for row in profile.nodes), reverse=True
    )
    (waits,) = (row for row in profile.ops if row.op == "Wait")
    assert (waits.calls, round(waits.seconds * 1e6), waits.output_bytes) == (2, 61, 0)
    assert profile.seconds == pytest.approx(203e-6)


def test_odd_statistics_are_shown_as_well_as_can_be():
    step = StepStats()
    stats = step.dev_stats.add(device="d").node_stats.add(
        node_name="odd", timeline_label="no label", all_start_nanos=-5, all_end_rel_nanos=-10
    )
    stats.output.add().tensor_description.dtype = 999
    (one,) = timeline_of(step).tracks[0].slices
    assert (one.op, one.inputs, one.start, one.end, one.outputs) == ("odd", [], 0, 0, "type 999[]")
    binary, text = io.BytesIO(), io.StringIO()
    write_perfetto_trace(step, binary)
    write_chrome_trace(step, text)
    assert binary.getvalue()
    assert text.getvalue()
