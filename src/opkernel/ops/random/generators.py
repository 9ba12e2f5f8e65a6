"""Generators that are resources, and numbers of them: StatefulUniform and its kin, RngSkip, RngReadAndSkip.

A generator is a variable of int64 that holds a counter of two numbers and a key.

Source: TensorFlow core/ops/stateful_random_ops.cc, core/kernels/stateful_random_ops.cc,
stateful_random_ops_cpu_gpu.h.
"""

import math
import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.interrupts import contextmanager
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    handle_from_input,
    lookup_resource,
)
from opkernel.opdef import InferenceContext, common_shapes, register_op
from opkernel.opdef.common_shapes.rules import check_scalars, shape_rule
from opkernel.ops.input_checks import require, require_vector
from opkernel.ops.random.distributions import (
    Distribution,
    full_int,
    normal,
    truncated_normal,
    uniform,
    uniform_int,
)
from opkernel.ops.random.inputs import (
    AUTO_SELECT,
    PHILOX,
    THREEFRY,
    bounds_of,
    check_algorithm,
    check_bounds,
    check_philox,
    of_key,
    set_shape_held_by,
    shape_of,
)
from opkernel.ops.random.philox import BLOCKS_PER_OUTPUT, Philox
from opkernel.ops.random.uniform_and_normal import DOCS, FULL_INT_TYPES
from opkernel.ops.registration import FLOATS, INDEX, register_kernel
from opkernel.ops.variables.var import Var, writing
from opkernel.types import DataType

_STATE_SIZE = 3


def advanced_generator(ctx: OpKernelContext, algorithm: int, count: int) -> Philox:
    """The place of the generator at input 0; afterwards it is behind the blocks of so many numbers.

    Raises:
        NotFoundError: the variable does not exist.
        InvalidArgumentError: it holds no state, or the algorithm is unknown.
        UnimplementedError: the algorithm is ThreeFry.
    """
    with _state(ctx) as state:
        return _advanced(state, algorithm, count)


def tagged_generator(ctx: OpKernelContext, count: int) -> Philox:
    """As `advanced_generator`, where the variable has the algorithm before the state."""
    with _state(ctx) as state:
        require(state.size, "Size of tensor must be at least 1")
        return _advanced(state[1:], int(state[0]), count)


@contextmanager
def _state(ctx: OpKernelContext) -> Iterator[Any]:
    """The array of the variable, to be written to while its lock is held."""
    with lookup_resource(ctx, handle_from_input(ctx.input(0)), Var) as variable:
        if variable.dtype != DataType.DT_INT64:
            raise InvalidArgumentError(
                f"dtype of RNG state variable must be int64, not {variable.dtype.string}"
            )
        with writing(variable.tensor_ref) as state:
            require_vector(
                state, f"RNG state must have one and only one dimension, not {state.ndim}"
            )
            yield state


def check_generator(algorithm: int, size: int) -> None:
    """Refuse other algorithms than Philox, and states that are too small for it.

    Raises:
        InvalidArgumentError: the algorithm is unknown, or the state is too small.
        UnimplementedError: the algorithm is ThreeFry.
    """
    if algorithm == THREEFRY:
        raise UnimplementedError("Non-XLA devices don't support the ThreeFry algorithm.")
    check_philox(algorithm)
    if size < _STATE_SIZE:
        raise InvalidArgumentError(
            f"For the Philox algorithm, the size of state must be at least {_STATE_SIZE}; got {size}"
        )


def _advanced(state: Any, algorithm: int, count: int) -> Philox:
    check_generator(algorithm, state.size)
    low, high, key = (int(number) for number in state[:_STATE_SIZE])
    place = of_key([low, high], key)
    after = place.skip(count * BLOCKS_PER_OUTPUT % (1 << 64)).counter
    state[:2] = [_signed(after), _signed(after >> 64)]
    return place


def _signed(word: int) -> int:
    """The lower 64 bits as an int64."""
    word %= 1 << 64
    return word - (word >> 63 << 64)


_SHAPE_TYPE = "shape_dtype: type = DT_INT64"
_INPUTS = "resource: resource, algorithm: int64, shape: shape_dtype"
_HOST = ["resource", "algorithm", "shape"]


def generator_shape(c: InferenceContext) -> None:
    """The generator, the algorithm, the shape; the bounds where these are inputs."""
    check_scalars(c, 1)
    if c.num_inputs() > 3:
        check_bounds(c, 3)
    set_shape_held_by(c, 2)


_DISTRIBUTIONS: dict[str, Distribution] = {
    "StatefulUniform": uniform,
    "StatefulStandardNormalV2": normal,
    "StatefulTruncatedNormal": truncated_normal,
    "StatefulUniformFullInt": full_int,
}
for _name, _distribution in _DISTRIBUTIONS.items():
    _default = "DT_UINT64" if _distribution is full_int else "DT_FLOAT"
    register_op(
        f"{_name}({_INPUTS}) -> output: dtype",
        attrs=[f"dtype: type = {_default}", _SHAPE_TYPE],
        shape_fn=generator_shape,
        is_stateful=True,
        doc=f"{DOCS[_distribution]}. They are those of a generator, a variable, which moves on.",
    )

register_op(
    f"StatefulUniformInt({_INPUTS}, minval: dtype, maxval: dtype) -> output: dtype",
    attrs=["dtype: type = DT_INT64", _SHAPE_TYPE],
    shape_fn=generator_shape,
    is_stateful=True,
    doc="Integers of a generator from `minval` to `maxval`, without `maxval`.",
)


@register_kernel("StatefulUniformFullInt", types={"dtype": FULL_INT_TYPES}, host_memory=_HOST)
@register_kernel(
    "StatefulUniform",
    "StatefulStandardNormalV2",
    "StatefulTruncatedNormal",
    types={"dtype": FLOATS},
    host_memory=_HOST,
)
@register_kernel(
    "StatefulUniformInt", types={"dtype": INDEX}, host_memory=[*_HOST, "minval", "maxval"]
)
class GeneratorOp(OpKernel):
    """Fills a tensor with numbers of a generator."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = self.output_types[0]

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw as many numbers as the shape of input 2 has elements, between bounds where these are inputs."""
        algorithm = check_algorithm(ctx.input(1), 1)
        distribution = _DISTRIBUTIONS.get(self.type_string)
        if distribution is None:
            distribution = uniform_int(*bounds_of(ctx.input(3), ctx.input(4)))
        sizes = shape_of(ctx.input(2), self.dtype)
        random = advanced_generator(ctx, algorithm, math.prod(sizes))
        ctx.set_output(0, distribution(random, sizes, self.dtype))


register_op(
    "StatefulStandardNormal(resource: resource, shape: shape_dtype) -> output: dtype",
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
    "RngSkip(resource: resource, algorithm: int64, delta: int64)",
    shape_fn=lambda c: check_scalars(c, 1, 2),
    is_stateful=True,
    doc="Moves a generator on by the blocks of `delta` numbers.",
)
register_op(
    "RngReadAndSkip(resource: resource, alg: int32, delta: uint64) -> value: int64",
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
    "NonDeterministicInts(shape: shape_dtype) -> output: dtype",
    attrs=["dtype: type = DT_INT64", _SHAPE_TYPE],
    shape_fn=common_shapes.random_shape,
    is_stateful=True,
    doc="Integers that the system chooses.",
)


@register_kernel("NonDeterministicInts", types={"dtype": FULL_INT_TYPES}, host_memory=["shape"])
def non_deterministic_ints(shape: Any, *, dtype: DataType) -> Any:
    """Asks the system."""
    sizes = shape_of(shape, dtype)
    size = math.prod(sizes) * dtype.numpy_dtype.itemsize
    return np.frombuffer(bytearray(os.urandom(size)), dtype.numpy_dtype).reshape(sizes)
