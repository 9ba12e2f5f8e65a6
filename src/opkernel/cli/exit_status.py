"""How a command ends: 0 done, 1 the run or check failed, 2 wrong use, 130 interrupted.

A fault of the command line alone is wrong use. A fault with this model, an OpError, is a failure.
Either is one message on standard error, without a traceback.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import click

from opkernel.cli.output import styled
from opkernel.errors import OpError

INTERRUPTED = 130
"""The status of a command that Ctrl-C ended: 128 + SIGINT, as shells count."""


class _Told(click.ClickException):
    """An error that ends a command with a message; the message may have names from files in it."""

    def format_message(self) -> str:
        """The message as the terminal gets it."""
        return styled(self.message)


class _Failure(_Told):
    exit_code = 1


class WrongUse(_Told):
    """The command line asks for something that no model could do."""

    exit_code = 2


class Commands(click.Group):
    """A group of commands whose OpErrors end them with status 1.

    Args:
        modules: The module of `opkernel.cli` that has each command; loaded when the command, or what
            all of them do, is asked for.
        prepare: Adds to a command the options that all commands take.
    """

    def __init__(
        self,
        *args: Any,
        modules: Mapping[str, str],
        prepare: Callable[[click.Command], None],
        **options: Any,
    ) -> None:
        not_loaded: Any = dict.fromkeys(modules)
        super().__init__(*args, **{**options, "commands": not_loaded})
        self._modules = modules
        self._prepare = prepare

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None if there is no such command."""
        module = self._modules.get(cmd_name)
        if module is None:
            return None
        found: click.Command = getattr(importlib.import_module(f"opkernel.cli.{module}"), module)
        self._prepare(found)
        return found

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
            raise _Failure(f"{error.code.name}: {error.message}") from error
        except BrokenPipeError:  # click ends silently where the reader has gone
            raise
        except OSError as error:
            raise _Failure(_text_of(error)) from error
        except MemoryError as error:
            raise _Failure(f"RESOURCE_EXHAUSTED: out of memory: {error}") from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None


def _text_of(error: OSError) -> str:
    """The system's error message for a file, after the file's name."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename is not None else reason
