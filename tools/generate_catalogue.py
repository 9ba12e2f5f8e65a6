"""Write `opkernel/ops/catalogue.txt`: where each op, kernel and shape function stands, the ops' traits and rules.

Run after an op was added: `python tools/generate_catalogue.py`. With `--check` nothing is written
and the exit status says whether the file is current.
"""

import importlib
import pkgutil
import sys
from pathlib import Path

import opkernel.ops
import opkernel.ops.declared
from opkernel.decompile.numpy_functions import numpy_functions
from opkernel.engines.openvino.op_rule import rules
from opkernel.gradients.registry import gradient_sites
from opkernel.opdef import global_op_registry
from opkernel.ops import catalogue
from opkernel.ops.loader import load_op
from opkernel.registrations import declaring_site
from opkernel.xla.op_registry import global_xla_op_registry

ROOT = Path(__file__).resolve().parent.parent
CATALOGUE = ROOT / "src" / "opkernel" / "ops" / "catalogue.txt"
TRAITS = CATALOGUE.parent / "declared" / "traits.txt"
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
    """What each op declares; of ops that no module registers, what stands beside their declarations."""
    registry = global_op_registry()
    registered = {op: registry.traits(op).words() for op in modules_of_ops()}
    declared = dict(line.split(" ", 1) for line in TRAITS.read_text().splitlines())
    if registered.keys() & declared:
        raise SystemExit(f"{TRAITS}: modules register {sorted(registered.keys() & declared)}")
    return registered | declared


def rules_of_ops() -> dict[str, dict[str, str]]:
    """The kinds of rules about each op, with their modules; asked when all ops that modules register are there."""
    modules, traits = modules_of_ops() | modules_of_shape_fns(), traits_of_ops()
    catalogue.entry = lambda op: (modules.get(op, ""), traits.get(op, ""))  # the file is older
    global_op_registry().set_loader(load_op)  # for XLA's ops that are only declared
    found: dict[str, dict[str, str]] = {}
    for op, site in gradient_sites().items():
        found.setdefault(op, {})["gradient"] = site.owner.removeprefix(PREFIX)
    for op in numpy_functions().names():
        module = getattr(numpy_functions()[op], "__module__", "numpy")
        found.setdefault(op, {})["numpy"] = last_part(module)
    for op in rules().names():
        found.setdefault(op, {})["openvino"] = last_part(rules()[op].build.__module__)
    for op in modules_of_ops() | modules_of_shape_fns():
        for kernel in reversed(global_xla_op_registry().registrations(op)):
            owner = kernel.site.owner if kernel.site else ""
            is_own = owner.startswith("opkernel.xla.")
            found.setdefault(op, {})["xla"] = last_part(owner) if is_own else "portable"
    return found


def last_part(module: str) -> str:
    return module.rpartition(".")[2]


def text() -> str:
    modules, traits, found = (
        modules_of_ops() | modules_of_shape_fns(),
        traits_of_ops(),
        rules_of_ops(),
    )
    lines = []
    for op in sorted({*modules, *traits, *found}):
        line = f"{op} {modules.get(op, '-')} {traits.get(op, '')}".rstrip()
        words = " ".join(f"{kind}={module}" for kind, module in sorted(found.get(op, {}).items()))
        lines.append(f"{line} | {words}" if words else line)
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
