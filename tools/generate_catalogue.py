"""Write `opkernel/ops/catalogue.txt`: where each op, kernel and shape function stands, and the ops' traits.

Run after an op was added: `python tools/generate_catalogue.py`. With `--check` nothing is written
and the exit status says whether the file is current.
"""

import importlib
import pkgutil
import sys
from pathlib import Path

import opkernel.ops
import opkernel.ops.declared
from opkernel.opdef import global_op_registry
from opkernel.registrations import declaring_site

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = ROOT / "src" / "opkernel" / "ops" / "catalogue.txt"
PREFIX = "opkernel.ops."


def import_all() -> None:
    """Import every module of the catalogue, so that all ops of it are registered.

    The loader knows where ops stood when the catalogue was last written. An op belongs to the module that
    is being imported.
    """
    global_op_registry().set_loader(None, owner=lambda _: declaring_site(sys._getframe()).owner)
    for module in pkgutil.walk_packages(opkernel.ops.__path__, PREFIX):
        importlib.import_module(module.name)


def modules_of_ops() -> dict[str, str]:
    """The module of each op that a module registers."""
    registry = global_op_registry()
    owners = {op.name: registry.owner(op.name) or "" for op in registry.get_registered_ops()}
    return {
        name: owner.removeprefix(PREFIX)
        for name, owner in sorted(owners.items())
        if owner.startswith(PREFIX)
    }


def modules_of_shape_fns() -> dict[str, str]:
    """The module of each shape function of an op that no module registers."""
    modules: dict[str, str] = {}
    for module in pkgutil.walk_packages(opkernel.ops.declared.__path__, f"{PREFIX}declared."):
        for op in getattr(importlib.import_module(module.name), "SHAPE_FNS", {}):
            if op in modules or global_op_registry().owner(op) is not None:
                raise SystemExit(f"{module.name}: the shape function of {op} stands elsewhere, too")
            modules[op] = module.name.removeprefix(PREFIX)
    return dict(sorted(modules.items()))


def traits_of_ops() -> dict[str, str]:
    """What each op declares, be it registered or not."""
    registry = global_op_registry()
    traits = {op: registry.traits(op).words() for op in modules_of_ops()}
    for module in pkgutil.walk_packages(opkernel.ops.declared.__path__, f"{PREFIX}declared."):
        traits |= getattr(importlib.import_module(module.name), "TRAITS", {})
    return traits


def text() -> str:
    modules, traits = modules_of_ops() | modules_of_shape_fns(), traits_of_ops()
    lines = [f"{op} {modules[op]} {traits.get(op, '')}".rstrip() for op in sorted(modules)]
    return "".join(f"{line}\n" for line in lines)


def main() -> int:
    import_all()
    new = text()
    if "--check" in sys.argv[1:]:
        return 0 if CATALOGUE.read_text() == new else 1
    CATALOGUE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
