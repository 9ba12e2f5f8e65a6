"""`--library`: modules with ops and kernels of the user's own, imported before a command does its work."""

import importlib
import os
import sys
from typing import Any

import click

from opkernel.cli.exit_status import WrongUse
from opkernel.errors import FailedPreconditionError

WITHOUT_LIBRARIES = frozenset({"check", "checkpoint", "history", "new", "stubs"})
"""The commands that look at none but the ops that they are given, or at files."""

HINT = "--library names the file or module that registers such ops"


def add_library(command: click.Command) -> None:
    """Have a command that meets ops take `--library`, if it does not yet."""
    if command.name in WITHOUT_LIBRARIES or any(p.name == "libraries" for p in command.params):
        return
    option = click.Option(
        ["--library", "libraries"],
        multiple=True,
        metavar="MODULE",
        help="Import this module or Python file first, for the ops and kernels that it registers.",
    )
    command.params.append(option)
    invoke = command.invoke

    def invoke_with_libraries(ctx: click.Context) -> Any:
        from opkernel.opdef import UnregisteredOpError  # `opkernel --help` needs no ops

        libraries = ctx.params.pop("libraries", ())
        ctx.meta[__name__] = [import_library(library) for library in libraries]
        try:
            return invoke(ctx)
        except UnregisteredOpError as error:
            error.message = f"{error.message.rstrip('.')}; {HINT}"
            raise

    command.invoke = invoke_with_libraries  # type: ignore[method-assign]  # of this one


def imported_libraries() -> list[str]:
    """The modules of `--library`, for processes that the command starts."""
    found: list[str] = click.get_current_context().meta.get(__name__, [])
    return found


def import_library(target: str) -> str:
    """Import a module by its name or file; the result is its name.

    Raises:
        WrongUse: there is no such module or Python file, or another module has its name.
        FailedPreconditionError: it raises an error when it is imported.
    """
    from opkernel.cli.exported_ops import told
    from opkernel.cli.op_sources import module_of

    if os.path.isfile(target) and not target.endswith(".py"):
        raise WrongUse(f"'{target}' is no Python file (.py)")
    module = module_of(target)
    sys.path[:0] = map(str, module.roots)
    try:
        imported = importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name and f"{module.name}.".startswith(f"{error.name}."):
            raise WrongUse(f"there is no module or file '{target}'") from error
        raise FailedPreconditionError(f"Importing '{target}' failed: {told(error)}") from error
    except Exception as error:  # a user's module may raise anything
        raise FailedPreconditionError(f"Importing '{target}' failed: {told(error)}") from error
    if os.path.isfile(target) and not os.path.samefile(target, imported.__file__ or ""):
        raise WrongUse(
            f"'{target}' has the name of another module, {module.name} ({imported.__file__}): rename it"
        )
    return module.name
