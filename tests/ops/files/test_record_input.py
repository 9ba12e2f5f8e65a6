"""Records come in TensorFlow's order where that is determined, each once in an epoch; bad files are told."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytest

import opkernel
from opkernel import Graph, Session, raw_ops
from opkernel.checkpoint.crc32c import masked_crc32c
from opkernel.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
)


def record(data: bytes) -> bytes:
    length = len(data).to_bytes(8, "little")
    sums = [masked_crc32c(part).to_bytes(4, "little") for part in (length, data)]
    return length + sums[0] + data + sums[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Seven files of six records each: 00 to 05, 10 to 15, and so on."""
    for i in range(7):
        content = b"".join(record(b"%d%d" % (i, j)) for j in range(6))
        (tmp_path / f"f{i}").write_bytes(content)
    return tmp_path


def session(folder: Path, files: str = "0123456", **attrs: Any) -> tuple[Session, Any]:
    graph = Graph()
    with graph.as_default():
        records = raw_ops.RecordInput(
            **{
                "file_pattern": ",".join(f"{folder}/f{name}" for name in files),
                "file_parallelism": 1,
                "batch_size": 14,
                **attrs,
            }
        )
    return Session(graph, permissions=opkernel.Permissions(read=folder)), records


def batches(made: tuple[Session, Any], count: int) -> list[list[str]]:
    run, records = made
    return [[one.decode() for one in run.run(records)] for _ in range(count)]


@pytest.mark.parametrize(
    ("attrs", "wanted"),
    [  # from TensorFlow
        (
            {},
            [
                "22 24 51 31 52 60 54 01 12 32 23 53 13 04",
                "03 11 25 02 65 44 61 63 10 33 42 20 00 50",
                "14 40 45 43 55 21 30 41 34 35 05 64 15 62",
            ],
        ),
        (
            {"file_random_seed": 5},
            [
                "52 33 32 14 24 43 23 31 34 02 20 40 54 41",
                "00 05 13 01 64 30 03 51 62 21 55 60 25 45",
                "65 63 53 15 04 35 44 61 50 10 11 42 12 22",
            ],
        ),
        (
            {"file_shuffle_shift_ratio": 0.5},
            [
                "12 14 41 51 42 20 44 61 32 52 13 43 33 64",
                "63 31 15 62 25 04 21 23 30 53 02 10 60 40",
                "34 00 05 03 45 11 50 01 54 55 65 24 35 22",
            ],
        ),
        (
            {"files": "012", "batch_size": 6},
            ["00 04 22 20 14 13", "24 11 25 05 23 12", "10 03 01 21 15 02"],
        ),
        (
            {"files": "31", "batch_size": 4, "file_random_seed": -7},
            ["11 32 14 12", "34 31 10 30", "15 13 35 33"],
        ),
    ],
)
def test_the_order_is_that_of_tensorflow(folder: Path, attrs: dict[str, Any], wanted: Any) -> None:
    assert [" ".join(one) for one in batches(session(folder, **attrs), len(wanted))] == wanted


@pytest.mark.parametrize("file_buffer_size", [-1, 1, 5, 42, 10_000])
@pytest.mark.parametrize("file_parallelism", [1, 3, 16])
def test_each_record_comes_once_in_an_epoch(
    folder: Path, file_buffer_size: int, file_parallelism: int
) -> None:
    attrs = {"file_buffer_size": file_buffer_size, "file_parallelism": file_parallelism}
    found = batches(session(folder, "*", **attrs), 6)
    for epoch in (found[:3], found[3:]):
        counts = collections.Counter(one for batch in epoch for one in batch)
        assert sorted(counts.items()) == [(f"{i}{j}", 1) for i in range(7) for j in range(6)]


@pytest.mark.parametrize(
    ("attrs", "error", "message"),
    [
        ({"files": "x"}, NotFoundError, "Found no files at"),
        ({"batch_size": -1}, InvalidArgumentError, "batch_size must be non-negative but got -1"),
        ({"file_parallelism": -1}, InvalidArgumentError, "should >= 0, got -1"),
        ({"file_parallelism": 0}, InvalidArgumentError, "must not be 0"),
        ({"file_buffer_size": 0}, InvalidArgumentError, "must not be 0"),
        ({"files": "d"}, DataLossError, "damaged|corrupted"),
        ({"files": "e"}, InvalidArgumentError, "no records"),
        ({"compression_type": "GZIP"}, DataLossError, "damaged"),
    ],
)
def test_bad_calls_are_refused(
    folder: Path, attrs: dict[str, Any], error: type[OpError], message: str
) -> None:
    (folder / "fd").write_bytes(record(b"one") + record(b"two")[:-1] + b"x")
    (folder / "fe").write_bytes(b"")
    made = session(folder, **attrs)
    for _ in range(2):
        with pytest.raises(error, match=message):
            batches(made, 1)


def test_a_batch_of_no_records_reads_no_file(folder: Path) -> None:
    assert batches(session(folder, "x", batch_size=0), 2) == [[], []]


def test_files_are_read_as_permissions_say(folder: Path, tmp_path_factory: Any) -> None:
    run, records = session(folder)
    assert run.graph is not None
    other = Session(
        run.graph, permissions=opkernel.Permissions(read=tmp_path_factory.mktemp("other"))
    )
    with pytest.raises(PermissionDeniedError):
        other.run(records)
