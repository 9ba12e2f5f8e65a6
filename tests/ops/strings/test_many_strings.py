"""Ops that take many strings at once give each string what it gets by itself, wherever a batch ends."""

from itertools import chain
from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.device import string_buffer
from opkernel.errors import InvalidArgumentError

WORDS = [b"a b", b"", b"  x", b"y\tz ", b"\xc3\xa9 \xe4\xb8\xad", b"q" * 9, b"\x80\x80", b" "]
PARTS_AT_BLANKS = [[b"a", b"b"], [], [b"x"], [b"y", b"z"], [b"\xc3\xa9", b"\xe4\xb8\xad"], [b"q" * 9], [b"\x80\x80"], []]  # fmt: skip
CHARACTERS = [3, 0, 3, 4, 3, 9, 0, 1]


@pytest.fixture(params=[(1, 1 << 22), (3, 1 << 22), (100, 4), (100, 1 << 22)])
def texts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Strings in batches of so many, and of so many bytes."""
    piece, size = request.param
    monkeypatch.setattr(string_buffer, "_PIECE", piece)
    monkeypatch.setattr(string_buffer, "_BATCH_BYTES", size)
    return np.array(WORDS, object)


def test_parts_at_blanks(texts: Any) -> None:
    found = raw_ops.StringSplitV2(input=texts, sep=b"")
    assert found.values.tolist() == [*chain.from_iterable(PARTS_AT_BLANKS)]
    rows = [[i, j] for i, parts in enumerate(PARTS_AT_BLANKS) for j in range(len(parts))]
    assert found.indices.tolist() == rows
    assert found.shape.tolist() == [8, 2]


def test_parts_at_a_byte(texts: Any) -> None:
    found = raw_ops.StringSplitV2(input=texts, sep=b" ")
    wanted = [b"a", b"b", b"", b"", b"", b"x", b"y\tz", b"", b"\xc3\xa9", b"\xe4\xb8\xad"]
    assert found.values.tolist() == [*wanted, b"q" * 9, b"\x80\x80", b"", b""]
    assert np.bincount(found.indices[:, 0]).tolist() == [2, 1, 3, 2, 2, 1, 1, 2]


def test_parts_at_any_byte(texts: Any) -> None:
    found = raw_ops.StringSplit(input=texts, delimiter=b" \t")
    assert found.values.tolist() == [*chain.from_iterable(PARTS_AT_BLANKS)]


def test_lengths(texts: Any) -> None:
    assert raw_ops.StringLength(input=texts).tolist() == [3, 0, 3, 4, 6, 9, 2, 1]
    characters = raw_ops.StringLength(input=texts, unit="UTF8_CHAR")
    assert characters.tolist() == CHARACTERS


def test_parts_by_place(texts: Any) -> None:
    lengths = np.array([2**62, 0, 2, -1, 3, 1, 1, 5])
    at = np.array([-2, 0, 1, -3, 0, 9, -1, 1])
    found = raw_ops.Substr(input=texts, pos=at, len=lengths)
    assert found.tolist() == [b" b", b"", b" x", b"\tz ", b"\xc3\xa9 ", b"", b"\x80", b""]
    lengths[3] = 2
    found = raw_ops.Substr(input=texts, pos=at, len=lengths, unit="UTF8_CHAR")
    wanted = [b" b", b"", b" x", b"\tz", b"\xc3\xa9 \xe4\xb8\xad", b"", b"\x80\x80", b""]
    assert found.tolist() == wanted
    for unit in ("BYTE", "UTF8_CHAR"):
        with pytest.raises(InvalidArgumentError, match="out of range"):
            raw_ops.Substr(input=texts, pos=2, len=1, unit=unit)


def test_bytes_with_zeros_behind(texts: Any) -> None:
    found = raw_ops.DecodePaddedRaw(input_bytes=texts, fixed_length=4, out_type="uint8")
    assert [row.tobytes() for row in found] == [text[:4].ljust(4, b"\0") for text in WORDS]
