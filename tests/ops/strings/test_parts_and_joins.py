"""Substr, StringNGrams, ReduceJoin, UnsortedSegmentJoin."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError


def strings(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, object)


SUBSTRINGS = [
    ("BYTE", "abc", 3, 1, b""),
    ("BYTE", "abc", -3, 1, b"a"),
    ("BYTE", "abc", 1, -1, b"bc"),
    ("BYTE", "aéb", -2, 1, b"\xa9"),
    ("UTF8_CHAR", "abc", 3, 1, b""),
    ("UTF8_CHAR", "abc", 1, -1, b""),
    ("UTF8_CHAR", "aéb", -2, 1, "é".encode()),
    ("UTF8_CHAR", b"\x80\x80a", 0, 1, b"\x80\x80"),
    ("UTF8_CHAR", "aéb", 1, 100, "éb".encode()),
]


@pytest.mark.parametrize(("unit", "text", "pos", "length", "want"), SUBSTRINGS)
def test_substr(unit: Any, text: Any, pos: int, length: int, want: bytes) -> None:
    found = raw_ops.Substr(input=text, pos=np.int32(pos), len=np.int32(length), unit=unit)
    assert found == want


def test_substr_broadcasts_two_dimensions() -> None:
    found = raw_ops.Substr(input=strings([b"abc"], [b"def"]), pos=[0, 1], len=[1, 2])
    assert found.tolist() == [[b"a", b"bc"], [b"d", b"ef"]]
    with pytest.raises(UnimplementedError, match="3 dimensions"):
        raw_ops.Substr(input=strings([[b"abc"]]), pos=[0], len=[1])
    with pytest.raises(InvalidArgumentError, match="pos 4 out of range"):
        raw_ops.Substr(input="abc", pos=4, len=1)


def n_grams(data: list[bytes], splits: list[int], widths: list[int], pad: int, short: bool) -> Any:
    grams, rows = raw_ops.StringNGrams(
        data=np.array(data, object),
        data_splits=np.array(splits, np.int64),
        separator="|",
        ngram_widths=widths,
        left_pad="L",
        right_pad="R",
        pad_width=pad,
        preserve_short_sequences=short,
    )
    return grams.tolist(), rows.tolist()


def test_n_grams() -> None:
    row = [b"a", b"b", b"c"]
    assert n_grams(row, [0, 2, 3], [2], 1, False) == (
        [b"L|a", b"a|b", b"b|R", b"L|c", b"c|R"],
        [0, 3, 5],
    )
    assert n_grams(row, [0, 2, 2, 3], [3], 0, True) == ([b"a|b", b"c"], [0, 1, 1, 2])
    assert n_grams([b"c"], [0, 1], [9], 1, True) == ([b"L|c|R"], [0, 1])
    assert n_grams(row[:2], [0, 2], [2, 3], -1, False)[0] == [
        *(b"L|a", b"a|b", b"b|R"),
        *(b"L|L|a", b"L|a|b", b"a|b|R", b"b|R|R"),
    ]
    assert n_grams([], [0, 0], [2], 1, False) == ([], [0, 0])


@pytest.mark.parametrize(
    ("splits", "message"), [([1, 2], "First"), ([0, 3], "Invalid"), ([0, 1], "Last")]
)
def test_n_grams_check_the_splits(splits: list[int], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        n_grams([b"a", b"b"], splits, [1], 0, False)


def test_n_grams_with_pads_that_fit_no_memory_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="positive"):
        n_grams([b"a"], [0, 1], [0], 0, False)
    with pytest.raises(Exception, match=r"(?i)memory|large|allocat|elements"):
        n_grams([b"a"], [0, 1], [2**31 - 1], -1, False)


def test_reduce_join_takes_the_first_dimension_fastest() -> None:
    text = strings([b"a", b"b"], [b"c", b"d"])
    join = raw_ops.ReduceJoin
    assert join(inputs=text, reduction_indices=[0, 1], separator=",") == b"a,c,b,d"
    assert join(inputs=text, reduction_indices=[1, 0], separator=",") == b"a,b,c,d"
    kept = join(inputs=text, reduction_indices=-1, keep_dims=True)
    assert kept.tolist() == [[b"ab"], [b"cd"]]
    assert join(inputs=text[:, :0], reduction_indices=1).tolist() == [b"", b""]
    unchanged = join(inputs=text, reduction_indices=np.zeros(0, np.int32))
    assert unchanged.tolist() == text.tolist()
    with pytest.raises(OutOfRangeError, match="dimension 2"):
        join(inputs=text, reduction_indices=2)
    with pytest.raises(InvalidArgumentError, match="Duplicate"):
        join(inputs=text, reduction_indices=[1, -1])


def test_segments_are_joined() -> None:
    def join(texts: Any, ids: Any, count: int) -> Any:
        return raw_ops.UnsortedSegmentJoin(
            inputs=texts, segment_ids=ids, num_segments=count, separator=":"
        ).tolist()

    assert join(strings(b"a", b"b", b"c"), [1, 0, 1], 3) == [b"b", b"a:c", b""]
    assert join(strings(b"", b"a", b"", b"b"), [0, 0, 0, 0], 1) == [b"a::b"]
    assert join(strings([b"a", b"b"], [b"c", b"d"]), [1, 1], 2) == [[b"", b""], [b"a:c", b"b:d"]]
    for ids, count in (([0, 3], 3), ([-1, 0], 3), ([0, 0, 0], 3), ([0, 0], -1)):
        with pytest.raises(InvalidArgumentError):
            join(strings(b"a", b"b"), np.array(ids, np.int32), count)
