"""Numbers of generators that are variables: the streams of the CPU's kernels, which move on as there.

Integers and uniform numbers have the same bits, normal numbers may differ in the last ones.

XlaRngBitGenerator: random bits as XLA gives them.

Random ops without a seed of the caller's: numbers that differ from run to run.

A program that draws has a generator as its last parameter, and each run another one. The attrs `seed` and `seed2` are not
looked at, as in TensorFlow's programs; StatelessRandomUniform and its kin give the same numbers each time.

Source: TensorFlow compiler/tf2xla/kernels/stateful_random_ops.cc, core/kernels/stateful_random_ops.cc,
compiler/tf2xla/kernels/rng_bit_generator_op.cc, compiler/tf2xla/kernels/random_ops.cc, categorical_op.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.ops.random.generators import check_generator
from opkernel.ops.random.inputs import AUTO_SELECT, PHILOX, THREEFRY, check_algorithm, shape_of
from opkernel.ops.random.multinomial import samples_of
from opkernel.ops.random.philox import BLOCKS_PER_OUTPUT
from opkernel.types import DataType, TensorShape
from opkernel.xla.context import XlaOpKernel, XlaOpKernelContext
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.kernels.stateless_random import (
    Distribution,
    PhiloxStream,
    between,
    classes,
    filled,
    full_int,
    normal,
    truncated_normal,
    uniform,
    uniform_int,
)
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.resource import XlaResource

__all__ = ["advanced", "stream_of_state"]


@register_xla_kernel(
    "XlaRngBitGenerator", compile_time_constants=["algorithm", "shape"], factory=True
)
def xla_rng_bit_generator(*, dtype: DataType) -> Callable[..., Any]:
    """Random bits, and the state behind them."""
    if not dtype.is_unsigned:
        raise InvalidArgumentError(f"Random bits are unsigned integers, not {dtype.string}")

    def drawn(algorithm: Any, initial_state: Any, shape: Any) -> tuple[Any, Any]:
        chosen, sizes = check_algorithm(algorithm, 0), shape_of(shape, dtype)
        if chosen == PHILOX and initial_state.shape == (3,):
            return _philox_bits(initial_state, sizes, dtype)
        if chosen not in (PHILOX, THREEFRY) or initial_state.shape != (2,):
            raise InvalidArgumentError(
                f"There is no algorithm {chosen} with a state of the shape {list(initial_state.shape)}"
            )
        kinds = lax().RandomAlgorithm
        kind = kinds.RNG_PHILOX if chosen == PHILOX else kinds.RNG_THREE_FRY
        state, bits = lax().rng_bit_generator(initial_state, sizes, dtype.numpy_dtype, kind)
        return state, bits

    return drawn


def _philox_bits(state: Any, sizes: tuple[int, ...], dtype: DataType) -> tuple[Any, Any]:
    """By a state of a key and a counter of two numbers; narrow types take the lower bits of a word."""
    count, per_block = math.prod(sizes), 2 if dtype.size == 8 else 4
    blocks = -(-count // per_block)
    key, low, high = state
    stream = PhiloxStream(key, low, high)
    after = stream.skipped(jnp().uint64(blocks))
    words = stream.blocks(blocks).reshape(-1)
    words = words.view("uint64") if dtype.size == 8 else words
    bits = words[:count].astype(dtype.numpy_dtype).reshape(sizes)
    return jnp().stack([key, after.low, after.high]), bits


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


def _drawn(
    generator: XlaResource,
    algorithm: int,
    sizes: tuple[int, ...],
    dtype: DataType,
    distribution: Distribution,
) -> Any:
    """Numbers of a generator, which moves on."""
    state = advanced(generator, algorithm, math.prod(sizes))
    return filled(stream_of_state(state), sizes, dtype, distribution)


def _register(op: str, distribution_of: Callable[..., Distribution]) -> None:
    """Register the kernel of an op that draws numbers of a generator; further inputs choose the distribution."""

    @register_xla_kernel(
        op, compile_time_constants=["algorithm", "shape"], resources=True, factory=True
    )
    def make(*, dtype: DataType) -> Callable[..., Any]:
        def stateful(generator: XlaResource, algorithm: Any, shape: Any, *bounds: Any) -> Any:
            chosen, distribution = check_algorithm(algorithm, 1), distribution_of(*bounds)
            return _drawn(generator, chosen, shape_of(shape, dtype), dtype, distribution)

        return stateful


_register("StatefulUniform", lambda: uniform)
_register("StatefulStandardNormalV2", lambda: normal)
_register("StatefulTruncatedNormal", lambda: truncated_normal)
_register("StatefulUniformFullInt", lambda: full_int)
_register("StatefulUniformInt", uniform_int)


@register_xla_kernel("RngSkip", compile_time_constants=["algorithm"], resources=True)
def rng_skip(generator: XlaResource, algorithm: Any, delta: Any) -> None:
    """Give the variable the place behind the numbers that are skipped."""
    advanced(generator, check_algorithm(algorithm, 1), delta.astype("uint64"))


@register_xla_kernel("RngReadAndSkip", compile_time_constants=["alg"], resources=True)
def rng_read_and_skip(generator: XlaResource, alg: Any, delta: Any) -> Any:
    """The state of the generator, a counter of two numbers and a key; it then moves on."""
    algorithm = check_algorithm(alg, 1)
    return advanced(generator, PHILOX if algorithm == AUTO_SELECT else algorithm, delta)[:3]


class _DrawingOp(XlaOpKernel):
    """A kernel that draws numbers of the program's generator."""

    def drawn(
        self,
        ctx: XlaOpKernelContext,
        sizes: tuple[int, ...],
        distribution: Distribution,
        dtype: DataType | None = None,
    ) -> Any:
        """A tensor of numbers, of the type of the output if none is given.

        Raises:
            UnimplementedError: nobody gives the program a generator.
        """
        generator, dtype = ctx.compiler.generator, dtype or self.output_types[0]
        if generator is None:
            ctx.compiler.wants_generator = True
            raise UnimplementedError(f"{self.node_def.op} needs a program that has a generator")
        numbers = _drawn(generator, PHILOX, sizes, dtype, distribution)
        return numbers.astype(dtype.numpy_dtype)


_OF_OPS: dict[str, Callable[[XlaOpKernelContext], Distribution]] = {
    "RandomUniform": lambda ctx: uniform,
    "RandomUniformInt": lambda ctx: uniform_int(ctx.input("minval"), ctx.input("maxval")),
    "RandomStandardNormal": lambda ctx: normal,
    "TruncatedNormal": lambda ctx: truncated_normal,
}
"""How the numbers of an op are drawn. Bounds that leave no integer cannot be refused."""


@register_xla_kernel([*_OF_OPS], compile_time_constants=["shape"])
class FillOp(_DrawingOp):
    """Numbers of one distribution."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set them."""
        sizes = shape_of(ctx.constant_input("shape"), self.output_types[0])
        ctx.set_output(0, self.drawn(ctx, sizes, _OF_OPS[self.node_def.op](ctx)))


@register_xla_kernel("RandomShuffle")
class RandomShuffleOp(_DrawingOp):
    """Rows in random order: that of as many random numbers."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set them."""
        value = ctx.input(0)
        if value.ndim and len(value) > 1:
            numbers = self.drawn(ctx, value.shape[:1], uniform, DataType.DT_DOUBLE)
            value = value[jnp().argsort(numbers)]
        ctx.set_output(0, value)


@register_xla_kernel("Multinomial", compile_time_constants=["num_samples"])
class MultinomialOp(_DrawingOp):
    """Classes by their logits."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set them."""
        logits, dtype = ctx.input("logits"), self.output_types[0]
        count = samples_of(logits, ctx.constant_input("num_samples"), dtype)
        numbers = self.drawn(ctx, (len(logits), count), uniform, DataType.DT_DOUBLE)
        ctx.set_output(0, classes(logits, numbers).astype(dtype.numpy_dtype))


@register_xla_kernel("ParameterizedTruncatedNormal", compile_time_constants=["shape"])
class ParameterizedTruncatedNormalOp(_DrawingOp):
    """Normal numbers between bounds; parameters are scalars, or vectors for the first dimension."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set them."""
        dtype = self.output_types[0]
        sizes = shape_of(ctx.constant_input("shape"), dtype)
        if not sizes:
            raise InvalidArgumentError("Shape tensor must not be empty")
        columns = [self._column(ctx.input(place), sizes) for place in range(1, 5)]
        numbers = self.drawn(ctx, sizes, uniform, DataType.DT_DOUBLE)
        ctx.set_output(0, between(numbers, *columns).astype(dtype.numpy_dtype))

    @staticmethod
    def _column(parameter: Any, sizes: tuple[int, ...]) -> Any:
        if parameter.ndim > 1 or parameter.size not in (1, sizes[0]):
            raise InvalidArgumentError(
                "A parameter must be a scalar, or a vector of length 1 or shape[0], got shape: "
                f"{TensorShape(parameter.shape)}"
            )
        return parameter.astype("float64").reshape(-1, *[1] * (len(sizes) - 1))
