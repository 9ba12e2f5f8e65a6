"""Normal numbers between bounds: ParameterizedTruncatedNormal, StatelessParameterizedTruncatedNormal.

Source: TensorFlow core/ops/random_ops.cc, stateless_random_ops.cc,
core/kernels/parameterized_truncated_normal_op.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, OpKernelContext, allocate, check_allocation
from opkernel.opdef import InferenceContext, common_shapes, register_op
from opkernel.opdef.common_shapes.rules import check_ranks_at_most
from opkernel.ops.input_checks import require, require_rank_at_most, require_vector
from opkernel.ops.random.distributions import samples_per_parameter
from opkernel.ops.random.inputs import check_seed, check_seed_shape, of_seed
from opkernel.ops.random.normals_between import MAX_REJECTED, Choose, choose, numbers_between
from opkernel.ops.random.philox import StreamKernel
from opkernel.ops.random.uniform_and_normal import SEED_TYPE, SEEDS
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType, TensorShape, as_dtype

_FLOATS = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)

_BATCH = 100
"""Numbers of equal parameters that are drawn as if theirs were others."""

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


def register_truncated_normal(
    choose: Choose,
    types: Sequence[DataType] = _FLOATS,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernels of both ops with a function that chooses the numbers that are accepted."""

    class ParameterizedTruncatedNormal(StreamKernel):
        """Numbers of the kernel's own stream."""

        def compute(self, ctx: OpKernelContext) -> None:
            """Draw them."""
            sizes = _sizes(ctx.input(0), self.dtype)
            require(sizes, "Shape tensor must not be empty")
            output = allocate(sizes, self.dtype)
            parameters = [ctx.input(i) for i in range(1, 5)]
            batches, each = _batches(sizes, parameters)
            random = self.generator.reserve(batches * 2 * MAX_REJECTED * (each + 3) // 4)
            columns = [np.broadcast_to(one.reshape(-1), (batches,)) for one in parameters]
            numbers = numbers_between(random, self.dtype, output.size, each, columns, choose)
            ctx.set_output(0, numbers.reshape(sizes))

    def make(*, dtype: DataType) -> Callable[..., Any]:
        return lambda shape, seed, *parameters: _drawn(shape, seed, parameters, dtype, choose)

    register = partial(register_kernel, types={"dtype": types}, registry=registry)
    register("ParameterizedTruncatedNormal")(ParameterizedTruncatedNormal)
    stateless = "StatelessParameterizedTruncatedNormal"
    register(stateless, host_memory=["shape", "seed", *_NAMES], factory=True)(make)


def _drawn(
    shape: Any, seed: Any, parameters: Sequence[Any], dtype: DataType, choose: Choose
) -> Array:
    """The numbers that a seed determines; the last dimensions run through the parameters."""
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
    output = allocate(sizes, dtype)
    if 0 in sizes:
        return output
    flat = [column.reshape(-1) for column in columns]
    numbers = numbers_between(of_seed(seed), dtype, output.size, count, flat, choose)
    return np.ascontiguousarray(numbers.reshape(-1, count).T).reshape(sizes)


register_truncated_normal(choose)


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
