import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel.opdef.text.escaping import c_escape, c_unescape, utf8_safe_c_escape


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"plain", "plain"),
        (b"a\tb\nc\r", r"a\tb\nc\r"),
        (b'it\'s "so" \\', r"it\'s \"so\" \\"),
        (b"\x00\x1f\x7f\xff", r"\000\037\177\377"),
        ("é".encode(), r"\303\251"),
        (b"\x0b\x07", r"\013\007"),
    ],
)
def test_escapes_all_but_printable_ascii(value, text):
    assert c_escape(value) == text
    assert c_unescape(text) == value


def test_utf8_safe_escapes_leave_other_letters() -> None:
    assert utf8_safe_c_escape('é"\n'.encode()) == r"é\"\n"
    assert utf8_safe_c_escape(b"\xff") == "\udcff"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\a\b\f\v\?", b"\x07\x08\x0c\x0b?"),
        (r"\x41\X42\x000043", b"ABC"),
        (r"\1\12\1234", b"\x01\nS4"),
        (r"\u00e9\U0001F600", "é😀".encode()),
        ("é", "é".encode()),
    ],
)
def test_unescapes_what_c_knows(text, value):
    assert c_unescape(text) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r"\q", r"Unknown escape sequence: \q"),
        ("tail\\", "String cannot end with \\"),
        (r"\x", r"String cannot end with \x"),
        (r"\xg", r"\x cannot be followed by a non-hex digit"),
        (r"\x123", r"Value of \x123 exceeds 0xff"),
        (r"\400", r"Value of \400 exceeds 0xff"),
        (r"\u12", r"\u must be followed by 4 hex digits"),
        (r"\u12g4", r"\u must be followed by 4 hex digits: \u12"),
        (r"\ud800", r"invalid surrogate character (0xD800-DFFF): \ud800"),
        (r"\U00110000", r"Value of \U00110000 exceeds Unicode limit (0x10FFFF)"),
    ],
)
def test_refuses_broken_escapes(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        c_unescape(text)


@given(st.binary())
def test_round_trip(value):
    assert c_unescape(c_escape(value)) == value
