"""The examples in the documentation run, page by page: the code, block after block, and the commands."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tools.campaigns.__main__ import CAMPAIGNS
from tools.doc_examples import Page, missing_extra, pages, prepare_files, run_code, run_commands

from opkernel.cli.commands import commands

ROOT = Path(__file__).resolve().parent.parent
PAGES = pages()
LINK = re.compile(r"\]\(([^)]+)\)")
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT / "src"),
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples name."""
    folder = tmp_path_factory.mktemp("files")
    prepare_files(folder, ENVIRONMENT)
    return folder


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Path:
    """A folder of its own for a page, with the files."""
    return shutil.copytree(files, tmp_path, dirs_exist_ok=True)


def check(done: subprocess.CompletedProcess[str]) -> None:
    extra = missing_extra(done)
    if extra:
        pytest.skip(f"opkernel[{extra}] is not installed")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", [page for page in PAGES if page.code], ids=lambda page: page.name)
def test_the_code_of_the_page_runs(page: Page, folder: Path) -> None:
    check(run_code(page, folder, ENVIRONMENT).done)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.commands], ids=lambda page: page.name
)
def test_the_commands_of_the_page_run(page: Page, folder: Path) -> None:
    for outcome in run_commands(page, folder, ENVIRONMENT):
        if not missing_extra(outcome.done):
            assert outcome.done.returncode == 0, outcome


def test_every_command_has_an_example() -> None:
    shown = {line.partition("opkernel ")[2].split()[0] for page in PAGES for line in page.commands}
    assert {*commands.list_commands(click.Context(commands))} - shown == {
        "serve"
    }  # it does not end


def test_the_readme_leads_to_every_page() -> None:
    links = {link.split("#")[0] for link in LINK.findall((ROOT / "README.md").read_text())}
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= links
    assert all((ROOT / link).exists() for link in links if "://" not in link)


def test_the_page_on_kernels_lists_what_contexts_and_constructions_have() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "generate_context_docs.py"), "--check"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "`allocate_output(which: int | str" in (ROOT / "docs" / "kernels.md").read_text("utf-8")


SECTION_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)
def test_links_to_sections_lead_to_one(page: Path) -> None:
    for file, anchor in SECTION_LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / file if file else page
        headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        anchors = [re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings]
        assert anchor in anchors, f"{file}#{anchor}"


def test_the_tests_and_campaigns_that_show_a_promise_exist() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    table = text[text.index("## What shows it") :]
    paths = re.findall(r"`(tests/[^`]+)`", table)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).is_file()] == []
    rows = [line.split("|") for line in table.splitlines() if line.startswith("|")][2:]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[3])}
    assert named <= CAMPAIGNS.keys()
