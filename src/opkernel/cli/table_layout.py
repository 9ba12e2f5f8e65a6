"""How text and tables fit the width of a terminal: pure functions of printable text.

A column gives way from the widest down: its cells break behind `/`, commas and spaces. Numbers and columns
that are to be whole do not break; a long name in the first of these stands on a line of its own. Where even
that is too wide, each row becomes a record: its name, and below that the other cells with their headers.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import zip_longest

Paint = Callable[[int, int, str], str]
"""`paint(row, column, text)`: the text of a cell, or of a part of it, in its colours; row -1 has the headers."""

_INDENT, _GAP = 2, 2
_NARROWEST = 14
"""A column that breaks is no narrower, unless all of it is."""
_PIECE = re.compile(r"/*[^\s/,]*(?:[/,]+|\s+|$)")


def fold(text: str, width: int | None, hanging: int = 0) -> list[str]:
    """Text as lines of at most `width` characters, broken behind `/`, commas and spaces where it can be.

    Lines after the first are shorter by `hanging` characters.
    """
    if width is None or _size(text) <= width:
        return [text]
    lines: list[str] = []
    line = ""
    for piece in _PIECE.findall(text):
        if line and _size(line + piece.rstrip()) > width - hanging * bool(lines):
            lines.append(line.rstrip())
            line = ""
        line += piece
        while _size(line.rstrip()) > (limit := width - hanging * bool(lines)):
            cut = next(n for n in range(len(line), 0, -1) if n == 1 or _size(line[:n]) <= limit)
            cut = 1 + max(line.rfind(sign, cut // 2, cut) for sign in "_.:") or cut
            lines.append(line[:cut])
            line = line[cut:]
    return [*lines, line.rstrip()] if line.strip() else lines


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None,
    paint: Paint,
    *,
    numbers: Collection[str] = (),
    whole: Collection[str] = (),
) -> Iterator[str]:
    """The lines of a table.

    Args:
        header: the headers of the columns.
        rows: the cells of each row.
        width: how long a line may be; None for any length.
        paint: puts the colours on.
        numbers: the headers of columns that are aligned to the right, and whole.
        whole: the headers of columns whose cells do not break.
    """
    natural = [max(map(_size, column)) for column in zip(header, *rows, strict=True)]
    if width is None:
        widths: list[int] | None = natural
    else:
        fixed = [name in numbers or (name in whole and i > 0) for i, name in enumerate(header)]
        narrowest = max(_NARROWEST, width // 3)
        least = [
            size if is_fixed else min(size, narrowest if name in whole else _NARROWEST)
            for name, size, is_fixed in zip(header, natural, fixed, strict=True)
        ]
        widths = _shrunk(natural, least, width - _INDENT - _GAP * (len(header) - 1))
    if widths is None:
        assert width is not None
        yield from _records(header, rows, width, paint, numbers)
        return
    to_right = [name in numbers for name in header]
    spills = header[0] in whole
    for number, row in enumerate((header, *rows), -1):
        yield from _row_lines(number, row, widths, to_right, paint, spills=spills)


def _shrunk(natural: Sequence[int], least: Sequence[int], available: int) -> list[int] | None:
    """Widths of columns that are `available` together, the widest shrunk first; None if there are none."""
    if sum(least) > available:
        return None
    widths = [max(low, min(size, available)) for size, low in zip(natural, least, strict=True)]
    while sum(widths) > available:
        widest = max((w, i) for i, w in enumerate(widths) if w > least[i])[1]
        widths[widest] -= 1
    return widths


def _row_lines(
    number: int,
    row: Sequence[str],
    widths: Sequence[int],
    to_right: Sequence[bool],
    paint: Paint,
    *,
    spills: bool,
) -> Iterator[str]:
    """A row of a table; where `spills` a long first cell stands on a line of its own."""
    indent = " " * _INDENT
    if spills and _size(row[0]) > widths[0]:
        for part in fold(row[0], sum(widths) + _GAP * (len(widths) - 1)):
            yield indent + paint(number, 0, part)
        row = ["", *row[1:]]
    cells = [fold(cell, width) for cell, width in zip(row, widths, strict=True)]
    for parts in zip_longest(*cells, fillvalue=""):
        padded = []
        for column, (part, width) in enumerate(zip(parts, widths, strict=True)):
            padding = " " * (width - _size(part))
            painted = paint(number, column, part) if part else ""
            padded.append(padding + painted if to_right[column] else painted + padding)
        yield (indent + (" " * _GAP).join(padded)).rstrip()


def _records(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    paint: Paint,
    numbers: Collection[str],
) -> Iterator[str]:
    """Rows as records, named by the first cells that are no numbers; short cells share a line."""
    key = next((i for i, name in enumerate(header) if name not in numbers), 0)
    for number, row in enumerate(rows):
        for part in fold(row[key], width - _INDENT):
            yield " " * _INDENT + paint(number, key, part)
        others = [column for column, cell in enumerate(row) if cell and column != key]
        yield from _filled(number, header, row, others, width - 2 * _INDENT, paint)


def _filled(
    number: int,
    header: Sequence[str],
    row: Sequence[str],
    columns: Sequence[int],
    width: int,
    paint: Paint,
) -> Iterator[str]:
    """Cells behind their headers, as many on a line as fit; a long one below its header."""
    indent, line, used = " " * 2 * _INDENT, "", 0
    for column in columns:
        name, cell = header[column], row[column]
        gap = _GAP if used else 0
        size = _size(name) + bool(name) + _size(cell)
        if used and used + gap + size > width:
            yield indent + line
            line, used, gap = "", 0, 0
        if size <= width:
            painted = (name and paint(-1, column, name), paint(number, column, cell))
            line += " " * gap + " ".join(filter(None, painted))
            used += gap + size
            continue
        yield from (indent + paint(-1, column, part) for part in fold(name, width) if part)
        for part in fold(cell, width - _INDENT):
            yield indent + " " * _INDENT + paint(number, column, part)
    if line:
        yield indent + line


def _size(text: str) -> int:
    """How many columns of a terminal text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)
