"""`opkernel.summary`: the events are those of `tf.summary`, at once and in traced functions; files read back."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, raw_ops, summary
from opkernel.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from opkernel.io import TFRecordWriter, tf_record_iterator
from opkernel.types import object_scalar

WALL_TIME = 9
"""So many bytes of an event tell its time."""

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x01\x08\x00\x00\x00\x00\xd1I V"
    b"\x00\x00\x00\x0bIDAT\x08\x99c`\xf8\x0f\x00\x01\x02\x01\x00Z\xb5%\xdf\x00\x00\x00\x00IEND\xaeB`\x82"
)
WAV = b"RIFF(\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0data\x04\0\0\0\0@\0\x80"
DOUBLE = np.dtype("<f8")


def histogram_event(rows: Any) -> bytes:
    content = np.array(rows, DOUBLE).tobytes()
    shape = b"\x12\x08\x12\x02\x08" + bytes([len(rows)]) + b"\x12\x02\x08\x03"
    tensor = b"\x08\x02" + shape + b'"' + bytes([len(content)]) + content
    value = b"\n\x01hB" + bytes([len(tensor)]) + tensor + b"J\x0e\n\x0c\n\nhistograms"
    return b"\x10\x01*" + bytes([len(value) + 2]) + b"\n" + bytes([len(value)]) + value


# What tf.summary's functions write behind the time of the event, for step 1.
CALLS: dict[str, tuple[Callable[..., bool], tuple[Any, ...], dict[str, Any], bytes]] = {
    "scalar": (
        summary.scalar,
        ("s", np.float64(0.5)),
        {"description": "d"},
        b'\x10\x01*!\n\x1f\n\x01sB\n\x08\x01\x12\x00"\x04\x00\x00\x00?J\x0e\n\t\n\x07scalars\x1a\x01d',
    ),
    "histogram": (
        summary.histogram,
        ("h", np.array([1.0, 2, 2, 4])),
        {"buckets": 3},
        histogram_event([[1, 2, 1], [2, 3, 2], [3, 4, 1]]),
    ),
    "equal numbers": (
        summary.histogram,
        ("h", np.array([[5], [5]])),
        {"buckets": 2},
        histogram_event([[5, 5, 0], [5, 5, 2]]),
    ),
    "no numbers": (
        summary.histogram,
        ("h", np.zeros(0)),
        {"buckets": 1},
        histogram_event([[0, 0, 0]]),
    ),
    "image": (
        summary.image,
        ("i", np.array([[[[0.0], [2]]]], np.float32)),
        {},
        b"\x10\x01*g\ne\n\x01iBT\x08\x07\x12\x04\x12\x02\x08\x03B\x012B\x011BD"
        + PNG
        + b"J\n\n\x08\n\x06images",
    ),
    "audio": (
        summary.audio,
        ("a", np.array([[[0.5], [-1]]], np.float32), np.int32(8000)),
        {},
        b"\x10\x01*V\nT\n\x01aB@\x08\x07\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02B0"
        + WAV
        + b"B\x00J\r\n\x0b\n\x05audio\x12\x02\x10\x0b",
    ),
    "text": (
        summary.text,
        ("t", np.array([b"a", b"b"], object)),
        {},
        b"\x10\x01*\x1f\n\x1d\n\x01tB\x0e\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x01bJ\x08\n\x06\n\x04text",
    ),
}


def events(logdir: Path) -> list[bytes]:
    """The events of the only file behind the first one, without their times."""
    (path,) = logdir.iterdir()
    return [record[WALL_TIME:] for record in tf_record_iterator(path)][1:]


@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_events_are_those_of_tensorflow(tmp_path: Path, name: str, is_traced: bool) -> None:
    write, (tag, data, *rest), options, event = CALLS[name]

    @opkernel.function
    def traced(data: Any, step: Any) -> Any:
        assert write(tag, data, *rest, step=step, **options)
        return opkernel.identity(data)

    with summary.create_file_writer(tmp_path) as writer, writer.as_default():
        if is_traced:
            traced(data, np.int64(1))
            assert traced(data, np.int64(1)) is not None
        else:
            assert write(tag, data, *rest, step=1, **options)
    assert events(tmp_path) == [event] * (1 + is_traced)


def test_the_step_and_the_condition_are_those_of_the_block(tmp_path: Path) -> None:
    writer = summary.create_file_writer(tmp_path, filename_suffix=".mine")
    assert not summary.scalar("s", 1.0, step=1)
    with writer.as_default():
        with pytest.raises(InvalidArgumentError, match="needs a step"):
            summary.scalar("s", 1.0)
        with writer.as_default(step=5):
            assert summary.scalar("s", 1.0)
        try:
            summary.experimental.set_step(opkernel.Variable(np.int64(7)))
            assert summary.scalar("s", 1.0)
        finally:
            summary.experimental.set_step(None)
        for condition in (False, lambda: False):
            with summary.record_if(condition):
                assert not summary.scalar("s", 1.0, step=1)
                assert not summary.should_record_summaries()
        assert summary.write("raw", lambda: np.arange(2), step=8)
        summary.flush()
    (path,) = tmp_path.iterdir()
    assert path.suffix == ".mine"
    assert [event.step for event in summary.summary_iterator(path)] == [0, 5, 7, 8]
    writer.close()


def test_a_closed_writer_writes_no_more(tmp_path: Path) -> None:
    writer = summary.create_file_writer(tmp_path)
    writer.close()
    writer.close()
    writer.flush()
    for call in (writer.as_default, writer.set_as_default, lambda: writer.handle):
        with pytest.raises(FailedPreconditionError, match="already closed"):
            call()
    with summary.create_file_writer(tmp_path / "other") as writer, writer.as_default():
        writer.close()
        with pytest.raises(FailedPreconditionError, match="already closed"):
            summary.scalar("s", 1.0, step=1)


WRONG: dict[str, Callable[[], Any]] = {
    "vector as scalar": lambda: summary.scalar("s", [1.0], step=1),
    "numbers as text": lambda: summary.text("t", 3, step=1),
    "step": lambda: summary.scalar("s", 1.0, step=0.5),
    "large step": lambda: summary.scalar("s", 1.0, step=2**63),
    "tag": lambda: summary.scalar(3, 1.0, step=1),  # type: ignore[arg-type]
    "buckets": lambda: summary.histogram("h", [1.0], step=1, buckets="a"),  # type: ignore[arg-type]
    "image of rank 3": lambda: summary.image("i", np.zeros((2, 2, 1)), step=1),
    "image of 5 channels": lambda: summary.image("i", np.zeros((1, 2, 2, 5)), step=1),
    "max_outputs": lambda: summary.image("i", np.zeros((1, 2, 2, 1)), step=1, max_outputs=-1),
    "sound of rank 2": lambda: summary.audio("a", np.zeros((2, 2)), 10, step=1),
    "encoding": lambda: summary.audio("a", np.zeros((1, 2, 1)), 10, step=1, encoding="mp3"),
    "metadata": lambda: summary.write("w", 1.0, step=1, metadata="x"),
    "graph": lambda: summary.graph(3),  # type: ignore[arg-type]
    "logdir": lambda: summary.create_file_writer(3),  # type: ignore[arg-type]
    "queue": lambda: summary.create_file_writer("x", max_queue=2**31),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_are_refused(tmp_path: Path, name: str) -> None:
    writer = summary.create_file_writer(tmp_path)
    with writer.as_default(), pytest.raises(InvalidArgumentError):
        WRONG[name]()
    writer.close()
    assert events(tmp_path) == []


def test_a_graph_is_written(tmp_path: Path) -> None:
    with Graph().as_default() as graph:
        opkernel.constant(1.0, name="one")
    with summary.create_file_writer(tmp_path) as writer, writer.as_default():
        assert summary.graph(graph)
        assert summary.graph(graph.as_graph_def())
    (path,) = tmp_path.iterdir()
    written = [event.graph_def for event in summary.summary_iterator(path)][1:]
    nodes = [
        [node.name for node in opkernel.proto.GraphDef.FromString(one).node] for one in written
    ]
    assert nodes == [["one"]] * 2


@pytest.fixture
def session() -> Iterator[Any]:
    """A session, and the merged summaries of its graph, as TensorFlow 1 makes them."""
    with Graph().as_default() as graph:
        number = opkernel.placeholder(opkernel.float32, [], name="number")
        merged = raw_ops.MergeSummary(
            inputs=[
                raw_ops.ScalarSummary(tags=object_scalar(b"loss"), values=number),
                raw_ops.TensorSummaryV2(
                    tag=object_scalar(b"text"),
                    tensor=object_scalar(b"hello"),
                    serialized_summary_metadata=object_scalar(b"\n\x06\n\x04text"),
                ),
            ]
        )
    with Session(graph) as session:
        yield lambda value: session.run(merged, {number: value}), graph


def test_a_session_writes_its_merged_summaries(tmp_path: Path, session: Any) -> None:
    run, graph = session
    with summary.FileWriter(tmp_path, graph) as writer:
        for step in range(3):
            writer.add_summary(run(step / 2), global_step=step)
        writer.add_event(summary.Event(step=9, wall_time=1.5))
    (path,) = tmp_path.iterdir()
    first, drawn, *found, last = summary.summary_iterator(path)
    assert (first.file_version, last.step, last.wall_time) == ("brain.Event:2", 9, 1.5)
    assert "MergeSummary" in {
        n.op for n in opkernel.proto.GraphDef.FromString(drawn.graph_def).node
    }
    assert [(one.step, one.summary.value[0].simple_value) for one in found] == [(0, 0), (1, 0.5), (2, 1)]  # fmt: skip
    # TensorBoard needs the metadata of a tag once.
    assert [one.summary.value[1].HasField("metadata") for one in found] == [True, False, False]
    assert writer.get_logdir() == str(tmp_path)
    writer.close()
    with pytest.raises(FailedPreconditionError, match="closed"):
        writer.add_summary(b"")


def test_what_is_no_summary_is_refused(tmp_path: Path) -> None:
    with summary.FileWriter(tmp_path) as writer:
        for call in (
            lambda: writer.add_summary(b"\xff"),
            lambda: writer.add_summary(3),  # type: ignore[arg-type]
            lambda: writer.add_summary(b"", 2**63),
            lambda: writer.add_graph(3),  # type: ignore[arg-type]
            lambda: writer.add_event(b""),  # type: ignore[arg-type]
        ):
            with pytest.raises(InvalidArgumentError):
                call()
    assert events(tmp_path) == []


def test_damaged_event_files_are_data_loss(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        summary.summary_iterator(tmp_path / "none")
    with TFRecordWriter(tmp_path / "file") as writer:
        writer.write(b"\xff")
    with pytest.raises(DataLossError, match="no Event"):
        next(summary.summary_iterator(tmp_path / "file"))


def test_a_writer_that_nobody_has_any_more_writes_what_waits(tmp_path: Path) -> None:
    writer = summary.create_file_writer(tmp_path)
    with writer.as_default():
        summary.scalar("s", 1.0, step=1)
    assert events(tmp_path) == []
    del writer
    assert len(events(tmp_path)) == 1
