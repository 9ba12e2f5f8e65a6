"""Files that commands read, by their path or `-` for standard input, and that they write."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import click

from opkernel.cli.output import WrongUse
from opkernel.errors import InvalidArgumentError, OpError, UnavailableError
from opkernel.file_errors import checked_path
from opkernel.interrupts import contextmanager

_STANDARD_INPUT = "-"


class InputFile(os.PathLike[str]):
    """A file that a command reads; where it is opened it is a path, in messages its name.

    Standard input is kept in a file until the command ends. It is read when that file is
    first asked for, so within the command's time limit.

    Raises:
        WrongUse: it is standard input, and so is another file of the command.
    """

    def __init__(self, path: str) -> None:
        self._path: str | None = path
        self._text = path
        if path == _STANDARD_INPUT:
            noted = click.get_current_context().meta
            if __name__ in noted:
                raise WrongUse(
                    "standard input (-) can be read once: name a file for one of the two"
                )
            noted[__name__] = True
            self._path, self._text = None, "standard input"

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
        if self.exists and _is_checkpoint(os.fsdecode(value)):
            return InputFile(os.fsdecode(value))
        return InputFile(os.fsdecode(super().convert(value, param, ctx)))


def input_file(text: str, *, dir_okay: bool = False) -> InputFile | None:
    """The file of a path, or standard input; None if there is no such file."""
    is_there = os.path.exists(text) and (dir_okay or not os.path.isdir(text))
    is_there |= _is_checkpoint(text)
    return InputFile(text) if text == _STANDARD_INPUT or is_there else None


def _is_checkpoint(path: str) -> bool:
    """Whether a path is the prefix of a checkpoint, which messages name for what it is."""
    return bool(path) and not os.path.exists(path) and os.path.isfile(f"{path}.index")


def existing_file(text: str) -> InputFile:
    """The file of an argument that names one; UsageError if there is no such file."""
    found = input_file(text)
    if found is None:
        raise click.UsageError(f"there is no file '{text}'")
    return found


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


def check_directory(option: str, path: str | os.PathLike[str] | None) -> None:
    """Raise WrongUse where a file, if one is to be written, has no directory, before it is computed."""
    directory = os.path.dirname(path or "")
    if not os.path.isdir(directory or "."):
        raise WrongUse(f"{option} {path}: there is no directory {directory}")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within the block errors of the system are raised as UnavailableError: the path cannot be written."""
    try:
        yield
    except OpError:
        raise
    except OSError as error:
        raise UnavailableError(f"Cannot write {path}: {error.strerror or error}") from error
