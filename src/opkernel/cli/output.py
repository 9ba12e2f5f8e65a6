"""How commands print: text and tables for people, JSON for programs.

All that a command prints goes through `echo`, which lets nothing pass that steers the terminal. Colours
are put on by `shown`, on text that it has escaped.
"""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import click

from opkernel.foreign_text import json_text, terminal_text

__all__ = [
    "TerminalText",
    "abridged",
    "counted",
    "echo",
    "json_option",
    "one_line",
    "print_json",
    "print_table",
    "rewrite_line",
    "shown",
    "size_text",
]

_MAX_NAMED = 5

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class TerminalText(str):
    """Text that a terminal may have as it stands; only `shown` makes it."""

    __slots__ = ()


def shown(*parts: object, sep: str = "", **style: Any) -> TerminalText:
    """The parts, escaped where they were not made here, as one; in the colours of `click.style`."""
    texts = [p if isinstance(p, TerminalText) else terminal_text(str(p)) for p in parts]
    text = sep.join(texts)
    return TerminalText(click.style(text, **style) if style else text)


def one_line(text: object) -> TerminalText:
    """A name: it stands on the line that it is put on."""
    return TerminalText(terminal_text(str(text), keep=""))


def echo(*parts: object, err: bool = False, nl: bool = True) -> None:
    """Print the parts, and the end of the line."""
    click.echo(shown(*parts), err=err, nl=nl)


def rewrite_line(text: str) -> None:
    """Print over the line that standard error is at."""
    click.echo(f"\r{shown(text)}", nl=False, err=True)


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


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    numbers: Collection[str] = (),
) -> None:
    """Print rows under a title, aligned; drawn and wrapped to its width on a terminal.

    A column that is empty in every row is left out. The columns `numbers` are aligned to the right.
    """
    cells: list[list[str]] = [[*map(one_line, row)] for row in rows]
    used = [any(column) for column in zip(*cells, strict=True)] if cells else [True] * len(columns)
    header, *lines = (
        [cell for cell, is_used in zip(row, used, strict=True) if is_used]
        for row in (columns, *cells)
    )
    if sys.stdout.isatty():
        _print_drawn(title, header, lines, numbers)
    else:
        _print_plain(title, header, lines, numbers)


def _print_plain(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[str]
) -> None:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    formats = [
        f"{{:{'>' if name in numbers else '<'}{width}}}"
        for name, width in zip(header, widths, strict=True)
    ]
    line = "  ".join(["", *formats])
    lines = [line.format(*row) for row in (header, *rows)]
    echo("\n".join([title, *(line.rstrip() for line in lines)]))


def _print_drawn(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[str]
) -> None:
    from rich import box  # slow to import, and of use on terminals only
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    echo(shown(title, bold=True))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for column in header:
        if column in numbers:
            table.add_column(column, no_wrap=True, justify="right")
        else:
            table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
