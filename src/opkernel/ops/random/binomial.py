"""Numbers of binomial distributions: StatelessRandomBinomial, StatefulRandomBinomial.

Source: TensorFlow core/ops/stateless_random_ops.cc, stateful_random_ops.cc,
core/kernels/random_binomial_op.cc; Hörmann, The generation of binomial random variates (1993).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    allocate,
    check_allocation,
)
from opkernel.opdef import register_op
from opkernel.ops.input_checks import require_scalar, require_vector
from opkernel.ops.philox import Philox
from opkernel.ops.random.distributions import uniforms_of_words
from opkernel.ops.random.generator_state import advanced_generator
from opkernel.ops.random.inputs import check_seed, of_seed
from opkernel.ops.random.poisson import FLOATS, TYPES
from opkernel.ops.random.rejection import Buffer, Streams, sampled, samples_per_parameter
from opkernel.ops.random.shapes import seeded_shape, set_shape_held_by
from opkernel.ops.random.stateless import SEED_TYPE
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, TensorShape

Array = np.ndarray[Any, Any]

_ATTRS = [
    "T: {half, float, double, int32, int64} = DT_DOUBLE",
    "dtype: {half, float, double, int32, int64} = DT_INT64",
]
_FEW_SUCCESSES = 10
"""Numbers of a smaller mean are summed from waiting times."""

_BLOCKS_OF_FEW, _BLOCKS_OF_MANY = 42, 256

_STIRLING_TAILS = np.array(
    [
        0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
        0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
        0.00925546218271273, 0.00833056343336287,
    ]
)  # fmt: skip
"""How much Stirling's series is off, for 0 to 9."""

register_op(
    "StatelessRandomBinomial",
    inputs=["shape: S", "seed: Tseed", "counts: T", "probs: T"],
    outputs=["output: dtype"],
    attrs=["S: {int32, int64}", SEED_TYPE, *_ATTRS],
    shape_fn=seeded_shape,
    doc="How many of `counts` trials succeed that each do with probability `probs`.",
)
register_op(
    "StatefulRandomBinomial",
    inputs=["resource: resource", "algorithm: int64", "shape: S", "counts: T", "probs: T"],
    outputs=["output: dtype"],
    attrs=["S: {int32, int64}", *_ATTRS],
    shape_fn=partial(set_shape_held_by, index=2),
    is_stateful=True,
    doc="As StatelessRandomBinomial, from the state of a generator.",
)


@register_kernel(
    "StatelessRandomBinomial",
    types={"T": FLOATS, "dtype": TYPES},
    host_memory=["shape", "seed", "counts", "probs"],
    factory=True,
)
def stateless_random_binomial(*, dtype: DataType) -> Callable[[Any, Any, Any, Any], Any]:
    def drawn(shape: Any, seed: Any, counts: Any, probs: Any) -> Any:
        check_seed(seed)
        sizes, count = _sizes(shape, counts, probs, dtype)
        if 0 in sizes:
            return allocate(sizes, dtype)
        return _binomials(of_seed(seed), sizes, dtype, count, counts, probs)

    return drawn


@register_kernel(
    "StatefulRandomBinomial",
    types={"T": FLOATS, "dtype": TYPES},
    host_memory=["resource", "algorithm", "shape", "counts", "probs"],
)
class StatefulRandomBinomial(OpKernel):
    """Numbers of a generator."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw them."""
        counts, probs = ctx.input(3), ctx.input(4)
        sizes, count = _sizes(ctx.input(2), counts, probs, self.dtype)
        algorithm = ctx.input(1)
        require_scalar(algorithm, "algorithm must be of shape [], not {}")
        parameters = math.prod(sizes) // count if count else 0
        random = advanced_generator(ctx, int(algorithm), parameters * 200 * (count + 3) // 4)
        if 0 in sizes:
            output = allocate(sizes, self.dtype)
        else:
            output = _binomials(random, sizes, self.dtype, count, counts, probs)
        ctx.set_output(0, output)


def _sizes(shape: Any, counts: Any, probs: Any, dtype: DataType) -> tuple[tuple[int, ...], int]:
    """The shape, and how many numbers of each pair of parameters it has.

    Raises:
        InvalidArgumentError: it is no vector, or does not end with the shape of both parameters.
    """
    try:
        parameters = np.broadcast_shapes(counts.shape, probs.shape)
    except ValueError:
        raise InvalidArgumentError(
            "counts and probs must have compatible batch dimensions: "
            f"{TensorShape(counts.shape)} vs. {TensorShape(probs.shape)}"
        ) from None
    require_vector(shape, "Input shape should be a vector, got shape: {}")
    sizes = check_allocation(shape.tolist(), dtype)
    return sizes, samples_per_parameter(sizes, parameters)


def _binomials(
    random: Philox, shape: tuple[int, ...], dtype: DataType, count: int, counts: Any, probs: Any
) -> Array:
    counts, probs = (one.reshape(-1) for one in np.broadcast_arrays(counts, probs))

    def draw(random: Philox, parameters: Array, numbers: Array) -> Array:
        return _successes(random, counts[parameters], probs[parameters], numbers)

    return sampled(random, shape, dtype, count, draw)


def _successes(random: Philox, counts: Array, probs: Array, numbers: Array) -> Array:
    """A number for each pair of parameters; NaN of a probability that is NaN."""
    one = probs.dtype.type(1)
    many = probs > 0.5
    rare = np.where(many, one - probs, probs)  # failures are counted where they are fewer
    few = ~(counts * rare >= _FEW_SUCCESSES)
    starts = numbers * np.where(few, np.uint64(_BLOCKS_OF_FEW), np.uint64(_BLOCKS_OF_MANY))
    values = partial(uniforms_of_words, dtype=DataType.DT_DOUBLE)
    uniform = Buffer(Streams(random, starts), values, len(counts), 2)
    result = np.full(len(counts), np.nan)
    none, all_ = (counts <= 0) | (probs <= 0), probs >= 1
    drawn = ~none & ~all_ & ~np.isnan(probs)
    count, prob = counts.astype(np.float64), rare.astype(np.float64)
    _add_waits(uniform, count, prob, np.flatnonzero(drawn & few), result)
    _reject(uniform, count, prob, np.flatnonzero(drawn & ~few), result)
    result = np.where(many, count - result, result)
    return np.where(none, 0.0, np.where(all_, count, result))


def _add_waits(uniform: Buffer, count: Array, prob: Array, rows: Array, result: Array) -> None:
    """As many successes as waits for one fit into the trials."""
    trials, successes = np.zeros_like(count), np.zeros_like(count)
    while rows.size:
        trials[rows] += np.ceil(np.log(uniform.draw(rows)) / np.log1p(-prob[rows]))
        over = ~(trials[rows] <= count[rows])
        ended, rows = rows[over], rows[~over]
        result[ended] = successes[ended]
        successes[rows] += 1


def _reject(uniform: Buffer, counts: Array, probs: Array, rows: Array, result: Array) -> None:
    """Transformed uniform numbers, some of which are rejected (BTRS)."""
    deviation = np.sqrt(counts * probs * (1 - probs))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * probs
    alpha = (2.83 + 5.1 / b) * deviation
    while rows.size:
        count, prob, a_, b_ = counts[rows], probs[rows], a[rows], b[rows]
        u, v = uniform.draw(rows), uniform.draw(rows)
        u = u - 0.5
        shifted = 0.5 - np.abs(u)
        k = np.floor((2 * a_ / shifted + b_) * u + (count * prob + 0.5))
        at_once = (shifted >= 0.07) & (v <= 0.92 - 4.2 / b_)
        never = (k < 0) | (k > count)
        v = np.log(v * alpha[rows] / (a_ / (shifted * shifted) + b_))
        accepted = at_once | (~never & (v <= _bound(count, prob, k)))
        result[rows[accepted]] = k[accepted]
        rows = rows[~accepted]


def _bound(count: Array, prob: Array, k: Array) -> Array:
    """The logarithm of how likely `k` successes are, beside the likeliest number."""
    m = np.floor((count + 1) * prob)
    odds = prob / (1 - prob)
    bound: Array = (
        (m + 0.5) * np.log((m + 1) / (odds * (count - m + 1)))
        + (count + 1) * np.log((count - m + 1) / (count - k + 1))
        + (k + 0.5) * np.log(odds * (count - k + 1) / (k + 1))
        + _stirling_tail(m)
        + _stirling_tail(count - m)
        - _stirling_tail(k)
        - _stirling_tail(count - k)
    )
    return bound


def _stirling_tail(k: Array) -> Array:
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    known = k < len(_STIRLING_TAILS)
    table = _STIRLING_TAILS.take(np.where(known, k, 0).astype(np.intp), mode="clip")
    return np.where(known, table, series)
