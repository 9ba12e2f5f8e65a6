"""Compressed blocks: Snappy's format, written here tag by tag from its description."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.checkpoint.snappy import compressed, decompressed
from opkernel.errors import DataLossError


def literal(data: bytes, length_bytes: int = 0) -> bytes:
    """A tag for bytes that follow it; with `length_bytes`, their number stands behind the tag."""
    number = len(data) - 1
    if length_bytes == 0:
        return bytes([number << 2]) + data
    return bytes([59 + length_bytes << 2]) + number.to_bytes(length_bytes, "little") + data


def copy(offset: int, length: int, offset_bytes: int) -> bytes:
    """A tag that repeats `length` bytes from `offset` bytes back."""
    if offset_bytes == 1:  # three bits of the offset stand in the tag
        return bytes([offset >> 8 << 5 | length - 4 << 2 | 1, offset & 0xFF])
    kind = {2: 2, 4: 3}[offset_bytes]
    return bytes([length - 1 << 2 | kind]) + offset.to_bytes(offset_bytes, "little")


def block(size: int, *tags: bytes) -> bytes:
    """A block that announces `size` bytes, which is below 2**14, and has these tags."""
    header = bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])
    return header + b"".join(tags)


PATTERN = bytes(range(256)) * 12
COPIES = [(1, length) for length in (4, 11)] + [(k, n) for k in (2, 4) for n in (1, 4, 63, 64)]


def test_an_empty_block() -> None:
    assert decompressed(b"\0") == b""


@pytest.mark.parametrize(
    ("length", "length_bytes"),
    [(1, 0), (59, 0), (60, 0), (1, 1), (61, 1), (256, 1), (257, 2), (3000, 2), (300, 3), (300, 4)],
)
def test_literals_of_each_length(length: int, length_bytes: int) -> None:
    data = PATTERN[:length]
    assert decompressed(block(length, literal(data, length_bytes))) == data


@pytest.mark.parametrize(("offset_bytes", "length"), COPIES)
@pytest.mark.parametrize("offset", [1, 3, 255, 256, 1000, 2047])
def test_copies_of_each_kind_repeat_also_what_they_write(
    offset_bytes: int, length: int, offset: int
) -> None:
    before = PATTERN[:2047]
    expected = bytearray(before)
    for _ in range(length):
        expected.append(expected[-offset])
    tags = literal(before, 2), copy(offset, length, offset_bytes), literal(b"end")
    assert decompressed(block(2047 + length + 3, *tags)) == bytes(expected) + b"end"


@given(st.data())
def test_tags_in_any_order(data: st.DataObject) -> None:
    expected, tags = bytearray(b"first"), [literal(b"first")]
    for _ in range(data.draw(st.integers(0, 8))):
        if data.draw(st.booleans()):
            piece = data.draw(st.binary(min_size=1, max_size=60))
            tags.append(literal(piece))
            expected += piece
            continue
        offset_bytes, length = data.draw(st.sampled_from(COPIES))
        offset = data.draw(st.integers(1, len(expected)))
        tags.append(copy(offset, length, offset_bytes))
        for _ in range(length):
            expected.append(expected[-offset])
    assert decompressed(block(len(expected), *tags)) == expected


@pytest.mark.parametrize("offset_bytes", [1, 2, 4])
@pytest.mark.parametrize("offset", [0, 5])
def test_a_copy_from_outside_the_content_is_refused(offset_bytes: int, offset: int) -> None:
    with pytest.raises(DataLossError, match="copies from before its beginning"):
        decompressed(block(8, literal(b"abcd"), copy(offset, 4, offset_bytes)))


@pytest.mark.parametrize(
    "last", [literal(b"abcd"), literal(b"abcd", 1), *(copy(4, 4, kind) for kind in (1, 2, 4))]
)
def test_a_block_that_is_cut_short_is_refused(last: bytes) -> None:
    whole = block(8, literal(b"wxyz"), last)
    assert decompressed(whole)[:4] == b"wxyz"
    for size in range(len(whole)):
        with pytest.raises(DataLossError):
            decompressed(whole[:size])


@pytest.mark.parametrize("announced", [0, 3, 5, 100, 16383])
def test_a_block_of_another_size_than_announced_is_refused(announced: int) -> None:
    with pytest.raises(DataLossError, match="compressed block"):
        decompressed(block(announced, literal(b"abcd")))


PIECES = [b"\0", b"\x80", b"ab", b"abcdefgh", b"x" * 70, b"y" * 70_000]


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=80), max_size=9))
def test_what_was_compressed(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    packed = compressed(data)
    assert decompressed(packed) == data
    assert len(packed) <= len(data) + len(data) // 50 + 8


def test_repeated_bytes_are_written_once() -> None:
    assert len(compressed(bytes(100_000))) < 5_000
    assert len(compressed(bytes(range(256)) * 200)) < 4_000
