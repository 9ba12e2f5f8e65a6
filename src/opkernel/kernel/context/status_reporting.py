"""How kernels say that something is wrong: `requires` and its forms.

In `compute` a condition that fails raises. In `compute_async`, which has returned by the time that
something fails, it is recorded and the callback is called.

Source: OP_REQUIRES and CtxFailure in TensorFlow core/framework/op_requires.h, op_kernel.cc.
"""

import sys
from collections.abc import Callable

from opkernel.errors import InternalError, InvalidArgumentError, OpError
from opkernel.logs import logger


class StatusReporting:
    """The status of a construction or of a computation, and the ways to set it.

    Where an `error` is wanted, a message stands for an InvalidArgumentError.

    Attributes:
        status: The recorded error, or None where all is well.
    """

    __slots__ = ("status",)
    status: OpError | None

    def requires(self, condition: object, error: str | OpError) -> None:
        """Raise `error` unless `condition` holds (OP_REQUIRES).

        Raises:
            InternalError: it is called in a `compute_async`, where `requires_async` is right.
        """
        if not condition:
            self.check_not_in_compute_async("requires_async")
            raise _as_error(error)

    def requires_ok(self, error: OpError | None) -> None:
        """Raise `error` if there is one (OP_REQUIRES_OK)."""
        if error is not None:
            self.check_not_in_compute_async("requires_ok_async")
            raise error

    def requires_async(
        self, condition: object, error: str | OpError, done: Callable[[], None]
    ) -> bool:
        """Record `error` and call `done` unless `condition` holds (OP_REQUIRES_ASYNC).

        if not ctx.requires_async(x.ndim == 1, "x must be a vector", done):
            return
        """
        if condition:
            return True
        self._fail(_as_error(error))
        done()
        return False

    def requires_ok_async(self, error: OpError | None, done: Callable[[], None]) -> bool:
        """Record `error` and call `done` if there is one (OP_REQUIRES_OK_ASYNC)."""
        if error is None:
            return True
        self._fail(error)
        done()
        return False

    def ctx_failure(self, error: str | OpError) -> None:
        """Record an error, with the file and line of the caller as a note on it (CtxFailure)."""
        self._fail(_as_error(error))

    def ctx_failure_with_warning(self, error: str | OpError) -> None:
        """Record an error as `ctx_failure` does, and log it as a warning."""
        self._fail(_as_error(error), is_warning=True)

    def set_status(self, error: OpError | None) -> None:
        """Record an error without leaving the kernel; the first one counts."""
        if self.status is None:
            self.status = error

    def check_not_in_compute_async(self, right_form: str) -> None:
        """Raise InternalError where the kernel's errors must go through its callback."""
        if self._reports_by_callback():
            raise InternalError(f"Use {right_form} in AsyncOpKernel implementations.")

    def _reports_by_callback(self) -> bool:
        return False

    def _fail(self, error: OpError, *, is_warning: bool = False) -> None:
        """Record an error for the function that called the caller."""
        frame = sys._getframe(2)
        error.add_note(f"reported at {frame.f_code.co_filename}:{frame.f_lineno}")
        log = logger("opkernel.kernel")
        told = log.warning if is_warning else log.debug
        told("%s: %s", error.code.name, error.message, stacklevel=3)
        self.set_status(error)


def _as_error(error: str | OpError) -> OpError:
    return InvalidArgumentError(error) if isinstance(error, str) else error
