"""Steps whose time is up where a test wants it, however busy the machine is."""

import re
from collections.abc import Callable

import pytest

from opkernel.errors import DeadlineExceededError
from opkernel.runtime import RunOptions

__all__ = ["error_at_deadline"]

_TIMEOUTS_IN_MS = (50, 500, 5_000, 50_000)


def error_at_deadline(
    run: Callable[[RunOptions], object],
    message: str,
    timeouts_in_ms: tuple[int, ...] = _TIMEOUTS_IN_MS,
) -> None:
    """Check the error of a step that ends by its timeout only.

    The step is given more and more time, until the error says that it has come as far as the message tells.
    """
    for timeout_in_ms in timeouts_in_ms:
        with pytest.raises(DeadlineExceededError) as caught:
            run(RunOptions(timeout_in_ms=timeout_in_ms))
        if re.search(message, str(caught.value)):
            return
    raise AssertionError(f"the step was never at {message!r}: {caught.value}")
