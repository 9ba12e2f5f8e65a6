"""Where ops come from that are compared: modules, files, and git references to either."""

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opkernel.cli import exported_ops
from opkernel.cli.files import InputFile, input_file
from opkernel.cli.output import WrongUse
from opkernel.errors import FailedPreconditionError
from opkernel.interrupts import contextmanager
from opkernel.opdef import OpHistory, parse_op_history, read_op_history
from opkernel.proto import OpDef

_HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


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
                    message = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
                    raise WrongUse(f"git {step[0]} of '{self.reference}' failed: {message}")
            yield folder


def find_git_tree(reference: str, file: Path) -> GitTree:
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
    # Without git's variables for hooks the folder alone names the repository.
    ours = {name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES}
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env={**ours, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise WrongUse(f"git cannot be run: {error.strerror}") from error


@dataclass
class OpSource:
    """A set of ops, or a history of them.

    Attributes:
        name: The user's name for it.
        ops: The ops.
        file: The file that it is, or that the module is in.
        module: The module that registers the ops; None for a file of ops.
        sites: File and line of each op's declaration, where it is known.
        is_missing: Whether there was nothing of that name, at an earlier time.
    """

    name: str
    ops: OpHistory
    file: Path
    module: "Module | None" = None
    sites: dict[str, tuple[Path, int]] = field(default_factory=dict)
    is_missing: bool = False


@dataclass(frozen=True)
class Module:
    """A module's name and the folders in which it is searched first."""

    name: str
    roots: tuple[Path, ...]


def ops_of_target(target: str) -> OpSource:
    """The ops of a module, a Python file, or a file that holds an OpList.

    Raises:
        WrongUse: there is no such thing.
        OpError: it cannot be imported, or read.
    """
    file = None if target.endswith(".py") else input_file(target)
    if file is not None:
        return _ops_of_file(file)
    module = module_of(target)
    answer = _exported({"module": module.name, "roots": [str(root) for root in module.roots]})
    if "missing" in answer:
        raise WrongUse(f"there is no module or file '{target}'")
    return _ops_of_module(target, module, answer)


def earlier_ops(reference: str, target: OpSource) -> OpSource:
    """The ops to compare `target` with: the ops of a file, or of `target` in a git reference.

    Raises:
        WrongUse: there is no such file or reference.
        OpError: it cannot be imported, or read.
    """
    file = input_file(reference)
    if file is not None:
        return _ops_of_file(file)
    tree = find_git_tree(reference, target.file)
    if target.module is None:
        data = tree.content(target.file)
        ops = parse_op_history(data or b"", f"{reference}:{target.name}")
        return OpSource(reference, ops, target.file, is_missing=data is None)
    with tree.checked_out() as folder:
        return _ops_of_old_module(tree, folder, target, target.module)


def _ops_of_file(file: InputFile) -> OpSource:
    ops = read_op_history(file)
    path = Path(file).resolve()
    lines = {op: ops[op][-1].line for op in ops}
    sites = {op: (path, line) for op, line in lines.items() if line}
    return OpSource(str(file), ops, path, sites=sites)


def module_of(target: str) -> Module:
    """The module that a file, folder or dotted name stands for.

    Raises:
        WrongUse: there is no such file, and it is no name of a module.
    """
    path = Path(target)
    if not path.is_file() and not (path / "__init__.py").is_file():
        if not all(part.isidentifier() for part in target.split(".")):
            raise WrongUse(f"there is no module or file '{target}'")
        return Module(target, (Path.cwd(), Path.cwd() / "src"))
    path = path.resolve()
    parts = [path.stem]
    root = path.parent
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    if path.name == "__init__.py":
        parts.pop()
    return Module(".".join(parts), (root,))


def _ops_of_module(name: str, module: Module, answer: dict[str, Any]) -> OpSource:
    op_defs = [OpDef.FromString(base64.b64decode(op["op_def"])) for op in answer["ops"]]
    sites = {
        op_def.name: (Path(op["file"]), op["line"])
        for op_def, op in zip(op_defs, answer["ops"], strict=True)
        if op["line"]
    }
    return OpSource(name, OpHistory.of(op_defs), Path(answer["file"]), module, sites)


def _ops_of_old_module(tree: GitTree, folder: Path, target: OpSource, module: Module) -> OpSource:
    """The ops of a module as it stands in a checked out tree."""
    roots = [root.relative_to(tree.root) for root in module.roots if root.is_relative_to(tree.root)]
    answer = _exported(
        {
            "module": module.name,
            "roots": [str(folder / root) for root in roots],
            "tree": str(folder),
            "replaces": str(tree.root),
        },
        tree.reference,
    )
    if "missing" in answer:
        return OpSource(tree.reference, OpHistory(), target.file, is_missing=True)
    source = _ops_of_module(tree.reference, module, answer)
    source.sites = {
        op: (tree.root / file.relative_to(folder), line)
        for op, (file, line) in source.sites.items()
        if file.is_relative_to(folder)
    }
    return source


def _exported(request: dict[str, Any], reference: str = "") -> dict[str, Any]:
    """The answer of a process that imports a module; see `exported_ops`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.json"
        request["answer"] = str(file)
        command = [sys.executable, "-P", "-B", str(exported_ops.__file__), json.dumps(request)]
        done = subprocess.run(
            command,
            cwd=request.get("tree"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        at = f" at {reference}" if reference else ""
        what = f"Importing '{request['module']}'{at} failed"
        if not file.exists():
            last = done.stderr.strip().rpartition("\n")[2]
            raise FailedPreconditionError(f"{what}: the process ended ({done.returncode}): {last}")
        answer: dict[str, Any] = json.loads(file.read_text())
        if "error" in answer:
            raise FailedPreconditionError(f"{what}: {answer['error']}")
        return answer
