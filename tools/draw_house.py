"""Draw the house in docs/design.md: the floors, as import-linter checks them, and each room's own words.

    python tools/draw_house.py [--check]

The floors stand in pyproject.toml, and what a room is for in the docstring of its package.
"""

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "opkernel"
PAGE = ROOT / "docs" / "design.md"
WIDTH = 100
BEGIN, END = "<!-- drawn by tools/draw_house.py -->", "<!-- end of the drawing -->"


def floors() -> list[list[str]]:
    """The rooms of each floor, the highest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = [one for one in settings["tool"]["importlinter"]["contracts"] if "layers" in one]
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def drawing() -> str:
    """The floors one above the other, a cell for each room."""
    rows, border = [], ""
    for rooms in floors():
        cells = _cells(rooms)
        rows += [_joined(border, _border(cells)), "│" + "│".join(cells) + "│"]
        border = _border(cells)
    return "\n".join([*rows, _joined(border, "")])


def _cells(rooms: list[str]) -> list[str]:
    """The rooms of a floor, spread over its width."""
    width, wider = divmod(WIDTH - len(rooms) + 1, len(rooms))
    return [room.center(width + (index < wider)) for index, room in enumerate(rooms)]


def _border(cells: list[str]) -> str:
    """A line with a mark where walls meet it."""
    return "│" + "│".join(" " * len(cell) for cell in cells) + "│"


def _joined(above: str, below: str) -> str:
    """The ceiling between two floors, with the walls that meet it from above and below."""
    length = max(len(above), len(below))
    marks = {(False, False): "─", (True, False): "┴", (False, True): "┬", (True, True): "┼"}
    line = [
        marks[above[index : index + 1] == "│", below[index : index + 1] == "│"]
        for index in range(length)
    ]
    line[0], line[-1] = ("├", "┤") if above and below else ("┌", "┐") if below else ("└", "┘")
    return "".join(line)


def table() -> str:
    """What each room is for, and where TensorFlow has it."""
    lines = ["| room | what it has | in TensorFlow |", "|---|---|---|"]
    for rooms in floors():
        lines += [_row(room) for room in rooms]
    return "\n".join(lines)


def _row(room: str) -> str:
    folder = PACKAGE / room / "__init__.py"
    file = folder if folder.exists() else PACKAGE / f"{room}.py"
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    what = " ".join(text.partition("\n\n")[0].split())
    source = re.search(r"Source: (?:TensorFlow (?!Serving))?((?:.|\n(?!\n))+)\.", text)
    where = " ".join(source[1].split()) if source else ""
    return f"| `{room}` | {what} | {where} |".replace("|  |", "| |")


def page(text: str) -> str:
    """The page with the drawing of today."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n```\n{drawing()}\n```\n\n{table()}\n\n{END}{after}"


def main() -> int:
    there = PAGE.read_text()
    new = page(there)
    if "--check" in sys.argv[1:]:
        return int(new != there)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
