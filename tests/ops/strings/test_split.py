"""StringSplit, StringSplitV2, StringStrip."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError


def strings(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, object)


V2_CASES = [
    (b"a b  c", b" ", -1, [b"a", b"b", b"", b"c"]),
    (b"a  b\tc\n", b"", -1, [b"a", b"b", b"c"]),
    (b"a  b\tc  ", b"", 2, [b"a", b"b", b"c  "]),
    (b"a b", b"", 2, [b"a", b"b", b""]),
    (b" a  b ", b"", 2, [b"a", b"b", b""]),
    (b"  a b c ", b"", 0, [b"  a b c "]),
    (b"a<>b<>c", b"<>", 1, [b"a", b"b<>c"]),
    (b"", b"", -1, []),
    (b"", b"x", -1, [b""]),
    (b"a b", b"", -5, [b"a", b"b"]),
]
V1_CASES = [
    (b"a b  c", b" ", True, [b"a", b"b", b"c"]),
    (b"a b  c", b" ", False, [b"a", b"b", b"", b"c"]),
    (b"a,b;c", b",;", False, [b"a", b"b", b"c"]),
    ("é".encode(), b"", True, [b"\xc3", b"\xa9"]),
    (b"", b" ", False, []),
]


@pytest.mark.parametrize(("text", "sep", "maxsplit", "parts"), V2_CASES)
def test_split_at_a_separator(text: bytes, sep: bytes, maxsplit: int, parts: list[bytes]) -> None:
    split = raw_ops.StringSplitV2(input=strings(text), sep=sep, maxsplit=maxsplit)
    assert split.values.tolist() == parts


@pytest.mark.parametrize(("text", "delimiter", "skip_empty", "parts"), V1_CASES)
def test_split_at_any_of_several_bytes(
    text: bytes, delimiter: bytes, skip_empty: bool, parts: list[bytes]
) -> None:
    split = raw_ops.StringSplit(input=strings(text), delimiter=delimiter, skip_empty=skip_empty)
    assert split.values.tolist() == parts


def test_parts_are_a_sparse_matrix() -> None:
    indices, values, shape = raw_ops.StringSplitV2(input=strings(b"a b", b"", b"c"), sep=b"")
    assert indices.tolist() == [[0, 0], [0, 1], [2, 0]]
    assert (values.tolist(), shape.tolist()) == ([b"a", b"b", b"c"], [3, 2])
    indices, values, shape = raw_ops.StringSplitV2(input=strings(), sep=b" ")
    assert (indices.shape, values.shape, shape.tolist()) == ((0, 2), (0,), [0, 0])


@given(st.lists(st.binary(max_size=12)))
def test_joined_parts_are_the_string(texts: list[bytes]) -> None:
    indices, values, _ = raw_ops.StringSplitV2(input=np.array(texts, object), sep=b"\0")
    for i, text in enumerate(texts):
        assert b"\0".join(values[indices[:, 0] == i]) == text


def test_wrong_ranks_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="vector"):
        raw_ops.StringSplitV2(input=strings([b"a"]), sep=b" ")
    with pytest.raises(InvalidArgumentError, match=r"scalar|rank 0"):
        raw_ops.StringSplit(input=strings(b"a"), delimiter=strings(b" "))


def test_strip_takes_the_blanks_of_c() -> None:
    stripped = raw_ops.StringStrip(input=strings(b"\x0b\x0c\r a\x00 \t", b"\x1c a"))
    assert stripped.tolist() == [b"a\x00", b"\x1c a"]
