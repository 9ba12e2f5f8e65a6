"""What the package reads is in its wheel: setuptools packs what it is told, and modules of packages."""

import fnmatch
import tomllib
from pathlib import Path

from tests.architecture.source_code import PACKAGE

PROJECT = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text("utf-8"))
DATA: dict[str, list[str]] = PROJECT["tool"]["setuptools"]["package-data"]


def package_of(path: Path) -> str:
    return ".".join(path.parent.relative_to(PACKAGE.parent).parts)


def test_every_file_is_packed() -> None:
    files = [
        path
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc") and path.name != ".DS_Store"
    ]
    assert len(files) > 30
    left_out = [
        str(path.relative_to(PACKAGE))
        for path in files
        if not any(
            fnmatch.fnmatch(path.name, pattern)
            for pattern in [*DATA["*"], *DATA.get(package_of(path), ())]
        )
    ]
    assert left_out == []


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_every_pattern_finds_something() -> None:
    for package, patterns in DATA.items():
        folder = PACKAGE.parent / package.replace(".", "/") if package != "*" else PACKAGE
        for pattern in patterns:
            assert any(folder.rglob(pattern) if package == "*" else folder.glob(pattern)), pattern
