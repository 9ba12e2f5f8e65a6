"""Numbers of generators that are resources: StatefulUniform and its kin, RngSkip, RngReadAndSkip.

Source: TensorFlow core/ops/stateful_random_ops.cc, core/kernels/stateful_random_ops.cc.
"""

import math
import os
from functools import partial
from typing import Any

import numpy as np

from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import InferenceContext, common_shapes, register_op
from opkernel.opdef.common_shapes.rules import check_scalars
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.kernel_types import FLOATS, INDEX
from opkernel.ops.random.distributions import (
    Distribution,
    full_int,
    normal,
    truncated_normal,
    uniform,
    uniform_int,
)
from opkernel.ops.random.generator_state import advanced_generator, tagged_generator
from opkernel.ops.random.inputs import AUTO_SELECT, PHILOX, bounds_of, check_algorithm, shape_of
from opkernel.ops.random.shapes import check_bounds, set_shape_held_by
from opkernel.ops.random.stateless import FULL_INT_TYPES
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_SHAPE_TYPE = "shape_dtype: type = DT_INT64"
_INPUTS = ["resource: resource", "algorithm: int64", "shape: shape_dtype"]
_HOST = ["resource", "algorithm", "shape"]


def generator_shape(c: InferenceContext) -> None:
    """The generator, the algorithm, the shape."""
    check_scalars(c, 1)
    set_shape_held_by(c, 2)


def generator_int_shape(c: InferenceContext) -> None:
    """The generator, the algorithm, the shape, the bounds."""
    check_scalars(c, 1)
    check_bounds(c, 3)
    set_shape_held_by(c, 2)


for _name, _default, _doc in (
    ("StatefulUniform", "DT_FLOAT", "Numbers from 0 to 1, without 1."),
    ("StatefulStandardNormalV2", "DT_FLOAT", "Normal numbers of mean 0 and deviation 1."),
    ("StatefulTruncatedNormal", "DT_FLOAT", "Normal numbers of which none is as far from 0 as 2."),
    ("StatefulUniformFullInt", "DT_UINT64", "Integers of the whole range of their type."),
):
    register_op(
        _name,
        inputs=_INPUTS,
        outputs=["output: dtype"],
        attrs=[f"dtype: type = {_default}", _SHAPE_TYPE],
        shape_fn=generator_shape,
        is_stateful=True,
        doc=f"{_doc} They are those of a generator, a variable, which moves on.",
    )


_DISTRIBUTIONS: dict[str, Distribution] = {
    "StatefulUniform": uniform,
    "StatefulStandardNormalV2": normal,
    "StatefulTruncatedNormal": truncated_normal,
}


@register_kernel(*_DISTRIBUTIONS, types={"dtype": FLOATS}, host_memory=_HOST)
class GeneratorOp(OpKernel):
    """Fills a tensor with numbers of a generator."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = self.output_types[0]

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw as many numbers as the shape of input 2 has elements."""
        algorithm = check_algorithm(ctx.input(1), 1)
        distribution = self.distribution_of(ctx)
        sizes = shape_of(ctx.input(2), self.dtype)
        random = advanced_generator(ctx, algorithm, math.prod(sizes))
        ctx.set_output(0, distribution(random, sizes, self.dtype))

    def distribution_of(self, ctx: OpKernelContext) -> Distribution:
        """How these numbers are drawn."""
        return _DISTRIBUTIONS[self.type_string]


@register_kernel("StatefulUniformFullInt", types={"dtype": FULL_INT_TYPES}, host_memory=_HOST)
class StatefulUniformFullInt(GeneratorOp):
    """Integers."""

    def distribution_of(self, ctx: OpKernelContext) -> Distribution:
        """That of all integers."""
        return full_int


register_op(
    "StatefulUniformInt",
    inputs=[*_INPUTS, "minval: dtype", "maxval: dtype"],
    outputs=["output: dtype"],
    attrs=["dtype: type = DT_INT64", _SHAPE_TYPE],
    shape_fn=generator_int_shape,
    is_stateful=True,
    doc="Integers of a generator from `minval` to `maxval`, without `maxval`.",
)


@register_kernel(
    "StatefulUniformInt", types={"dtype": INDEX}, host_memory=[*_HOST, "minval", "maxval"]
)
class StatefulUniformInt(GeneratorOp):
    """Integers between bounds."""

    def distribution_of(self, ctx: OpKernelContext) -> Distribution:
        """That of the bounds."""
        return uniform_int(*bounds_of(ctx.input(3), ctx.input(4)))


register_op(
    "StatefulStandardNormal",
    inputs=["resource: resource", "shape: shape_dtype"],
    outputs=["output: dtype"],
    attrs=["dtype: type = DT_FLOAT", _SHAPE_TYPE],
    shape_fn=partial(set_shape_held_by, index=1),
    is_stateful=True,
    deprecated=(29, "Use StatefulStandardNormalV2 instead"),
    doc="As StatefulStandardNormalV2; the generator's first number says the algorithm.",
)


@register_kernel(
    "StatefulStandardNormal", types={"dtype": FLOATS}, host_memory=["resource", "shape"]
)
class StatefulStandardNormal(OpKernel):
    """Normal numbers."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw them."""
        dtype = self.output_types[0]
        sizes = shape_of(ctx.input(1), dtype)
        ctx.set_output(0, normal(tagged_generator(ctx, math.prod(sizes)), sizes, dtype))


# Skips


register_op(
    "RngSkip",
    inputs=["resource: resource", "algorithm: int64", "delta: int64"],
    shape_fn=lambda c: check_scalars(c, 1, 2),
    is_stateful=True,
    doc="Moves a generator on by the blocks of `delta` numbers.",
)
register_op(
    "RngReadAndSkip",
    inputs=["resource: resource", "alg: int32", "delta: uint64"],
    outputs=["value: int64"],
    shape_fn=shape_rule("_, [], [] -> [3]"),
    is_stateful=True,
    doc="The state of a generator, which then moves on by the blocks of `delta` numbers.",
)


@register_kernel("RngSkip", host_memory=["resource", "algorithm", "delta"])
class RngSkip(OpKernel):
    """Moves a generator on."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Move it."""
        algorithm, delta = (check_algorithm(ctx.input(i), i) for i in (1, 2))
        advanced_generator(ctx, algorithm, delta)


@register_kernel("RngReadAndSkip", host_memory=["resource", "alg", "delta"])
class RngReadAndSkip(OpKernel):
    """Reads the state and moves the generator on."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Do both at once."""
        algorithm, delta = (check_algorithm(ctx.input(i), i) for i in (1, 2))
        algorithm = PHILOX if algorithm == AUTO_SELECT else algorithm
        place = advanced_generator(ctx, algorithm, delta)
        halves = place.counter % (1 << 64), place.counter >> 64, place.key
        ctx.set_output(0, np.array(halves, np.uint64).view(np.int64))


register_op(
    "NonDeterministicInts",
    inputs=["shape: shape_dtype"],
    outputs=["output: dtype"],
    attrs=["dtype: type = DT_INT64", _SHAPE_TYPE],
    shape_fn=common_shapes.random_shape,
    is_stateful=True,
    doc="Integers that the system chooses.",
)


@register_kernel("NonDeterministicInts", types={"dtype": FULL_INT_TYPES}, host_memory=["shape"])
class NonDeterministicInts(OpKernel):
    """Asks the system."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Ask it."""
        dtype = self.output_types[0]
        sizes = shape_of(ctx.input(0), dtype)
        size = math.prod(sizes) * dtype.numpy_dtype.itemsize
        numbers: Any = np.frombuffer(bytearray(os.urandom(size)), dtype.numpy_dtype)
        ctx.set_output(0, numbers.reshape(sizes))
