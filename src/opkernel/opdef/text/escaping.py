"""C escapes in strings: how specs, text protos and summaries spell bytes; and `Cursor`, with which their parsers read.

`c_escape`, `utf8_safe_c_escape` and `c_unescape` follow absl's CEscape, Utf8SafeCEscape and
CUnescape, which TensorFlow uses.
"""

from __future__ import annotations

import re

_NAMED = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_NAMED |= {plain: ord(plain) for plain in "\\?'\""}
_ESCAPE_OF = {9: r"\t", 10: r"\n", 13: r"\r", 34: r"\"", 39: r"\'", 92: r"\\"}
_SPELLED = [
    _ESCAPE_OF.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
    for byte in range(256)
]
_UTF8_SAFE = [
    (bytes([byte]), _SPELLED[byte].encode())
    for byte in (0x5C, *(byte for byte in range(128) if byte != 0x5C))  # the backslash first
    if len(_SPELLED[byte]) > 1
]

_ESCAPE = (
    r"\\(?:(?P<octal>[0-7]{1,3})|[xX](?P<hex>[0-9a-fA-F]*)"
    r"|u(?P<short>[0-9a-fA-F]{0,4})|U(?P<long>[0-9a-fA-F]{0,8})|(?P<named>.)|\Z)"
)


def c_escape(value: bytes) -> str:
    """The bytes as ASCII text: quotes and the backslash escaped, unprintable bytes in octal."""
    return "".join([_SPELLED[byte] for byte in value])


def utf8_safe_c_escape(value: bytes) -> str:
    """As `c_escape`, but bytes above 127 stay; bytes that are no UTF-8 become surrogates."""
    for byte, escape in _UTF8_SAFE:
        if byte in value:
            value = value.replace(byte, escape)
    return value.decode("utf-8", "surrogateescape")


def c_unescape(text: str) -> bytes:
    """The bytes that escaped text stands for.

    Raises:
        ValueError: an escape sequence is unknown, incomplete or out of range.
    """
    if "\\" not in text:
        return text.encode("utf-8", "surrogateescape")
    pieces = []
    at = 0
    for found in re.finditer(_ESCAPE, text, re.DOTALL):
        pieces.append(text[at : found.start()].encode("utf-8", "surrogateescape"))
        pieces.append(_unescape_one(found))
        at = found.end()
    pieces.append(text[at:].encode("utf-8", "surrogateescape"))
    return b"".join(pieces)


def _unescape_one(found: re.Match[str]) -> bytes:
    """The bytes of one escape sequence."""
    match found.lastgroup:
        case "octal":
            return _byte(found, int(found["octal"], 8))
        case "hex" if found["hex"]:
            return _byte(found, int(found["hex"], 16))
        case "hex":
            is_at_end = found.end() == len(found.string)
            raise ValueError(
                "String cannot end with \\x"
                if is_at_end
                else "\\x cannot be followed by a non-hex digit"
            )
        case "short" | "long" as size:
            return _code_point(found, found[size], 4 if size == "short" else 8)
        case "named" if found["named"] in _NAMED:
            return bytes([_NAMED[found["named"]]])
        case "named":
            raise ValueError(f"Unknown escape sequence: \\{found['named']}")
        case _:
            raise ValueError("String cannot end with \\")


def _byte(found: re.Match[str], value: int) -> bytes:
    if value > 0xFF:
        raise ValueError(f"Value of {found.group()} exceeds 0xff")
    return bytes([value])


def _code_point(found: re.Match[str], digits: str, wanted: int) -> bytes:
    """The UTF-8 of a character given by its number in hexadecimal."""
    if len(digits) != wanted:
        is_cut_off = len(found.string) - found.start() - 2 < wanted
        what = f"{found.group()[:2]} must be followed by {wanted} hex digits"
        raise ValueError(what if is_cut_off else f"{what}: {found.group()}")
    value = int(digits, 16)
    if value > 0x10FFFF:
        raise ValueError(f"Value of {found.group()} exceeds Unicode limit (0x10FFFF)")
    if 0xD800 <= value <= 0xDFFF:
        raise ValueError(f"invalid surrogate character (0xD800-DFFF): {found.group()}")
    return chr(value).encode()


class Cursor:
    """A text, and how many of its characters are consumed: `at`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def rest(self) -> str:
        """The text that is not consumed."""
        return self.text[self.at :]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The match at the front, which is consumed; None leaves everything in place."""
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def take_literal(self, literal: str) -> bool:
        """Whether the literal stands at the front, where it is consumed."""
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True
