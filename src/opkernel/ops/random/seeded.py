"""Numbers that a seed determines: StatelessRandomUniform and its kin.

Source: TensorFlow core/ops/stateless_random_ops.cc, core/kernels/stateless_random_ops.cc.
"""

from collections.abc import Callable
from typing import Any

from opkernel.kernel import allocate
from opkernel.opdef import register_op
from opkernel.ops.kernel_types import FLOATS, INDEX
from opkernel.ops.random.distributions import (
    Distribution,
    full_int,
    normal,
    truncated_normal,
    uniform,
    uniform_int,
)
from opkernel.ops.random.inputs import bounds_of, check_seed, of_seed, shape_of
from opkernel.ops.random.shapes import seeded_int_shape, seeded_shape
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
    register_kernel(
        _name, device="CPU", types={"dtype": FLOATS}, host_memory=["shape", "seed"], factory=True
    )(_fill(_distribution))

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
    device="CPU",
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
    device="CPU",
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
