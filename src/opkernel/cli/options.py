"""Options that commands share: MODEL, `--dir`, `--tag_set`, `--signature_def`, permissions, `--library`.

`--library` names modules with ops and kernels of the user's own, imported before a command does its work.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opkernel.cli.files import InputFileType, OutputPath
from opkernel.cli.output import WrongUse
from opkernel.errors import FailedPreconditionError

if TYPE_CHECKING:
    from opkernel.device.permissions import Permissions

WITHOUT_LIBRARIES = frozenset({"check", "checkpoint", "history", "new", "stubs"})
"""The commands that look at none but the ops that they are given, or at files."""

HINT = "--library names the file or module that registers such ops"


def add_library(command: click.Command) -> None:
    """Have a command that meets ops take `--library`."""
    if command.name in WITHOUT_LIBRARIES:
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
    from opkernel.cli.exported_ops import is_missing, told
    from opkernel.cli.op_sources import module_of

    if os.path.isfile(target) and not target.endswith(".py"):
        raise WrongUse(f"'{target}' is no Python file (.py)")
    module = module_of(target)
    sys.path[:0] = map(str, module.roots)
    try:
        imported = importlib.import_module(module.name)
    except Exception as error:  # a user's module may raise anything
        if is_missing(error, module.name):
            raise WrongUse(f"there is no module or file '{target}'") from error
        raise FailedPreconditionError(f"Importing '{target}' failed: {told(error)}") from error
    if os.path.isfile(target) and not os.path.samefile(target, imported.__file__ or ""):
        raise WrongUse(
            f"'{target}' has the name of another module, {module.name} ({imported.__file__}): rename it"
        )
    return module.name


Command = TypeVar("Command", bound=Callable[..., Any])
_DIRECTORY = "--dir"


def completed_by(name: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """A function of `opkernel.cli.completion`, which shells load and runs do not."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from opkernel.cli import completion

        found: list[str] = getattr(completion, name)(ctx, param, incomplete)
        return found

    return complete


class CommandGroup(click.Group):
    """A group of commands whose help has the first sentence of each, whatever its length."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of the commands with what they do."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(_ANY_LENGTH)) for name, one in found if one]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


_ANY_LENGTH = 1000


class ModelCommand(click.Command):
    """A command on a MODEL, which `--dir` may name too; `model_options` has its options.

    Args:
        option_groups: The options by the titles under which the help shows them; the others come last.
    """

    def __init__(
        self, *args: Any, option_groups: Mapping[str, Sequence[str]] | None = None, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._option_groups = option_groups or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options group by group."""
        if not self._option_groups:
            super().format_options(ctx, formatter)
            return
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        records = {one.opts[0]: one.get_help_record(ctx) for one in options}
        grouped = {name for names in self._option_groups.values() for name in names}
        others = [name for name in records if name not in grouped]
        for heading, names in {**self._option_groups, "Other options": others}.items():
            rows = [record for record in map(records.get, names) if record is not None]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with the value of `--dir` as the first."""
        return super().parse_args(ctx, _directory_first(args))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with a `Model`."""
        from opkernel.cli.model import Model  # loads NumPy

        params = ctx.params
        allowed = [params.pop(name, ()) for name in ("allow_read", "allow_write")]
        chosen = params.pop("tag_set", None), params.pop("signature_def", None)
        params["model"] = Model(params["model"], *chosen, permissions(*allowed))
        return super().invoke(ctx)


def permissions(allow_read: Sequence[str], allow_write: Sequence[str]) -> Permissions:
    """What the options of `permission_options` allow."""
    from opkernel.device.permissions import NO_PERMISSIONS, Permissions  # loads NumPy

    return Permissions(allow_read, allow_write) if allow_read or allow_write else NO_PERMISSIONS


def _directory_first(args: Sequence[str]) -> list[str]:
    """The arguments with the value of `--dir` as the first, which is MODEL."""
    for number, one in enumerate(args):
        if one == "--":
            break
        if one == _DIRECTORY and number + 1 < len(args):
            return [args[number + 1], *args[:number], *args[number + 2 :]]
        if one.startswith(f"{_DIRECTORY}="):
            return [one.removeprefix(f"{_DIRECTORY}="), *args[:number], *args[number + 1 :]]
    return [*args]


def _with_options(options: Sequence[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Have a command take options."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def model_options(
    *, has_signature: bool = False, runs: bool = False
) -> Callable[[Command], Command]:
    """Have a command take MODEL, `--dir` and `--tag_set`.

    Args:
        has_signature: Whether it takes `--signature_def`.
        runs: Whether it runs graphs, and takes `--allow-read` and `--allow-write`.
    """
    options = [*_MODEL]
    if has_signature:
        options.append(_SIGNATURE)
    if runs:
        options.append(permission_options)
    return _with_options(options)


_MODEL = [
    click.argument("model", type=InputFileType()),
    click.option(
        _DIRECTORY,
        "directory",
        metavar="DIR",
        expose_value=False,
        help="MODEL, as saved_model_cli takes it.",
    ),
    click.option(
        "--tag_set",
        metavar="TAG,...",
        shell_complete=completed_by("complete_tag_sets"),
        help="Take the MetaGraph with exactly these tags of a SavedModel.",
    ),
]
_SIGNATURE = click.option(
    "--signature_def",
    metavar="NAME",
    shell_complete=completed_by("complete_signatures"),
    help="The signature of a SavedModel; by default serving_default, or the only one.",
)

permission_options = _with_options(
    [
        click.option(
            "--allow-read",
            multiple=True,
            type=click.Path(exists=True),
            metavar="PATH",
            help="Let the graph read this directory, with all in it, or this file.",
        ),
        click.option(
            "--allow-write",
            multiple=True,
            type=OutputPath(),
            metavar="PATH",
            help="Let the graph write to this directory, or this file.",
        ),
    ]
)

jit_option = click.option(
    "--jit",
    default="",
    metavar="ENGINE",
    help="Compile parts of the graph where that pays: xla, openvino, or auto for what turns out to be the fastest; "
    "xla! and openvino! compile in any case. openvino:bfloat16 and auto:bfloat16 allow a lower precision.",
)


def _names_option(
    option: str, parameter: str, *, help: str, complete: str = "complete_tensors"
) -> Callable[[Command], Command]:
    """An option that is given once for each name; `complete` of `opkernel.cli.completion` offers names."""
    return click.option(
        option,
        parameter,
        multiple=True,
        metavar="NAME",
        shell_complete=completed_by(complete),
        help=help,
    )


fetch_option = partial(_names_option, "--fetch", "fetches")
feed_option = partial(_names_option, "--feed", "feeds")


def output_option(
    *names: str,
    metavar: str = "FILE",
    writable: bool = True,
    path_type: type | None = None,
    **options: Any,
) -> Callable[[Command], Command]:
    """An option that names a file to write; one that exists has to be `writable`."""
    kind = OutputPath(dir_okay=False, writable=writable, path_type=path_type)
    return click.option(*names, type=kind, metavar=metavar, **options)


def _device_counts(
    ctx: click.Context, param: click.Parameter, given: Iterable[str]
) -> dict[str, int]:
    """How many devices there are to be by type, from `TYPE=N`."""
    counts = {}
    for one in given:
        device_type, equals, count = one.partition("=")
        if not device_type or not equals or not count.isdecimal():
            raise WrongUse(f"--device-count {one}: it takes the form TYPE=N, such as CPU=2")
        counts[device_type] = int(count)
    return counts


device_count_option = click.option(
    "--device-count",
    "counts",
    multiple=True,
    metavar="TYPE=N",
    callback=_device_counts,
    help="The number of devices of a type; by default one CPU.",
)
