"""Uniform, normal and truncated normal numbers: RandomUniform and its kin, and their Stateless kin.

The kernels of RandomUniform and the like have a stream of their own. Those of StatelessRandomUniform and the
like get a seed, or a key and a counter, at each call.

Source: TensorFlow core/ops/random_ops.cc, core/kernels/random_op.cc, core/ops/stateless_random_ops.cc,
core/kernels/stateless_random_ops.cc, core/ops/stateless_random_ops_v2.cc,
core/kernels/stateless_random_ops_v2.cc.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.kernel import KernelRegistry, OpKernelContext, allocate
from opkernel.opdef import InferenceContext, common_shapes, register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.random.distributions import (
    Distribution,
    full_int,
    normal,
    truncated_normal,
    uniform,
    uniform_int,
)
from opkernel.ops.random.inputs import (
    PHILOX,
    bounds_of,
    check_bounds,
    check_scalar_bounds,
    check_seed,
    key_and_counter,
    keyed_int_shape,
    keyed_shape,
    of_seed,
    philox_of,
    seeded_int_shape,
    seeded_shape,
    shape_of,
)
from opkernel.ops.random.philox import Philox, StreamKernel
from opkernel.ops.registration import FLOATS, INDEX, register_kernel
from opkernel.types import DataType

SEEDS = ["seed: int = 0", "seed2: int = 0"]

FULL_INT_TYPES = (*INDEX, DataType.DT_UINT32, DataType.DT_UINT64)
_FLOATS = (DataType.DT_HALF, DataType.DT_BFLOAT16, DataType.DT_FLOAT, DataType.DT_DOUBLE)

DOCS: dict[Distribution, str] = {
    uniform: "Numbers from 0 to 1, without 1",
    normal: "Normal numbers of mean 0 and deviation 1",
    truncated_normal: "Normal numbers of which none is as far from 0 as 2",
    full_int: "Integers of the whole range of their type",
}
"""What the ops of each distribution draw."""

_DISTRIBUTIONS: dict[str, Distribution] = {
    "RandomUniform": uniform,
    "RandomStandardNormal": normal,
    "TruncatedNormal": truncated_normal,
}
for _name, _distribution in _DISTRIBUTIONS.items():
    _traits = "function_gradient=none" if _distribution is uniform else ""
    register_op(
        f"{_name}(shape: T) -> output: dtype",
        attrs=[*SEEDS, "dtype: {half, bfloat16, float, double}", "T: {int32, int64}"],
        shape_fn=common_shapes.random_shape,
        is_stateful=True,
        traits=f"any_order clustering=stateful_random {_traits}",  # the state is of the node alone
        doc=f"{DOCS[_distribution]}, in a tensor of the given shape.",
    )


def random_uniform_int_shape(c: InferenceContext) -> None:
    """The shape, the bounds."""
    check_bounds(c, 1)
    common_shapes.random_shape(c)


register_op(
    "RandomUniformInt(shape: T, minval: Tout, maxval: Tout) -> output: Tout",
    attrs=[*SEEDS, "Tout: {int32, int64}", "T: {int32, int64}"],
    shape_fn=random_uniform_int_shape,
    is_stateful=True,
    traits="any_order clustering=stateful_random",
    doc="Integers from `minval` to `maxval`, without `maxval`.",
)


@register_kernel(*_DISTRIBUTIONS, types={"dtype": FLOATS}, host_memory=["shape"])
@register_kernel(
    "RandomUniformInt", types={"Tout": INDEX}, host_memory=["shape", "minval", "maxval"]
)
class FillOp(StreamKernel):
    """Fills a tensor with numbers of one distribution."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw as many numbers as the shape of input 0 has elements, between bounds where these are inputs."""
        distribution = _DISTRIBUTIONS.get(self.type_string)
        if distribution is None:
            check_scalar_bounds(ctx.input(1), ctx.input(2))
        sizes = shape_of(ctx.input(0), self.dtype)
        if 0 in sizes:  # of nothing, any bounds will do
            ctx.set_output(0, allocate(sizes, self.dtype))
            return
        if distribution is None:
            distribution = uniform_int(*bounds_of(ctx.input(1), ctx.input(2)))
        random = self.generator.reserve_outputs(math.prod(sizes))
        ctx.set_output(0, distribution(random, sizes, self.dtype))


SEED_TYPE = "Tseed: {int32, int64} = DT_INT64"
KEY = "key: uint64, counter: uint64, alg: int32"

Draw = Callable[..., Any]
"""Numbers of a stream, a shape and a type, and of the parameters that are further inputs of an op."""


def seeded(draw: Draw) -> Callable[..., Draw]:
    """Makes the kernels of an op that takes a shape, a seed and parameters."""

    def make(*, dtype: DataType) -> Callable[..., Any]:
        def drawn(shape: Any, seed: Any, *parameters: Any) -> Any:
            sizes = shape_of(shape, dtype)
            check_seed(seed)
            if 0 in sizes:  # of nothing, any parameters will do
                return allocate(sizes, dtype)
            return draw(of_seed(seed), sizes, dtype, *parameters)

        return drawn

    return make


def keyed(draw: Draw) -> Callable[..., Draw]:
    """Makes the kernels of an op that takes a shape, a key, a counter, an algorithm and parameters."""

    def make(*, dtype: DataType) -> Callable[..., Any]:
        def drawn(shape: Any, key: Any, counter: Any, alg: Any, *parameters: Any) -> Any:
            algorithm = key_and_counter(key, counter, alg)
            sizes = shape_of(shape, dtype)
            if 0 in sizes:
                return allocate(sizes, dtype)
            return draw(philox_of(key, counter, algorithm), sizes, dtype, *parameters)

        return drawn

    return make


def register_draws(
    names: tuple[str, str],
    draw: Draw,
    types: Sequence[DataType],
    *parameters: str,
    registry: KernelRegistry | None = None,
) -> None:
    """Register the kernels of two ops, one by a seed and one by a key; inputs that are parameters are on the host."""
    for name, host, make in ((names[0], "seed", seeded), (names[1], "alg", keyed)):
        memory = ["shape", host, *parameters]
        register = partial(register_kernel, types={"dtype": types}, registry=registry)
        register(name, host_memory=memory, factory=True)(make(draw))


for _name, _draw in {
    "StatelessRandomUniform": uniform,
    "StatelessRandomNormal": normal,
    "StatelessTruncatedNormal": truncated_normal,
    "StatelessRandomUniformFullInt": full_int,
}.items():
    _types = FULL_INT_TYPES if _draw is full_int else _FLOATS
    _allowed = f"{{{', '.join(dtype.string for dtype in _types)}}}"
    _is_int = _draw is full_int
    _dtype = f"dtype: {_allowed} = {'DT_UINT64' if _is_int else 'DT_FLOAT'}"
    register_op(
        f"{_name}(shape: T, seed: Tseed) -> output: dtype",
        attrs=[
            _dtype,
            "T: {int32, int64} = DT_INT32",
            f"Tseed: {_allowed} = DT_INT64" if _is_int else SEED_TYPE,
        ],
        shape_fn=seeded_shape,
        traits="" if _is_int else "function_gradient=none",
        doc=f"{DOCS[_draw]}. The seed, two integers, determines them.",
    )
    register_op(
        f"{_name}V2(shape: Tshape, {KEY}) -> output: dtype",
        attrs=[_dtype, "Tshape: {int32, int64} = DT_INT32"],
        shape_fn=keyed_shape,
        doc=f"{DOCS[_draw]}. The key and the counter determine them; `alg` is 1 (Philox) or 3 (any).",
    )
    register_draws((_name, f"{_name}V2"), _draw, _types)


register_op(
    "StatelessRandomUniformInt(shape: T, seed: Tseed, minval: dtype, maxval: dtype) -> output: dtype",
    attrs=["dtype: {int32, int64}", "T: {int32, int64}", SEED_TYPE],
    shape_fn=seeded_int_shape,
    doc="Integers from `minval` to `maxval`, without `maxval`. The seed determines them.",
)


register_op(
    f"StatelessRandomUniformIntV2(shape: Tshape, {KEY}, minval: dtype, maxval: dtype) -> output: dtype",
    attrs=["dtype: {int32, int64, uint32, uint64}", "Tshape: {int32, int64} = DT_INT32"],
    shape_fn=keyed_int_shape,
    doc="Integers from `minval` to `maxval`, without `maxval`. The key and the counter determine them.",
)


def _integers(
    random: Philox, sizes: tuple[int, ...], dtype: DataType, minval: Any, maxval: Any
) -> Any:
    return uniform_int(*bounds_of(minval, maxval))(random, sizes, dtype)


_OF_INT = "StatelessRandomUniformInt", "StatelessRandomUniformIntV2"
register_draws(_OF_INT, _integers, INDEX, "minval", "maxval")


# Keys


register_op(
    "StatelessRandomGetKeyCounter(seed: Tseed) -> key: uint64, counter: uint64",
    attrs=[SEED_TYPE],
    shape_fn=shape_rule("[2] -> [1], [2]"),
    doc="A key and a counter that a seed, two integers, determines.",
)
register_op(
    f"StatelessRandomGetKeyCounterAlg(seed: Tseed) -> {KEY}",
    attrs=[SEED_TYPE],
    shape_fn=shape_rule("[2] -> [1], [2], []"),
    doc="A key and a counter that a seed, two integers, determines, and the algorithm for them.",
)
register_op(
    "StatelessRandomGetAlg() -> alg: int32",
    shape_fn=common_shapes.scalar_shape,
    is_stateful=True,
    doc="The number of the algorithm that suits the device: 1, Philox.",
)


@register_kernel("StatelessRandomGetKeyCounter", host_memory=["seed", "key", "counter"])
def stateless_random_get_key_counter(seed: Any) -> tuple[Any, Any]:
    check_seed(seed)
    stream = of_seed(seed)
    return np.array([stream.key], np.uint64), np.array([0, stream.counter >> 64], np.uint64)


@register_kernel("StatelessRandomGetKeyCounterAlg", host_memory=["seed", "key", "counter", "alg"])
def stateless_random_get_key_counter_alg(seed: Any) -> tuple[Any, Any, Any]:
    return (*stateless_random_get_key_counter(seed), np.int32(PHILOX))


@register_kernel("StatelessRandomGetAlg", host_memory=["alg"])
def stateless_random_get_alg() -> Any:
    return np.int32(PHILOX)
