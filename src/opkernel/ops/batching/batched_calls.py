"""BatchedCall: one computation of a kernel that waits for its batch; and the tensors of batches.

Source: TensorFlow core/kernels/batching_util/batch_resource_base.cc, concat_split_util.h.
"""

import copy
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from typing import Any

import numpy as np

from opkernel.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    as_op_error,
)
from opkernel.kernel import OpKernelContext, check_allocation
from opkernel.ops.input_checks import require
from opkernel.types import Array, TensorShape, natural_dtype


def concatenated(tensors: Sequence[Any]) -> Array:
    """The rows of some tensors in one.

    Raises:
        InvalidArgumentError: they have different ranks, or rows of different shapes.
        ResourceExhaustedError: that is too large.
    """
    first = tensors[0]
    for tensor in tensors:
        shapes = f"{TensorShape(first.shape)} vs. {TensorShape(tensor.shape)}"
        require(tensor.ndim == first.ndim, f"Ranks of all input tensors should match: {shapes}")
        message = f"Dimensions of inputs should match beyond the first: {shapes}"
        require(tensor.shape[1:] == first.shape[1:], message)
    rows = sum(len(tensor) for tensor in tensors)
    check_allocation((rows, *first.shape[1:]), natural_dtype(first))
    return np.concatenate(tensors)


def pieces(tensor: Any, sizes: Sequence[int]) -> list[Array]:
    """The tensor cut into pieces of so many rows, each in memory of its own; more rows may be left.

    Raises:
        InvalidArgumentError: it has fewer rows, or a size is negative.
    """
    require(tensor.ndim, "Input to be split must have rank 1 at least")
    message = f"The sizes of the pieces, {sum(sizes)} in all, do not fit a tensor of {len(tensor) if tensor.ndim else 0} rows"
    require(all(size >= 0 for size in sizes) and sum(sizes) <= len(tensor), message)
    ends = np.cumsum(sizes, dtype=np.int64)
    return [tensor[end - size : end].copy() for end, size in zip(ends, sizes, strict=True)]


class Part:
    """Some rows of a call, in the batch of which they are processed.

    Attributes:
        call: The call.
        inputs: The rows of its inputs.
    """

    def __init__(self, call: "BatchedCall", inputs: Sequence[Any], index: int = 0) -> None:
        self.call = call
        self.inputs = inputs
        self._index = index

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.inputs[0])

    def split(self, sizes: list[int]) -> list["Part"]:
        """Its rows as several parts; their results are joined at the end."""
        return self.call.parts([pieces(one, sizes) for one in self.inputs])

    def report(self, outputs: list[Any]) -> None:
        """Give the rows of the outputs."""
        self.call.report(self._index, outputs)


class BatchedCall:
    """A computation that ends when its batch has been processed, or when its step is cancelled.

    Attributes:
        guid: A random number of 64 bits.
        ctx: The computation; nothing touches it when the call is over.
        context: The values of context variables of the caller.

    Args:
        ctx: The computation.
        done: Called at the end.
    """

    def __init__(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        self.guid = secrets.randbits(64) - 2**63
        self.ctx = ctx
        self.context = copy_context()
        self._done = done
        self._lock = threading.Lock()
        self._is_over = False
        self._token: int | None = None
        self._results: list[list[Any] | None] = [None]

    @property
    def is_over(self) -> bool:
        """Whether the kernel has its outputs or its error."""
        return self._is_over

    def has_ended(self) -> bool:
        """Whether the call is over, or its step was cancelled or has no time left."""
        if self._is_over:
            return True
        manager, deadline = self.ctx.cancellation_manager, self.ctx.deadline
        is_cancelled = manager is not None and (manager.is_cancelled or manager.is_cancelling)
        return is_cancelled or (deadline is not None and time.monotonic() >= deadline)

    def parts(self, inputs: list[list[Array]]) -> list[Part]:
        """The call in parts.

        Args:
            inputs: The pieces of each input.
        """
        split = list(zip(*inputs, strict=True))
        self._results = [None] * len(split)
        return [Part(self, rows, index) for index, rows in enumerate(split)]

    def cancel_with_step(self, discard: Callable[[], None]) -> None:
        """Have the call end when its step is cancelled; `discard` takes it out of its queue.

        Raises:
            CancelledError: the step is cancelled already.
        """
        manager = self.ctx.cancellation_manager
        if manager is None:
            return

        def cancel() -> None:
            discard()
            self.fail(CancelledError("The call of a batch was cancelled"))

        self._token = manager.get_cancellation_token()
        if not manager.register_callback(self._token, cancel):
            raise CancelledError("The step was cancelled before the call joined a batch")

    def report(self, index: int, outputs: list[Any]) -> None:
        """Give the outputs of a part; with those of the last part the call is over."""
        with self._lock:
            self._results[index] = outputs
            results = [one for one in self._results if one is not None]
        if len(results) < len(self._results):
            return
        if len(results) == 1:
            self.finish(outputs)
            return
        try:
            self.finish([concatenated(part) for part in zip(*results, strict=True)])
        except OpError as error:
            self.fail(error)

    def finish(self, outputs: Sequence[Any]) -> bool:
        """Set the outputs; False if the call is over."""

        def set_outputs() -> None:
            for index, output in enumerate(outputs):
                self.ctx.set_output(index, output)

        return self._end(set_outputs)

    def fail(self, error: OpError) -> None:
        """Set the error, unless the call is over. Each call gets a copy, as notes are added to it."""
        self._end(lambda: self.ctx.set_status(copy.copy(error)))

    def _end(self, settle: Callable[[], None]) -> bool:
        with self._lock:
            is_first, self._is_over = not self._is_over, True
        if not is_first:
            return False
        if self._token is not None and self.ctx.cancellation_manager is not None:
            self.ctx.cancellation_manager.try_deregister_callback(self._token)
        try:
            settle()
        except Exception as error:  # such as an output of another type
            self.ctx.set_status(as_op_error(error))
        self._done()
        return True


def batched_inputs(ctx: OpKernelContext) -> list[Any]:
    """The inputs of a call, which have one number of rows.

    Raises:
        InvalidArgumentError: one is a scalar, or their numbers of rows differ.
    """
    tensors = list(ctx.input_list("in_tensors"))
    shapes = ", ".join(str(TensorShape(one.shape)) for one in tensors)
    for tensor in tensors:
        if not tensor.ndim:
            raise InvalidArgumentError(
                f"Batching input tensors must have at least one dimension; their shapes: {shapes}"
            )
        if len(tensor) != len(tensors[0]):
            raise InvalidArgumentError(
                "Batching input tensors supplied in a given op invocation must have equal 0th-dimension "
                f"size; their shapes: {shapes}"
            )
    return tensors


def joined_inputs(parts: Sequence[Part], allowed: Sequence[int]) -> list[Array]:
    """The inputs of a batch, with its first row again and again up to the next allowed number of rows."""
    rows = sum(part.rows for part in parts)
    missing = next((size for size in allowed if size >= rows), rows) - rows
    return [
        concatenated([*tensors, *[tensors[0][:1]] * missing])
        for tensors in zip(*(part.inputs for part in parts), strict=True)
    ]


def split_outputs(outputs: Sequence[Any], parts: Sequence[Part], rows: int) -> list[list[Array]]:
    """The outputs of each part of a batch of so many rows, without those of padding.

    Raises:
        FailedPreconditionError: an output has another number of rows.
    """
    for output in outputs:
        if not output.ndim:
            raise FailedPreconditionError("Batched output tensor has 0 dimensions")
        if len(output) != rows:
            raise FailedPreconditionError(
                f"Batched output tensor's 0th dimension, {len(output)}, does not equal the sum of the 0th "
                f"dimension sizes of the input tensors, {rows}"
            )
    sizes = [part.rows for part in parts]
    return [list(one) for one in zip(*(pieces(output, sizes) for output in outputs), strict=True)]
