"""Modules and files that documents, docstrings and comments name are there."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source_code import PACKAGE, exports, modules

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    path.relative_to(ROOT).as_posix()
    for folder in ("src", "tests", "tools", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
}
USERS_OWN = {"my_ops.py"}
"""Files that documents have a reader write."""

PATH = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`")
DOTTED = re.compile(r"\bopkernel(?:\.[a-z_0-9]+){2,}\b")
"""Shorter ones are also loggers and files."""


def texts() -> Iterator[tuple[str, str]]:
    """What is written: documents and modules, by their paths."""
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *PACKAGE.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def test_files_that_are_named_are_there() -> None:
    missing = {
        (where, path)
        for where, text in texts()
        for path in PATH.findall(text)
        if path not in USERS_OWN and not any(f"/{file}".endswith(f"/{path}") for file in FILES)
    }
    assert missing == set()


def is_there(dotted: str) -> bool:
    """Whether a name is that of a module, or begins with one and goes on with one of its names."""
    package, _, name = dotted.rpartition(".")
    while package not in modules():
        package, _, name = package.rpartition(".")
    source = (PACKAGE / modules()[package].path).read_text("utf-8")
    return dotted in modules() or name in exports(package) or name in re.split(r"\W+", source)


def test_modules_that_are_named_are_there() -> None:
    missing = {
        (where, dotted)
        for where, text in texts()
        for dotted in DOTTED.findall(text)
        if not is_there(dotted)
    }
    assert missing == set()
