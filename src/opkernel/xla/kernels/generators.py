"""Numbers of generators that are variables: the streams of the CPU's kernels, which move on as there.

Integers and uniform numbers have the same bits, normal numbers may differ in the last ones.

Source: TensorFlow compiler/tf2xla/kernels/stateful_random_ops.cc, core/kernels/stateful_random_ops.cc.
"""

from __future__ import annotations

import math
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.ops.random.filling import BLOCKS_PER_OUTPUT
from opkernel.ops.random.generator_state import check_generator
from opkernel.ops.random.inputs import AUTO_SELECT, PHILOX, check_algorithm, shape_of
from opkernel.types import DataType
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.kernels.random import (
    Distribution,
    filled,
    full_int,
    normal,
    truncated_normal,
    uniform,
    uniform_int,
)
from opkernel.xla.op_kernel import XlaOpKernel
from opkernel.xla.philox import PhiloxStream
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.resource import XlaResource

__all__ = ["advanced", "stream_of_state"]


def advanced(variable: XlaResource, algorithm: int, count: Any) -> Any:
    """The state of a generator, which then moves on by the blocks of so many numbers."""
    state = jnp().asarray(variable.read(DataType.DT_INT64))
    if state.ndim != 1:
        raise InvalidArgumentError(
            f"RNG state must have one and only one dimension, not {state.ndim}"
        )
    check_generator(algorithm, state.size)
    blocks = jnp().asarray(count, "uint64") * jnp().uint64(BLOCKS_PER_OUTPUT)
    after = stream_of_state(state).skipped(blocks)
    place = jnp().stack([after.low, after.high]).astype("int64")
    variable.assign(DataType.DT_INT64, state.at[:2].set(place))
    return state


def stream_of_state(state: Any) -> PhiloxStream:
    """The stream of the state of a generator: a counter of two numbers and a key."""
    low, high, key = state[:3].astype("uint64")
    return PhiloxStream(key, low, high)


class _GeneratorOp(XlaOpKernel):
    """Fills a tensor with numbers of a generator."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Draw as many numbers as the shape of input 2 has elements."""
        algorithm = check_algorithm(ctx.constant_input("algorithm"), 1)
        dtype, distribution = self.output_types[0], self.distribution(ctx)
        sizes = shape_of(ctx.constant_input("shape"), dtype)
        state = advanced(ctx.resource(0), algorithm, math.prod(sizes))
        numbers = filled(stream_of_state(state), sizes, dtype, distribution)
        ctx.set_output(0, numbers.astype(dtype.numpy_dtype))

    def distribution(self, ctx: XlaOpKernelContext) -> Distribution:
        """How the numbers are drawn."""
        return _DISTRIBUTIONS[self.node_def.op]


_DISTRIBUTIONS: dict[str, Distribution] = {
    "StatefulUniform": uniform,
    "StatefulStandardNormalV2": normal,
    "StatefulTruncatedNormal": truncated_normal,
    "StatefulUniformFullInt": full_int,
}
_CONSTANTS = ["algorithm", "shape"]

register_xla_kernel([*_DISTRIBUTIONS], compile_time_constants=_CONSTANTS, resources=True)(
    _GeneratorOp
)


@register_xla_kernel("StatefulUniformInt", compile_time_constants=_CONSTANTS, resources=True)
class StatefulUniformIntOp(_GeneratorOp):
    """Integers between bounds. Bounds that leave no integer cannot be refused."""

    def distribution(self, ctx: XlaOpKernelContext) -> Distribution:
        """That of the bounds."""
        return uniform_int(ctx.input("minval"), ctx.input("maxval"))


@register_xla_kernel("RngSkip", compile_time_constants=["algorithm"], resources=True)
class RngSkipOp(XlaOpKernel):
    """The generator moves on."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give the variable the place behind the numbers that are skipped."""
        algorithm = check_algorithm(ctx.constant_input(1), 1)
        advanced(ctx.resource(0), algorithm, ctx.input(2).astype("uint64"))


@register_xla_kernel("RngReadAndSkip", compile_time_constants=["alg"], resources=True)
class RngReadAndSkipOp(XlaOpKernel):
    """The state of the generator, which then moves on."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the state: a counter of two numbers and a key."""
        algorithm = check_algorithm(ctx.constant_input("alg"), 1)
        algorithm = PHILOX if algorithm == AUTO_SELECT else algorithm
        ctx.set_output(0, advanced(ctx.resource(0), algorithm, ctx.input("delta"))[:3])
