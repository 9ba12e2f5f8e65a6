"""Numbers of Poisson distributions: RandomPoisson, RandomPoissonV2, StatelessRandomPoisson.

Source: TensorFlow core/ops/random_ops.cc, stateless_random_ops.cc, core/kernels/random_poisson_op.cc;
Hörmann, The transformed rejection method for generating Poisson random variables (1993).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelContext, allocate
from opkernel.opdef import register_op
from opkernel.ops.math.special.gamma_functions import lgamma
from opkernel.ops.philox import Philox
from opkernel.ops.random.distributions import uniforms_of_words
from opkernel.ops.random.filling import StreamKernel
from opkernel.ops.random.inputs import check_seed, of_seed, shape_of
from opkernel.ops.random.rejection import (
    Buffer,
    Streams,
    sampled,
    samples_per_parameter,
    starts_of,
)
from opkernel.ops.random.shapes import per_parameter_shape, seeded_shape
from opkernel.ops.random.stateful import SEEDS
from opkernel.ops.random.stateless import SEED_TYPE
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

Array = np.ndarray[Any, Any]

FLOATS = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)
TYPES = (*FLOATS, DataType.DT_INT32, DataType.DT_INT64)

_SMALL_RATE = 10
"""Numbers of smaller rates are counted event by event."""

register_op(
    "RandomPoisson",
    inputs=["shape: S", "rate: dtype"],
    outputs=["output: dtype"],
    attrs=[*SEEDS, "S: {int32, int64}", "dtype: {half, float, double}"],
    shape_fn=per_parameter_shape,
    is_stateful=True,
    traits="any_order",
    deprecated=(25, "Replaced by RandomPoissonV2"),
    doc="As RandomPoissonV2, in the type of the rates.",
)
register_op(
    "RandomPoissonV2",
    inputs=["shape: S", "rate: R"],
    outputs=["output: dtype"],
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
    "StatelessRandomPoisson",
    inputs=["shape: T", "seed: Tseed", "lam: Rtype"],
    outputs=["output: dtype"],
    attrs=[
        "Rtype: {half, float, double, int32, int64}",
        "dtype: {half, float, double, int32, int64}",
        "T: {int32, int64}",
        SEED_TYPE,
    ],
    shape_fn=seeded_shape,
    doc="Numbers of Poisson distributions; the shape ends with that of the rates, `lam`.",
)


@register_kernel("RandomPoisson", types={"dtype": FLOATS})
@register_kernel("RandomPoissonV2", types={"R": TYPES, "dtype": TYPES})
class RandomPoisson(StreamKernel):
    """Numbers of the kernel's own stream."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw them."""
        rate = ctx.input(1)
        output = allocate(shape_of(ctx.input(0), self.dtype, rate.shape), self.dtype)
        if output.size:
            random = self.generator.reserve_outputs(output.size)
            output = poissons(random, output.shape, rate, self.dtype)
        elif 0 not in ctx.input(0):
            raise InvalidArgumentError("Input rate should have non-zero element count, got: 0")
        ctx.set_output(0, output)


@register_kernel(
    "StatelessRandomPoisson",
    types={"Rtype": TYPES, "dtype": TYPES},
    host_memory=["shape", "seed", "lam"],
    factory=True,
)
def stateless_random_poisson(*, dtype: DataType) -> Callable[[Any, Any, Any], Any]:
    def drawn(shape: Any, seed: Any, lam: Any) -> Any:
        sizes = shape_of(shape, dtype)
        check_seed(seed)
        return allocate(sizes, dtype) if 0 in sizes else poissons(of_seed(seed), sizes, lam, dtype)

    return drawn


def poissons(random: Philox, shape: tuple[int, ...], rate: Any, dtype: DataType) -> Array:
    """Numbers of Poisson distributions, of a shape that ends with that of the rates.

    Raises:
        InvalidArgumentError: the shape does not.
    """
    count = samples_per_parameter(shape, rate.shape)
    rates = rate.reshape(-1).astype(np.float64)

    def draw(random: Philox, parameters: Array, numbers: Array) -> Array:
        return _poissons(random, rates[parameters], starts_of(numbers))

    return sampled(random, shape, dtype, count, draw)


def _poissons(random: Philox, rates: Array, starts: Array) -> Array:
    """A number for each rate; NaN where there is none."""
    streams = Streams(random, starts)
    values = partial(uniforms_of_words, dtype=DataType.DT_DOUBLE)
    uniform = Buffer(streams, values, len(rates), 2)
    result = np.full(len(rates), np.nan)
    small = rates < _SMALL_RATE
    _count_events(uniform, rates, np.flatnonzero(small), result)
    _reject(uniform, rates, np.flatnonzero(~small & np.isfinite(rates)), result)
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


def _reject(uniform: Buffer, rates: Array, rows: Array, result: Array) -> None:
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
        s = np.log(v * inverse[rows] / (a_ / (shifted * shifted) + b_))
        t = -rate + k * np.log(rate) - lgamma(k + 1)
        accepted = at_once | (~never & (s <= t))
        result[rows[accepted]] = k[accepted]
        rows = rows[~accepted]
