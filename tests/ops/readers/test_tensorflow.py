"""Readers beside TensorFlow's, on random files, and an input pipeline that TensorFlow 1 itself writes."""

import gzip
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ops.readers.reading import tf_record

import opkernel
from opkernel import Graph, Permissions, Session, SessionConfig
from opkernel.errors import OpError, OutOfRangeError
from opkernel.proto import GraphDef

pytestmark = pytest.mark.tensorflow

RANDOM = np.random.default_rng(1)
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "ZLIB": zlib.compress,
    "GZIP": gzip.compress,
}
SECONDS = 30
"""Longer than any step takes."""

Answer = tuple[str, Any, tuple[int, int]]


def texts() -> Iterator[bytes]:
    for size in (0, 1, 3, 40, 150):
        yield bytes(RANDOM.choice(np.frombuffer(b"ab\n\r\0", np.uint8), size))
    yield b"x" * 300_000 + b"\r\n\n" + b"y" * 262_143 + b"\r\nz\r"


def numbers() -> Iterator[bytes]:
    for size in (0, 1, 7, 30, 200):
        yield RANDOM.bytes(size)


def records() -> Iterator[bytes]:
    for count in (0, 1, 5):
        whole = tf_record(*(RANDOM.bytes(int(RANDOM.integers(40))) for _ in range(count)))
        yield whole
        yield whole[: len(whole) - int(RANDOM.integers(20))]
        damaged = bytearray(whole)
        if damaged:
            damaged[RANDOM.integers(len(damaged))] ^= 4
        yield bytes(damaged)
    yield tf_record(RANDOM.bytes(600_000), b"", RANDOM.bytes(262_144))


CASES: list[tuple[str, dict[str, Any], Callable[[], Iterator[bytes]]]] = [
    ("TextLineReaderV2", {}, texts),
    ("TextLineReaderV2", {"skip_header_lines": 3}, texts),
    ("WholeFileReaderV2", {}, texts),
    ("IdentityReaderV2", {}, texts),
    *[("TFRecordReaderV2", {"compression_type": encoding}, records) for encoding in PACK],
    *[
        ("FixedLengthRecordReaderV2", {"encoding": encoding, **lengths}, numbers)
        for encoding in PACK
        for lengths in (
            {"record_bytes": 7},
            {"record_bytes": 5, "header_bytes": 3, "hop_bytes": 2},
            {"record_bytes": 5, "header_bytes": 1, "footer_bytes": 4, "hop_bytes": 9},
        )
    ],
]


def answers(api: Any, reader: str, attrs: dict[str, Any], name: bytes, count: int) -> list[Answer]:
    """What reading a file to its end gives: codes, records and counts; the first damage ends it."""
    with api.graph().as_default() as graph:
        queue = api.ops.FIFOQueueV2(component_types=[api.string])
        handle = getattr(api.ops, reader)(**attrs)
        put = api.ops.QueueEnqueueV2(handle=queue, components=[name])
        close = api.ops.QueueCloseV2(handle=queue)
        read = api.ops.ReaderReadUpToV2(reader_handle=handle, queue_handle=queue, num_records=count)
        counts = [
            api.ops.ReaderNumRecordsProducedV2(reader_handle=handle),
            api.ops.ReaderNumWorkUnitsCompletedV2(reader_handle=handle),
        ]
    found: list[Answer] = []
    with api.session(graph) as session:
        session.run(put)
        session.run(close)
        while not found or found[-1][0] == "OK":
            try:
                code, values = "OK", [v.tolist() for v in session.run(list(read))]
            except api.error as error:
                code, values = type(error).__name__, []
            records, files = map(int, session.run(counts))
            found.append((code, values, (records, files)))
    return found


class Ours:
    """opkernel, as `answers` wants it."""

    ops, graph, error, string = opkernel.raw_ops, Graph, OpError, opkernel.string

    @staticmethod
    def session(graph: Any) -> Any:
        return Session(graph, permissions=Permissions(read="/"))


class Theirs:
    """TensorFlow, as `answers` wants it."""

    def __init__(self, tf: Any) -> None:
        self.ops, self.graph, self.error, self.string = (
            tf.raw_ops,
            tf.Graph,
            tf.errors.OpError,
            tf.string,
        )
        self._v1 = tf.compat.v1

    def session(self, graph: Any) -> Any:
        return self._v1.Session(graph=graph)


@pytest.mark.parametrize(("reader", "attrs", "contents"), CASES)
def test_all_readers_on_random_files(
    tf: Any,
    tmp_path: Path,
    reader: str,
    attrs: dict[str, Any],
    contents: Callable[[], Iterator[bytes]],
) -> None:
    theirs = Theirs(tf)
    encoding = attrs.get("encoding", attrs.get("compression_type", ""))
    header = attrs.get("header_bytes", 0) + attrs.get("footer_bytes", 0)
    for number, content in enumerate(contents()):
        if not encoding and len(content) < header:
            continue  # TensorFlow takes a footer that is longer than the file for none
        path = tmp_path / str(number)
        path.write_bytes(PACK[encoding](content))
        for count in (1, 6):
            ours = answers(Ours, reader, attrs, bytes(path), count)
            assert ours == answers(theirs, reader, attrs, bytes(path), count), (number, count)


def test_an_input_pipeline_of_tensorflow(tf: Any, tmp_path: Path) -> None:
    v1 = tf.compat.v1
    for i in range(4):
        rows = "".join(f"{RANDOM.integers(100)},{RANDOM.random()},{i}-{j}\n" for j in range(11))
        (tmp_path / f"{i}.csv").write_text("number,part,name\n" + rows)
    names = [str(tmp_path / f"{i}.csv") for i in range(4)]
    with tf.Graph().as_default() as graph:
        queue = v1.train.string_input_producer(names, num_epochs=2, shuffle=False)
        _, line = v1.TextLineReader(skip_header_lines=1).read(queue)
        row = tf.io.decode_csv(line, [[0], [0.0], [""]])
        batch = v1.train.batch(row, batch_size=9, allow_smaller_final_batch=True)
        runners = v1.get_collection(v1.GraphKeys.QUEUE_RUNNERS)
        initializers = [v1.global_variables_initializer(), v1.local_variables_initializer()]
        with v1.Session() as session:
            session.run(initializers)
            coordinator = v1.train.Coordinator()
            threads = v1.train.start_queue_runners(session, coordinator)
            expected = [session.run(batch) for _ in range(10)]  # of 9, and one of 7
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(batch)
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=SECONDS)
    imported = Graph()
    graph_def = GraphDef.FromString(graph.as_graph_def().SerializeToString())
    opkernel.import_graph_def(graph_def, name="", graph=imported)
    found = list(
        _batches(imported, runners, [op.name for op in initializers], [t.name for t in batch])
    )
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def _batches(
    graph: Any, runners: Any, initializers: list[str], fetches: list[str]
) -> Iterator[Any]:
    """The batches of a graph whose queues are filled as `tf.train.start_queue_runners` does."""
    config = SessionConfig(operation_timeout_in_ms=SECONDS * 1000)
    with Session(graph, permissions=Permissions(read="/"), config=config) as session:
        session.run(initializers)

        def fill(put: str, close: str) -> None:
            try:
                while True:
                    session.run(put)
            except OutOfRangeError:
                session.run(close)

        threads = [
            threading.Thread(target=fill, args=(put.name, runner.close_op.name), daemon=True)
            for runner in runners
            for put in runner.enqueue_ops
        ]
        for thread in threads:
            thread.start()
        try:
            while True:
                yield session.run(fetches)
        except OutOfRangeError:
            return
        finally:
            for thread in threads:
                thread.join(SECONDS)
