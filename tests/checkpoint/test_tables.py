"""Tables of sorted keys: their bytes, their limits, and damage that a checksum does not tell of."""

import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest

import opkernel
from opkernel.checkpoint import BundleWriter
from opkernel.checkpoint.crc32c import crc32c, mask
from opkernel.checkpoint.snappy import decompressed
from opkernel.checkpoint.sstable import Table, TableWriter, is_table, write_table
from opkernel.errors import DataLossError


def table(path: Path, entries: dict[bytes, bytes]) -> Path:
    with open(path, "wb") as file:
        write_table(file, b"first", entries)
    return path


def test_an_index_of_many_blocks_has_the_bytes_of_tensorflow(tmp_path: Path) -> None:
    """The names of 3,000 tensors, which fill two blocks of 256 KiB; the sum is that of SaveV2's file."""
    with BundleWriter(tmp_path / "c") as writer:
        for number in range(3000):
            writer.add(f"{number:04d}/{'scope/' * 20}", np.int32(number))
    data = (tmp_path / "c.index").read_bytes()
    assert hashlib.sha256(data).hexdigest() == (
        "4c95ec217caed5bb20880d12e96a1ea5173d647e11dfee6cb4c1dd71d707a813"
    )
    with opkernel.load_checkpoint(tmp_path / "c") as checkpoint:
        assert len(checkpoint) == 3000
        for number in (0, 1, 1600, 2999, 0):
            assert checkpoint.get(f"{number:04d}/{'scope/' * 20}") == number
        assert "2999/scopf" not in checkpoint
        assert "0" not in checkpoint


def test_keys_of_any_bytes(tmp_path: Path) -> None:
    """Keys that are beginnings of others, and that end in the highest byte, in one block each."""
    keys = [b"a", b"a\xff", b"a\xff\xff", b"ab", b"b\0", b"b\1", b"b\3", b"\xff", b"\xff\xff"]
    entries = {key: key * (1 << 17) for key in keys}
    stored = Table(str(table(tmp_path / "t", entries)))
    assert dict(stored) == {b"": b"first", **entries}
    for key in (*keys, b""):
        assert stored.get(key) == entries.get(key, b"first")
    for key in (b"a\0", b"b", b"b\2", b"\xff\xff\xff", b"c"):
        assert stored.get(key) is None
    stored.close()


def test_whether_a_table_is_still_that_of_its_path(tmp_path: Path) -> None:
    path = table(tmp_path / "t", {b"k": b"v"})
    stored = Table(str(path))
    assert stored.is_current()
    os.replace(table(tmp_path / "u", {b"k": b"w"}), path)
    assert not stored.is_current()
    assert stored.get(b"k") == b"v"
    path.unlink()
    assert stored.is_current()  # none came in its place
    stored.close()


def framed(*blocks: tuple[bytes, int], places: list[tuple[int, int]] | None = None) -> bytes:
    """A file of blocks with their kinds of compression, the last of which is the index."""
    data, found = b"", []
    for content, kind in blocks:
        found.append((len(data), len(content)))
        whole = content + bytes([kind])
        data += whole + struct.pack("<I", mask(crc32c(whole)))
    footer = bytes([0, 0]) + b"".join(map(varint, (places or found)[-1]))
    return data + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)


def varint(value: int) -> bytes:
    return (bytes([value & 127 | 128]) + varint(value >> 7)) if value > 127 else bytes([value])


def entry(key: bytes, value: bytes, shared: int = 0) -> bytes:
    return varint(shared) + varint(len(key)) + varint(len(value)) + key + value


RESTARTS = struct.pack("<2I", 0, 1)


def of_one_block(content: bytes, kind: int = 0) -> bytes:
    place = varint(0) + varint(len(content))
    return framed((content, kind), (entry(b"z", place) + RESTARTS, 0))


def test_a_table_of_hand(tmp_path: Path) -> None:
    path = tmp_path / "t"
    plain = entry(b"ab", b"1") + entry(b"c", b"2", shared=1) + RESTARTS
    assert len(plain) < 64
    for data in (
        of_one_block(plain),
        of_one_block(varint(len(plain)) + bytes([len(plain) - 1 << 2]) + plain, 1),
    ):
        path.write_bytes(data)
        assert [*Table(str(path))] == [(b"ab", b"1"), (b"ac", b"2")]


TABLES = {
    "an unknown compression": of_one_block(entry(b"a", b"") + RESTARTS, 2),
    "keys not in order": of_one_block(entry(b"b", b"") + entry(b"a", b"") + RESTARTS),
    "a key twice": of_one_block(entry(b"a", b"") + entry(b"a", b"") + RESTARTS),
    "more shared than there is": of_one_block(entry(b"a", b"") + entry(b"b", b"", 2) + RESTARTS),
    "a value beyond the block": of_one_block(b"\0\1\5a" + RESTARTS),
    "more restarts than bytes": of_one_block(struct.pack("<2I", 0, 2)),
    "no restarts": of_one_block(b"\0\0"),
    "keys longer than they can be": of_one_block(
        entry(b"a" * 99, b"") + b"".join(entry(b"a", b"", 99 + n) for n in range(40)) + RESTARTS
    ),
}


@pytest.mark.parametrize("what", TABLES)
def test_damaged_blocks(tmp_path: Path, what: str) -> None:
    path = tmp_path / "t"
    path.write_bytes(TABLES[what])
    assert is_table(str(path))  # only the index is read
    stored = Table(str(path))
    with pytest.raises(DataLossError, match=r"/t is damaged"):
        dict(stored)
    stored.close()


@pytest.mark.parametrize("offset", [0, 5, 16])
def test_blocks_that_overlap_are_refused(tmp_path: Path, offset: int) -> None:
    one = entry(b"a", b"") + RESTARTS
    index = entry(b"a", varint(0) + varint(len(one))) + entry(b"b", varint(offset) + b"\1")
    (tmp_path / "t").write_bytes(framed((one, 0), (index + RESTARTS, 0)))
    with pytest.raises(DataLossError, match=f"at byte {offset} begins before byte {len(one) + 5}"):
        Table(str(tmp_path / "t"))
    assert not is_table(str(tmp_path / "t"))


def test_what_is_no_table(tmp_path: Path) -> None:
    whole = table(tmp_path / "t", {}).read_bytes()
    assert is_table(str(tmp_path / "t"))
    for name, data in {"short": whole[-47:], "end": whole[:-1] + b"x", "cut": whole[-48:]}.items():
        (tmp_path / name).write_bytes(data)
        assert not is_table(str(tmp_path / name))
    assert not is_table(str(tmp_path))
    assert not is_table(str(tmp_path / "none"))


def test_a_compressed_block_may_be_at_most_64_times_as_long() -> None:
    copies = b"\0a" + bytes([63 << 2 | 2, 1, 0]) * 100  # a byte, and 64 more for each three
    whole = varint(6401) + copies
    assert decompressed(whole) == b"a" * 6401
    claim = 64 * (3 + len(copies))
    with pytest.raises(DataLossError, match=f"has not the {claim} bytes"):
        decompressed(varint(claim) + copies)
    with pytest.raises(DataLossError, match=f"cannot hold {claim + 1}"):
        decompressed(varint(claim + 1) + copies)


def test_a_writer_of_tables_takes_keys_one_by_one(tmp_path: Path) -> None:
    with open(tmp_path / "t", "wb") as file:
        writer = TableWriter(file)
        writer.add(b"only", b"value")
        writer.finish()
    stored = Table(str(tmp_path / "t"))
    assert [*stored] == [(b"only", b"value")]
    stored.close()


@pytest.mark.parametrize(
    ("first", "second", "keys"),
    [
        (b"ax", b"cx", [b"b", b"d"]),
        (b"ax", b"bx", [b"ax", b"c"]),
        (b"ab1", b"ab5", [b"ab2", b"b"]),
        (b"a", b"ab", [b"a", b"b"]),
        (b"a\xff", b"\xff\xff", [b"b", b"\xff\xff"]),
        (b"\xfe", b"\xff\x01", [b"\xfe", b"\xff\x02"]),
    ],
)
def test_keys_of_blocks_are_short(
    tmp_path: Path, first: bytes, second: bytes, keys: list[bytes]
) -> None:
    """As LevelDB's FindShortestSeparator and FindShortSuccessor shorten them."""
    blocks = {first: bytes(1 << 18), second: bytes(1 << 18)}
    stored = Table(str(table(tmp_path / "t", blocks)))
    assert [key for key, _ in stored._index] == keys
    assert stored.get(second) == bytes(1 << 18)
    stored.close()
