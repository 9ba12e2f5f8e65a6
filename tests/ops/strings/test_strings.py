"""StringJoin, StringLength, StringLower, StringUpper."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError


def strings(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, object)


def test_join() -> None:
    scalar = np.array(b"c", object)
    joined = raw_ops.StringJoin(
        inputs=[strings(b"a", b"\xff"), scalar, strings(b"d", b"")], separator="--"
    )
    assert joined.tolist() == [b"a--c--d", b"\xff--c--"]
    assert raw_ops.StringJoin(inputs=[scalar, scalar]) == b"cc"
    assert raw_ops.StringJoin(inputs=[], separator="x") == b""
    assert raw_ops.StringJoin(inputs=[strings()[:0], scalar]).shape == (0,)
    with pytest.raises(InvalidArgumentError, match=r"do not match: \[2\] vs. \[1\]"):
        raw_ops.StringJoin(inputs=[strings(b"a", b"b"), strings(b"c")])


def test_length() -> None:
    text = strings([b"", b"ab"], ["ü€".encode(), b"\xff\x80"])
    lengths = raw_ops.StringLength(input=text)
    assert (lengths.tolist(), lengths.dtype) == ([[0, 2], [5, 2]], np.int32)
    characters = raw_ops.StringLength(input=text, unit="UTF8_CHAR")
    assert characters.tolist() == [[0, 2], [2, 1]]
    assert raw_ops.StringLength(input="abc") == 3


CASES = [
    ("ÄbC", "äbc", "ÄBC"),
    ("ß", "ß", "SS"),
    ("ΣΑΣ", "σας", "ΣΑΣ"),
    ("İ", "i̇", "İ"),
    (b"\xffA", b"\xef\xbf\xbda", b"\xef\xbf\xbdA"),
    (b"A\x00B", b"a", b"A"),
]


@pytest.mark.parametrize(("text", "lower", "upper"), CASES)
def test_case_of_unicode(text: Any, lower: Any, upper: Any) -> None:
    given, *expected = (v.encode() if isinstance(v, str) else v for v in (text, lower, upper))
    for op, want in zip((raw_ops.StringLower, raw_ops.StringUpper), expected, strict=True):
        assert op(input=strings(given), encoding="utf-8").tolist() == [want]


def test_case_of_bytes() -> None:
    text = strings("aÄ\x00B".encode(), b"\xe4")
    assert raw_ops.StringLower(input=text).tolist() == ["aÄ\x00b".encode(), b"\xe4"]
    assert raw_ops.StringUpper(input=text).tolist() == ["AÄ\x00B".encode(), b"\xe4"]
    with pytest.raises(InvalidArgumentError, match="received latin-1"):
        raw_ops.StringLower(input=text, encoding="latin-1")
