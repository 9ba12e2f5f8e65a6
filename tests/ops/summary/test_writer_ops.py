"""Ops that write event files: what stands in the files is what TensorFlow's ops write, and permissions hold."""

import gc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opkernel import Graph, Permissions, Session, placeholder, raw_ops
from opkernel.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)
from opkernel.io import tf_record_iterator
from opkernel.proto import Event
from opkernel.summary import summary_iterator
from opkernel.types import int64, object_scalar, string

S = object_scalar
STEP = np.int64(6)
ONE = b"\n\x08\n\x01a\x15\x00\x00\x80?"
WALL_TIME = 9
"""So many bytes of an event tell its time."""


class Writer:
    """The writer of a directory, whose ops are called on arrays."""

    def __init__(self, logdir: Path, **options: Any) -> None:
        self.logdir = logdir
        self.handle = raw_ops.SummaryWriter(shared_name=str(logdir))
        self.create(**options)

    def create(
        self, max_queue: int = 100, flush_millis: int = 10**6, suffix: bytes = b".x"
    ) -> None:
        raw_ops.CreateSummaryFileWriter(
            writer=self.handle,
            logdir=S(bytes(self.logdir)),
            max_queue=np.int32(max_queue),
            flush_millis=np.int32(flush_millis),
            filename_suffix=S(suffix),
        )

    def __call__(self, op: str, **inputs: Any) -> None:
        getattr(raw_ops, op)(writer=self.handle, **inputs)

    @property
    def path(self) -> Path:
        (path,) = self.logdir.iterdir()
        return path

    def written(self) -> list[bytes]:
        """The events behind the first one, without their times."""
        return [record[WALL_TIME:] for record in tf_record_iterator(self.path)][1:]


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "logs" / "run")


def test_a_file_begins_with_its_version(writer: Writer) -> None:
    assert writer.path.name.startswith("events.out.tfevents.")
    assert writer.path.suffix == ".x"
    (first,) = summary_iterator(writer.path)
    assert first.file_version == "brain.Event:2"
    writer.create(suffix=b".other")  # it has begun
    assert writer.path.suffix == ".x"


# What TensorFlow's ops write behind the time of the event.
WRITTEN: list[tuple[str, dict[str, Any], bytes]] = [
    (
        "WriteScalarSummary",
        {"step": STEP, "tag": S(b"s"), "value": np.array([3, 4])},
        b"\x10\x06*\n\n\x08\n\x01s\x15\x00\x00@@",
    ),
    (
        "WriteSummary",
        {"step": -STEP, "tensor": S(b"x"), "tag": S(b"t"), "summary_metadata": S(b"")},
        b"\x10\xfa\xff\xff\xff\xff\xff\xff\xff\xff\x01*\x0e\n\x0c\n\x01tB\x07\x08\x07\x12\x00B\x01x",
    ),
    (
        "WriteSummary",
        {"step": STEP, "tensor": np.float32(3), "tag": S(b"t"), "summary_metadata": S(b"\n\x04\n\x02ab")},
        b'\x10\x06*\x19\n\x17\n\x01tB\n\x08\x01\x12\x00"\x04\x00\x00@@J\x06\n\x04\n\x02ab',
    ),
    (
        "WriteSummary",
        {"step": STEP, "tensor": np.float32(3), "tag": S(b"t"), "summary_metadata": S(b"\xff")},
        b'\x10\x06*\x13\n\x11\n\x01tB\n\x08\x01\x12\x00"\x04\x00\x00@@J\x00',
    ),
    (
        "WriteHistogramSummary",
        {"step": STEP, "tag": S(b"h"), "values": np.zeros(0, ml_dtypes.bfloat16)},
        (b"\x10\x06*-\n+\n\x01h*&\t\xff\xff\xff\xff\xff\xff\xef\x7f\x11\xff\xff\xff\xff\xff\xff\xef\xff"
        b"2\x08\xff\xff\xff\xff\xff\xff\xef\x7f:\x08\x00\x00\x00\x00\x00\x00\x00\x00"),
    ),
    (
        "WriteImageSummary",
        {"step": STEP, "tag": S(b"i"), "tensor": np.uint8([[[[1], [200]]]]), "bad_color": np.uint8([])},
        (b'\x10\x06*[\nY\n\ti/image/0"L\x08\x01\x10\x02\x18\x01"D\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00'
        b"\x00\x00\x02\x00\x00\x00\x01\x08\x00\x00\x00\x00\xd1I V\x00\x00\x00\x0bIDAT\x08\x99c`<\x01\x00"
        b"\x00\xcd\x00\xca\x18\x08S\xc0\x00\x00\x00\x00IEND\xaeB`\x82"),
    ),
    (
        "WriteAudioSummary",
        {"step": STEP, "tag": S(b"a"), "tensor": np.zeros((0, 2), np.float32), "sample_rate": np.float32(1)},
        b"\x10\x06*\x00",
    ),
    ("WriteRawProtoSummary", {"step": STEP, "tensor": np.array([[ONE], [ONE]])}, b"\x10\x06*\x14" + ONE * 2),
    ("WriteRawProtoSummary", {"step": STEP, "tensor": np.array([], object)}, b"\x10\x06"),
    ("WriteGraphSummary", {"step": STEP, "tensor": S(b'"\x03\x08\xaa\x13')}, b'\x10\x06"\x05"\x03\x08\xaa\x13'),
    ("ImportEvent", {"event": S(b"\t\0\0\0\0\0\0\0\x40\x10\x07")}, b"\x10\x07"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "event"), WRITTEN)
def test_events_are_as_tensorflow_writes_them(
    writer: Writer, op: str, inputs: dict[str, Any], event: bytes
) -> None:
    inputs = {name: one.astype(object) if one.dtype.kind == "S" else one for name, one in inputs.items()}  # fmt: skip
    writer(op, **inputs)
    assert writer.written() == []
    writer("FlushSummaryWriter")
    assert writer.written() == [event]
    writer("CloseSummaryWriter")
    assert writer.written() == [event]


REFUSED: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("WriteRawProtoSummary", {"step": STEP, "tensor": np.array([ONE, b"\xff"], object)}, DataLossError, "at index 1"),
    ("WriteGraphSummary", {"step": STEP, "tensor": S(b"\xff")}, DataLossError, "Bad tf.GraphDef"),
    ("ImportEvent", {"event": S(b"\xff")}, DataLossError, "Bad tf.Event"),
    ("ImportEvent", {"event": np.array([b"", b""], object)}, InvalidArgumentError, "one element"),
    ("WriteScalarSummary", {"step": STEP, "tag": S(b"s"), "value": np.zeros(0)}, InvalidArgumentError, "element"),
    ("WriteScalarSummary", {"step": STEP, "tag": S(b"s"), "value": np.ones((), ml_dtypes.bfloat16)}, UnimplementedError, "bfloat16"),
    ("WriteHistogramSummary", {"step": STEP, "tag": S(b"h"), "values": np.array([np.nan])}, InvalidArgumentError, "Nan in summary histogram for: h"),
    ("WriteHistogramSummary", {"step": STEP, "tag": S(b"h"), "values": np.ones(1, ml_dtypes.bfloat16)}, UnimplementedError, "bfloat16"),
    ("WriteImageSummary", {"step": STEP, "tag": S(b"i"), "tensor": np.zeros((1, 1, 1, 3), np.float32), "bad_color": np.uint8([1])}, InvalidArgumentError, "bad_color.size = 1"),
    ("WriteAudioSummary", {"step": STEP, "tag": S(b"a"), "tensor": np.zeros((1, 1), np.float32), "sample_rate": np.float32(-1)}, InvalidArgumentError, "must be > 0"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "error", "message"), REFUSED)
def test_what_is_refused_is_not_written(
    writer: Writer, op: str, inputs: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        writer(op, **inputs)
    writer("CloseSummaryWriter")
    assert writer.written() == []


def test_a_full_queue_is_written(tmp_path: Path) -> None:
    scalar = {"step": STEP, "tag": S(b"s"), "value": np.float32(1)}
    for max_queue, flush_millis, written in ((1, 10**6, [0, 2, 2]), (0, -1, [1, 2, 3]), (-1, 0, [1, 2, 3])):  # fmt: skip
        writer = Writer(tmp_path / f"{max_queue}", max_queue=max_queue, flush_millis=flush_millis)
        for count in written:
            writer("WriteScalarSummary", **scalar)
            assert len(writer.written()) == count
        writer("CloseSummaryWriter")


def test_a_writer_that_has_not_begun_or_has_ended_is_not_found(
    writer: Writer, tmp_path: Path
) -> None:
    writer("CloseSummaryWriter")
    for op in ("FlushSummaryWriter", "CloseSummaryWriter"):
        with pytest.raises(NotFoundError):
            writer(op)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FailedPreconditionError, match="Not a directory"):
        Writer(tmp_path / "file")


def test_a_graph_writes_only_where_it_may(tmp_path: Path) -> None:
    with Graph().as_default() as graph:
        writer = raw_ops.SummaryWriter(shared_name="w")
        step = placeholder(int64, [])
        logdir = placeholder(string, [])
        begin = raw_ops.CreateSummaryFileWriter(
            writer=writer,
            logdir=logdir,
            max_queue=np.int32(10),
            flush_millis=np.int32(10**6),
            filename_suffix=S(b""),
        )
        write = raw_ops.WriteScalarSummary(
            writer=writer, step=step, tag=S(b"s"), value=np.float32(1)
        )
        end = raw_ops.CloseSummaryWriter(writer=writer)
    allowed = tmp_path / "allowed"
    session = Session(graph, permissions=Permissions(write=[allowed]))
    for place in (tmp_path / "other", allowed / ".." / "other"):
        with pytest.raises(PermissionDeniedError, match="the graph may not write this file"):
            session.run(begin, {logdir: bytes(place)})
    assert not (tmp_path / "other").exists()
    session.run(begin, {logdir: bytes(allowed)})
    for number in range(3):
        session.run(write, {step: number})
    session.run(end)
    (path,) = allowed.iterdir()
    assert [event.step for event in summary_iterator(path)][1:] == [0, 1, 2]
    assert all(isinstance(event, Event) for event in summary_iterator(path))


def test_a_session_that_is_dropped_writes_what_waits(tmp_path: Path) -> None:
    with Graph().as_default() as graph:
        writer = raw_ops.SummaryWriter(shared_name="dropped")
        created = raw_ops.CreateSummaryFileWriter(
            writer=writer,
            logdir=bytes(tmp_path),
            max_queue=10,
            flush_millis=10**6,
            filename_suffix=b"",
        )
        with graph.control_dependencies([created]):
            wrote = raw_ops.WriteScalarSummary(writer=writer, step=STEP, tag=b"t", value=1.5)
    session = Session(graph, permissions=Permissions(write=[tmp_path]))
    session.run(wrote)
    del session
    gc.collect()
    (path,) = tmp_path.iterdir()
    assert [event.step for event in summary_iterator(path)] == [0, 6]
