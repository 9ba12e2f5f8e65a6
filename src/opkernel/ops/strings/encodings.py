"""Text in the encodings that TensorFlow knows, as code points with their places.

`encodings.txt` (written by tools/record_unicode_tables.py) says which codec of Python gives TensorFlow's characters.
"""

import codecs
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.ops.strings.elements import in_time

__all__ = ["CodePoints", "Encoding", "encoded_strings", "encoding_called"]

_ERROR = 0xDC00
"""A byte sequence that is no character becomes this plus its length: no text has such a character."""

_SWAPPED = {26: 28, 28: 127, 127: 26}
"""Control characters that the code pages of PCs have at other places, in ICU's tables."""


def _mark(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeDecodeError)
    return chr(_ERROR + min(error.end - error.start, 0xFF)), error.end


def _mark_or_keep(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeDecodeError)
    byte = error.object[error.start]
    if 0x80 <= byte < 0xA0:
        return chr(byte), error.start + 1
    return _mark(error)


codecs.register_error("opkernel.mark", _mark)
codecs.register_error("opkernel.mark_or_keep", _mark_or_keep)


@dataclass(frozen=True, slots=True)
class CodePoints:
    """The characters of several strings, one after the other."""

    counts: Any
    """How many each string has."""
    points: Any
    """Their code points, uint32."""
    is_error: Any
    """Where there is no character."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """A codec of Python with ICU's corrections: "", "swap" or "c1"."""

    codec: str
    correction: str

    def decode(self, strings: list[bytes]) -> CodePoints:
        """The characters of the strings."""
        texts = [self._decoded(text) for text in in_time(strings)]
        joined = "".join(texts).encode("utf-32-le", "surrogatepass")
        points = np.frombuffer(joined, "<u4").astype(np.uint32)
        counts = np.fromiter(map(len, texts), np.int64, len(texts))
        return CodePoints(counts, points, points >> 10 == _ERROR >> 10)

    def _decoded(self, text: bytes) -> str:
        handler = "opkernel.mark_or_keep" if self.correction == "c1" else "opkernel.mark"
        codec, start = self._form_of(text)
        decoded = text[start:].decode(codec, handler)
        return decoded.translate(_SWAPPED) if self.correction == "swap" else decoded

    def _form_of(self, text: bytes) -> tuple[str, int]:
        """The codec for a string and the length of its byte order mark."""
        if self.codec not in ("utf-16", "utf-32"):
            return self.codec, 0
        little, big = (f"{self.codec}-{order}" for order in ("le", "be"))
        for codec in (little, big):
            mark = "\ufeff".encode(codec)
            if text.startswith(mark):
                return codec, len(mark)
        return big, 0

    def lengths(self, strings: list[bytes], found: CodePoints) -> Any:
        """How many bytes each character takes; the first takes the byte order mark, too."""
        points = found.points.astype(np.int64)
        if self.codec == "utf-8":
            lengths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
        elif self.codec.startswith("utf-16"):
            lengths = 2 + 2 * (points >= 0x10000)
        elif self.codec.startswith("utf-32"):
            lengths = np.full(points.size, 4)
        elif found.points.size == sum(map(len, strings)):
            lengths = np.ones(points.size, np.int64)
        else:
            lengths = np.array([n for text in strings for n in self._each_length(text)], np.int64)
        lengths[found.is_error] = points[found.is_error] - _ERROR
        if self.codec in ("utf-16", "utf-32"):
            marks = np.array([self._form_of(text)[1] for text in strings], np.int64)
            firsts = np.cumsum(found.counts) - found.counts
            some = found.counts > 0
            lengths[firsts[some]] += marks[some]
        return lengths

    def _each_length(self, text: bytes) -> list[int]:
        """The lengths of characters of several bytes, each by the byte that completes it."""
        decoder = codecs.getincrementaldecoder(self.codec)("opkernel.mark")
        lengths, pending = [], 0
        for i in range(len(text)):
            pending += 1
            found = decoder.decode(text[i : i + 1], i == len(text) - 1)
            for left, point in zip(range(len(found) - 1, -1, -1), map(ord, found), strict=True):
                is_error = point >> 10 == _ERROR >> 10
                lengths.append(point - _ERROR if is_error else 1 if left else pending)
                pending -= lengths[-1]
        return lengths


@functools.cache
def _encodings() -> dict[str, str]:
    """The ways to decode, by the names of encodings as ICU compares them."""
    lines = Path(__file__).with_name("encodings.txt").read_text("ascii").splitlines()
    ways = [line.split() for line in lines]
    return {name: way for way, *names in ways for name in names}


def encoding_called(name: str) -> Encoding:
    """The encoding of a name.

    Raises:
        InvalidArgumentError: TensorFlow knows no such encoding.
        UnimplementedError: Python decodes it in another way, or not at all.
    """
    plain = re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[-_ ]", "", name.lower()))
    way = _encodings().get(plain)
    if way is None:
        raise InvalidArgumentError(f"Could not create converter for input encoding: {name}")
    if way == "-":
        raise UnimplementedError(f"The encoding {name} is not supported; convert the text to UTF-8")
    codec, _, correction = way.partition(":")
    return Encoding(codec, correction)


def encoded_strings(points: Any, counts: Any, encoding: str) -> list[bytes]:
    """Strings of code points, each of the next `counts`, in UTF-8, UTF-16-BE or UTF-32-BE."""
    ends = np.cumsum(counts).tolist()
    spans = zip([0, *ends], ends, strict=False)
    if encoding == "UTF-32-BE":
        data = points.astype(">u4").tobytes()
        return [data[4 * a : 4 * b] for a, b in in_time(spans)]
    if encoding == "UTF-8":
        points = np.where(points >> 11 == 0xD800 >> 11, 0xFFFD, points)
    text = points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    codec, handler = ("utf-8", "strict") if encoding == "UTF-8" else ("utf-16-be", "surrogatepass")
    return [text[a:b].encode(codec, handler) for a, b in in_time(spans)]
