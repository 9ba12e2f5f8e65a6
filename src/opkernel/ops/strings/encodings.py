"""Text in the encodings that TensorFlow knows, as code points with their places.

`encodings.txt` (written by tools/record_unicode_tables.py) says which codec of Python gives TensorFlow's characters.
"""

import codecs
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.string_tensors import joining
from opkernel.device.work_clock import in_time, string_work
from opkernel.errors import InvalidArgumentError, UnimplementedError

_ERROR = 0xDC00
"""A byte sequence that is no character becomes this plus its length: no text has such a character."""

_SWAPPED = {26: 28, 28: 127, 127: 26}
"""Control characters that the code pages of PCs have at other places, in ICU's tables."""


def _mark(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeDecodeError)
    check_time("decoding a string")
    return chr(_ERROR + min(error.end - error.start, 0xFF)), error.end


def _mark_or_keep(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeDecodeError)
    byte = error.object[error.start]
    if 0x80 <= byte < 0xA0:
        return chr(byte), error.start + 1
    return _mark(error)


codecs.register_error("opkernel.mark", _mark)
codecs.register_error("opkernel.mark_or_keep", _mark_or_keep)


_AT_ONCE = 1 << 18
"""So many bytes are decoded at once."""
_WHOLE = ("big5", "big5hkscs", "cp950", "euc_jp", "euc_kr", "gb18030", "gbk", "shift_jis")
"""The codecs that do not tell where characters begin."""


@dataclass(frozen=True, slots=True)
class CodePoints:
    """The characters of some strings, one after the other, or of a piece of a long string.

    Attributes:
        rows: The numbers of the strings.
        counts: How many characters each has.
        points: Their code points, uint32.
        is_error: Where there is no character.
        is_open: Whether it is a piece that another one follows.
        starts: At which byte of its string each character begins, where that was asked for.
    """

    rows: range
    counts: Any
    points: Any
    is_error: Any
    is_open: bool = False
    starts: Any = None


class _Piece(NamedTuple):
    """A string, or a piece of one.

    Attributes:
        text: The bytes after the byte order mark.
        codec: How to decode them.
        mark: The length of the mark before them.
        before: The bytes of the string before them.
        is_open: Whether another piece follows.
    """

    text: bytes
    codec: str
    mark: int
    before: int = 0
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Encoding:
    """A codec of Python with ICU's corrections: "", "swap" or "c1"."""

    codec: str
    correction: str

    def decode(
        self, strings: Iterable[bytes], *, with_starts: bool = False
    ) -> Iterator[CodePoints]:
        """The characters of strings, those of some bytes at a time."""
        batch: list[_Piece] = []
        row = size = 0
        for text in in_time(strings, string_work):
            if size + len(text) > _AT_ONCE and batch:
                yield self._characters(row, batch, with_starts)
                row, size, batch = row + len(batch), 0, []
            if len(text) <= _AT_ONCE:
                codec, mark = self._form_of(text)
                batch.append(_Piece(text[mark:], codec, mark))
                size += len(text)
                continue
            for piece in in_time(self._pieces(text), lambda piece: len(piece.text) << 8):
                yield self._characters(row, [piece], with_starts)
            row += 1
        if batch:
            yield self._characters(row, batch, with_starts)

    def _pieces(self, text: bytes) -> Iterator[_Piece]:
        """A long string, cut between characters where the codec tells where these begin."""
        codec, mark = self._form_of(text)
        at = mark
        while at < len(text):
            end, is_first = _cut(text, codec, at), at == mark
            yield _Piece(
                text[at:end], codec, mark if is_first else 0, 0 if is_first else at, end < len(text)
            )
            at = end

    def _characters(self, row: int, pieces: list[_Piece], with_starts: bool) -> CodePoints:
        texts = [self._decoded(piece) for piece in pieces]
        joined = "".join(texts).encode("utf-32-le", "surrogatepass")
        points = np.frombuffer(joined, "<u4").astype(np.uint32, copy=False)
        counts = np.fromiter(map(len, texts), np.int64, len(texts))
        is_error = points >> 10 == _ERROR >> 10
        starts = None
        if with_starts:
            lengths = self._lengths(pieces, counts, points, is_error)
            sizes = np.array([piece.mark + len(piece.text) for piece in pieces], np.int64)
            before = np.cumsum(sizes) - sizes - pieces[0].before
            starts = np.cumsum(lengths) - lengths - np.repeat(before, counts)
        rows = range(row, row + len(pieces))
        return CodePoints(rows, counts, points, is_error, pieces[-1].is_open, starts)

    def _decoded(self, piece: _Piece) -> str:
        handler = "opkernel.mark_or_keep" if self.correction == "c1" else "opkernel.mark"
        decoded = piece.text.decode(piece.codec, handler)
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

    def _lengths(self, pieces: list[_Piece], counts: Any, points: Any, is_error: Any) -> Any:
        """How many bytes each character takes; the first takes the byte order mark, too."""
        wide = points.astype(np.int64)
        if self.codec == "utf-8":
            lengths = 1 + (wide >= 0x80) + (wide >= 0x800) + (wide >= 0x10000)
        elif self.codec.startswith("utf-16"):
            lengths = 2 + 2 * (wide >= 0x10000)
        elif self.codec.startswith("utf-32"):
            lengths = np.full(wide.size, 4)
        elif wide.size == sum(len(piece.text) for piece in pieces):
            lengths = np.ones(wide.size, np.int64)
        else:
            each = (n for piece in pieces for n in self._each_length(piece.text))
            lengths = np.fromiter(in_time(each), np.int64, wide.size)
        lengths[is_error] = wide[is_error] - _ERROR
        if self.codec in ("utf-16", "utf-32"):
            marks = np.array([piece.mark for piece in pieces], np.int64)
            firsts = np.cumsum(counts) - counts
            some = counts > 0
            lengths[firsts[some]] += marks[some]
        return lengths

    def _each_length(self, text: bytes) -> Iterator[int]:
        """The lengths of characters of several bytes, each by the byte that completes it."""
        decoder = codecs.getincrementaldecoder(self.codec)("opkernel.mark")
        pending = 0
        for i in range(len(text)):
            pending += 1
            found = decoder.decode(text[i : i + 1], i == len(text) - 1)
            for left, point in zip(range(len(found) - 1, -1, -1), map(ord, found), strict=True):
                is_error = point >> 10 == _ERROR >> 10
                length = point - _ERROR if is_error else 1 if left else pending
                pending -= length
                yield length


def _cut(text: bytes, codec: str, at: int) -> int:
    """Where to cut a string whose beginning up to `at` is cut off: where no character is cut."""
    end = at + _AT_ONCE
    if end >= len(text) or codec in _WHOLE:
        return len(text)
    if codec == "utf-8":  # the fourth in a row that continues a character continues none
        begins = (i for i in range(end, end + 3) if text[i : i + 1] < b"\x80" or text[i] >= 0xC0)
        return min(next(begins, end + 3), len(text))
    if codec.startswith("utf-16"):
        high = codec.endswith("le")
        is_pair = (
            text[end - 2 + high] >> 2 == 0xD8 >> 2 and text[end + high : end + high + 1] >= b"\xdc"
        )
        return min(end + 2, len(text)) if is_pair else end
    return end


@functools.cache
def _encodings() -> dict[str, str]:
    """The ways to decode, by the names of encodings as ICU compares them."""
    lines = Path(__file__).with_name("encodings.txt").read_text("ascii").splitlines()
    ways = [line.split() for line in lines]
    return {name: way for way, *names in ways for name in names}


def input_encoding_of(input_encoding: str) -> Encoding:
    """The encoding that the attr `input_encoding` names.

    Raises:
        InvalidArgumentError: TensorFlow knows no such encoding.
        UnimplementedError: Python decodes it in another way, or not at all.
    """
    plain = re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[-_ ]", "", input_encoding.lower()))
    way = _encodings().get(plain)
    if way is None:
        raise InvalidArgumentError(
            f"Could not create converter for input encoding: {input_encoding}"
        )
    if way == "-":
        raise UnimplementedError(
            f"The encoding {input_encoding} is not supported; convert the text to UTF-8"
        )
    codec, _, correction = way.partition(":")
    return Encoding(codec, correction)


def encoded_strings(found: Iterable[CodePoints], encoding: str) -> Iterator[bytes]:
    """Strings of characters, in UTF-8, UTF-16-BE or UTF-32-BE."""
    pieces: list[bytes] = []
    for some in found:
        encoded = _encoded(some.points, some.counts, encoding)
        if some.is_open:
            pieces += encoded
        elif pieces:
            yield joining(b"")([*pieces, *encoded])
            pieces = []
        else:
            yield from encoded


def _encoded(points: Any, counts: Any, encoding: str) -> Iterator[bytes]:
    ends = np.cumsum(counts).tolist()
    spans = zip([0, *ends], ends, strict=False)
    if encoding == "UTF-32-BE":
        data = points.astype(">u4").tobytes()
        return (data[4 * a : 4 * b] for a, b in spans)
    if encoding == "UTF-8":
        points = np.where(points >> 11 == 0xD800 >> 11, 0xFFFD, points)
    text = points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    codec, handler = ("utf-8", "strict") if encoding == "UTF-8" else ("utf-16-be", "surrogatepass")
    return (text[a:b].encode(codec, handler) for a, b in spans)
