"""Work for a request: within its time and the memory of the server; whatever goes wrong is an OpError."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from opkernel.device.budget import Budget
from opkernel.errors import InternalError, OpError, ResourceExhaustedError
from opkernel.kernel import under_budget
from opkernel.logs import logger

_LOG = "opkernel.serving"
_Result = TypeVar("_Result")


def bounded(
    work: Callable[[], _Result],
    deadline: float,
    outer: Budget | None,
    passed: type[Exception] = OpError,
) -> _Result:
    """The result of some work.

    Args:
        work: The work.
        deadline: When its time is over, by `time.monotonic`.
        outer: What all requests together may take.
        passed: Errors that are raised as they are, besides OpErrors.

    Raises:
        OpError: as the work does; ResourceExhaustedError where memory is out; InternalError for other errors.
    """
    try:
        with under_budget(Budget(deadline=deadline, outer=outer)) as budget:
            budget.check_time("waiting for a thread")
            return work()
    except (OpError, passed):
        raise
    except MemoryError as error:
        raise ResourceExhaustedError(f"out of memory: {error}") from error
    except Exception as error:
        logger(_LOG).exception("A request failed")
        raise InternalError(f"{type(error).__name__}: {error}") from error
