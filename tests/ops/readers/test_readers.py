"""Readers: keys, values, counts, states and errors; the values and codes are TensorFlow's."""

import gzip
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ops.readers.reading import Reading, tf_record

from opkernel import Graph, Session, raw_ops
from opkernel.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    UnimplementedError,
)
from opkernel.proto import ReaderBaseState
from opkernel.types import int32, string

pytestmark = pytest.mark.filterwarnings("ignore:Op .* is deprecated:DeprecationWarning")

FILES = {
    "lines": b"one\ntwo\r\nth\rree\n\nlast",
    "table": b"h\nx\n",
    "empty": b"",
    "fixed": b"HHaaabbbcccFF",
    "short": b"HHaaabbbccFF",
    "header": b"HH",
    "records": tf_record(b"one", b"", b"three" * 3),
    "record": tf_record(b"x"),
}

Read = list[tuple[str, bytes]]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / f"{name}.ZLIB").write_bytes(zlib.compress(content))
        (tmp_path / f"{name}.GZIP").write_bytes(gzip.compress(content))
    return tmp_path


def all_records(reading: Reading) -> Read:
    """Everything in the files of a closed queue; every file has to be readable."""
    found = []
    while True:
        try:
            found.append(reading.read())
        except OutOfRangeError as error:
            if "closed and has insufficient elements" not in error.message:
                raise
            return found


LINES = [("lines:1", b"one"), ("lines:2", b"two"), ("lines:3", b"th\rree"), ("lines:4", b"")]
FIXED = {"header_bytes": 2, "record_bytes": 3, "footer_bytes": 2}
TF_RECORDS = [("records:0", b"one"), ("records:19", b""), ("records:35", b"threethreethree")]

CASES: list[tuple[str, dict[str, Any], str, Read]] = [
    (
        "TextLineReader",
        {},
        "lines empty table",
        [*LINES, ("lines:5", b"last"), ("table:1", b"h"), ("table:2", b"x")],
    ),
    (
        "TextLineReader",
        {"skip_header_lines": 1},
        "lines empty table",
        [*LINES[1:], ("lines:5", b"last"), ("table:2", b"x")],
    ),
    ("TextLineReader", {"skip_header_lines": 5}, "lines empty table", []),
    ("TFRecordReader", {}, "records empty record", [*TF_RECORDS, ("record:0", b"x")]),
    ("TFRecordReader", {"compression_type": "NONE"}, "records", TF_RECORDS),
    (
        "FixedLengthRecordReader",
        FIXED,
        "fixed short header",
        [
            ("fixed:0", b"aaa"),
            ("fixed:1", b"bbb"),
            ("fixed:2", b"ccc"),
            ("short:0", b"aaa"),
            ("short:1", b"bbb"),
        ],
    ),
    (
        "FixedLengthRecordReader",
        {**FIXED, "hop_bytes": 2},
        "fixed header",
        [("fixed:0", b"aaa"), ("fixed:1", b"abb"), ("fixed:2", b"bbc"), ("fixed:3", b"ccc")],
    ),
    (
        "FixedLengthRecordReader",
        {**FIXED, "hop_bytes": 5},
        "fixed short",
        [("fixed:0", b"aaa"), ("fixed:1", b"bcc"), ("short:0", b"aaa"), ("short:1", b"bcc")],
    ),
    ("FixedLengthRecordReader", {"record_bytes": 100}, "fixed empty", []),
    (
        "FixedLengthRecordReader",
        {"record_bytes": 1, "hop_bytes": 2**40},
        "table",
        [("table:0", b"h")],
    ),
    (
        "FixedLengthRecordReader",
        {"record_bytes": 0, "hop_bytes": 4},
        "fixed",
        [(f"fixed:{i}", b"") for i in range(4)],
    ),
    (
        "WholeFileReader",
        {},
        "fixed empty table",
        [("fixed", FILES["fixed"]), ("empty", b""), ("table", FILES["table"])],
    ),
]


@pytest.mark.parametrize("version", ["", "V2"])
@pytest.mark.parametrize(("reader", "attrs", "names", "expected"), CASES)
def test_the_records_of_the_files_of_a_queue(
    files: Path, version: str, reader: str, attrs: dict[str, Any], names: str, expected: Read
) -> None:
    reading = Reading(reader, files, version=version, **attrs)
    reading.put(*names.split()).close_queue()
    assert all_records(reading) == expected
    assert reading.counts == (len(expected), len(names.split()))


@pytest.mark.parametrize("encoding", ["ZLIB", "GZIP"])
def test_compressed_files(files: Path, encoding: str) -> None:
    packed = files / "packed"
    for reader, attrs, names, expected in CASES:
        kind = {"TFRecordReader": "compression_type", "FixedLengthRecordReader": "encoding"}.get(
            reader
        )
        for name in names.split() if kind else []:
            packed.write_bytes((files / f"{name}.{encoding}").read_bytes())
            reading = Reading(reader, files, **{**attrs, str(kind): encoding})
            found = all_records(reading.put("packed").close_queue())
            wanted = [
                (f"packed:{key.split(':')[1]}", v)
                for key, v in expected
                if key.startswith(name + ":")
            ]
            assert found == wanted


def test_an_identity_reader_gives_any_string(tmp_path: Path) -> None:
    reading = Reading("IdentityReader", tmp_path, session={})
    reading.put(b"no/file", b"").close_queue()
    assert all_records(reading) == [("file", b"no/file"), ("", b"")]
    assert reading.counts == (2, 2)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\r", [b"a"]),
        (b"a\r\r\n", [b"a\r"]),
        (b"\r\n", [b""]),
        (b"\r", []),
        (b"\r\r", [b"\r"]),
        (b"a\r\n\r", [b"a"]),
        (b"\n\n", [b"", b""]),
        (b"a\0b\n\xff\0", [b"a\0b", b"\xff\0"]),
        (
            b"x" * 300_000 + b"\r\n" + b"y" * (1 << 18) + b"\nz",
            [b"x" * 300_000, b"y" * (1 << 18), b"z"],
        ),
    ],
)
def test_ends_of_lines(tmp_path: Path, content: bytes, lines: list[bytes]) -> None:
    (tmp_path / "f").write_bytes(content)
    reading = Reading("TextLineReader", tmp_path).put("f").close_queue()
    assert all_records(reading) == [(f"f:{i}", line) for i, line in enumerate(lines, 1)]


def test_batches_end_with_their_file(files: Path) -> None:
    reading = Reading("TextLineReader", files).put("lines", "empty", "table").close_queue()
    assert reading.read_up_to(0) == []
    assert reading.counts == (0, 0)
    assert reading.read_up_to(2) == LINES[:2]
    assert reading.read_up_to(2) == LINES[2:]
    assert reading.counts == (4, 0)
    assert reading.read_up_to(2**62) == [("lines:5", b"last")]
    assert reading.counts == (5, 1)
    assert reading.read_up_to([2]) == [("table:1", b"h"), ("table:2", b"x")]
    assert reading.counts == (7, 2)  # nobody has met the end of the last file
    with pytest.raises(OutOfRangeError):
        reading.read_up_to(1)
    assert reading.counts == (7, 3)
    for wrong in (-1, [1, 2], []):
        with pytest.raises(InvalidArgumentError):
            reading.read_up_to(wrong)


def test_batches_of_whole_files_have_one(files: Path) -> None:
    reading = Reading("WholeFileReader", files).put("header", "empty")
    assert reading.read_up_to(5) == [("header", b"HH")]
    assert reading.counts == (1, 1)


@pytest.mark.parametrize("reader", ["TextLineReader", "TFRecordReader", "FixedLengthRecordReader"])
def test_a_file_that_is_missing_is_left_out(files: Path, reader: str) -> None:
    attrs = {"record_bytes": 1} if reader == "FixedLengthRecordReader" else {}
    reading = Reading(reader, files, **attrs).put("nothing", "record")
    with pytest.raises(NotFoundError, match="nothing"):
        reading.read()
    assert reading.counts == (0, 0)
    assert reading.read()[0].startswith("record:")


def test_a_whole_file_that_is_missing_is_waited_for(files: Path) -> None:
    reading = Reading("WholeFileReader", files).put("later", "table")
    for _ in range(2):
        with pytest.raises(NotFoundError):
            reading.read()
    (files / "later").write_bytes(b"here")
    assert reading.read() == ("later", b"here")
    assert reading.read()[0] == "table"


def test_a_directory_has_no_records(files: Path) -> None:
    reading = Reading("TextLineReader", files).put("", "table")
    with pytest.raises(FailedPreconditionError):
        reading.read()
    assert reading.read()[0] == "table:1"


def test_a_header_that_the_file_does_not_have(files: Path) -> None:
    attrs = {"header_bytes": 3, "record_bytes": 1}
    reading = Reading("FixedLengthRecordReader", files, **attrs).put("header", "table")
    with pytest.raises(OutOfRangeError, match="header"):
        reading.read()
    assert reading.read() == ("table:0", b"\n")


CUTS = [(1, 2), (5, 2), (20, 2), (35, 1), (36, 1), (65, 0)]
"""How many bytes are missing, and how many records can be read."""


@pytest.mark.parametrize(("missing", "whole"), CUTS)
def test_tf_records_that_are_cut_short(files: Path, missing: int, whole: int) -> None:
    (files / "cut").write_bytes(FILES["records"][:-missing])
    reading = Reading("TFRecordReader", files).put("cut", "record")
    assert [reading.read()[1] for _ in range(whole)] == [b"one", b""][:whole]
    if missing in (20, 36, 65):  # less than the beginning of a record is left
        assert reading.read() == ("record:0", b"x")
        return
    for _ in range(2):
        with pytest.raises(DataLossError, match=f"truncated record at {(0, 19, 35)[whole]}"):
            reading.read()
    reading.reset()
    assert reading.read() == ("record:0", b"x")


@pytest.mark.parametrize(
    ("position", "whole", "where"), [(0, 0, 0), (9, 0, 0), (12, 0, 12), (15, 0, 12), (19, 1, 19)]
)
def test_tf_records_that_are_damaged(files: Path, position: int, whole: int, where: int) -> None:
    damaged = bytearray(FILES["records"])
    damaged[position] ^= 1
    (files / "damaged").write_bytes(damaged)
    reading = Reading("TFRecordReader", files).put("damaged")
    for _ in range(whole):
        reading.read()
    with pytest.raises(DataLossError, match=f"corrupted record at {where}"):
        reading.read()
    reading.reset()
    with pytest.raises(DataLossError):  # the records before it are lost, and have been read
        reading.put("damaged").read_up_to(10)
    assert reading.counts == (whole, 0)


@pytest.mark.parametrize("length", [2**31, 2**40, 2**63, 2**64 - 1])
@pytest.mark.parametrize("encoding", ["", "GZIP"])
def test_tf_records_that_lie_about_their_length(tmp_path: Path, length: int, encoding: str) -> None:
    header = length.to_bytes(8, "little")
    sum_of_header = tf_record(header)[-4:]
    lying = header + sum_of_header + b"abc"
    (tmp_path / "f").write_bytes(gzip.compress(lying) if encoding else lying)
    reading = Reading("TFRecordReader", tmp_path, compression_type=encoding).put("f")
    with pytest.raises(DataLossError, match="truncated"):
        reading.read()


@pytest.mark.parametrize("encoding", ["ZLIB", "GZIP"])
def test_compressed_files_that_are_damaged(files: Path, encoding: str) -> None:
    packed = (files / f"records.{encoding}").read_bytes()
    damages: list[tuple[bytes, int]] = [
        (packed[:-2] + b"xx", 0),
        (packed[:-12], 2),
        (FILES["records"], 0),
    ]
    if encoding == "GZIP":
        damages.append((packed + b"garbage", 3))
    for content, whole in damages:
        (files / "damaged").write_bytes(content)
        reading = Reading("TFRecordReader", files, compression_type=encoding).put("damaged")
        assert [reading.read()[1] for _ in range(whole)] == [v for _, v in TF_RECORDS[:whole]]
        for _ in range(2):
            with pytest.raises(DataLossError):
                reading.read()


def test_what_may_follow_compressed_data(files: Path) -> None:
    zipped = (files / "records.ZLIB").read_bytes()
    (files / "f").write_bytes(zipped + b"garbage")
    reading = Reading("TFRecordReader", files, compression_type="ZLIB").put("f").close_queue()
    assert len(all_records(reading)) == 3
    (files / "f").write_bytes((files / "records.GZIP").read_bytes() * 2)
    reading = Reading("TFRecordReader", files, compression_type="GZIP").put("f").close_queue()
    assert [key for key, _ in all_records(reading)] == [f"f:{i}" for i in (0, 19, 35, 66, 85, 101)]


@pytest.mark.parametrize(
    ("reader", "attrs"),
    [
        ("TextLineReader", {"skip_header_lines": -1}),
        ("TextLineReader", {"skip_header_lines": 2**40}),
        ("FixedLengthRecordReader", {"record_bytes": -1}),
        ("FixedLengthRecordReader", {"record_bytes": 1, "header_bytes": -1}),
        ("FixedLengthRecordReader", {"record_bytes": 1, "footer_bytes": -1}),
        ("FixedLengthRecordReader", {"record_bytes": 1, "hop_bytes": -1}),
    ],
)
def test_attrs_out_of_range(tmp_path: Path, reader: str, attrs: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=list(attrs)[-1]):
        Reading(reader, tmp_path, **attrs).put(b"x").read()


def test_snappy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnimplementedError, match="SNAPPY"):
        Reading("TFRecordReader", tmp_path, compression_type="SNAPPY").put(b"x").read()


# States


@pytest.mark.parametrize("reader", ["IdentityReader", "WholeFileReader"])
def test_states(files: Path, reader: str) -> None:
    reading = Reading(reader, files).put("table", "empty", "nothing").close_queue()
    assert reading.serialize() == b""
    reading.read()
    name = str(files / "table").encode()
    assert reading.serialize() == b'\x08\x01\x10\x01\x18\x01"%c%b' % (len(name), name)
    state = ReaderBaseState(work_started=3, work_finished=3, num_records_produced=7)
    reading.restore(state.SerializeToString())
    assert reading.counts == (7, 3)
    assert reading.read()[0] == "empty"
    assert reading.counts == (8, 4)
    reading.reset()
    assert reading.serialize() == b""


def test_the_state_tells_of_a_file_that_could_not_be_read(files: Path) -> None:
    reading = Reading("WholeFileReader", files).put("nothing")
    with pytest.raises(NotFoundError):
        reading.read()
    state = ReaderBaseState(work_started=1, current_work=bytes(files / "nothing"))
    assert reading.serialize() == state.SerializeToString()
    with pytest.raises(InvalidArgumentError, match="Inconsistent"):
        reading.restore(reading.serialize())


WRONG_STATES: list[Any] = [
    {"work_started": 1},
    {"work_started": 5, "work_finished": 4},
    {"work_started": -1},
    {"work_finished": -1},
    {"num_records_produced": -1},
    b"junk",
    b"\x08\x01\x08",
    [b""],
]


@pytest.mark.parametrize("state", WRONG_STATES)
def test_a_wrong_state_resets_the_reader(files: Path, state: Any) -> None:
    reading = Reading("IdentityReader", files).put(b"x")
    reading.read()
    given = ReaderBaseState(**state).SerializeToString() if isinstance(state, dict) else state
    with pytest.raises(InvalidArgumentError):
        reading.restore(given)
    assert reading.counts == ((1, 1) if isinstance(state, list) else (0, 0))


@pytest.mark.parametrize("reader", ["TextLineReader", "TFRecordReader", "FixedLengthRecordReader"])
def test_readers_within_files_have_no_state(files: Path, reader: str) -> None:
    attrs = {"record_bytes": 2} if reader == "FixedLengthRecordReader" else {}
    reading = Reading(reader, files, **attrs).put("records", "record")
    reading.read()
    with pytest.raises(UnimplementedError):
        reading.serialize()
    assert reading.counts == (1, 0)
    with pytest.raises(UnimplementedError):
        reading.restore(b"")
    assert reading.counts == (0, 0)
    assert reading.read()[0] == ("record:1" if reader == "TextLineReader" else "record:0")


def test_a_reset_goes_on_with_the_next_file(files: Path) -> None:
    reading = Reading("TextLineReader", files).put("lines", "table")
    reading.read()
    reading.reset()
    assert reading.counts == (0, 0)
    assert reading.read() == ("table:1", b"h")
    assert reading.counts == (1, 0)


# Queues and handles


@pytest.mark.parametrize(
    ("types", "element"),
    [
        ((string, string), [b"a", b"b"]),
        ((int32,), [np.int32(3)]),
        ((string,), [np.array([b"a", b"b"], object)]),
        ((string,), [np.array([], object)]),
    ],
)
def test_elements_that_are_not_one_name(tmp_path: Path, types: Any, element: list[Any]) -> None:
    reading = Reading("IdentityReader", tmp_path, component_types=types)
    reading.put_element(*element)
    with pytest.raises(InvalidArgumentError, match="IdentityReader"):
        reading.read()
    assert reading.counts == (0, 0)


def test_a_name_may_stand_in_a_vector(files: Path) -> None:
    reading = Reading("TextLineReader", files)
    reading.put_element(np.array([bytes(files / "table")], object))
    assert reading.read() == ("table:1", b"h")


def test_readers_of_one_shared_name_are_one(files: Path) -> None:
    with Graph().as_default() as graph:
        first = raw_ops.IdentityReaderV2(shared_name="r", container="c")
        second = raw_ops.WholeFileReaderV2(shared_name="r", container="c")
        other = raw_ops.IdentityReaderV2(shared_name="r")
        queue = raw_ops.FIFOQueueV2(component_types=[string], shared_name="r")
        put = raw_ops.QueueEnqueueV2(handle=queue, components=[b"name"])
        reads = [raw_ops.ReaderReadV2(reader_handle=r, queue_handle=queue) for r in (first, second)]
        counts = [
            raw_ops.ReaderNumRecordsProducedV2(reader_handle=r) for r in (first, second, other)
        ]
    with Session(graph) as session:
        for read in reads:
            session.run(put)
            assert session.run(read.value) == b"name"
        assert session.run(counts) == [2, 2, 0]


@pytest.mark.parametrize("version", ["", "V2"])
def test_handles_of_other_things_are_refused(version: str) -> None:
    def op(name: str, **inputs: Any) -> Any:
        return getattr(raw_ops, f"{name}{version}")(**inputs)

    with Graph().as_default() as graph:
        graph.graph_def_versions.producer = 21
        queue, reader = op("FIFOQueue", component_types=[string]), op("WholeFileReader")
        wrong = [
            op("ReaderRead", reader_handle=queue, queue_handle=queue).value,
            op("ReaderRead", reader_handle=reader, queue_handle=reader).value,
            op("ReaderNumRecordsProduced", reader_handle=queue),
        ]
    with Session(graph) as session:
        for fetch in wrong:
            with pytest.raises((InvalidArgumentError, NotFoundError)):
                session.run(fetch)


def test_lmdb_is_refused_with_the_reason() -> None:
    with Graph().as_default() as graph:
        reader = raw_ops.LMDBReader()
    with pytest.raises(NotFoundError, match="TFRecords"):
        Session(graph).run(reader)


READ: dict[str, Callable[[Path], Reading]] = {
    "text": lambda path: Reading("TextLineReader", path),
    "records": lambda path: Reading("TFRecordReader", path),
    "zipped": lambda path: Reading("TFRecordReader", path, compression_type="GZIP"),
    "fixed": lambda path: Reading("FixedLengthRecordReader", path, record_bytes=3, encoding="ZLIB"),
}


@pytest.mark.parametrize("kind", READ)
def test_any_bytes_are_read_or_refused(files: Path, kind: str) -> None:
    random = np.random.default_rng(0)
    contents = [(files / name).read_bytes() for name in ("records", "records.GZIP", "fixed.ZLIB")]
    for turn in range(60):
        content = bytearray(contents[turn % 3])
        for _ in range(turn % 4):
            content[random.integers(len(content))] = random.integers(256)
        (files / "f").write_bytes(content[: random.integers(1, len(content) + 1)])
        reading = READ[kind](files).put("f").close_queue()
        with suppress(DataLossError, OutOfRangeError):
            assert reading.read_up_to(100)
