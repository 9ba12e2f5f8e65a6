"""Random numbers from a seed, or from a key and a counter, that each call gets: StatelessRandomUniform and the like.

Source: TensorFlow core/ops/stateless_random_ops.cc, core/kernels/stateless_random_ops.cc,
core/ops/stateless_random_ops_v2.cc, core/kernels/stateless_random_ops_v2.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.kernel import allocate
from opkernel.opdef import InferenceContext, common_shapes, register_op
from opkernel.ops.kernel_types import FLOATS, INDEX
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
    check_seed,
    key_and_counter,
    of_seed,
    philox_of,
    shape_of,
)
from opkernel.ops.random.shapes import (
    check_seed_shape,
    keyed_int_shape,
    keyed_shape,
    seeded_int_shape,
    seeded_shape,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

FULL_INT_TYPES = (*INDEX, DataType.DT_UINT32, DataType.DT_UINT64)

SHAPE_TYPE = "T: {int32, int64} = DT_INT32"
SEED_TYPE = "Tseed: {int32, int64} = DT_INT64"


def _fill(distribution: Distribution) -> Callable[..., Callable[[Any, Any], Any]]:
    """The kernel that fills a tensor with numbers of a distribution."""

    def kernel(*, dtype: DataType) -> Callable[[Any, Any], Any]:
        def drawn(shape: Any, seed: Any) -> Any:
            sizes = shape_of(shape, dtype)
            check_seed(seed)
            return (
                allocate(sizes, dtype) if 0 in sizes else distribution(of_seed(seed), sizes, dtype)
            )

        return drawn

    return kernel


for _name, _distribution, _doc in (
    ("StatelessRandomUniform", uniform, "Numbers from 0 to 1, without 1."),
    ("StatelessRandomNormal", normal, "Normal numbers of mean 0 and deviation 1."),
    (
        "StatelessTruncatedNormal",
        truncated_normal,
        "Normal numbers of which none is as far from 0 as 2.",
    ),
):
    register_op(
        _name,
        inputs=["shape: T", "seed: Tseed"],
        outputs=["output: dtype"],
        attrs=["dtype: {half, bfloat16, float, double} = DT_FLOAT", SHAPE_TYPE, SEED_TYPE],
        shape_fn=seeded_shape,
        traits="function_gradient=none",
        doc=f"{_doc} The seed, two integers, determines them.",
    )
    register_kernel(_name, types={"dtype": FLOATS}, host_memory=["shape", "seed"], factory=True)(
        _fill(_distribution)
    )

register_op(
    "StatelessRandomUniformFullInt",
    inputs=["shape: T", "seed: Tseed"],
    outputs=["output: dtype"],
    attrs=[
        "dtype: {int32, int64, uint32, uint64} = DT_UINT64",
        SHAPE_TYPE,
        "Tseed: {int32, int64, uint32, uint64} = DT_INT64",
    ],
    shape_fn=seeded_shape,
    doc="Integers of the whole range of their type. The seed, two integers, determines them.",
)
register_kernel(
    "StatelessRandomUniformFullInt",
    types={"dtype": FULL_INT_TYPES},
    host_memory=["shape", "seed"],
    factory=True,
)(_fill(full_int))

register_op(
    "StatelessRandomUniformInt",
    inputs=["shape: T", "seed: Tseed", "minval: dtype", "maxval: dtype"],
    outputs=["output: dtype"],
    attrs=["dtype: {int32, int64}", "T: {int32, int64}", SEED_TYPE],
    shape_fn=seeded_int_shape,
    doc="Integers from `minval` to `maxval`, without `maxval`. The seed determines them.",
)


@register_kernel(
    "StatelessRandomUniformInt",
    types={"dtype": INDEX},
    host_memory=["shape", "seed", "minval", "maxval"],
    factory=True,
)
def stateless_random_uniform_int(*, dtype: DataType) -> Callable[[Any, Any, Any, Any], Any]:
    def drawn(shape: Any, seed: Any, minval: Any, maxval: Any) -> Any:
        sizes = shape_of(shape, dtype)
        check_seed(seed)
        if 0 in sizes:  # of nothing, any bounds will do
            return allocate(sizes, dtype)
        return uniform_int(*bounds_of(minval, maxval))(of_seed(seed), sizes, dtype)

    return drawn


KEY = ["key: uint64", "counter: uint64", "alg: int32"]

_SHAPE_TYPE = "Tshape: {int32, int64} = DT_INT32"


def _fill_keyed(distribution: Distribution) -> Callable[..., Callable[[Any, Any, Any, Any], Any]]:
    """The kernel that fills a tensor with numbers of a distribution."""

    def kernel(*, dtype: DataType) -> Callable[[Any, Any, Any, Any], Any]:
        def drawn(shape: Any, key: Any, counter: Any, alg: Any) -> Any:
            algorithm = key_and_counter(key, counter, alg)
            sizes = shape_of(shape, dtype)
            if 0 in sizes:
                return allocate(sizes, dtype)
            return distribution(philox_of(key, counter, algorithm), sizes, dtype)

        return drawn

    return kernel


def _register_keyed(
    name: str, distribution: Distribution, types: tuple[DataType, ...], default: str, doc: str
) -> None:
    allowed = ", ".join(dtype.string for dtype in types)
    register_op(
        name,
        inputs=["shape: Tshape", *KEY],
        outputs=["output: dtype"],
        attrs=[f"dtype: {{{allowed}}} = {default}", _SHAPE_TYPE],
        shape_fn=keyed_shape,
        doc=f"{doc} The key and the counter determine them; `alg` is 1 (Philox) or 3 (any).",
    )
    register_kernel(name, types={"dtype": types}, host_memory=["shape", "alg"], factory=True)(
        _fill_keyed(distribution)
    )


_FLOATS = (DataType.DT_HALF, DataType.DT_BFLOAT16, DataType.DT_FLOAT, DataType.DT_DOUBLE)

_register_keyed(
    "StatelessRandomUniformV2", uniform, _FLOATS, "DT_FLOAT", "Numbers from 0 to 1, without 1."
)
_register_keyed(
    "StatelessRandomNormalV2",
    normal,
    _FLOATS,
    "DT_FLOAT",
    "Normal numbers of mean 0 and deviation 1.",
)
_register_keyed(
    "StatelessTruncatedNormalV2",
    truncated_normal,
    _FLOATS,
    "DT_FLOAT",
    "Normal numbers of which none is as far from 0 as 2.",
)
_register_keyed(
    "StatelessRandomUniformFullIntV2",
    full_int,
    FULL_INT_TYPES,
    "DT_UINT64",
    "Integers of the whole range of their type.",
)

register_op(
    "StatelessRandomUniformIntV2",
    inputs=["shape: Tshape", *KEY, "minval: dtype", "maxval: dtype"],
    outputs=["output: dtype"],
    attrs=["dtype: {int32, int64, uint32, uint64}", _SHAPE_TYPE],
    shape_fn=keyed_int_shape,
    doc="Integers from `minval` to `maxval`, without `maxval`. The key and the counter determine them.",
)


@register_kernel(
    "StatelessRandomUniformIntV2",
    types={"dtype": INDEX},
    host_memory=["shape", "alg", "minval", "maxval"],
    factory=True,
)
def stateless_random_uniform_int_v2(*, dtype: DataType) -> Callable[..., Any]:
    def drawn(shape: Any, key: Any, counter: Any, alg: Any, minval: Any, maxval: Any) -> Any:
        algorithm = key_and_counter(key, counter, alg)
        sizes = shape_of(shape, dtype)
        if 0 in sizes:  # of nothing, any bounds will do
            return allocate(sizes, dtype)
        distribution = uniform_int(*bounds_of(minval, maxval))
        return distribution(philox_of(key, counter, algorithm), sizes, dtype)

    return drawn


# Keys


def key_counter_shape(c: InferenceContext) -> None:
    """A seed -> a key, a counter and, perhaps, the algorithm."""
    check_seed_shape(c, 0)
    shapes = (c.vector(1), c.vector(2), c.scalar())
    for i in range(c.num_outputs()):
        c.set_output(i, shapes[i])


register_op(
    "StatelessRandomGetKeyCounter",
    inputs=["seed: Tseed"],
    outputs=["key: uint64", "counter: uint64"],
    attrs=[SEED_TYPE],
    shape_fn=key_counter_shape,
    doc="A key and a counter that a seed, two integers, determines.",
)
register_op(
    "StatelessRandomGetKeyCounterAlg",
    inputs=["seed: Tseed"],
    outputs=KEY,
    attrs=[SEED_TYPE],
    shape_fn=key_counter_shape,
    doc="A key and a counter that a seed, two integers, determines, and the algorithm for them.",
)
register_op(
    "StatelessRandomGetAlg",
    outputs=["alg: int32"],
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
