"""The examples of the documents: the code of a page, and the commands that it shows.

    python tools/doc_examples.py

runs all of them with the opkernel that this Python has installed, outside of the checkout: in a folder with nothing
but the files that the examples name. `python3 dev.py wheel` does so with a wheel, and so finds what only a checkout has.
An example that needs an extra which is not installed is skipped, by the name of the extra.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

__all__ = ["Outcome", "Page", "missing_extra", "pages", "prepare_files", "run_code", "run_commands"]

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^ {4}(?:\$ )?((?:gunzip .* \| )?opkernel .*)$", re.MULTILINE)
_EXTRA = re.compile(r"opkernel\[(\w+)\]")
_NO_MODULE = re.compile(r"^ModuleNotFoundError: No module named '(\w+)'", re.MULTILINE)
_GIT = ["git", "-c", "user.name=reader", "-c", "user.email=reader@example.com"]
_OF_OTHER_LIBRARIES = "docs/bringing_models.md"
"""The page whose code is Keras's and PyTorch's; tests/interop follows it where they are installed."""


class Page(NamedTuple):
    """A page of the documents.

    Attributes:
        name: Its path: `docs/tour.md`.
        code: Its blocks of Python, one after the other: later ones use what earlier ones define.
        commands: The lines for a shell that it shows, except those that wait for a key or serve until they are
            stopped.
    """

    name: str
    code: str
    commands: list[str]


class Outcome(NamedTuple):
    """What came of an example.

    Attributes:
        what: The page and the example.
        done: The process.
    """

    what: str
    done: subprocess.CompletedProcess[str]


def pages() -> list[Page]:
    """The README and all documents, as far as they have examples."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = [_page(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in paths]
    return [page for page in found if page.code or page.commands]


def _page(name: str, text: str) -> Page:
    blocks = [] if name == _OF_OTHER_LIBRARIES else _BLOCK.findall(text)
    lines = _COMMAND.findall(text)
    commands = [
        one for one in lines if "<TAB>" not in one and not one.startswith("opkernel serve ")
    ]
    return Page(name, "\n".join(blocks), commands)


def prepare_files(folder: Path, environment: dict[str, str]) -> None:
    """Make the files that the examples name, in a git repository.

    They are those of the checkout, and models, data and modules that are called as the documents call them.
    """
    samples = ROOT / "tests" / "cli" / "saved_models"
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(samples, folder / "tests" / "cli" / "saved_models")
    shutil.copytree(samples / "two", folder / "DIR")
    script = Path(__file__).with_name("doc_files.py").read_text(encoding="utf-8")
    subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment, check=True)
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Files"]):
        subprocess.run([*_GIT, *command], cwd=folder, env=environment, check=True)


def run_code(page: Page, folder: Path, environment: dict[str, str]) -> Outcome:
    """Run the code of a page, in a process of its own: the pages register ops."""
    # A file, and not standard input: processes that the code starts import it.
    (folder / "code_of_page.py").write_text(page.code, encoding="utf-8")
    return _run(f"{page.name}: its code", [sys.executable, "code_of_page.py"], folder, environment)


def run_commands(page: Page, folder: Path, environment: dict[str, str]) -> Iterator[Outcome]:
    """Run the commands of a page, one after the other: later ones use what earlier ones write."""
    for command in page.commands:
        yield _run(f"{page.name}: {command}", ["/bin/sh", "-c", command], folder, environment)


def _run(what: str, command: list[str], folder: Path, environment: dict[str, str]) -> Outcome:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Outcome(what, done)


def missing_extra(done: subprocess.CompletedProcess[str]) -> str:
    """The extra for want of which an example failed; empty where it did not, or failed for another reason."""
    told = done.stdout + done.stderr if done.returncode else ""
    named, module = _EXTRA.search(told), _NO_MODULE.search(told)
    return named[1] if named else _extra_with(module[1]) if module else ""


def _extra_with(module: str) -> str:
    """The extra that brings a module; empty where none does."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    brings = re.compile(rf"{module}\b")
    return next((name for name, needs in extras.items() if any(map(brings.match, needs))), "")


def _installed() -> dict[str, str]:
    """The environment in which the packages of this Python, and no checkout, are found."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**variables, "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"}


def _run_page(page: Page, files: Path, environment: dict[str, str]) -> list[Outcome]:
    """Run a page in a folder of its own, which begins as a copy of the files."""
    with tempfile.TemporaryDirectory(prefix="opkernel-page-") as name:
        folder = Path(name)
        shutil.copytree(files, folder, dirs_exist_ok=True)
        code = [run_code(page, folder, environment)] if page.code else []
        return [*code, *run_commands(page, folder, environment)]


def _told(outcome: Outcome) -> bool:
    """Print what came of an example; whether it is well."""
    extra = missing_extra(outcome.done)
    if extra:
        print(f"skipped  {outcome.what}\n         (opkernel[{extra}] is not installed)")
    elif outcome.done.returncode:
        print(f"FAILED   {outcome.what}\n{outcome.done.stdout}{outcome.done.stderr}")
    else:
        print(f"ok       {outcome.what}")
    return bool(extra) or not outcome.done.returncode


def main() -> int:
    """Run all; 0 if none fails."""
    environment = _installed()
    with tempfile.TemporaryDirectory(prefix="opkernel-examples-") as name:
        prepare_files(Path(name), environment)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            runs = [pool.submit(_run_page, page, Path(name), environment) for page in pages()]
            are_well = [_told(outcome) for run in runs for outcome in run.result()]
    print(f"{len(are_well)} examples, {are_well.count(False)} failed")
    return int(not all(are_well))


if __name__ == "__main__":
    sys.exit(main())
