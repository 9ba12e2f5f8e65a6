"""One exception class for each of TensorFlow's status codes.

    OpError
    ├── CancelledError           CANCELLED             the step was cancelled
    ├── UnknownError             UNKNOWN               (also RuntimeError)
    ├── InvalidArgumentError     INVALID_ARGUMENT      (also ValueError) wrong in any state
    ├── DeadlineExceededError    DEADLINE_EXCEEDED     (also TimeoutError)
    ├── NotFoundError            NOT_FOUND             (also LookupError)
    ├── AlreadyExistsError       ALREADY_EXISTS
    ├── PermissionDeniedError    PERMISSION_DENIED     (also PermissionError)
    ├── ResourceExhaustedError   RESOURCE_EXHAUSTED    (also MemoryError)
    ├── FailedPreconditionError  FAILED_PRECONDITION   wrong in the present state
    ├── AbortedError             ABORTED
    ├── OutOfRangeError          OUT_OF_RANGE          e.g. the end of a sequence
    ├── UnimplementedError       UNIMPLEMENTED         (also NotImplementedError)
    ├── InternalError            INTERNAL              (also RuntimeError)
    ├── UnavailableError         UNAVAILABLE
    ├── DataLossError            DATA_LOSS
    └── UnauthenticatedError     UNAUTHENTICATED

Some classes are also built-in exceptions, so that code that does not know this package can catch
them. Names and codes are the same as in `tf.errors`.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar

from opkernel.escaping import terminal_text


class Code(IntEnum):
    """The status codes, numbered as in TensorFlow's `error_codes.proto`."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class OpError(Exception):
    """An error with a status code; raised by everything in opkernel that can fail.

    `message` is the text; `node` and `op` are the names of the node and op that failed, where
    the error came from running or checking one, and `resource` that of the variable or other resource that
    does not exist or has no value, where that is what failed. `str` gives the message as a terminal may have it:
    what a model has put into it steers none.
    """

    code: ClassVar[Code]

    def __init__(
        self,
        message: str,
        *,
        node: str | None = None,
        op: str | None = None,
        resource: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.op = op
        self.resource = resource

    def __str__(self) -> str:
        return terminal_text(self.message, keep="\n\t")

    def add_node(self, node: str, op: str, inputs: Sequence[str] = ()) -> None:
        """Note the node of the error, in the message too, unless the error names one already.

        `inputs` describe the inputs of the node: `float32[2,3]`.
        """
        if self.node is not None:
            return
        self.node, self.op = node, op
        subject = "" if self.message.startswith(op) else f"{op}: "
        given = f", inputs {', '.join(inputs)}" if inputs else ""
        self.message = f"{subject}{self.message} (node {node!r}{given})"
        self.args = (self.message,)

    def add_context(self, context: str) -> None:
        """Append a line to the message that says where it happened, unless the line is there."""
        line = f"\n\t{context}"
        if not self.message.endswith(line):
            self.message += line
            self.args = (self.message,)


class CancelledError(OpError):
    """The operation was cancelled, usually by its caller."""

    code = Code.CANCELLED


class UnknownError(OpError, RuntimeError):
    """An error with no better code."""

    code = Code.UNKNOWN


class InvalidArgumentError(OpError, ValueError):
    """An argument that is wrong in any state of the system."""

    code = Code.INVALID_ARGUMENT


class DeadlineExceededError(OpError, TimeoutError):
    """The time given ran out."""

    code = Code.DEADLINE_EXCEEDED


class NotFoundError(OpError, LookupError):
    """Something that was named does not exist."""

    code = Code.NOT_FOUND


class AlreadyExistsError(OpError):
    """Something that the caller wanted to create exists already."""

    code = Code.ALREADY_EXISTS


class PermissionDeniedError(OpError, PermissionError):
    """The caller may not do this."""

    code = Code.PERMISSION_DENIED


class ResourceExhaustedError(OpError, MemoryError):
    """Memory or another limited resource ran out."""

    code = Code.RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """The system is not in a state in which this can be done."""

    code = Code.FAILED_PRECONDITION


class AbortedError(OpError):
    """The operation was given up, usually for a conflict; it may be tried again."""

    code = Code.ABORTED


class OutOfRangeError(OpError):
    """Past the end of a valid range, which may grow."""

    code = Code.OUT_OF_RANGE


class UnimplementedError(OpError, NotImplementedError):
    """Not implemented, or not for these arguments."""

    code = Code.UNIMPLEMENTED


class InternalError(OpError, RuntimeError):
    """A broken invariant: the fault is in the system, not in its caller."""

    code = Code.INTERNAL


class UnavailableError(OpError):
    """Not available now; it may be tried again."""

    code = Code.UNAVAILABLE


class DataLossError(OpError):
    """Data that cannot be recovered: a truncated or corrupted file."""

    code = Code.DATA_LOSS


class UnauthenticatedError(OpError):
    """The request has no valid credentials."""

    code = Code.UNAUTHENTICATED


class TimeIsUp(BaseException):
    """Interrupts Python when the time of a command is up, as KeyboardInterrupt does at Ctrl-C.

    DeadlineExceededError is an OSError, which code that opens files may take for an error of the system.
    """


_KIND_OF_EXCEPTION: tuple[tuple[tuple[type[Exception], ...], type[OpError]], ...] = (
    ((MemoryError, RecursionError), ResourceExhaustedError),
    ((NotImplementedError,), UnimplementedError),
    ((StopIteration,), OutOfRangeError),
    ((TimeoutError,), DeadlineExceededError),
    ((FileNotFoundError,), NotFoundError),
    ((PermissionError,), PermissionDeniedError),
    ((ValueError, TypeError, IndexError, OverflowError), InvalidArgumentError),
)


def error_of_code(code: int, message: str) -> OpError:
    """An error with a status code and a message; an UnknownError for codes that no class has."""
    kinds = {kind.code: kind for kind in OpError.__subclasses__() if kind.__module__ == __name__}
    return next((kinds[one](message) for one in kinds if one == code), UnknownError(message))


def as_op_error(error: Exception) -> OpError:
    """An exception of a kernel as an OpError of the code that fits; OpErrors stay themselves."""
    if isinstance(error, OpError):
        return error
    write = write_to_input(error)
    if write is not None:
        return InternalError(f"the kernel {write}")
    for types, kind in _KIND_OF_EXCEPTION:
        if isinstance(error, types):
            return kind(f"{type(error).__name__}: {error}")
    return InternalError(f"{type(error).__name__}: {error}")


_KIND_OF_FUNCTION: tuple[tuple[type[Exception], type[OpError]], ...] = (
    (ValueError, InvalidArgumentError),
    (TypeError, InvalidArgumentError),
    (StopIteration, OutOfRangeError),
    (MemoryError, ResourceExhaustedError),
    (NotImplementedError, UnimplementedError),
)


def error_of_function(error: Exception) -> OpError:
    """An exception of a Python function or generator that a graph calls, as TensorFlow tells it; OpErrors stay themselves."""
    if isinstance(error, OpError):
        return error
    kind = next((kind for cls, kind in _KIND_OF_FUNCTION if isinstance(error, cls)), UnknownError)
    return kind(f"{type(error).__name__}: {error}")


def write_to_input(error: BaseException | None) -> str | None:
    """The message for a kernel that writes to its input, given the error; None for other errors.

    Executors give kernels arrays to read, and NumPy refuses to write to them.
    """
    if not isinstance(error, ValueError) or isinstance(error, OpError):
        return None
    if "read-only" not in str(error):
        return None
    return f"writes to an input: {error}; it must declare forwarding (forwards_inputs), or copy"
