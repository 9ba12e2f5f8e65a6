"""A git reference: its files, without touching the working tree, the index or the list of worktrees."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opkernel.cli.exit_status import WrongUse
from opkernel.interrupts import contextmanager


@dataclass(frozen=True)
class GitTree:
    """The contents of a repository at a commit.

    Attributes:
        reference: The user's name for the commit.
        commit: The commit's hash.
        root: The top of the working tree.
    """

    reference: str
    commit: str
    root: Path

    def content(self, file: Path) -> bytes | None:
        """The contents, at the commit, of a file of the working tree; None where it was not there yet."""
        name = file.resolve().relative_to(self.root).as_posix()
        done = _git(self.root, "cat-file", "blob", f"{self.commit}:{name}")
        return done.stdout if done.returncode == 0 else None

    @contextmanager
    def checked_out(self) -> Iterator[Path]:
        """All files of the commit in a folder of their own, which is gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="opkernel-") as place:
            folder = Path(place).resolve() / "tree"
            index = {"GIT_INDEX_FILE": str(folder.with_name("index"))}
            folder.mkdir()
            for step in (
                ("read-tree", self.commit),
                ("checkout-index", "--all", f"--prefix={folder}/"),
            ):
                done = _git(self.root, *step, environment=index)
                if done.returncode:
                    raise WrongUse(f"git {step[0]} of '{self.reference}' failed: {_message(done)}")
            yield folder


def find(reference: str, file: Path) -> GitTree:
    """The tree of a reference in the repository that a file belongs to.

    Raises:
        WrongUse: there is no git, no repository, or no such reference in it.
    """
    place = _git(file.parent, "rev-parse", "--show-toplevel")
    if place.returncode:
        raise WrongUse(
            f"'{reference}' is neither a file nor a git reference: {file.parent} is in no git repository"
        )
    root = Path(os.fsdecode(place.stdout).rstrip("\n")).resolve()
    name = reference if not reference.startswith("-") else ""  # git takes it for an option
    found = _git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if found.returncode:
        raise WrongUse(f"'{reference}' is neither a file nor a git reference in {root}")
    return GitTree(reference, found.stdout.decode().strip(), root)


def _git(
    folder: Path, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    variables = {**_environment(), **(environment or {})}
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise WrongUse(f"git cannot be run: {error.strerror}") from error


def _environment() -> dict[str, str]:
    """Our environment without git's variables for hooks: the folder alone names the repository."""
    hooks = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    return {name: value for name, value in os.environ.items() if name not in hooks}


def _message(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
