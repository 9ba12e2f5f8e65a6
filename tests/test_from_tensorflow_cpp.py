"""The page for those who know TensorFlow's C++ names what there is."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "from_tensorflow_cpp.md"
NAME = re.compile(r"`([^`]+)`")
NOT_NEEDED = "not needed here: because "


def rows() -> list[tuple[str, list[str], list[str], str]]:
    """The place that the heading says, TensorFlow's names, ours, and the note of each row."""
    found, place = [], "opkernel"
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            place = "".join(NAME.findall(line)) or "opkernel"
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and cells[0].startswith("`"):
            theirs, ours, note = cells
            found.append((place, NAME.findall(theirs), NAME.findall(ours), note))
    return found


ROWS = rows()


def resolved(path: str) -> Any:
    """What a dotted name stands for; the owner of an attribute that only instances have.

    Raises:
        AttributeError: it stands for nothing.
    """
    parts = path.split(".")
    thing: Any = importlib.import_module(parts[0])
    for at, name in enumerate(parts[1:], 1):
        module = ".".join(parts[: at + 1])
        if not hasattr(thing, name) and hasattr(thing, "__path__"):
            thing = importlib.import_module(module)
        elif hasattr(thing, name):
            thing = getattr(thing, name)
        elif name in fields_of(thing):
            return thing
        else:
            raise AttributeError(f"{path}: there is no {name}")
    return thing


def fields_of(kind: Any) -> set[str]:
    """The attributes that a class declares for its instances, in annotations, slots or `__init__`."""
    found: set[str] = set()
    for one in getattr(kind, "__mro__", ()):
        found.update(vars(one).get("__annotations__", ()), vars(one).get("__slots__", ()))
        init = vars(one).get("__init__")
        found.update(getattr(getattr(init, "__code__", None), "co_names", ()))
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1][0])
def test_every_name_of_opkernel_is_there(row: tuple[str, list[str], list[str], str]) -> None:
    place, theirs, ours, note = row
    assert theirs
    assert bool(ours) is not note.startswith(NOT_NEEDED)
    for name in ours:
        if name.startswith("."):
            resolved(place + name)
        elif place == "opkernel.Operation":
            resolved(f"opkernel.{name}")
        else:
            resolved(f"{place}.{name}")


def test_the_page_has_most_names_and_none_twice_in_a_table() -> None:
    assert sum(len(theirs) for _, theirs, _, _ in ROWS) > 350
    named = [(place, name) for place, theirs, _, _ in ROWS for name in theirs]
    assert len(named) == len(set(named))
