"""Readers that wait, in several threads, until they are told to stop; files and memory that are not allowed."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.ops.data_flow.waiting_steps import WAIT_S, no_threads_left, started
from tests.ops.readers.reading import Reading, tf_record

from opkernel import Graph, Permissions, RunOptions, Session, SessionConfig, raw_ops
from opkernel.device.budget import Budget, spending
from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from opkernel.ops.files.reader_formats import TextLineReader
from opkernel.types import float32, int32, string

SOON = RunOptions(timeout_in_ms=100)
EXECUTORS = ["", "COMPILED_PLAN", "DATAFLOW"]


def in_session(tmp_path: Path, **options: Any) -> dict[str, Any]:
    return {"session": {"permissions": Permissions(read=tmp_path), **options}}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for i in range(4):
        lines = "".join(f"{i} {line}\n" for line in range(50))
        (tmp_path / f"f{i}").write_text(lines)
    return tmp_path


@pytest.mark.parametrize("executor_type", EXECUTORS)
def test_a_read_waits_for_a_name(files: Path, executor_type: str) -> None:
    reading = Reading("TextLineReader", files, **in_session(files, executor_type=executor_type))
    first, second = started(reading.read), started(reading.read_up_to, 2)
    assert not first.done()
    assert reading.counts == (0, 0)  # tells at once, though a read waits
    reading.put("f0")
    found = [first.result(WAIT_S), *second.result(WAIT_S)]
    assert sorted(found) == [("f0:1", b"0 0"), ("f0:2", b"0 1"), ("f0:3", b"0 2")]


def test_reads_and_resets_take_turns(files: Path) -> None:
    reading = Reading("IdentityReader", files)
    reading.put(b"a").read()
    read = started(reading.read)
    state, reset = started(reading.serialize), started(reading.reset)
    assert not state.done()
    assert not reset.done()
    reading.put(b"b")
    assert read.result(WAIT_S) == ("b", b"b")
    assert state.result(WAIT_S) == b'\x08\x02\x10\x02\x18\x02"\x01b'
    reset.result(WAIT_S)
    assert reading.counts == (0, 0)


@pytest.mark.parametrize("executor_type", EXECUTORS)
def test_a_timeout_ends_a_wait(files: Path, executor_type: str) -> None:
    reading = Reading("TextLineReader", files, **in_session(files, executor_type=executor_type))
    with no_threads_left():
        waiting = started(reading.read)
        with pytest.raises(DeadlineExceededError):  # waits for its turn
            reading.read(options=SOON)
        reading.put("f0")
        assert waiting.result(WAIT_S) == ("f0:1", b"0 0")
        reading.reset()
        with pytest.raises(DeadlineExceededError):  # waits for the queue
            reading.read_up_to(3, options=SOON)
        reading.put("f1")
        assert reading.read() == ("f1:1", b"1 0")


@pytest.mark.parametrize("executor_type", EXECUTORS)
def test_closing_the_session_ends_all_waits(files: Path, executor_type: str) -> None:
    reading = Reading("TextLineReader", files, **in_session(files, executor_type=executor_type))
    with no_threads_left():
        waits = [started(reading.read), started(reading.read_up_to, 3)]
        reading.session.close()
        for wait in waits:
            with pytest.raises(CancelledError):
                wait.result(WAIT_S)


def test_closing_the_queue_ends_all_waits(files: Path) -> None:
    reading = Reading("TextLineReader", files)
    waits = [started(reading.read), started(reading.read_up_to, 3)]
    reading.close_queue()
    for wait in waits:
        with pytest.raises(OutOfRangeError):
            wait.result(WAIT_S)


def test_an_endless_batch_is_cancelled(files: Path) -> None:
    reading = Reading("FixedLengthRecordReader", files, record_bytes=0).put("f0")
    with pytest.raises(DeadlineExceededError):
        reading.read_up_to(2**62, options=SOON)
    assert reading.read()[1] == b""


def test_a_timeout_within_a_record(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * (1 << 20))
    (tmp_path / "g").write_bytes(b"y")
    reader = TextLineReader(0, "r")
    ctx: Any = SimpleNamespace(permissions=Permissions(read=tmp_path))
    reader.state.current_work = bytes(tmp_path / "f")
    reader.start_work(ctx)
    with spending(Budget(deadline=0.0)), pytest.raises(DeadlineExceededError):
        reader.read_record(ctx)
    with pytest.raises(FailedPreconditionError, match="has to be reset"):
        reader.read_record(ctx)
    reader.finish_work()
    reader.state.current_work = bytes(tmp_path / "g")
    reader.start_work(ctx)
    assert reader.read_record(ctx) == (bytes(tmp_path / "g") + b":1", b"y")
    reader.finish_work()


def test_a_wait_ends_when_another_node_of_the_step_fails(files: Path) -> None:
    reading = Reading("TextLineReader", files)
    with reading.graph.as_default():
        fails = raw_ops.CheckNumerics(tensor=np.float32(np.nan), message="broken")
    with pytest.raises(InvalidArgumentError, match="broken"):
        reading.session.run([reading._read, fails])
    assert reading.put("f0").read() == ("f0:1", b"0 0")


def test_each_record_goes_to_one_of_several_threads(files: Path) -> None:
    reading = Reading("TextLineReader", files)
    found: list[list[tuple[str, bytes]]] = [[] for _ in range(4)]

    def take(index: int) -> None:
        try:
            while True:
                found[index] += reading.read_up_to(7) if index % 2 else [reading.read()]
        except OutOfRangeError:
            return

    threads = [threading.Thread(target=take, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    reading.put(*(f"f{i}" for i in range(4))).close_queue()
    for thread in threads:
        thread.join(WAIT_S)
    expected = {
        (f"f{i}:{line + 1}", f"{i} {line}".encode()) for i in range(4) for line in range(50)
    }
    records = [record for part in found for record in part]
    assert len(records) == 200
    assert set(records) == expected
    assert reading.counts == (200, 4)


def test_many_empty_files_at_once(files: Path) -> None:
    (files / "empty").write_bytes(b"")
    with Graph().as_default() as graph:
        queue = raw_ops.FIFOQueueV2(component_types=[string])
        names = np.array([bytes(files / "empty")] * 3000 + [bytes(files / "f0")], object)
        put = raw_ops.QueueEnqueueManyV2(handle=queue, components=[names])
        reader = raw_ops.TextLineReaderV2()
        read = raw_ops.ReaderReadV2(reader_handle=reader, queue_handle=queue)
        files_done = raw_ops.ReaderNumWorkUnitsCompletedV2(reader_handle=reader)
    with Session(graph, permissions=Permissions(read=files)) as session:
        session.run(put)
        assert session.run(read.value) == b"0 0"
        assert session.run(files_done) == 3000


# What is not allowed


@pytest.mark.parametrize("reader", ["TextLineReader", "TFRecordReader", "WholeFileReader"])
def test_files_need_permission(files: Path, reader: str) -> None:
    reading = Reading(reader, files, session={}).put("f0")
    with pytest.raises(PermissionDeniedError, match="f0"):
        reading.read()
    allowed = Reading("TextLineReader", files, session={"permissions": Permissions(files / "f1")})
    allowed.put("f0", "f1")
    with pytest.raises(PermissionDeniedError, match="f0"):
        allowed.read()
    assert allowed.read() == ("f1:1", b"1 0")


SIZE = 8 << 20
LIMITED: list[tuple[str, dict[str, Any], bytes]] = [
    ("TextLineReader", {}, b"x" * SIZE),
    ("TFRecordReader", {}, tf_record(bytes(SIZE))),
    ("FixedLengthRecordReader", {"record_bytes": SIZE}, bytes(SIZE)),
    ("WholeFileReader", {}, bytes(SIZE)),
]


@pytest.mark.parametrize(("reader", "attrs", "content"), LIMITED)
def test_records_over_the_memory_limit(
    tmp_path: Path, reader: str, attrs: dict[str, Any], content: bytes
) -> None:
    (tmp_path / "f").write_bytes(content)
    options = in_session(tmp_path, memory_limit_bytes=SIZE // 2)
    with pytest.raises(ResourceExhaustedError):
        Reading(reader, tmp_path, **options, **attrs).put("f").read()
    options = in_session(tmp_path, memory_limit_bytes=SIZE * 4)
    assert len(Reading(reader, tmp_path, **options, **attrs).put("f").read()[1]) == SIZE


def test_a_batch_over_the_memory_limit(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\n" * 200_000)
    reading = Reading(
        "TextLineReader", tmp_path, **in_session(tmp_path, memory_limit_bytes=1 << 20)
    )
    with pytest.raises(ResourceExhaustedError):
        reading.put("f").read_up_to(200_000)
    reading.reset()
    assert len(reading.put("f").read_up_to(100)) == 100


def test_the_limit_holds_for_a_read_that_waited(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * SIZE)
    options = in_session(tmp_path, memory_limit_bytes=SIZE // 2)
    reading = Reading("TextLineReader", tmp_path, **options)
    waiting = started(reading.read)
    reading.put("f")
    with pytest.raises(ResourceExhaustedError):
        waiting.result(WAIT_S)


# All together


def test_an_input_pipeline_with_threads_that_fill_its_queues(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.csv").write_text(
            "a,b\n" + "".join(f"{i * 10 + j},{j / 4}\n" for j in range(8))
        )
    with Graph().as_default() as graph:
        names = np.array([bytes(tmp_path / f"{i}.csv") for i in range(3)], object)
        files = raw_ops.FIFOQueueV2(component_types=[string], shapes=[[]], capacity=2)
        put_names = raw_ops.QueueEnqueueManyV2(handle=files, components=[names])
        reader = raw_ops.TextLineReaderV2(skip_header_lines=1)
        line = raw_ops.ReaderReadV2(reader_handle=reader, queue_handle=files).value
        number, part = raw_ops.DecodeCSV(
            records=line, record_defaults=[np.zeros(1, np.int32), np.zeros(1, np.float32)]
        )
        batches = raw_ops.FIFOQueueV2(component_types=[int32, float32], shapes=[[], []], capacity=4)
        put_row = raw_ops.QueueEnqueueV2(handle=batches, components=[number, part])
        batch = raw_ops.QueueDequeueManyV2(handle=batches, n=6, component_types=[int32, float32])
        closes = [raw_ops.QueueCloseV2(handle=queue) for queue in (files, batches)]
    config = SessionConfig(operation_timeout_in_ms=20_000)
    with Session(graph, permissions=Permissions(read=tmp_path), config=config) as session:

        def fill(put: Any, close: Any, times: int | None) -> None:
            try:
                while times is None or times > 0:
                    session.run(put)
                    times = None if times is None else times - 1
            except OutOfRangeError:
                pass
            session.run(close)

        for put, close, times in ((put_names, closes[0], 1), (put_row, closes[1], None)):
            threading.Thread(target=fill, args=(put, close, times), daemon=True).start()
        found = [session.run(list(batch)) for _ in range(4)]
        with pytest.raises(OutOfRangeError):
            session.run(list(batch))
    assert np.concatenate([n for n, _ in found]).tolist() == [
        i * 10 + j for i in range(3) for j in range(8)
    ]
    assert np.concatenate([p for _, p in found]).tolist() == [
        j / 4 for _ in range(3) for j in range(8)
    ]
