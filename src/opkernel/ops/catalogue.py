"""Where ops and shape functions stand, as `catalogue.txt` says: an op, its module, its traits and its rules a line.

A `-` stands for the module of an op that no module registers. `tools/generate_catalogue.py` writes that file.
"""

import functools
import os

__all__ = ["MODULE_OF_OP", "MODULE_OF_SHAPE_FN", "TRAITS_OF_OP", "entry", "rules"]


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
    known, _, _ = _lines.get(op, "").partition(" |")
    module, _, words = known.partition(" ")
    return module.strip("-"), words


def rules(op: str) -> dict[str, str]:
    """The kinds of rules that the package has about an op, each with its module.

    `gradient`: a module of `ops`, where it may be registered that the op has none. `openvino`, `xla`, `numpy`
    (functions of `opkernel decompile`): a module of their package; `xla=portable` stands for kernels of the CPU.
    """
    _, _, words = _lines.get(op, "").partition("| ")
    return dict(word.split("=", 1) for word in words.split())


@functools.cache
def _tables() -> dict[str, dict[str, str]]:
    """The tables, for code that goes through all ops."""
    entries = {op: entry(op) for op in _lines}
    modules = {op: module for op, (module, _) in entries.items() if module}
    declared = {op: module for op, module in modules.items() if module.startswith("declared.")}
    return {
        "MODULE_OF_OP": {op: module for op, module in modules.items() if op not in declared},
        "MODULE_OF_SHAPE_FN": declared,
        "TRAITS_OF_OP": {op: words for op, (_, words) in entries.items() if words},
    }


def __getattr__(name: str) -> dict[str, str]:
    if name in __all__:
        return _tables()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
