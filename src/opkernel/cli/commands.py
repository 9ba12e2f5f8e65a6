"""The `opkernel` command and its subcommands, and how they end: 0 done, 1 the run or check failed, 2 wrong use, 130 interrupted.

A fault of the command line alone is wrong use. A fault with this model, an OpError, is a failure.
Either is one message on standard error, without a traceback.
"""

import functools
import gc
import importlib
from typing import Any

import click

import opkernel
from opkernel.cli.limits import add_limits
from opkernel.cli.options import CommandGroup, add_library
from opkernel.cli.output import CommandError, WrongUse, add_color, styled
from opkernel.errors import OpError

_INTERRUPTED = 130
"""The status of a command that Ctrl-C ended: 128 + SIGINT, as shells count."""

_NAMES = [
    "check",
    "checkpoint",
    "compile",
    "coverage",
    "decompile",
    "doctor",
    "explain",
    "freeze",
    "history",
    "kernels",
    "new",
    "ops",
    "optimize",
    "place",
    "predict",
    "run",
    "serve",
    "shapes",
    "show",
    "stubs",
    "test",
]
_MODULES = {"compile": "compile_model", "test": "check_ops"}
"""The modules of commands that are called otherwise; each has the name of its function."""


@functools.cache
def _loaded(module: str) -> click.Command:
    """The command of a module, with the options that all commands take."""
    command: click.Command = getattr(importlib.import_module(f"opkernel.cli.{module}"), module)
    add_library(command)
    for one in command.commands.values() if isinstance(command, click.Group) else [command]:
        add_limits(one)  # around the import of libraries, too
        add_color(one)
    return command


class _Commands(CommandGroup):
    """A group of commands whose OpErrors end them with status 1; a command is loaded when it is asked for."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None if there is no such command."""
        if cmd_name not in _NAMES:
            return None
        command = _loaded(_MODULES.get(cmd_name, cmd_name))
        if ctx.obj:  # The process is the command's: neither a collection nor its end looks at the modules again.
            gc.freeze()
            gc.enable()
        return command

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse the options before the command."""
        try:
            return super().make_context(*args, **extra)
        except (click.NoSuchOption, click.BadOptionUsage) as error:
            raise click.UsageError(styled(error.format_message()), error.ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            path = (error.ctx or ctx).command_path
            raise WrongUse(f"{error.format_message()} (try '{path} --help')") from error
        except OpError as error:
            raise CommandError(f"{error.code.name}: {error.message}") from error
        except BrokenPipeError:  # click ends silently where the reader has gone
            raise
        except OSError as error:
            file = f"{error.filename}: " if error.filename is not None else ""
            raise CommandError(f"{file}{error.strerror or error}") from error
        except MemoryError as error:
            raise CommandError(f"RESOURCE_EXHAUSTED: out of memory: {error}") from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(_INTERRUPTED) from None


@click.group(
    cls=_Commands,
    commands=dict.fromkeys(_NAMES),
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 done, 1 the run or check failed, 2 wrong use. A file named - is standard input.",
)
@click.version_option(opkernel.__version__, prog_name="opkernel")
def commands() -> None:
    """Run and inspect TensorFlow graphs without TensorFlow."""
