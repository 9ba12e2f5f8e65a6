"""Accumulators of gradients, which give the mean, or the sum, once enough have come.

Source: TensorFlow core/kernels/conditional_accumulator_base.cc, conditional_accumulator.h,
sparse_conditional_accumulator.h.
"""

import logging
from typing import Any, NamedTuple

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.work_clock import WorkClock
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelContext
from opkernel.ops.data_flow.waiting import (
    Attempt,
    Deliver,
    Done,
    Line,
    Steps,
    WaitingResource,
    finish_all,
)
from opkernel.ops.input_checks import require_equal, require_rank_at_least, require_vector
from opkernel.types import DataType, PartialTensorShape, TensorShape

_OF_PAIR, _OF_TURN = 200, 1 << 10
"""The bytes that two merged indices take as values of Python, and the work of merging them."""

_LOGGER = logging.getLogger(__name__)


class ConditionalAccumulatorBase(WaitingResource):
    """Sums gradients until somebody takes the result, which begins the next global step.

    A gradient that was computed before the present global step is stale and is dropped.

    Args:
        dtype: The type of the gradients.
        shape: Their shape, as far as it is known.
        name: The name, for messages.
        is_mean: Whether the result is the mean and not the sum.
    """

    def __init__(
        self, dtype: DataType, shape: PartialTensorShape, name: str, is_mean: bool
    ) -> None:
        self._takers = Line()
        super().__init__(self._takers)
        self.dtype = dtype
        self.shape = shape
        self.name = name
        self._is_mean = is_mean
        self._global_step = 0
        self.num_accumulated = 0

    def debug_string(self) -> str:
        """A description."""
        return "A conditional accumulator"

    def apply_gradient(self, local_step: int, gradient: Any) -> None:
        """Add a gradient that was computed at a step, unless that is over.

        Raises:
            InvalidArgumentError: its shape does not fit.
        """
        with self._lock:
            if local_step < self._global_step:
                return
            self._add(gradient)
            self.num_accumulated += 1
            self._changed()
            over = self._resume_all()
        finish_all(over)

    def take_gradient(
        self, num_required: int, ctx: OpKernelContext, done: Done, deliver: Deliver
    ) -> None:
        """Take the result out, once as many gradients have come.

        Raises:
            InvalidArgumentError: none are required.
        """
        if num_required <= 0:
            raise InvalidArgumentError(
                f"Argument num_required must be positive, but was {num_required}"
            )
        steps = self._take_steps(num_required)
        self.start(self._takers, Attempt(ctx, done, steps, deliver, name="TakeGrad operation"))

    def set_global_step(self, step: int) -> None:
        """Begin another global step."""
        with self._lock:
            if step < self._global_step:
                _LOGGER.warning(
                    "The global step of accumulator %s goes back from %d to %d",
                    self.name,
                    self._global_step,
                    step,
                )
            self._global_step = step

    def _take_steps(self, num_required: int) -> Steps:
        while self.num_accumulated < num_required:
            yield
        self._global_step += 1
        result = self._result()
        self.num_accumulated = 0
        self._changed()
        return result

    def _add(self, gradient: Any) -> None:
        """Add a gradient, the first one included; raises as `apply_gradient`."""
        raise NotImplementedError

    def _result(self) -> Any:
        """The result of the gradients that were added."""
        raise NotImplementedError


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Accumulates tensors; `_sum` is the accumulator's own array."""

    _sum: Any = None

    def _add(self, gradient: Any) -> None:
        is_first = self.num_accumulated == 0
        expected = self.shape if is_first else PartialTensorShape(self._sum.shape)
        for shape in (expected, self.shape):
            if not shape.is_compatible_with(PartialTensorShape(gradient.shape)):
                raise InvalidArgumentError(
                    f"Shape mismatch: expected {shape}, got {TensorShape(gradient.shape)}"
                )
        if is_first:
            self._sum = np.array(gradient)
        else:
            np.add(self._sum, gradient, out=self._sum)

    def _result(self) -> Any:
        total, self._sum = self._sum, None
        if self._is_mean:
            np.divide(total, total.dtype.type(self.num_accumulated), out=total)
        return total


class SparseGradient(NamedTuple):
    """Rows of a gradient.

    Attributes:
        indices: Where the rows stand, a vector; in order.
        values: The rows.
        shape: The shape of the whole gradient, a vector; None where it is unknown.
    """

    indices: Any
    values: Any
    shape: Any


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Accumulates rows of tensors. The mean of a row is taken over the gradients that have the row."""

    _indices: Any = None
    _values: Any = None
    _counts: Any = None

    def _add(self, gradient: SparseGradient) -> None:
        self._check(gradient)
        if self.num_accumulated == 0:
            self._indices, self._values = np.array(gradient.indices), np.array(gradient.values)
            self._counts = np.ones(len(gradient.indices), np.int64)
            return
        most = len(self._indices) + len(gradient.indices)
        with making_bytes("merged indices", _OF_PAIR * most):
            pairs = _merged(self._indices.tolist(), gradient.indices.tolist())
            ours, theirs = np.array(pairs, np.int64).reshape(-1, 2).T
        in_ours, in_theirs = ours >= 0, theirs >= 0
        values = np.empty((len(pairs), *self._values.shape[1:]), self._values.dtype)
        indices, counts = np.empty(len(pairs), np.int64), in_theirs.astype(np.int64)
        values[in_theirs] = gradient.values[theirs[in_theirs]]
        indices[in_theirs] = gradient.indices[theirs[in_theirs]]
        both, only_ours = in_ours & in_theirs, in_ours & ~in_theirs
        values[both] += self._values[ours[both]]
        values[only_ours] = self._values[ours[only_ours]]
        indices[only_ours] = self._indices[ours[only_ours]]
        counts[in_ours] += self._counts[ours[in_ours]]
        self._indices, self._values, self._counts = indices, values, counts

    def _result(self) -> SparseGradient:
        values = self._values
        if self._is_mean:
            counts = self._counts.astype(values.dtype)
            values /= counts.reshape(-1, *[1] * (values.ndim - 1))
        first = self.shape[0] if self.shape.rank else None
        shape = [-1 if first is None else first, *values.shape[1:]]
        return SparseGradient(self._indices, values, np.array(shape, np.int64))

    def _check(self, gradient: SparseGradient) -> None:
        indices, values = gradient.indices, gradient.values
        require_vector(indices, "Input indices should be vector but received shape: {}")
        require_rank_at_least(values, 1, "Values cannot be 0-dimensional.")
        require_equal(len(indices), len(values), "Expected {} non-empty input values, got {}")
        if gradient.shape is not None:
            self._check_declared(gradient.shape.reshape(-1).tolist())
        self._check_indices(indices)
        self._check_values(values)

    def _check_declared(self, shape: list[int]) -> None:
        known = self.shape.dims or ()
        if len(known) > len(shape):
            raise InvalidArgumentError(
                f"Shape mismatch: expected shape rank at least {len(known)}, got {len(shape)}"
            )
        _check_sizes("shape", known, shape, 0)

    def _check_indices(self, indices: Any) -> None:
        size = self.shape[0] if self.shape.rank else None
        if size is None:
            return
        wrong = np.flatnonzero(indices >= size)
        if wrong.size:
            raise InvalidArgumentError(
                f"Shape mismatch: index of slice {wrong[0]} exceeded limits of shape; index is "
                f"{indices[wrong[0]]} exceeded {size}"
            )

    def _check_values(self, values: Any) -> None:
        if self.num_accumulated:
            require_equal(
                self._values.ndim, values.ndim, "Shape mismatch: expected values rank {}, got {}"
            )
            known: tuple[int | None, ...] = self._values.shape
        else:
            known = self.shape.dims or ()
            if len(known) > values.ndim:
                raise InvalidArgumentError(
                    f"Shape mismatch: expected values rank at least {len(known)}, got {values.ndim}"
                )
        _check_sizes("values", known, values.shape, 1)


def _check_sizes(what: str, known: tuple[int | None, ...], sizes: Any, start: int) -> None:
    for axis in range(start, len(known)):
        if known[axis] not in (None, sizes[axis]):
            raise InvalidArgumentError(
                f"Shape mismatch: expected {what} dim {axis} to be {known[axis]}, got {sizes[axis]}"
            )


def _merged(ours: list[int], theirs: list[int]) -> list[tuple[int, int]]:
    """For each row of the sum its place in either list of indices, or -1; both are in order."""
    pairs = []
    i = j = 0
    clock = WorkClock("merging indices")
    while i < len(ours) and j < len(theirs):
        a, b = ours[i], theirs[j]
        pairs.append((i if a <= b else -1, j if b <= a else -1))
        i, j = i + (a <= b), j + (b <= a)
        clock.spend(_OF_TURN)
    pairs += [(k, -1) for k in range(i, len(ours))]
    pairs += [(-1, k) for k in range(j, len(theirs))]
    return pairs
