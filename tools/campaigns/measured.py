"""What a function takes, measured in a process that only runs it."""

import contextlib
import json
import os
import resource
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from opkernel.errors import OpError

__all__ = ["Measure", "measured"]

_DATA_BYTES = 3 << 30
"""So much memory the process gets: a function that wants more breaks, and the machine does not."""
_PATIENCE_S = 100.0


@dataclass
class Measure:
    """What a function took.

    Attributes:
        outcome: `ran`, the status code of its error, or `killed`.
        seconds: Of the processor, or of the clock where these are fewer: other work may hold the process up.
        grown_bytes: By how much the process grew at most.
        fault: The traceback of an exception that is no OpError.
    """

    outcome: str
    seconds: float
    grown_bytes: int
    fault: str = ""

    def __str__(self) -> str:
        return f"{self.outcome} after {self.seconds:.1f} s, {self.grown_bytes >> 20} MiB more"


def measured(prepare: Callable[[], None], function: Callable[[], None], most_s: float) -> Measure:
    """Run two functions in another process, and measure the second.

    Args:
        prepare: Does what is not measured; OpErrors are ignored.
        function: What is measured.
        most_s: After so many seconds of the processor the process is killed.
    """
    receiving, sending = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads, which the child does not have
        process = os.fork()
    if process == 0:
        _tell(sending, prepare, function, most_s)
    os.close(sending)
    try:
        text = _received(receiving)
    finally:
        os.close(receiving)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    return Measure(**json.loads(text)) if text else Measure("killed", _PATIENCE_S, 0)


def _received(pipe: int) -> bytes:
    text, end = b"", time.monotonic() + _PATIENCE_S
    while select.select([pipe], [], [], max(end - time.monotonic(), 0))[0]:
        data = os.read(pipe, 1 << 16)
        if not data:
            break
        text += data
    return text


def _tell(
    pipe: int, prepare: Callable[[], None], function: Callable[[], None], most_s: float
) -> None:
    """In the child: run, tell what was measured, and end."""
    try:
        with contextlib.suppress(OpError):
            prepare()
        resource.setrlimit(resource.RLIMIT_DATA, (_DATA_BYTES, _DATA_BYTES))
        most = int(time.process_time() + most_s) + 2
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        os.write(pipe, json.dumps(asdict(_measure(function))).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _measure(function: Callable[[], None]) -> Measure:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    before, start, began = _memory("VmRSS"), time.monotonic(), time.process_time()
    outcome, fault = "ran", ""
    try:
        function()
    except OpError as error:
        outcome = error.code.name
    except BaseException:  # a fault
        outcome, fault = "fault", traceback.format_exc(limit=-5)
    seconds = min(time.monotonic() - start, time.process_time() - began)
    return Measure(outcome, seconds, _memory("VmHWM") - before, fault)


def _memory(name: str) -> int:
    """A count of bytes that Linux keeps of the process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))
