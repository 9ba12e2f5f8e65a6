"""Packages that load their names at first use.

`__init__.pyi`, which type checkers and editors read, says where each name stands:

    from opkernel.kernel.registry.create import create_op_kernel as create_op_kernel

and `__init__.py` makes it so: `__getattr__, __dir__, __all__ = lazy_exports(__name__)`.

Users get the entrance of a function, whose errors hide the frames of opkernel. Modules of opkernel that ask first get
the function itself, so that calls within opkernel cost nothing more.
"""

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from opkernel.messages import did_you_mean

__all__ = ["lazy_exports"]

_EXPORT = re.compile(r"^from (\S+) import (?:\(\n    )?(\w+) as (\w+)", re.MULTILINE)


_PREFIX = f"{__name__.partition('.')[0]}."


def lazy_exports(
    package: str, made: Mapping[str, Callable[[], Any]] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    Args:
        package: the package; its `__init__.pyi` says where names stand.
        made: what makes the names that stand nowhere.
    """
    namespace = vars(sys.modules[package])
    with open(namespace["__file__"].removesuffix("c") + "i", encoding="utf-8") as stub:
        exports = _EXPORT.findall(stub.read())
    sources = {alias: (module, name) for module, name, alias in exports}
    makers = made or {}
    names = [*sources, *(name for name in makers if name not in sources)]

    def load(name: str) -> Any:
        if name in sources:
            module, original = sources[name]
            if module == package:
                return importlib.import_module(f"{package}.{original}")
            value = getattr(importlib.import_module(module), original)
        elif name in makers:
            value = makers[name]()
        else:
            hint = "" if name.startswith("_") else did_you_mean(name, names)
            fact = f"module {package!r} has no attribute {name!r}{hint}"
            try:
                # With a name, and without the object, Python adds no suggestion of its own.
                raise AttributeError(fact, name=name)
            except AttributeError as error:
                from opkernel.tracebacks import hide_frames

                hide_frames(error)
                raise
        if isinstance(value, FunctionType) and not hasattr(value, "__hides_frames__"):
            if _is_asked_by_opkernel():
                return value
            value = _for_users(value, package)
        namespace[name] = value
        return value

    def public() -> list[str]:
        return sorted([*names, *[name for name in namespace if name.startswith("__")]])

    return load, public, names


def _is_asked_by_opkernel() -> bool:
    """Whether the name that is being loaded is for a module of opkernel, perhaps by way of other packages."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") == __name__ and frame.f_back is not None:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).startswith(_PREFIX)


def _for_users(function: FunctionType, package: str) -> Callable[..., Any]:
    """The entrance of a function, which pickles as a name of the package."""
    from opkernel.tracebacks import entrance  # only users need it

    found = entrance(function)
    found.__module__ = package
    return found
