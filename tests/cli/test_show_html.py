"""`opkernel show --html`: the page, and times from what `opkernel run` writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Command

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
RUN = ("run", DIGITS / "digits.pb", "--input", f"images=@{DIGITS / 'images.npy'}")


def test_a_page_is_written(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = command("show", DIGITS / "digits.pb", "--html", page)
    assert result.exit_code == 0
    assert result.output.startswith(f"written to {page}, ")
    text = page.read_text("utf-8")
    assert "<title>digits.pb</title>" in text
    assert " a step" not in text


@pytest.mark.parametrize("kind", ["profile", "trace"])
def test_times_come_from_a_run(kind: str, command: Command, tmp_path: Path) -> None:
    file, page = tmp_path / "times.json", tmp_path / "page.html"
    if kind == "trace":
        assert command(*RUN, "--repeat", "3", "--trace", file).exit_code == 0
    else:
        file.write_text(command(*RUN, "--repeat", "3", "--profile", "--json").output)
    result = command("show", DIGITS / "digits.pb", "--html", page, "--profile", file)
    assert result.exit_code == 0
    text = page.read_text("utf-8")
    assert " ms a step" in text
    assert "time in a step: " in text


def test_a_profile_without_a_page_is_told(command: Command, tmp_path: Path) -> None:
    (tmp_path / "times.json").write_text("{}")
    result = command("show", DIGITS / "digits.pb", "--profile", tmp_path / "times.json")
    assert result.exit_code == 2
    assert "add --html FILE" in result.output


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "3", '{"profile": {"nodes": [{"node": 1}]}}', '{"traceEvents": 3}', "\0"],
)
def test_what_is_no_profile_is_told(text: str, command: Command, tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    file.write_text(text)
    result = command(
        "show", DIGITS / "digits.pb", "--html", tmp_path / "page.html", "--profile", file
    )
    assert result.exit_code == 1
    assert "is no profile: it must be what `opkernel run --profile --json` prints" in result.output
    assert not (tmp_path / "page.html").exists()


def test_a_page_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "nowhere" / "page.html"
    result = command("show", DIGITS / "digits.pb", "--html", page)
    assert result.exit_code != 0
    assert "Cannot write" in result.output
