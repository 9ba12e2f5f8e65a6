"""Where ops and shape functions stand, as `catalogue.txt` says: an op, its module and its traits a line.

`tools/generate_catalogue.py` writes that file.
"""

import os

__all__ = ["MODULE_OF_OP", "MODULE_OF_SHAPE_FN", "TRAITS_OF_OP", "entry"]


MODULE_OF_OP: dict[str, str]
MODULE_OF_SHAPE_FN: dict[str, str]
"""The modules that register ops, and the modules with the shape functions of ops that are only declared."""

TRAITS_OF_OP: dict[str, str]
"""The words of `OpTraits.words`; ops without any are missing."""


def _read() -> dict[str, str]:
    """The lines by their first words."""
    file = os.path.join(os.path.dirname(__file__), "catalogue.txt")
    with open(file, encoding="utf-8") as stored:
        return dict([line.split(" ", 1) for line in stored.read().splitlines()])


_lines = _read()


def entry(op: str) -> tuple[str, str]:
    """The module of an op or of its shape function, and its traits; empty for an unknown op."""
    module, _, words = _lines.get(op, "").partition(" ")
    return module, words


def __getattr__(name: str) -> dict[str, str]:
    """The tables, for code that goes through all ops."""
    entries = {op: entry(op) for op in _lines} if name in __all__ else {}
    declared = {op for op, (module, _) in entries.items() if module.startswith("declared.")}
    if name == "TRAITS_OF_OP":
        return {op: words for op, (_, words) in entries.items() if words}
    if name == "MODULE_OF_OP":
        return {op: module for op, (module, _) in entries.items() if op not in declared}
    if name == "MODULE_OF_SHAPE_FN":
        return {op: entries[op][0] for op in entries if op in declared}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
