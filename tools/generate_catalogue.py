"""Write `opkernel/ops/catalogue.py`: which module registers which op.

Run after an op was added: `python tools/generate_catalogue.py`. With `--check` nothing is written
and the exit status says whether the file is current.
"""

import importlib
import pkgutil
import sys
from pathlib import Path

import opkernel.ops
from opkernel.opdef import global_op_registry

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = ROOT / "src" / "opkernel" / "ops" / "catalogue.py"


def modules_of_ops() -> dict[str, str]:
    """The module of each op, found by importing every module of the catalogue."""
    registry = global_op_registry()
    prefix = "opkernel.ops."
    for module in pkgutil.walk_packages(opkernel.ops.__path__, prefix):
        importlib.import_module(module.name)
    owners = {op.name: registry.owner(op.name) or "" for op in registry.get_registered_ops()}
    return {
        name: owner.removeprefix(prefix)
        for name, owner in sorted(owners.items())
        if owner.startswith(prefix)
    }


def text(modules: dict[str, str]) -> str:
    lines = [
        '"""Which module of `opkernel.ops` registers an op. Written by tools/generate_catalogue.py."""',
        "",
        "MODULE_OF_OP: dict[str, str] = {",
        *(f'    "{op}": "{module}",' for op, module in modules.items()),
        "}",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    new = text(modules_of_ops())
    if "--check" in sys.argv[1:]:
        return 0 if CATALOGUE.read_text() == new else 1
    CATALOGUE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
