"""Where ops come from that are compared: modules, files, and git references to either."""

import base64
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opkernel.cli import exported_ops, git_tree
from opkernel.cli.exit_status import WrongUse
from opkernel.cli.git_tree import GitTree
from opkernel.cli.input_file import InputFile, input_file
from opkernel.errors import FailedPreconditionError
from opkernel.opdef import OpHistory, parse_op_history, read_op_history
from opkernel.proto import OpDef


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
    tree = git_tree.find(reference, target.file)
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
