"""Random ops without a seed of the caller's: numbers that differ from run to run.

A program that draws has a generator as its last parameter, and each run another one. The attrs `seed` and `seed2` are not
looked at, as in TensorFlow's programs; StatelessRandomUniform and its kin give the same numbers each time.

Source: TensorFlow compiler/tf2xla/kernels/random_ops.cc, categorical_op.cc.
"""

from __future__ import annotations

import math
from typing import Any

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.ops.random.inputs import PHILOX, shape_of
from opkernel.ops.random.multinomial import samples_of
from opkernel.types import DataType, TensorShape
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.kernels.bounded_normals import between
from opkernel.xla.kernels.generators import advanced, stream_of_state
from opkernel.xla.kernels.random import (
    Distribution,
    classes,
    filled,
    normal,
    truncated_normal,
    uniform,
    uniform_int,
)
from opkernel.xla.op_kernel import WholeProgramOp
from opkernel.xla.register_kernel import register_xla_kernel


class _DrawingOp(WholeProgramOp):
    """A kernel that draws numbers."""

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
        state = advanced(generator, PHILOX, math.prod(sizes))
        numbers = filled(stream_of_state(state), sizes, dtype, distribution)
        return numbers.astype(dtype.numpy_dtype)


_DISTRIBUTIONS = {
    "RandomUniform": uniform,
    "RandomStandardNormal": normal,
    "TruncatedNormal": truncated_normal,
}


@register_xla_kernel([*_DISTRIBUTIONS], compile_time_constants=["shape"])
class FillOp(_DrawingOp):
    """Numbers of one distribution."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set them."""
        sizes = shape_of(ctx.constant_input("shape"), self.output_types[0])
        ctx.set_output(0, self.drawn(ctx, sizes, _DISTRIBUTIONS[self.node_def.op]))


@register_xla_kernel("RandomUniformInt", compile_time_constants=["shape"])
class RandomUniformIntOp(_DrawingOp):
    """Integers between bounds. Bounds that leave no integer cannot be refused."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set them."""
        sizes = shape_of(ctx.constant_input("shape"), self.output_types[0])
        integers = uniform_int(ctx.input("minval"), ctx.input("maxval"))
        ctx.set_output(0, self.drawn(ctx, sizes, integers))


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
