"""Files that traces of steps are written to."""

import os
from collections.abc import Sequence
from enum import Enum

from opkernel.cli.exit_status import WrongUse
from opkernel.errors import UnavailableError
from opkernel.proto import StepStats


class TraceFormat(Enum):
    """A format of traces."""

    PERFETTO = "perfetto"
    CHROME = "chrome"

    @staticmethod
    def of(path: str, name: str | None) -> "TraceFormat":
        """The format of that name, or the one that a file's name stands for."""
        if name is not None:
            return TraceFormat(name)
        return TraceFormat.CHROME if path.endswith(".json") else TraceFormat.PERFETTO


def check_trace(path: str) -> None:
    """Raise WrongUse where a trace could not be written, before it is recorded."""
    directory = os.path.dirname(path)
    if not os.path.isdir(directory or "."):
        raise WrongUse(f"--trace {path}: there is no directory {directory}")


def write_trace(path: str, name: str | None, steps: Sequence[StepStats]) -> None:
    """Write the trace of steps.

    Raises:
        UnavailableError: the file cannot be written.
    """
    from opkernel.runtime.traces import write_chrome_trace, write_perfetto_trace

    is_chrome = TraceFormat.of(path, name) is TraceFormat.CHROME
    try:
        (write_chrome_trace if is_chrome else write_perfetto_trace)(steps, path)
    except OSError as error:
        raise UnavailableError(f"Cannot write {path}: {error.strerror or error}") from error
