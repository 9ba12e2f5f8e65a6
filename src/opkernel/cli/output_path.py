"""Files and directories that commands write."""

from typing import Any

import click

from opkernel.errors import InvalidArgumentError
from opkernel.file_errors import checked_path


class OutputPath(click.Path):
    """The type of arguments and options that name a file or directory to write.

    A name that no file can have is wrong use, told before anything is computed.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, of the type that was asked for."""
        try:
            checked_path(value)
        except InvalidArgumentError as error:
            self.fail(error.message, param, ctx)
        return super().convert(value, param, ctx)
