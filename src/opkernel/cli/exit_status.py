"""How a command ends: 0 done, 1 the run or check failed, 2 wrong use, 130 interrupted.

What the command line alone gets wrong is wrong use; what fails with this model, an OpError, is a
failure. Both are told in one message on standard error, without a traceback.
"""

from typing import Any

import click

from opkernel.cli.output import printable
from opkernel.errors import OpError

__all__ = ["INTERRUPTED", "Commands", "WrongUse"]

INTERRUPTED = 130
"""The status of a command that Ctrl-C ended: 128 + SIGINT, as shells count."""


class _Failure(click.ClickException):
    exit_code = 1


class WrongUse(click.ClickException):
    """The command line asks for something that no model could do."""

    exit_code = 2


class Commands(click.Group):
    """A group of commands whose OpErrors end them with status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            path = (error.ctx or ctx).command_path
            raise WrongUse(f"{error.format_message()} (try '{path} --help')") from error
        except OpError as error:
            message = f"{error.code.name}: {error.message}"
            raise _Failure(printable(message)) from error
        except MemoryError as error:
            raise _Failure(f"RESOURCE_EXHAUSTED: out of memory: {error}") from error
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
