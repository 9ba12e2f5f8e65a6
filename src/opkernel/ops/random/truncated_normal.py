"""Normal numbers between bounds: ParameterizedTruncatedNormal, StatelessParameterizedTruncatedNormal.

The numbers of one set of parameters follow each other in the stream; those of the next set begin at the
block after it.

Source: TensorFlow core/ops/random_ops.cc, stateless_random_ops.cc,
core/kernels/parameterized_truncated_normal_op.cc; Robert, Simulation of truncated normal variables (1995).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.budget import check_time
from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import OpKernelContext, allocate, check_allocation
from opkernel.opdef import InferenceContext, common_shapes, register_op
from opkernel.opdef.common_shapes.rules import check_ranks_at_most
from opkernel.ops.input_checks import require, require_rank_at_most, require_vector
from opkernel.ops.random.distributions import (
    log_of_float,
    normals_of_words,
    samples_per_parameter,
    uniforms_of_words,
)
from opkernel.ops.random.inputs import check_seed, check_seed_shape, of_seed
from opkernel.ops.random.philox import Philox, StreamKernel
from opkernel.ops.random.uniform_and_normal import SEED_TYPE, SEEDS
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType, TensorShape, as_dtype

_FLOATS = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)

_BATCH = 100
"""Numbers of equal parameters that are drawn as if theirs were others."""

_MOST_GROUPS = 1 << 15
"""So many groups of blocks are taken at once."""
_MAX_REJECTED = 1000
_WIDE = 1.3
"""Deviations within the bounds, from which on normal numbers are drawn."""

_NAMES = ("means", "stddevs", "minvals", "maxvals")


def parameterized_truncated_normal_shape(c: InferenceContext) -> None:
    """The shape; scalars or vectors."""
    check_ranks_at_most(c, 1, 1, 2, 3, 4)
    common_shapes.random_shape(c)


def seeded_truncated_normal_shape(c: InferenceContext) -> None:
    """The shape that input 0 holds; the four parameters can be broadcast."""
    check_seed_shape(c, 1)
    shape = common_shapes.broadcast_binary_op_output_shape(c, c.input(2), c.input(3))
    shape = common_shapes.broadcast_binary_op_output_shape(c, c.input(4), shape)
    common_shapes.broadcast_binary_op_output_shape(c, c.input(5), shape)
    common_shapes.random_shape(c)


register_op(
    "ParameterizedTruncatedNormal(shape: T, means: dtype, stdevs: dtype, minvals: dtype, "
    "maxvals: dtype) -> output: dtype",
    attrs=[*SEEDS, "dtype: {half, bfloat16, float, double}", "T: {int32, int64}"],
    shape_fn=parameterized_truncated_normal_shape,
    is_stateful=True,
    traits="any_order clustering=stateful_random",  # TensorFlow has no rule of XLA for it
    doc="Normal numbers between bounds; parameters are scalars, or vectors for the first dimension.",
)
register_op(
    "StatelessParameterizedTruncatedNormal(shape: S, seed: Tseed, means: dtype, stddevs: dtype, "
    "minvals: dtype, maxvals: dtype) -> output: dtype",
    attrs=["S: {int32, int64}", SEED_TYPE, "dtype: {half, float, double}"],
    shape_fn=seeded_truncated_normal_shape,
    doc="Normal numbers between bounds; the shape ends with that of the parameters together.",
    traits="clustering=inaccurate",
)


@register_kernel("ParameterizedTruncatedNormal", types={"dtype": _FLOATS})
class ParameterizedTruncatedNormal(StreamKernel):
    """Numbers of the kernel's own stream."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw them."""
        sizes = _sizes(ctx.input(0), self.dtype)
        require(sizes, "Shape tensor must not be empty")
        output = allocate(sizes, self.dtype)
        parameters = [ctx.input(i) for i in range(1, 5)]
        batches, each = _batches(sizes, parameters)
        blocks = batches * 2 * _MAX_REJECTED * (each + 3) // 4
        reader = _Reader(self.generator.reserve(blocks), self.dtype)
        flat = output.reshape(-1)
        columns = [np.broadcast_to(one.reshape(-1), (batches,)) for one in parameters]
        for batch in in_time(range(batches), SLOW):
            piece = flat[batch * each : (batch + 1) * each]
            piece[:] = _between(reader, piece.size, *(column[batch] for column in columns))
        ctx.set_output(0, output)


def _sizes(shape: Any, dtype: DataType) -> tuple[int, ...]:
    require_vector(shape, "Input shape should be a vector, got shape: {}")
    return check_allocation(shape.tolist(), dtype)


def _batches(sizes: tuple[int, ...], parameters: Sequence[Any]) -> tuple[int, int]:
    """How many sets of parameters there are, and how many numbers each has.

    Raises:
        InvalidArgumentError: a parameter is no scalar, and no vector of that many.
    """
    for name, one in zip(_NAMES, parameters, strict=True):
        require_rank_at_most(one, 1, f"Input {name} should be a scalar or vector, got shape: {{}}")
    means, deviations, *bounds = parameters
    if means.size == deviations.size == 1 and all(bound.ndim == 0 for bound in bounds):
        return -(-math.prod(sizes) // _BATCH), _BATCH
    for name, one in zip(_NAMES, parameters, strict=True):
        if one.size not in (1, sizes[0]):
            raise InvalidArgumentError(
                f"Input {name} should have length 1 or shape[0], got shape: {TensorShape(one.shape)}"
            )
    return sizes[0], math.prod(sizes[1:])


@register_kernel(
    "StatelessParameterizedTruncatedNormal",
    types={"dtype": _FLOATS},
    host_memory=["shape", "seed", *_NAMES],
    factory=True,
)
def stateless_parameterized_truncated_normal(*, dtype: DataType) -> Callable[..., Any]:
    def drawn(shape: Any, seed: Any, *parameters: Any) -> Any:
        check_seed(seed)
        try:
            columns = np.broadcast_arrays(*parameters)
        except ValueError:
            raise InvalidArgumentError(
                f"{', '.join(_NAMES)} must have compatible batch dimensions: "
                f"{' vs. '.join(str(TensorShape(one.shape)) for one in parameters)}"
            ) from None
        sizes = _sizes(shape, dtype)
        count = samples_per_parameter(sizes, columns[0].shape)
        if 0 in sizes:
            return allocate(sizes, dtype)
        reader, flat = _Reader(of_seed(seed), dtype), [column.reshape(-1) for column in columns]
        # The last dimensions run through the parameters.
        output = allocate((count, flat[0].size), dtype)
        for index in in_time(range(flat[0].size), SLOW):
            output[:, index] = _between(reader, count, *(column[index] for column in flat))
        return output.reshape(sizes)

    return drawn


class _Reader:
    """Reads the blocks of a stream; what makes them may leave blocks over.

    Attributes:
        dtype: The type of the numbers.
    """

    def __init__(self, random: Philox, dtype: DataType) -> None:
        self.dtype = dtype
        self._next = random

    def first_accepted(
        self, count: int, blocks_each: int, propose: Callable[[Array], tuple[Array, Array]]
    ) -> Array:
        """The first `count` numbers that are accepted.

        Args:
            count: How many.
            blocks_each: How many blocks are taken together.
            propose: Of words [n, blocks_each, 4] the numbers, and whether each is accepted, [n, k] both.

        Raises:
            InternalError: a thousand in a row are rejected.
        """
        found: list[Array] = []
        rejected = 0
        while count:
            groups = min(max(8, count // 2), _MOST_GROUPS)
            check_time("drawing numbers")
            words = self._next.blocks(groups * blocks_each).reshape(groups, blocks_each, 4)
            numbers, accepted = propose(words)
            places = np.flatnonzero(accepted.reshape(-1))[:count]
            _check_rejected(places, rejected, accepted.size, done=len(places) == count)
            rejected = (
                accepted.size - 1 - int(places[-1]) if len(places) else rejected + accepted.size
            )
            found.append(numbers.reshape(-1)[places])
            count -= len(places)
            if not count:
                groups = int(places[-1]) // accepted.shape[1] + 1
            self._next = self._next.skip(groups * blocks_each)
        return np.concatenate(found) if found else np.empty(0, self.dtype.numpy_dtype)


def _check_rejected(places: Array, before: int, size: int, *, done: bool) -> None:
    """Refuse a thousand rejected numbers in a row."""
    ends = [*places.tolist(), *([] if done else [size])]
    longest, last = 0, -1 - before
    for end in (ends[0], int(np.diff(places).max(initial=0)) + ends[0]) if ends else ():
        longest = max(longest, end - last - 1)
        last = ends[0]
    if longest >= _MAX_REJECTED:
        raise InternalError("TruncatedNormal rejection sampler failed to accept a sample.")


def _between(reader: _Reader, count: int, mean: Any, deviation: Any, low: Any, high: Any) -> Any:
    """Numbers between two bounds, computed in their own type step by step.

    Raises:
        InvalidArgumentError: the deviation is not positive, or no bound is finite, or they leave nothing.
    """
    if not (deviation > 0 and low < high and (np.isfinite(low) or np.isfinite(high))):
        raise InvalidArgumentError("Invalid parameters")
    if (
        np.isinf(low) and low < 0
    ) or high < mean:  # mirrored, so that the lower bound is the near one
        low, high, deviation = high, low, -deviation
    kind = type(mean)
    least, most = (low - mean) / deviation, (high - mean) / deviation
    root = np.sqrt(least * least + kind(4))
    exponent = kind(0.5) + (least * (least - root)) / kind(4)
    cutoff = kind(2) * np.exp(exponent) / (least + root)
    wide = kind(_WIDE)
    if (least < -wide and most >= 0) or (most > wide and least <= 0):
        numbers = _of_normals(reader, count, least, most)
    elif most - least < cutoff:
        numbers = _of_uniforms(reader, count, least, most)
    else:
        numbers = _of_exponentials(reader, count, least, most, (least + root) / kind(2))
    return numbers * deviation + mean


def _of_normals(reader: _Reader, count: int, least: Any, most: Any) -> Array:
    """Normal numbers that lie within the bounds."""

    def propose(words: Array) -> tuple[Array, Array]:
        numbers = normals_of_words(words.reshape(-1, 4), reader.dtype)
        numbers = numbers.astype(reader.dtype.numpy_dtype)
        return numbers, (numbers >= least) & (numbers <= most)

    return reader.first_accepted(count, 1, propose)


def _of_uniforms(reader: _Reader, count: int, least: Any, most: Any) -> Array:
    """Uniform numbers, accepted as often as normal ones lie there: one block of them, one to decide."""
    kind = type(least)
    most_likely = kind(0) if least < 0 else least * least

    def propose(words: Array) -> tuple[Array, Array]:
        numbers, decisions = (
            uniforms_of_words(np.ascontiguousarray(words[:, i]), reader.dtype) for i in (0, 1)
        )
        numbers = numbers * (most - least) + least
        return numbers, decisions <= np.exp((most_likely - numbers * numbers) / kind(2))

    return reader.first_accepted(count, 2, propose)


def _of_exponentials(reader: _Reader, count: int, least: Any, most: Any, alpha: Any) -> Array:
    """Exponential numbers beyond the lower bound: every first uniform number, every second to decide."""
    kind = type(least)

    def propose(words: Array) -> tuple[Array, Array]:
        uniforms = uniforms_of_words(words.reshape(-1, 4), reader.dtype)
        numbers = -_log(uniforms[:, ::2]) / alpha + least
        distance = alpha - numbers if least < alpha else np.full_like(numbers, least - alpha)
        likely = np.exp(-distance * distance / kind(2))
        return numbers, (uniforms[:, 1::2] <= likely) & (numbers < most)

    return reader.first_accepted(count, 1, propose)


def _log(x: Array) -> Any:
    """The logarithm of numbers from 0 on, of float as the C library rounds it."""
    if x.dtype != np.float32:
        return np.log(x)
    return np.where(
        x > 0, log_of_float(np.maximum(x, np.finfo(np.float32).tiny)), np.float32(-np.inf)
    )


# Gradient


@g.register_gradient(
    "StatelessParameterizedTruncatedNormal",
    not_derivative="it takes the quantile of a number as given; rejected numbers make it jump",
)
def stateless_parameterized_truncated_normal_gradient(
    op: g.Operation, grad: g.Tensor
) -> g.Gradients:
    _, _, mean, deviation, low, high = op.inputs
    n = g.nodes
    number, least, most = (n.RealDiv(n.Sub(x, mean), deviation) for x in (op.outputs[0], low, high))
    limits = np.finfo(as_dtype(mean.dtype).numpy_dtype)
    below, above = _probability(least), _probability(most)
    quantile = n.RealDiv(n.Sub(_probability(number), below), n.Sub(above, below))
    quantile = n.Minimum(n.Maximum(quantile, limits.tiny), 1 - limits.eps)
    square = n.Square(number)
    by_high = n.Exp(n.Add(n.Mul(0.5, n.Sub(square, n.Square(most))), n.Log(quantile)))
    by_low = n.Exp(n.Add(n.Mul(0.5, n.Sub(square, n.Square(least))), n.Log1p(n.Neg(quantile))))
    slopes = (None, number, by_low, by_high)
    return (
        None,
        None,
        *(_summed(x, grad, slope) for x, slope in zip(op.inputs[2:], slopes, strict=True)),
    )


def _summed(parameter: g.Tensor, grad: g.Tensor, slope: g.Tensor | None) -> g.Gradient | None:
    """The gradient of a parameter, which the numbers broadcast."""
    each = grad if slope is None else g.nodes.Mul(grad, slope)
    return g.sum_to_operands(parameter, grad, each, None)[0]


def _probability(x: g.Tensor) -> Any:
    """How likely a normal number is smaller."""
    return g.nodes.Mul(0.5, g.nodes.Erfc(g.nodes.Mul(x, -math.sqrt(0.5))))
