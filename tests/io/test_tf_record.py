"""TFRecord files: those of TensorFlow are read, what is written reads back, and damage is told with its offset."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opkernel import Graph, Permissions, Session, raw_ops
from opkernel.data import Dataset, TFRecordDataset
from opkernel.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
)
from opkernel.io import TFRecordOptions, TFRecordWriter, tf_record_iterator
from opkernel.types import object_scalar

ONE_AND_EMPTY = {
    "": "0300000000000000b099490e6f6e6501405508000000000000000029039807d8ea82a2",
    "ZLIB": "789c636680800d333df9f2f352191d4239a0220c9acc33d86fbc6a5a04005ef70735",
    "GZIP": "1f8b0800000000000003636680800d333df9f2f352191d4239a0220c9acc33d86fbc6a5a040054c46fae23000000",
}
"""The files that TensorFlow writes of the records b"one" and b""."""
PLAIN = bytes.fromhex(ONE_AND_EMPTY[""])


@pytest.mark.parametrize("compression", ONE_AND_EMPTY)
def test_a_file_of_tensorflow_is_read(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes.fromhex(ONE_AND_EMPTY[compression]))
    assert [*tf_record_iterator(path, compression)] == [b"one", b""]
    assert [*tf_record_iterator(str(path), TFRecordOptions(compression))] == [b"one", b""]


def test_a_file_is_written_as_tensorflow_writes_it(tmp_path: Path) -> None:
    with TFRecordWriter(tmp_path / "file") as writer:
        writer.write("one")
        writer.write(bytearray())
    assert (tmp_path / "file").read_bytes() == PLAIN


@pytest.mark.parametrize("flushes", [False, True])
@settings(max_examples=40)
@given(
    records=st.lists(st.binary(max_size=300)),
    compression=st.sampled_from([*ONE_AND_EMPTY]),
    level=st.integers(-1, 9),
    flush_mode=st.sampled_from([None, 0, 1, 2, 3]),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[bytes],
    compression: str,
    level: int,
    flush_mode: int | None,
    flushes: bool,
) -> None:
    path = tmp_path_factory.getbasetemp() / f"written{flushes}"
    options = TFRecordOptions(compression, compression_level=level, flush_mode=flush_mode)
    with TFRecordWriter(path, options) as writer:
        for number, record in enumerate(records, 1):
            writer.write(record)
            if flushes:
                writer.flush()
                assert [*tf_record_iterator(path, options)] == records[:number]
    assert [*tf_record_iterator(path, options)] == records
    dataset = TFRecordDataset(path, compression)
    assert [*dataset] == records


def test_large_records_are_written_whole(tmp_path: Path) -> None:
    record = bytes(range(256)) * 5000
    for compression in ONE_AND_EMPTY:
        with TFRecordWriter(tmp_path / "file", compression) as writer:
            writer.write(record)
        assert [*tf_record_iterator(tmp_path / "file", compression)] == [record]


def test_a_writer_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1000)
    TFRecordWriter(path).close()
    assert path.read_bytes() == b""


BEGIN = "corrupted record at 0 (Is this even a TFRecord file?)"


@pytest.mark.parametrize(
    ("place", "message", "before"),
    [
        (0, BEGIN, []),
        (9, BEGIN, []),
        (12, "corrupted record at 12", []),
        (15, "corrupted record at 12", []),
        (19, "corrupted record at 19", [b"one"]),
        (34, "corrupted record at 31", [b"one"]),
    ],
)
def test_damage_is_told_with_its_offset(
    tmp_path: Path, place: int, message: str, before: list[bytes]
) -> None:
    damaged = bytearray(PLAIN)
    damaged[place] ^= 1
    (tmp_path / "file").write_bytes(damaged)
    records = tf_record_iterator(tmp_path / "file")
    assert [next(records) for _ in before] == before
    with pytest.raises(DataLossError) as raised:
        next(records)
    assert message in str(raised.value)


def test_a_cut_file_ends_between_records_or_is_truncated(tmp_path: Path) -> None:
    """Fewer bytes than a record begins with are the end, as in TensorFlow."""
    for length in range(len(PLAIN)):
        (tmp_path / "file").write_bytes(PLAIN[:length])
        start = 0 if length < 19 else 19
        if length < start + 12:
            assert len([*tf_record_iterator(tmp_path / "file")]) == (length >= 19)
            continue
        with pytest.raises(DataLossError, match=f"truncated record at {start} "):
            _ = [*tf_record_iterator(tmp_path / "file")]


WRONG: list[tuple[Callable[[Path], Any], type[OpError], str]] = [
    (lambda p: TFRecordWriter(p / "no" / "file"), NotFoundError, "No such file"),
    (lambda p: TFRecordWriter(p), FailedPreconditionError, "directory"),
    (lambda p: TFRecordWriter(p / "f", "BZ2"), InvalidArgumentError, "compression_type: 'BZ2'"),
    (lambda p: TFRecordOptions("ZLIB", compression_level=77), InvalidArgumentError, "level=77"),
    (lambda p: TFRecordOptions("ZLIB", mem_level=10**30), InvalidArgumentError, "mem_level"),
    (lambda p: TFRecordOptions(3), InvalidArgumentError, "compression_type: 3"),  # type: ignore[arg-type]
    (lambda p: TFRecordWriter(3), InvalidArgumentError, "path"),  # type: ignore[arg-type]
    (lambda p: TFRecordWriter(p / "f").write(3), InvalidArgumentError, "bytes, not 3"),  # type: ignore[arg-type]
    (lambda p: tf_record_iterator(p / "none"), NotFoundError, "No such file"),
    (lambda p: tf_record_iterator("a\0b"), InvalidArgumentError, "zero byte"),
]


@pytest.mark.parametrize(("call", "error", "message"), WRONG)
def test_wrong_calls(
    tmp_path: Path, call: Callable[[Path], Any], error: type[OpError], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(tmp_path)


def test_a_closed_writer_writes_no_more(tmp_path: Path) -> None:
    writer = TFRecordWriter(tmp_path / "file")
    writer.close()
    writer.close()
    for call in (writer.flush, lambda: writer.write(b"")):
        with pytest.raises(FailedPreconditionError, match=r"Writer is closed\."):
            call()


def test_a_writer_that_nobody_has_any_more_ends_its_file(tmp_path: Path) -> None:
    writer = TFRecordWriter(tmp_path / "file", "GZIP")
    writer.write(b"one")
    del writer
    assert [*tf_record_iterator(tmp_path / "file", "GZIP")] == [b"one"]


def test_a_damaged_stream_is_data_loss(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no zlib")
    with pytest.raises(DataLossError, match="damaged"):
        next(tf_record_iterator(tmp_path / "file", "ZLIB"))


@pytest.mark.parametrize("compression", [*ONE_AND_EMPTY, "UNKNOWN"])
@pytest.mark.parametrize("op", ["DatasetToTFRecord", "ExperimentalDatasetToTFRecord"])
def test_a_dataset_becomes_a_file(tmp_path: Path, op: str, compression: str) -> None:
    """A compression that does not exist is none, as in TensorFlow."""
    path = tmp_path / "file"
    write = getattr(raw_ops, op)
    variant = Dataset.from_tensor_slices([b"one", b""]).variant_tensor
    names = {
        "filename": object_scalar(bytes(path)),
        "compression_type": object_scalar(compression.encode()),
    }
    write(input_dataset=variant, **names)
    kind = compression if compression in ONE_AND_EMPTY else ""
    assert [*tf_record_iterator(path, kind)] == [b"one", b""]
    for wrong, message in (
        (Dataset.range(2), "int64"),
        (Dataset.zip((Dataset.range(1),) * 2), "2"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"but got {message}"):
            write(input_dataset=wrong.variant_tensor, **names)
    with pytest.raises(NotFoundError):
        write(
            **{**names, "filename": object_scalar(bytes(tmp_path / "no" / "file"))},
            input_dataset=variant,
        )


def test_a_graph_writes_a_dataset_only_where_it_may(tmp_path: Path) -> None:
    with Graph().as_default() as graph:
        write = raw_ops.DatasetToTFRecord(
            input_dataset=Dataset.from_tensor_slices([b"one"]).variant_tensor,
            filename=object_scalar(bytes(tmp_path / "allowed")),
            compression_type=object_scalar(b""),
        )
    with pytest.raises(PermissionDeniedError, match="the graph may not write this file"):
        Session(graph).run(write)
    assert not (tmp_path / "allowed").exists()
    Session(graph, permissions=Permissions(write=[tmp_path / "allowed"])).run(write)
    assert [*tf_record_iterator(tmp_path / "allowed")] == [b"one"]
