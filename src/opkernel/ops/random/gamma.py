"""Numbers of gamma distributions: RandomGamma, StatelessRandomGammaV2 and V3; RandomGammaGrad.

Source: TensorFlow core/ops/random_ops.cc, stateless_random_ops.cc, stateless_random_ops_v2.cc,
core/kernels/random_op.cc, stateless_random_gamma_op.cc, random_ops.cc; Marsaglia and Tsang, A simple
method for generating gamma variables (2000).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelContext, allocate
from opkernel.opdef import common_shapes, register_op
from opkernel.ops.kernel_types import FLOATS
from opkernel.ops.math.elementwise import flush_subnormals
from opkernel.ops.math.special.gamma_functions import gamma_sample_slope
from opkernel.ops.philox import Philox
from opkernel.ops.random.distributions import normals_of_words, uniforms_of_words
from opkernel.ops.random.filling import StreamKernel
from opkernel.ops.random.inputs import check_seed, key_and_counter, of_seed, philox_of, shape_of
from opkernel.ops.random.rejection import (
    Buffer,
    Streams,
    sampled,
    samples_per_parameter,
    starts_of,
)
from opkernel.ops.random.shapes import keyed_shape, per_parameter_shape, seeded_shape
from opkernel.ops.random.stateful import SEEDS
from opkernel.ops.random.stateless import KEY, SEED_TYPE
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

Array = np.ndarray[Any, Any]

_DOUBLE = DataType.DT_DOUBLE
_SQUEEZE = 0.0331
"""Below this bound most numbers are accepted without a logarithm."""

register_op(
    "RandomGamma",
    inputs=["shape: S", "alpha: T"],
    outputs=["output: T"],
    attrs=[*SEEDS, "S: {int32, int64}", "T: {half, float, double}"],
    shape_fn=per_parameter_shape,
    is_stateful=True,
    traits="any_order",
    doc="For each `alpha` numbers of its gamma distribution, in a tensor of the given shape.",
)
register_op(
    "StatelessRandomGammaV2",
    inputs=["shape: T", "seed: Tseed", "alpha: dtype"],
    outputs=["output: dtype"],
    attrs=["dtype: {half, float, double}", "T: {int32, int64}", SEED_TYPE],
    shape_fn=seeded_shape,
    doc="Numbers of gamma distributions; the shape ends with that of `alpha`.",
)
register_op(
    "StatelessRandomGammaV3",
    inputs=["shape: shape_dtype", *KEY, "alpha: dtype"],
    outputs=["output: dtype"],
    attrs=["dtype: {half, float, double}", "shape_dtype: {int32, int64} = DT_INT32"],
    shape_fn=keyed_shape,
    doc="Numbers of gamma distributions, which a key and a counter determine.",
)
register_op(
    "RandomGammaGrad",
    inputs=["alpha: T", "sample: T"],
    outputs=["output: T"],
    attrs=["T: {float, double}"],
    shape_fn=common_shapes.broadcast_binary_op_shape,
    traits="any_order cost=series",
    doc="The derivative of a number of a gamma distribution by `alpha`.",
)


@register_kernel("RandomGamma", types={"T": FLOATS})
class RandomGamma(StreamKernel):
    """Numbers of the kernel's own stream."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw them."""
        alpha = ctx.input(1)
        output = allocate(shape_of(ctx.input(0), self.dtype, alpha.shape), self.dtype)
        if output.size:
            random = self.generator.reserve_outputs(output.size)
            output = gammas(random, output.shape, alpha, self.dtype)
        ctx.set_output(0, output)


@register_kernel(
    "StatelessRandomGammaV2", types={"dtype": FLOATS}, host_memory=["shape", "seed"], factory=True
)
def stateless_random_gamma_v2(*, dtype: DataType) -> Callable[[Any, Any, Any], Any]:
    def drawn(shape: Any, seed: Any, alpha: Any) -> Any:
        sizes = shape_of(shape, dtype)
        check_seed(seed)
        return allocate(sizes, dtype) if 0 in sizes else gammas(of_seed(seed), sizes, alpha, dtype)

    return drawn


@register_kernel(
    "StatelessRandomGammaV3", types={"dtype": FLOATS}, host_memory=["shape", "alg"], factory=True
)
def stateless_random_gamma_v3(*, dtype: DataType) -> Callable[[Any, Any, Any, Any, Any], Any]:
    def drawn(shape: Any, key: Any, counter: Any, alg: Any, alpha: Any) -> Any:
        algorithm = key_and_counter(key, counter, alg)
        sizes = shape_of(shape, dtype)
        if 0 in sizes:
            return allocate(sizes, dtype)
        return gammas(philox_of(key, counter, algorithm), sizes, alpha, dtype)

    return drawn


def gammas(random: Philox, shape: tuple[int, ...], alpha: Any, dtype: DataType) -> Array:
    """Numbers of gamma distributions, of a shape that ends with that of `alpha`.

    Raises:
        InvalidArgumentError: the shape does not, or there is no `alpha`.
    """
    count = samples_per_parameter(shape, alpha.shape)
    if not alpha.size:
        raise InvalidArgumentError("Input alpha should have non-zero element count, got: 0")
    alphas = alpha.reshape(-1).astype(np.float64)

    def draw(random: Philox, parameters: Array, numbers: Array) -> Array:
        return _gammas(random, alphas[parameters], starts_of(numbers))

    return flush_subnormals(sampled(random, shape, dtype, count, draw), np)  # type: ignore[no-any-return]


def _gammas(random: Philox, alpha: Array, starts: Array) -> Array:
    """A number for each alpha: cubes of normal numbers, some of which are rejected.

    NaN where TensorFlow would reject for ever.
    """
    streams = Streams(random, starts)
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


def _accepted(u: Array, x: Array, v: Array, d: Array) -> Array:
    square = x * x
    bound = 0.5 * x * x + d * (1 - v + np.log(v))
    accepted: Array = (u < 1 - _SQUEEZE * square * square) | (np.log(u) < bound)
    return accepted


@register_kernel("RandomGammaGrad", types={"T": (DataType.DT_FLOAT, _DOUBLE)})
def random_gamma_grad(alpha: Any, sample: Any) -> Any:
    arguments = (flush_subnormals(one, np).astype(np.float64) for one in (alpha, sample))
    return gamma_sample_slope(*arguments).astype(alpha.dtype)


# Gradients

_NOT_DERIVATIVE = "it takes the quantile of a number as given; rejected numbers make it jump"


@g.register_gradient("RandomGamma", not_derivative=_NOT_DERIVATIVE)
def random_gamma_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    shape, alpha = op.inputs
    return None, _by_alpha(g.nodes.Size(shape), alpha, op.outputs[0], grad)


@g.register_gradient("StatelessRandomGammaV2", not_derivative=_NOT_DERIVATIVE)
def stateless_random_gamma_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    shape, _, alpha = op.inputs
    return None, None, _of_samples(shape, alpha, op.outputs[0], grad)


@g.register_gradient("StatelessRandomGammaV3", not_derivative=_NOT_DERIVATIVE)
def stateless_random_gamma_v3_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    shape, *_, alpha = op.inputs
    return None, None, None, None, _of_samples(shape, alpha, op.outputs[0], grad)


def _of_samples(shape: g.Tensor, alpha: g.Tensor, sample: g.Tensor, grad: g.Tensor) -> g.Tensor:
    return _by_alpha(g.nodes.Sub(g.nodes.Size(shape), g.nodes.Rank(alpha)), alpha, sample, grad)


def _by_alpha(extra: g.Tensor, alpha: g.Tensor, sample: g.Tensor, grad: g.Tensor) -> g.Tensor:
    """The gradient of numbers that have `extra` dimensions before those of `alpha`."""
    slope = g.nodes.RandomGammaGrad(alpha, sample)
    total: g.Tensor = g.nodes.Sum(g.nodes.Mul(grad, slope), g.nodes.Range(0, extra, 1))
    return total
