"""Numbers of Poisson and of binomial distributions: RandomPoisson and its kin, StatelessRandomBinomial and its kin.

Source: TensorFlow core/ops/random_ops.cc, stateless_random_ops.cc, stateful_random_ops.cc,
core/kernels/random_poisson_op.cc, random_binomial_op.cc; Hörmann, The transformed rejection method for generating
Poisson random variables (1993), The generation of binomial random variates (1993).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.kernel import (
    KernelRegistry,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    allocate,
    check_allocation,
)
from opkernel.opdef import register_op
from opkernel.ops.input_checks import broadcast_shape, require_scalar, require_vector
from opkernel.ops.math.gamma_functions import lgamma_of_positive
from opkernel.ops.random.distributions import (
    Buffer,
    Streams,
    sampled,
    samples_per_parameter,
    starts_of,
    uniforms_of_words,
)
from opkernel.ops.random.generators import advanced_generator
from opkernel.ops.random.inputs import (
    check_seed,
    of_seed,
    per_parameter_shape,
    seeded_shape,
    set_shape_held_by,
    shape_of,
)
from opkernel.ops.random.philox import Philox, StreamKernel
from opkernel.ops.random.uniform_and_normal import SEED_TYPE, SEEDS, seeded
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType

_FLOATS = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)
_TYPES = (*_FLOATS, DataType.DT_INT32, DataType.DT_INT64)

SMALL_RATE = 10
"""Numbers of smaller rates are counted event by event."""

register_op(
    "RandomPoisson(shape: S, rate: dtype) -> output: dtype",
    attrs=[*SEEDS, "S: {int32, int64}", "dtype: {half, float, double}"],
    shape_fn=per_parameter_shape,
    is_stateful=True,
    traits="any_order",
    deprecated=(25, "Replaced by RandomPoissonV2"),
    doc="As RandomPoissonV2, in the type of the rates.",
)
register_op(
    "RandomPoissonV2(shape: S, rate: R) -> output: dtype",
    attrs=[
        *SEEDS,
        "S: {int32, int64}",
        "R: {half, float, double, int32, int64} = DT_DOUBLE",
        "dtype: {half, float, double, int32, int64} = DT_INT64",
    ],
    shape_fn=per_parameter_shape,
    is_stateful=True,
    traits="any_order",
    doc="For each rate numbers of its Poisson distribution, in a tensor of the given shape.",
)
register_op(
    "StatelessRandomPoisson(shape: T, seed: Tseed, lam: Rtype) -> output: dtype",
    attrs=[
        "Rtype: {half, float, double, int32, int64}",
        "dtype: {half, float, double, int32, int64}",
        "T: {int32, int64}",
        SEED_TYPE,
    ],
    shape_fn=seeded_shape,
    doc="Numbers of Poisson distributions; the shape ends with that of the rates, `lam`.",
)


DrawPoissons = Callable[[Array, Array, Array], Array]
"""A function as `draw_poissons`."""


def register_poissons(draw: DrawPoissons, registry: KernelRegistry | None = None) -> None:
    """Register the kernels of RandomPoisson and its kin with a function that draws the numbers."""

    class RandomPoisson(StreamKernel):
        """Numbers of the kernel's own stream."""

        def compute(self, ctx: OpKernelContext) -> None:
            """Draw them."""
            rate = ctx.input(1)
            output = allocate(shape_of(ctx.input(0), self.dtype, rate.shape), self.dtype)
            if output.size:
                random = self.generator.reserve_outputs(output.size)
                output = _poissons(random, output.shape, self.dtype, rate, draw=draw)
            ctx.set_output(0, output)

    register = partial(register_kernel, registry=registry)
    register("RandomPoisson", types={"dtype": _FLOATS})(RandomPoisson)
    register("RandomPoissonV2", types={"R": _TYPES, "dtype": _TYPES})(RandomPoisson)
    register(
        "StatelessRandomPoisson",
        types={"Rtype": _TYPES, "dtype": _TYPES},
        host_memory=["shape", "seed", "lam"],
        factory=True,
    )(seeded(partial(_poissons, draw=draw)))


def _poissons(
    random: Philox, shape: tuple[int, ...], dtype: DataType, rate: Any, *, draw: DrawPoissons
) -> Array:
    """Numbers of Poisson distributions, of a shape that ends with that of the rates.

    Raises:
        InvalidArgumentError: the shape does not.
    """
    count = samples_per_parameter(shape, rate.shape)
    rates = rate.reshape(-1).astype(np.float64)

    def values(random: Philox, parameters: Array, numbers: Array) -> Array:
        return draw(random.place(), rates[parameters], starts_of(numbers))

    return sampled(random, shape, dtype, count, values)


def draw_poissons(place: Array, rates: Array, starts: Array) -> Array:
    """A number for each rate; NaN where there is none.

    Args:
        place: The place in the stream, as `Philox.place` gives it.
        rates: [n].
        starts: How many blocks after the place each number's own stream begins, [n].
    """
    values = partial(uniforms_of_words, dtype=DataType.DT_DOUBLE)
    uniform = Buffer(Streams(Philox.at(place), starts), values, len(rates), 2)
    result = np.full(len(rates), np.nan)
    small = rates < SMALL_RATE
    _count_events(uniform, rates, np.flatnonzero(small), result)
    _reject_rates(uniform, rates, np.flatnonzero(~small & np.isfinite(rates)), result)
    return result


def _count_events(uniform: Buffer, rates: Array, rows: Array, result: Array) -> None:
    """As many events as there are before the time 1 (Knuth): their waits are logarithms."""
    bound = np.exp(-rates)
    product, count = np.ones_like(rates), np.zeros_like(rates)
    while rows.size:
        product[rows] *= uniform.draw(rows)
        going_on = product[rows] > bound[rows]
        ended, rows = rows[~going_on], rows[going_on]
        result[ended] = count[ended]
        count[rows] += 1


def _reject_rates(uniform: Buffer, rates: Array, rows: Array, result: Array) -> None:
    """Transformed uniform numbers, some of which are rejected."""
    b = 0.931 + 2.53 * np.sqrt(rates)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    while rows.size:
        u = uniform.draw(rows) - 0.5
        v = uniform.draw(rows)
        rate, a_, b_ = rates[rows], a[rows], b[rows]
        shifted = 0.5 - np.abs(u)
        k = np.floor((2 * a_ / shifted + b_) * u + rate + 0.43)
        at_once = (shifted >= 0.07) & (v <= 0.9277 - 3.6224 / (b_ - 2))
        never = (k < 0) | ((shifted < 0.013) & (v > shifted))
        doubtful = np.flatnonzero(~at_once & ~never)
        v, rate, a_, b_, shifted = (one[doubtful] for one in (v, rate, a_, b_, shifted))
        s = np.log(v * inverse[rows[doubtful]] / (a_ / (shifted * shifted) + b_))
        t = -rate + k[doubtful] * np.log(rate) - lgamma_of_positive(k[doubtful] + 1)
        accepted = at_once
        accepted[doubtful] = s <= t
        result[rows[accepted]] = k[accepted]
        rows = rows[~accepted]


_ATTRS = [
    "T: {half, float, double, int32, int64} = DT_DOUBLE",
    "dtype: {half, float, double, int32, int64} = DT_INT64",
]
_FEW_SUCCESSES = 10
"""Numbers of a smaller mean are summed from waiting times."""

_BLOCKS_OF_FEW, _BLOCKS_OF_MANY = 42, 256

STIRLING_TAILS = np.array(
    [
        0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
        0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
        0.00925546218271273, 0.00833056343336287,
    ]
)  # fmt: skip
"""How much Stirling's series is off, for 0 to 9."""

register_op(
    "StatelessRandomBinomial(shape: S, seed: Tseed, counts: T, probs: T) -> output: dtype",
    attrs=["S: {int32, int64}", SEED_TYPE, *_ATTRS],
    shape_fn=seeded_shape,
    doc="How many of `counts` trials succeed that each do with probability `probs`.",
)
register_op(
    "StatefulRandomBinomial(resource: resource, algorithm: int64, shape: S, counts: T, probs: T) -> output: dtype",
    attrs=["S: {int32, int64}", *_ATTRS],
    shape_fn=partial(set_shape_held_by, index=2),
    is_stateful=True,
    doc="As StatelessRandomBinomial, from the state of a generator.",
)


DrawSuccesses = Callable[[Array, Array, Array, Array, Array], Array]
"""A function as `draw_successes`."""


def register_binomials(draw: DrawSuccesses, registry: KernelRegistry | None = None) -> None:
    """Register the kernels of StatelessRandomBinomial and its kin with a function that draws the numbers."""

    def stateless(shape: Any, seed: Any, counts: Any, probs: Any, *, dtype: DataType) -> Any:
        check_seed(seed)
        sizes, count = _sizes(shape, counts, probs, dtype)
        if 0 in sizes:
            return allocate(sizes, dtype)
        return _binomials(of_seed(seed), sizes, dtype, count, (counts, probs), draw)

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
                output = _binomials(random, sizes, self.dtype, count, (counts, probs), draw)
            ctx.set_output(0, output)

    parameters = ["shape", "counts", "probs"]
    register = partial(register_kernel, types={"T": _FLOATS, "dtype": _TYPES}, registry=registry)
    register("StatelessRandomBinomial", host_memory=["seed", *parameters])(stateless)
    stateful = "StatefulRandomBinomial"
    register(stateful, host_memory=["resource", "algorithm", *parameters])(StatefulRandomBinomial)


def _sizes(shape: Any, counts: Any, probs: Any, dtype: DataType) -> tuple[tuple[int, ...], int]:
    """The shape, and how many numbers of each pair of parameters it has.

    Raises:
        InvalidArgumentError: it is no vector, or does not end with the shape of both parameters.
    """
    misfit = "counts and probs must have compatible batch dimensions: {} vs. {}"
    parameters = broadcast_shape(counts.shape, probs.shape, misfit)
    require_vector(shape, "Input shape should be a vector, got shape: {}")
    sizes = check_allocation(shape.tolist(), dtype)
    return sizes, samples_per_parameter(sizes, parameters)


def _binomials(
    random: Philox,
    shape: tuple[int, ...],
    dtype: DataType,
    count: int,
    parameters: tuple[Any, Any],
    draw: DrawSuccesses,
) -> Array:
    counts, probs = (one.reshape(-1) for one in np.broadcast_arrays(*parameters))

    def values(random: Philox, parameters: Array, numbers: Array) -> Array:
        return _successes(random, counts[parameters], probs[parameters], numbers, draw)

    return sampled(random, shape, dtype, count, values)


def _successes(
    random: Philox, counts: Array, probs: Array, numbers: Array, draw: DrawSuccesses
) -> Array:
    """A number for each pair of parameters; NaN of a probability that is NaN."""
    one = probs.dtype.type(1)
    many = probs > 0.5
    rare = np.where(many, one - probs, probs)  # failures are counted where they are fewer
    few = ~(counts * rare >= _FEW_SUCCESSES)
    starts = numbers * np.where(few, np.uint64(_BLOCKS_OF_FEW), np.uint64(_BLOCKS_OF_MANY))
    none, all_ = (counts <= 0) | (probs <= 0), probs >= 1
    drawn = np.flatnonzero(~none & ~all_ & ~np.isnan(probs))
    count, prob = counts.astype(np.float64), rare.astype(np.float64)
    result = np.full(len(counts), np.nan)
    result[drawn] = draw(random.place(), count[drawn], prob[drawn], few[drawn], starts[drawn])
    result = np.where(many, count - result, result)
    return np.where(none, 0.0, np.where(all_, count, result))


def draw_successes(place: Array, counts: Array, probs: Array, few: Array, starts: Array) -> Array:
    """How many trials succeed.

    Args:
        place: The place in the stream, as `Philox.place` gives it.
        counts: How many trials there are, [n].
        probs: How probable success is, at most half, [n].
        few: Whether so few are expected that they are summed from waiting times, [n].
        starts: How many blocks after the place each number's own stream begins, [n].
    """
    values = partial(uniforms_of_words, dtype=DataType.DT_DOUBLE)
    uniform = Buffer(Streams(Philox.at(place), starts), values, len(counts), 2)
    result = np.full(len(counts), np.nan)
    _add_waits(uniform, counts, probs, np.flatnonzero(few), result)
    _reject_trials(uniform, counts, probs, np.flatnonzero(~few), result)
    return result


def _add_waits(uniform: Buffer, count: Array, prob: Array, rows: Array, result: Array) -> None:
    """As many successes as waits for one fit into the trials."""
    trials, successes = np.zeros_like(count), np.zeros_like(count)
    while rows.size:
        trials[rows] += np.ceil(np.log(uniform.draw(rows)) / np.log1p(-prob[rows]))
        over = ~(trials[rows] <= count[rows])
        ended, rows = rows[over], rows[~over]
        result[ended] = successes[ended]
        successes[rows] += 1


def _reject_trials(
    uniform: Buffer, counts: Array, probs: Array, rows: Array, result: Array
) -> None:
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


def _bound(count: Array, prob: Array, k: Array) -> Any:
    """The logarithm of how likely `k` successes are, beside the likeliest number."""
    m = np.floor((count + 1) * prob)
    odds = prob / (1 - prob)
    return (
        (m + 0.5) * np.log((m + 1) / (odds * (count - m + 1)))
        + (count + 1) * np.log((count - m + 1) / (count - k + 1))
        + (k + 0.5) * np.log(odds * (count - k + 1) / (k + 1))
        + _stirling_tail(m)
        + _stirling_tail(count - m)
        - _stirling_tail(k)
        - _stirling_tail(count - k)
    )


def _stirling_tail(k: Array) -> Array:
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    known = k < len(STIRLING_TAILS)
    table = STIRLING_TAILS.take(np.where(known, k, 0).astype(np.intp), mode="clip")
    return np.where(known, table, series)


register_poissons(draw_poissons)
register_binomials(draw_successes)
