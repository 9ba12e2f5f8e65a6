"""MODEL on the command line: the argument, `--dir`, `--tag_set`, `--signature_def`, permissions; and options for its tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from opkernel.cli.input_file import InputFileType
from opkernel.cli.model import Model
from opkernel.cli.output_path import OutputPath
from opkernel.device.permissions import NO_PERMISSIONS, Permissions

Command = TypeVar("Command", bound=Callable[..., Any])
_DIRECTORY = "--dir"


def completed_by(name: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """A function of `opkernel.cli.completion`, which shells load and runs do not."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        from opkernel.cli import completion

        found: list[str] = getattr(completion, name)(ctx, param, incomplete)
        return found

    return complete


class ModelCommand(click.Command):
    """A command on a MODEL, which `--dir` may name too; `model_options` has its options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with the value of `--dir` as the first."""
        return super().parse_args(ctx, _directory_first(args))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command with a `Model`."""
        params = ctx.params
        allowed = [params.pop(name, ()) for name in ("allow_read", "allow_write")]
        ctx.params["model"] = Model(
            params["model"],
            params.pop("tag_set", None),
            params.pop("signature_def", None),
            permissions(*allowed),
        )
        return super().invoke(ctx)


def permissions(allow_read: Sequence[str], allow_write: Sequence[str]) -> Permissions:
    """What the options of `permission_options` allow."""
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


def model_options(
    *, has_signature: bool = False, runs: bool = False
) -> Callable[[Command], Command]:
    """Have a command take MODEL, `--dir` and `--tag_set`.

    Args:
        has_signature: Whether it takes `--signature_def`.
        runs: Whether it runs graphs, and takes `--allow-read` and `--allow-write`.
    """
    options = [
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
    if has_signature:
        options.append(_signature_option)

    def add(command: Command) -> Command:
        if runs:
            command = permission_options(command)
        for option in reversed(options):
            command = option(command)
        return command

    return add


def permission_options(command: Command) -> Command:
    """Have a command take `--allow-read` and `--allow-write`."""
    for option in reversed(_permission_options):
        command = option(command)
    return command


_signature_option = click.option(
    "--signature_def",
    metavar="NAME",
    shell_complete=completed_by("complete_signatures"),
    help="The signature of a SavedModel; by default serving_default, or the only one.",
)
_permission_options = [
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


jit_option = click.option(
    "--jit",
    default="",
    metavar="ENGINE",
    help="Compile parts of the graph: xla, openvino, or auto for what turns out to be the fastest; "
    "openvino:bfloat16 and auto:bfloat16 allow a lower precision.",
)


def fetch_option(*, help: str, complete: str = "complete_tensors") -> Callable[[Command], Command]:
    """`--fetch NAME`, once for each output; `complete` of `opkernel.cli.completion` offers names."""
    return _names_option("--fetch", "fetches", help, complete)


def feed_option(*, help: str) -> Callable[[Command], Command]:
    """`--feed NAME`, once for each tensor."""
    return _names_option("--feed", "feeds", help, "complete_tensors")


def _names_option(
    option: str, parameter: str, help: str, complete: str
) -> Callable[[Command], Command]:
    return click.option(
        option,
        parameter,
        multiple=True,
        metavar="NAME",
        shell_complete=completed_by(complete),
        help=help,
    )
