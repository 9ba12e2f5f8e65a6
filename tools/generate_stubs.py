"""Write the typing stubs of functions that modules find by name: `opkernel.raw_ops` and the modules of `opkernel.endpoints`.

Run after an op was added or changed, or `table.txt`, or the functions of a module of endpoints:
`python tools/generate_stubs.py`. With `--check` nothing is written, and the exit status says whether the files are
current.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opkernel.endpoints.table import Endpoint, table
from opkernel.opdef import call_parameters, endpoint_stub, global_op_registry, stub_text
from opkernel.ops.api_defs import python_api_def
from opkernel.ops.loader import all_op_names
from opkernel.proto import OpDef

ROOT = Path(__file__).resolve().parent.parent / "src" / "opkernel"
ROOM = ROOT / "endpoints"
TITLE = (
    "Written by tools/generate_stubs.py from table.txt and the files beside this one; do not edit."
)
MODULES = sorted(path.parent.name for path in ROOM.glob("*/__init__.py"))


def composed(module: str) -> Iterator[tuple[str, str]]:
    """The public functions and classes of a module's files, with the file of each."""
    for path in sorted((ROOM / module).glob("[!_]*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, f"opkernel.endpoints.{module}.{path.stem}"


def exported(module: str, name: str) -> str:
    """A line that exports a name; three lines where one is too long."""
    line = f"from {module} import {name} as {name}"
    return line if len(line) <= 100 else f"from {module} import (\n    {name} as {name},\n)"


def stub(module: str, rows: list[Endpoint]) -> str:
    """The stub of a module."""
    found = [*composed(module)]
    second: list[str] = []
    for row in rows:
        if row.is_alias:
            source, _, name = row.target.rpartition(".")
            if name == row.name:
                found.append((name, f"opkernel.endpoints.{source}"))
            else:  # of the same module; a stub does not export what it imports under another name
                second.append(f"{row.name} = {name}")
    imports = [exported(place, name) for place, name in sorted((at, name) for name, at in found)]
    calls = [functions(row) for row in rows if not row.is_alias]
    return endpoint_stub(TITLE, imports, calls) + "".join(f"{line}\n" for line in second)


def functions(row: Endpoint) -> tuple[str, list[tuple[str, Any, Any]], OpDef]:
    """The name, the parameters and the op of a line of the table."""
    op_def = global_op_registry().look_up_op_def(row.target)
    known = call_parameters(op_def)
    api = call_parameters(op_def, python_api_def(row.target))
    declared = {p.declared.name: p.declared for p in known} | {p.name: p.declared for p in api}
    parameters = [(p.name, declared.get(p.declared), p.default) for p in row.parameters]
    return row.name, parameters, op_def


def raw_ops() -> str:
    """The stub of `opkernel.raw_ops`."""
    ops = map(global_op_registry().look_up_op_def, all_op_names())
    title = "The ops of the catalogue. Written by tools/generate_stubs.py"
    return stub_text(ops, title, python_api_def, is_all=True)


def texts() -> dict[Path, str]:
    """All files, with their texts."""
    rows = [*table()]
    found = {ROOT / "raw_ops.pyi": raw_ops()} | {
        ROOM / module / "__init__.pyi": stub(module, [r for r in rows if r.module == module])
        for module in MODULES
    }
    found[ROOM / "__init__.pyi"] = "".join(
        f"from opkernel.endpoints import {module} as {module}\n" for module in MODULES
    ) + "\n__all__: list[str]\n"  # fmt: skip
    return found


def main() -> int:
    stale = {
        path: text
        for path, text in texts().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        if "--check" in sys.argv[1:]:
            print(f"stale: {path}; run tools/generate_stubs.py")
        else:
            path.write_text(text, encoding="utf-8")
    return bool(stale) and "--check" in sys.argv[1:]


if __name__ == "__main__":
    sys.exit(main())
