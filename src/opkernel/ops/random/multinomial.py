"""Classes drawn by their logits: Multinomial, StatelessMultinomial.

Source: TensorFlow core/ops/random_ops.cc, stateless_random_ops.cc, core/kernels/multinomial_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, OpKernelContext, allocate, check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_scalars
from opkernel.ops.input_checks import require, require_rank, require_scalar
from opkernel.ops.random.distributions import uniform
from opkernel.ops.random.inputs import check_seed, check_seed_shape, of_seed
from opkernel.ops.random.philox import Philox, StreamKernel
from opkernel.ops.random.uniform_and_normal import SEED_TYPE, SEEDS
from opkernel.ops.registration import FLOATS, INDEX, register_kernel
from opkernel.types import Array, DataType

__all__ = ["samples_of"]

_TYPES = ["T: {realnumbertype}"]
_OUTPUT_TYPE = "output_dtype: {int32, int64} = DT_INT64"


def multinomial_shape(c: InferenceContext) -> None:
    """Logits [batch, classes] -> [batch, samples], as many as input 1 holds."""
    logits = c.with_rank(c.input(0), 2)
    check_scalars(c, 1)
    c.set_output(0, c.matrix(c.dim(logits, 0), c.make_dim_for_scalar_input(1)))


def seeded_multinomial_shape(c: InferenceContext) -> None:
    """The same, with a seed."""
    check_seed_shape(c, 2)
    multinomial_shape(c)


_AT_ONCE = 1 << 16
"""So many classes are drawn at once."""

register_op(
    "Multinomial(logits: T, num_samples: int32) -> output: output_dtype",
    attrs=[*SEEDS, *_TYPES, _OUTPUT_TYPE],
    shape_fn=multinomial_shape,
    is_stateful=True,
    traits="any_order clustering=stateful_random",
    doc="`num_samples` classes for each row of logits, each as likely as its exponential.",
)
register_op(
    "StatelessMultinomial(logits: T, num_samples: int32, seed: Tseed) -> output: output_dtype",
    attrs=[*_TYPES, SEED_TYPE, _OUTPUT_TYPE],
    shape_fn=seeded_multinomial_shape,
    doc="As Multinomial; the seed determines the classes.",
    traits="function_gradient=none",
)


def samples_of(logits: Any, num_samples: Any, dtype: DataType) -> int:
    """How many classes to draw for each row.

    Raises:
        InvalidArgumentError: the inputs have wrong shapes, or the number is negative.
        ResourceExhaustedError: the result is larger than the allocation limit.
    """
    require_rank(logits, 2, "logits should be a matrix, got shape {}")
    require_scalar(num_samples, "num_samples should be a scalar, got shape {}")
    count = int(num_samples)
    if count < 0:
        raise InvalidArgumentError(f"num_samples should be non-negative, got {count}")
    require(logits.shape[1], "num_classes should be positive, got 0")
    check_allocation((len(logits), count), dtype)
    return count


Find = Callable[[Array, Array, int, int, Array], object]
"""A function as `find_classes`."""


def find_classes(sums: Array, numbers: Array, begin: int, count: int, classes: Array) -> None:
    """Find the classes of some rows: how many sums are not above a number's share of the last sum.

    One class a row is found by comparing with all sums: a search takes longer to begin.

    Args:
        sums: float64 [rows, classes]: the sums of probabilities up to each class.
        numbers: float64: numbers between 0 and 1.
        begin: Where the first row's numbers begin; before 0 if only its last ones are there.
        count: How many numbers a row has; the last one may have fewer.
        classes: One for each of `numbers`; those of the rows are filled in.
    """
    if count == 1:
        own = slice(begin, begin + len(sums))
        limits = (numbers[own] * sums[:, -1])[:, np.newaxis]
        classes[own] = np.count_nonzero(sums <= limits, axis=1)
        return
    for of_row in in_time(sums):
        own = slice(max(begin, 0), begin + count)
        classes[own] = np.searchsorted(of_row, numbers[own] * of_row[-1], side="right")
        begin += count


def _classes(find: Find, random: Philox, logits: Any, count: int, dtype: DataType) -> Any:
    """The classes: those at which the sum of probabilities passes a uniform number."""
    output = allocate((len(logits), count), dtype)
    if not output.size:
        return output
    flat = output.reshape(-1)
    rows_at_once = max(_AT_ONCE // logits.shape[1], 1)
    first, sums = 0, np.empty((0, 0))
    for start in in_time(range(0, flat.size, _AT_ONCE), SLOW):
        piece = flat[start : start + _AT_ONCE]
        numbers = uniform(random.skip(start // 2), piece.shape, DataType.DT_DOUBLE)
        row, last = start // count, (start + piece.size - 1) // count
        while row <= last:
            if not first <= row < first + len(sums):
                first, sums = row, _sums(logits[row : row + rows_at_once])
            end = min(last + 1, first + len(sums))
            find(sums[row - first : end - first], numbers, row * count - start, count, piece)
            row = end
    return output


def _sums(logits: Any) -> Array:
    """The sums of the probabilities of rows, up to each of their classes; what is not finite has none."""
    finite = np.isfinite(logits)
    weights = logits.astype(np.float64)
    if not finite.all():
        weights[~finite] = -np.inf
    largest = weights.max(axis=1, keepdims=True)
    weights -= np.where(largest == -np.inf, 0, largest)
    np.exp(weights, out=weights)
    return np.cumsum(weights, axis=1, out=weights)


def register_multinomial(find: Find, registry: KernelRegistry | None = None) -> None:
    """Register the kernels of both ops with a function that finds classes."""
    types = {"T": FLOATS, "output_dtype": INDEX}

    class Multinomial(StreamKernel):
        """Classes by the kernel's own stream."""

        def compute(self, ctx: OpKernelContext) -> None:
            """Draw them."""
            logits, count = ctx.input(0), samples_of(ctx.input(0), ctx.input(1), self.dtype)
            blocks = len(logits) * (-(-count // 4) * 4 * 2)
            random = self.generator.reserve_outputs(blocks if count else 0)
            ctx.set_output(0, _classes(find, random, logits, count, self.dtype))

    def stateless_multinomial(
        logits: Any, num_samples: Any, seed: Any, *, output_dtype: DataType
    ) -> Any:
        check_seed(seed)
        count = samples_of(logits, num_samples, output_dtype)
        return _classes(find, of_seed(seed), logits, count, output_dtype)

    register_kernel("Multinomial", types=types, registry=registry)(Multinomial)
    register_kernel("StatelessMultinomial", types=types, registry=registry)(stateless_multinomial)


register_multinomial(find_classes)
