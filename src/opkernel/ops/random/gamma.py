"""Numbers of gamma distributions: RandomGamma, StatelessRandomGammaV2 and V3; RandomGammaGrad.

Source: TensorFlow core/ops/random_ops.cc, stateless_random_ops.cc, stateless_random_ops_v2.cc,
core/kernels/random_op.cc, stateless_random_gamma_op.cc, random_ops.cc; Marsaglia and Tsang, A simple
method for generating gamma variables (2000).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.kernel import KernelRegistry, OpKernelContext, allocate
from opkernel.opdef import common_shapes, register_op
from opkernel.ops.input_checks import require
from opkernel.ops.math.elementwise import flush_subnormals, register_body
from opkernel.ops.math.incomplete_gamma import SUMS, Sums, Terms, gamma_sample_slope
from opkernel.ops.random.distributions import (
    Buffer,
    Streams,
    normals_of_words,
    sampled,
    samples_per_parameter,
    starts_of,
    uniforms_of_words,
)
from opkernel.ops.random.inputs import keyed_shape, per_parameter_shape, seeded_shape, shape_of
from opkernel.ops.random.philox import Philox, StreamKernel
from opkernel.ops.random.uniform_and_normal import KEY, SEED_TYPE, SEEDS, register_draws
from opkernel.ops.registration import FLOATS, register_kernel
from opkernel.types import Array, DataType

_DOUBLE = DataType.DT_DOUBLE
SQUEEZE = 0.0331
"""Below this bound most numbers are accepted without a logarithm."""

_TERMS_OF_SLOPE = {DataType.DT_FLOAT: Terms(2000, 1e-10), _DOUBLE: Terms(2000, 2.0**-52)}
"""When the series of RandomGammaGrad end."""

register_op(
    "RandomGamma(shape: S, alpha: T) -> output: T",
    attrs=[*SEEDS, "S: {int32, int64}", "T: {half, float, double}"],
    shape_fn=per_parameter_shape,
    is_stateful=True,
    traits="any_order",
    doc="For each `alpha` numbers of its gamma distribution, in a tensor of the given shape.",
)
register_op(
    "StatelessRandomGammaV2(shape: T, seed: Tseed, alpha: dtype) -> output: dtype",
    attrs=["dtype: {half, float, double}", "T: {int32, int64}", SEED_TYPE],
    shape_fn=seeded_shape,
    doc="Numbers of gamma distributions; the shape ends with that of `alpha`.",
)
register_op(
    f"StatelessRandomGammaV3(shape: shape_dtype, {KEY}, alpha: dtype) -> output: dtype",
    attrs=["dtype: {half, float, double}", "shape_dtype: {int32, int64} = DT_INT32"],
    shape_fn=keyed_shape,
    doc="Numbers of gamma distributions, which a key and a counter determine.",
)
register_op(
    "RandomGammaGrad(alpha: T, sample: T) -> output: T",
    attrs=["T: {float, double}"],
    shape_fn=common_shapes.broadcast_binary_op_shape,
    traits="any_order cost=series",
    doc="The derivative of a number of a gamma distribution by `alpha`.",
)


DrawGammas = Callable[[Array, Array, Array], Array]
"""A function as `draw_gammas`."""


def register_gammas(
    draw: DrawGammas, types: Sequence[DataType] = FLOATS, registry: KernelRegistry | None = None
) -> None:
    """Register the kernels of RandomGamma, StatelessRandomGammaV2 and V3 with a function that draws the numbers."""

    class RandomGamma(StreamKernel):
        """Numbers of the kernel's own stream."""

        def compute(self, ctx: OpKernelContext) -> None:
            """Draw them."""
            alpha = ctx.input(1)
            output = allocate(shape_of(ctx.input(0), self.dtype, alpha.shape), self.dtype)
            if output.size:
                random = self.generator.reserve_outputs(output.size)
                output = _gammas(random, output.shape, self.dtype, alpha, draw=draw)
            ctx.set_output(0, output)

    register_kernel("RandomGamma", types={"T": types}, registry=registry)(RandomGamma)
    stateless = ("StatelessRandomGammaV2", "StatelessRandomGammaV3")
    register_draws(stateless, partial(_gammas, draw=draw), types, registry=registry)


def _gammas(
    random: Philox, shape: tuple[int, ...], dtype: DataType, alpha: Any, *, draw: DrawGammas
) -> Array:
    """Numbers of gamma distributions, of a shape that ends with that of `alpha`.

    Raises:
        InvalidArgumentError: the shape does not, or there is no `alpha`.
    """
    count = samples_per_parameter(shape, alpha.shape)
    require(alpha.size, "Input alpha should have non-zero element count, got: 0")
    alphas = alpha.reshape(-1).astype(np.float64)

    def values(random: Philox, parameters: Array, numbers: Array) -> Array:
        return draw(random.place(), alphas[parameters], starts_of(numbers))

    return flush_subnormals(sampled(random, shape, dtype, count, values), np)  # type: ignore[no-any-return]


def draw_gammas(place: Array, alpha: Array, starts: Array) -> Array:
    """A number for each alpha: cubes of normal numbers, some of which are rejected.

    NaN where TensorFlow would reject for ever.

    Args:
        place: The place in the stream, as `Philox.place` gives it.
        alpha: [n].
        starts: How many blocks after the place each number's own stream begins, [n].
    """
    streams = Streams(Philox.at(place), starts)
    uniform = Buffer(streams, partial(uniforms_of_words, dtype=_DOUBLE), len(alpha), 2)
    result = np.full(len(alpha), np.nan)
    ones = np.flatnonzero(alpha == 1)
    result[ones] = -np.log1p(-uniform.draw(ones))
    normal = Buffer(streams, partial(normals_of_words, dtype=_DOUBLE), len(alpha), 2)
    d = alpha + np.where(alpha < 1, 2 / 3, -1 / 3)
    others = np.flatnonzero((alpha != 1) & (d > 0))
    c = 1 / 3 / np.sqrt(d)
    while others.size:
        x = normal.draw(others)
        v = 1 + c[others] * x
        possible = ~(v <= 0)
        rows, x, v = others[possible], x[possible], v[possible]
        v = v * v * v
        accepted = _accepted(uniform.draw(rows), x, v, d[rows])
        result[rows[accepted]] = d[rows[accepted]] * v[accepted]
        done = np.zeros(len(alpha), bool)
        done[rows[accepted]] = True
        others = others[~done[others]]
    small = np.flatnonzero(alpha < 1)
    result[small] *= uniform.draw(small) ** (1 / alpha[small])
    return result


def _accepted(u: Array, x: Array, v: Array, d: Array) -> Any:
    square = x * x
    bound = 0.5 * x * x + d * (1 - v + np.log(v))
    return (u < 1 - SQUEEZE * square * square) | (np.log(u) < bound)


register_gammas(draw_gammas)


def register_gamma_grad(sums: Sums, registry: KernelRegistry | None = None) -> None:
    """Register the kernels of RandomGammaGrad with functions that sum series."""

    def gamma_grad(alpha: Any, sample: Any, *, xp: Any, terms: Terms) -> Any:
        a, x = (flush_subnormals(one, xp).astype(np.float64) for one in (alpha, sample))
        return gamma_sample_slope(a, x, sums, terms).astype(alpha.dtype)

    for dtype, terms in _TERMS_OF_SLOPE.items():
        body = partial(gamma_grad, terms=terms)
        register_body("RandomGammaGrad", body, (dtype,), registry=registry)


register_gamma_grad(SUMS)


# Gradients

_NOT_DERIVATIVE = "it takes the quantile of a number as given; rejected numbers make it jump"


@g.register_gradient("RandomGamma", not_derivative=_NOT_DERIVATIVE)
def random_gamma_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    shape, alpha = op.inputs
    return None, _by_alpha(g.nodes.Size(shape), alpha, op.outputs[0], grad)


@g.register_gradient(
    "StatelessRandomGammaV2", "StatelessRandomGammaV3", not_derivative=_NOT_DERIVATIVE
)
def stateless_random_gamma_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    shape, *others, alpha = op.inputs
    extra = g.nodes.Sub(g.nodes.Size(shape), g.nodes.Rank(alpha))
    return [None, *[None for _ in others], _by_alpha(extra, alpha, op.outputs[0], grad)]


def _by_alpha(extra: g.Tensor, alpha: g.Tensor, sample: g.Tensor, grad: g.Tensor) -> Any:
    """The gradient of numbers that have `extra` dimensions before those of `alpha`."""
    slope = g.nodes.RandomGammaGrad(alpha, sample)
    return g.nodes.Sum(g.nodes.Mul(grad, slope), g.nodes.Range(0, extra, 1))
