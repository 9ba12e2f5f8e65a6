"""The `opkernel` command and its subcommands."""

import click

import opkernel
from opkernel.cli.exit_status import Commands
from opkernel.cli.library import add_library
from opkernel.cli.limits import add_limits
from opkernel.cli.output import add_color


def _prepare(command: click.Command) -> None:
    """Add the options that all commands take; the commands of a group meet no ops."""
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            add_limits(subcommand)
            add_color(subcommand)
        return
    add_library(command)
    add_limits(command)  # around the import of libraries, too
    add_color(command)


@click.group(
    cls=Commands,
    modules={
        "check": "check",
        "checkpoint": "checkpoint",
        "compile": "compile_model",
        "coverage": "coverage",
        "decompile": "decompile",
        "doctor": "doctor",
        "explain": "explain",
        "freeze": "freeze",
        "history": "history",
        "kernels": "kernels",
        "new": "new",
        "ops": "ops",
        "optimize": "optimize",
        "place": "place",
        "predict": "predict",
        "run": "run",
        "serve": "serve",
        "shapes": "shapes",
        "show": "show",
        "stubs": "stubs",
        "test": "check_ops",
    },
    prepare=_prepare,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 done, 1 the run or check failed, 2 wrong use. A file named - is standard input.",
)
@click.version_option(opkernel.__version__, prog_name="opkernel")
def commands() -> None:
    """Run and inspect TensorFlow graphs without TensorFlow."""
