"""Packages that load their names at first use.

`__init__.pyi`, which type checkers and editors read, says where each name stands:

    from opkernel.kernel.registry.create import create_op_kernel as create_op_kernel

and `__init__.py` makes it so: `__getattr__, __dir__, __all__ = lazy_exports(__name__)`.
"""

import importlib
import re
import sys
from collections.abc import Callable
from typing import Any

from opkernel.messages import did_you_mean

__all__ = ["lazy_exports"]

_EXPORT = re.compile(r"^from (\S+) import (?:\(\n    )?(\w+) as (\w+)", re.MULTILINE)


def lazy_exports(
    package: str,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from its `__init__.pyi`."""
    namespace = vars(sys.modules[package])
    with open(namespace["__file__"].removesuffix("c") + "i", encoding="utf-8") as stub:
        exports = _EXPORT.findall(stub.read())
    sources = {alias: (module, name) for module, name, alias in exports}

    def load(name: str) -> Any:
        source = sources.get(name)
        if source is None:
            hint = "" if name.startswith("_") else did_you_mean(name, sources)
            # With a name, and without the object, Python adds no suggestion of its own.
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}", name=name)
        module, original = source
        if module == package:
            return importlib.import_module(f"{package}.{original}")
        value = namespace[name] = getattr(importlib.import_module(module), original)
        return value

    def public() -> list[str]:
        return sorted([*sources, *[name for name in namespace if name.startswith("__")]])

    return load, public, list(sources)
