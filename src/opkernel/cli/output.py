"""How commands print: text and tables for people, JSON for programs.

All that a command prints goes through `echo`, which lets nothing pass that steers the terminal. Colours
are put on by `shown`, on text that it has escaped.
"""

import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import click

from opkernel.escaping import json_text, terminal_text
from opkernel.records import dataclass

_MAX_NAMED = 5
_NARROWEST = 20
_WHOLE = ("op",)
"""The columns whose cells are not broken."""
_HEADER = {"dim": True}
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "type": {"fg": "cyan"},
    "types": {"fg": "cyan"},
    "shape": {"fg": "blue"},
}
"""The colours of columns."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _choose_colors(ctx: click.Context, param: click.Parameter, value: str) -> None:
    """Make click strip colours, keep them, or decide by the stream that it prints to."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    ctx.color = {"always": True, "never": False}.get(value, False if is_plain else None)


def add_color(command: click.Command) -> None:
    """Have a command take `--color`, if it does not yet; else NO_COLOR and the terminal decide."""
    if any(param.name == "color" for param in command.params):
        return
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
    """Text that a terminal may have as it stands; only `shown` makes it."""

    __slots__ = ()


def styled(*parts: object, sep: str = "", **style: Any) -> TerminalText:
    """The parts, escaped where they were not made here, as one; in the colours of `click.style`."""
    texts = [p if isinstance(p, TerminalText) else terminal_text(str(p)) for p in parts]
    text = sep.join(texts)
    return TerminalText(click.style(text, **style) if any(style.values()) else text)


def one_line(text: object) -> TerminalText:
    """A name: it stands on the line that it is put on."""
    return TerminalText(terminal_text(str(text), keep=""))


def echo(*parts: object, err: bool = False, nl: bool = True) -> None:
    """Print the parts, and the end of the line."""
    click.echo(styled(*parts), err=err, nl=nl)


def rewrite_line(text: str) -> None:
    """Print over the line that standard error is at."""
    click.echo(f"\r{styled(text)}", nl=False, err=True)


def abridged(names: Iterable[object]) -> str:
    """The first few of some names: `a, b, c, d, e, 7 more`."""
    every = [*map(str, names)]
    more = [f"{len(every) - _MAX_NAMED} more"] if len(every) > _MAX_NAMED else []
    return ", ".join([*every[:_MAX_NAMED], *more])


def counted(number: int, what: str) -> str:
    """`1 node`, `2,345 nodes`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def size_text(number: float) -> str:
    """A number of bytes for people: `437.5 kB`."""
    if number < 1000:
        return f"{number:.0f} bytes"
    thousands = number / 1000
    return f"{thousands:,.1f} kB" if thousands < 1000 else f"{thousands / 1000:,.1f} MB"


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print a dict or list as JSON, one line for each of its items."""
    is_mapping = isinstance(value, Mapping)
    items: Iterable[str]
    if isinstance(value, Mapping):
        items = (f"{json_text(key)}: {json_text(item)}" for key, item in value.items())
    else:
        items = map(json_text, value)
    opening, closing = "{}" if is_mapping else "[]"
    lines = ",\n".join(f"  {item}" for item in items)
    echo(f"{opening}\n{lines}\n{closing}" if lines else f"{opening}{closing}")


def line_width() -> int | None:
    """The width of standard output in characters: the terminal's, or COLUMNS; else None."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return None
    import shutil  # slow to import

    return max(_NARROWEST, shutil.get_terminal_size().columns)


def print_text(*parts: object, **style: Any) -> None:
    """Print sentences, broken at the width of a terminal; continued lines are indented further."""
    from opkernel.cli.table_layout import fold  # results are printed without it

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
    style: Mapping[str, Any]

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
    """Print rows under a title, aligned, in the width of the terminal (`table_layout`).

    A column that is empty in every row is left out. The columns `numbers` are aligned to the right.
    Cells have the colours of their columns, or as `Colored` their own.
    """
    cells = [[*map(_cell, row)] for row in rows]
    used = [i for i in range(len(columns)) if not cells or any(row[i].cell for row in cells)]
    header = [columns[i] for i in used]
    table = [[row[i] for i in used] for row in cells]

    from opkernel.cli.table_layout import table_lines

    def paint(row: int, column: int, text: str) -> str:
        style = (
            _HEADER if row < 0 else {**_STYLES.get(header[column], {}), **table[row][column].style}
        )
        return styled(text, **style)

    texts = [[str(cell) for cell in row] for row in table]
    print_text(title, bold=True)
    lines = table_lines(header, texts, line_width(), paint, numbers=numbers, whole=_WHOLE)
    for line in lines:
        echo(TerminalText(line))  # its cells were escaped, and painted


def _cell(value: object) -> Colored:
    style = value.style if isinstance(value, Colored) else {}
    return Colored(one_line(value), style)
