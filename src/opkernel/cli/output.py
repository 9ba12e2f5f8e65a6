"""How commands print: text and tables for people, JSON for programs, and the errors that end them.

All that a command prints goes through `echo`, which lets nothing pass that steers the terminal. Colours
are put on by `styled`, on text that it has escaped.

Text and tables fit the width of a terminal. A column gives way from the widest down: its cells break behind `/`, commas and
spaces. Numbers and columns that are to be whole do not break; a long name in the first of these stands on a line of its own.
Where even that is too wide, each row becomes a record: its name, and below that the other cells with their headers.
"""

import os
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import click

from opkernel.escaping import json_text, terminal_text
from opkernel.records import dataclass

Paint = Callable[[int, int, str], str]
"""`paint(row, column, text)`: the text of a cell, or of a part of it, in its colours; row -1 has the headers."""

_INDENT, _GAP = 2, 2
_NARROWEST = 14
"""A column that breaks is no narrower, unless all of it is."""
_WIDEST = 48
"""Where nothing says how wide the output is, cells up to this width are aligned."""
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
    to_right = [name in numbers for name in header]
    if width is None:
        widths = [min(size, _WIDEST) for size in natural]
        for number, row in enumerate((header, *rows), -1):
            yield _line(number, row, widths, to_right, paint)
        return
    fixed = [name in numbers or (name in whole and i > 0) for i, name in enumerate(header)]
    narrowest = max(_NARROWEST, width // 3)
    least = [
        size if is_fixed else min(size, narrowest if name in whole else _NARROWEST)
        for name, size, is_fixed in zip(header, natural, fixed, strict=True)
    ]
    shrunk = _shrunk(natural, least, width - _INDENT - _GAP * (len(header) - 1))
    if shrunk is None:
        yield from _records(header, rows, width, paint, numbers)
        return
    spills = header[0] in whole
    for number, row in enumerate((header, *rows), -1):
        yield from _row_lines(number, row, shrunk, to_right, paint, spills=spills)


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
        yield _line(number, parts, widths, to_right, paint)


def _line(
    number: int,
    cells: Sequence[str],
    widths: Sequence[int],
    to_right: Sequence[bool],
    paint: Paint,
) -> str:
    """A line of a table; a cell that is wider than its column moves the next ones."""
    padded = []
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        padding = " " * (width - _size(cell))
        painted = paint(number, column, cell) if cell else ""
        padded.append(padding + painted if to_right[column] else painted + padding)
    return (" " * _INDENT + (" " * _GAP).join(padded)).rstrip()


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


_NARROWEST_LINE = 20
_WHOLE = ("op",)
"""The columns whose cells are not broken."""
_STYLES = {"type": {"fg": "cyan"}, "types": {"fg": "cyan"}, "shape": {"fg": "blue"}}
"""The colours of columns."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _choose_colors(ctx: click.Context, param: click.Parameter, value: str) -> None:
    """Make click strip colours, keep them, or decide by the stream that it prints to."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    ctx.color = {"always": True, "never": False}.get(value, False if is_plain else None)


def add_color(command: click.Command) -> None:
    """Have a command take `--color`; without it NO_COLOR and the terminal decide."""
    command.params.append(
        click.Option(
            ["--color"],
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            is_eager=True,
            expose_value=False,
            callback=_choose_colors,
            help="Print in colours; auto: on terminals, unless NO_COLOR is set.",
        )
    )


class TerminalText(str):
    """Text that a terminal may have as it stands; only `styled` and `one_line` make it."""

    __slots__ = ()


def styled(*parts: object, sep: str = "", **style: Any) -> TerminalText:
    """The parts, escaped where they were not made here, as one; in the colours of `click.style`."""
    texts = [p if isinstance(p, TerminalText) else terminal_text(str(p)) for p in parts]
    text = sep.join(texts)
    return TerminalText(click.style(text, **style) if any(style.values()) else text)


def one_line(text: object) -> TerminalText:
    """A name: it stands on the line that it is put on."""
    return TerminalText(terminal_text(str(text), keep=""))


class CommandError(click.ClickException):
    """An error that ends a command with status 1; the message may have names from files in it."""

    def format_message(self) -> str:
        """The message as the terminal gets it."""
        return styled(self.message)


class WrongUse(CommandError):
    """The command line asks for something that no model could do."""

    exit_code = 2


def echo(*parts: object, err: bool = False, nl: bool = True) -> None:
    """Print the parts, and the end of the line."""
    click.echo(styled(*parts), err=err, nl=nl)


def rewrite_line(text: str) -> None:
    """Print over the line that standard error is at."""
    click.echo(f"\r{styled(text)}", nl=False, err=True)


def abridged(names: Iterable[object], most: int = 5) -> str:
    """The first few of some names: `a, b, c, d, e, 7 more`."""
    every = [*map(str, names)]
    more = [f"{len(every) - most} more"] if len(every) > most else []
    return ", ".join([*every[:most], *more])


def counted(number: int, what: str) -> str:
    """`1 node`, `2,345 nodes`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size_text(number: float) -> str:
    """A number of bytes for people: `437.5 kB`."""
    if number < 1000:
        return f"{number:.0f} bytes"
    thousands = number / 1000
    return f"{thousands:,.1f} kB" if thousands < 1000 else f"{thousands / 1000:,.1f} MB"


def echo_written(path: object, size: int | None = None) -> None:
    """Print where something was written, and its size in bytes."""
    echo("written to ", one_line(path), "" if size is None else f", {size_text(size)}")


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print a dict or list as JSON, one line for each of its items."""
    if isinstance(value, Mapping):
        items = [f"{json_text(key)}: {json_text(item)}" for key, item in value.items()]
    else:
        items = [*map(json_text, value)]
    opening, closing = "{}" if isinstance(value, Mapping) else "[]"
    lines = ",\n".join(f"  {item}" for item in items)
    echo(f"{opening}\n{lines}\n{closing}" if lines else f"{opening}{closing}")


def print_facts(facts: Any, as_json: bool, for_people: Callable[[Any], None]) -> None:
    """Print facts as JSON, or as a function prints them for people."""
    (print_json if as_json else for_people)(facts)


def line_width() -> int | None:
    """The width of standard output in characters: the terminal's, or COLUMNS; else None."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return None
    import shutil  # slow to import

    return max(_NARROWEST_LINE, shutil.get_terminal_size().columns)


def print_text(*parts: object, **style: Any) -> None:
    """Print sentences, broken at the width of a terminal; continued lines are indented further."""
    width = line_width()
    for line in styled(*parts).split("\n"):
        indent = " " * (len(line) - len(line.lstrip(" ")))
        first, *others = fold(line[len(indent) :], width and width - len(indent), hanging=2)
        echo(indent, styled(first, **style))
        for text in others:
            echo(indent, "  ", styled(text, **style))


@dataclass(frozen=True, slots=True)
class Colored:
    """A cell of a table, in the colours of `click.style`."""

    cell: object
    style: dict[str, Any]

    def __str__(self) -> str:
        return str(self.cell)


def good(cell: object) -> Colored:
    """A cell for good news, in green."""
    return Colored(cell, {"fg": "green"})


def bad(cell: object) -> Colored:
    """A cell for something missing or broken, in red."""
    return Colored(cell, {"fg": "red"})


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    numbers: Collection[str] = (),
) -> None:
    """Print rows under a title, aligned, in the width of the terminal.

    A column that is empty in every row is left out. The columns `numbers` are aligned to the right.
    Cells have the colours of their columns, or as `Colored` their own.
    """
    cells = [[*map(_cell, row)] for row in rows]
    used = [i for i in range(len(columns)) if not cells or any(row[i].cell for row in cells)]
    header = [columns[i] for i in used]
    table = [[row[i] for i in used] for row in cells]

    def paint(row: int, column: int, text: str) -> str:
        if row < 0:
            return styled(text, dim=True)
        return styled(text, **_STYLES.get(header[column], {}) | table[row][column].style)

    texts = [[str(cell) for cell in row] for row in table]
    print_text(title, bold=True)
    for line in table_lines(header, texts, line_width(), paint, numbers=numbers, whole=_WHOLE):
        echo(TerminalText(line))  # its cells were escaped, and painted


def _cell(value: object) -> Colored:
    style = value.style if isinstance(value, Colored) else {}
    return Colored(one_line(value), style)
