"""Whether a thread waits: for tests in which another one is to come after it."""

import sys
import threading
import time
from pathlib import Path

__all__ = ["wait_until_blocked"]

_LOOKS = 10
_BETWEEN_S = 0.006
"""Longer than a thread waits for the interpreter before it looks whether it may run."""


def wait_until_blocked(thread: threading.Thread) -> None:
    """Return when a thread waits for something, or has ended, however busy the machine is.

    Linux tells whether a thread could run if a processor were free. Elsewhere this just waits for a while.
    """
    if sys.platform != "linux":
        time.sleep(0.2)
        return
    idle = 0
    while thread.is_alive() and idle < _LOOKS:
        time.sleep(_BETWEEN_S)
        idle = idle + 1 if _state(thread) == "S" else 0


def _state(thread: threading.Thread) -> str:
    try:
        status = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
    except FileNotFoundError:  # it has ended meanwhile
        return "S"
    return status.rpartition(")")[2].split()[0]
