"""Files that commands read: by their path, or `-` for standard input."""

import os
import sys
from typing import Any

import click

from opkernel.cli.exit_status import WrongUse

STANDARD_INPUT = "-"


class InputFile(os.PathLike[str]):
    """A file that a command reads; where it is opened it is a path, in messages its name.

    Standard input is kept in a file until the command ends. It is read when that file is
    first asked for, so within the command's time limit.
    """

    def __init__(self, path: str) -> None:
        self._path: str | None = path
        self._text = path
        if path == STANDARD_INPUT:
            self._path, self._text = None, "standard input"
            _claim_standard_input()

    def __str__(self) -> str:
        return self._text

    def __fspath__(self) -> str:
        if self._path is None:
            self._path = _kept_standard_input()
        return self._path

    @property
    def name(self) -> str:
        """The last part of its name."""
        return os.path.basename(self._text)

    @property
    def size(self) -> int:
        """The size in bytes; for a directory, the size of its entry."""
        return os.stat(self).st_size


class InputFileType(click.Path):
    """The type of arguments and options that are an `InputFile`."""

    def __init__(self, *, exists: bool = True, dir_okay: bool = True) -> None:
        super().__init__(exists=exists, dir_okay=dir_okay, allow_dash=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> InputFile:
        """The file of a path that exists, or standard input."""
        if isinstance(value, InputFile):
            return value
        return InputFile(os.fsdecode(super().convert(value, param, ctx)))


def input_file(text: str) -> InputFile | None:
    """The file of a path, or standard input; None if there is no such file."""
    is_file = text == STANDARD_INPUT or (os.path.exists(text) and not os.path.isdir(text))
    return InputFile(text) if is_file else None


def _claim_standard_input() -> None:
    """Note that standard input is read.

    Raises:
        WrongUse: something else of the same command is read from it.
    """
    noted = click.get_current_context().meta
    if __name__ in noted:
        raise WrongUse("standard input (-) can be read once: name a file for one of the two")
    noted[__name__] = True


def _kept_standard_input() -> str:
    """The path of a file with all that comes on standard input; it is gone when the command ends."""
    import shutil  # these two load much, and few commands read from standard input
    import tempfile

    folder = tempfile.TemporaryDirectory(prefix="opkernel-")
    click.get_current_context().find_root().call_on_close(folder.cleanup)
    path = os.path.join(folder.name, "stdin")
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path
