"""docs/design.md draws the house as it is, and names what there is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.architecture.source_code import PACKAGE

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "design.md").read_text("utf-8")
FOLDERS = (PACKAGE, PACKAGE / "runtime", ROOT / "docs")
PATHS = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z_0-9.-]+)+|[a-z_0-9-]+\.(?:md|py))`", PAGE)))


def test_the_drawing_is_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "draw_house.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0


def test_every_room_says_what_it_has() -> None:
    assert re.findall(r"^\| `\w+` \|  ?\|", PAGE, re.MULTILINE) == []


@pytest.mark.parametrize("path", PATHS)
def test_what_the_page_names_is_there(path: str) -> None:
    assert any((folder / path).exists() for folder in FOLDERS)


def test_the_page_names_files() -> None:
    assert len(PATHS) > 15
