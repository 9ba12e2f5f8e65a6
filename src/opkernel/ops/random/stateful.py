"""Numbers of a kernel's own stream: RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal.

The attrs `seed` and `seed2` choose the stream. A kernel lives as long as its session, and each call goes on
where the last one ended.

Source: TensorFlow core/ops/random_ops.cc, core/kernels/random_op.cc.
"""

from typing import Any

from opkernel.kernel import OpKernelContext
from opkernel.opdef import InferenceContext, common_shapes, register_op
from opkernel.ops.kernel_types import FLOATS, INDEX
from opkernel.ops.random.distributions import (
    Distribution,
    normal,
    truncated_normal,
    uniform,
    uniform_int,
)
from opkernel.ops.random.filling import StreamKernel
from opkernel.ops.random.inputs import bounds_of, shape_of
from opkernel.ops.random.shapes import check_bounds
from opkernel.ops.registration import register_kernel

SEEDS = ["seed: int = 0", "seed2: int = 0"]

for _name, _traits, _doc in (
    (
        "RandomUniform",
        "function_gradient=none",
        "Numbers from 0 to 1, without 1, in a tensor of the given shape.",
    ),
    ("RandomStandardNormal", "", "Normal numbers of mean 0 and deviation 1."),
    (
        "TruncatedNormal",
        "",
        "Normal numbers of mean 0 and deviation 1, of which none is as far from 0 as 2.",
    ),
):
    register_op(
        _name,
        inputs=["shape: T"],
        outputs=["output: dtype"],
        attrs=[*SEEDS, "dtype: {half, bfloat16, float, double}", "T: {int32, int64}"],
        shape_fn=common_shapes.random_shape,
        is_stateful=True,
        traits=f"any_order clustering=stateful_random {_traits}",  # the state is of the node alone
        doc=_doc,
    )


_DISTRIBUTIONS: dict[str, Distribution] = {
    "RandomUniform": uniform,
    "RandomStandardNormal": normal,
    "TruncatedNormal": truncated_normal,
}


@register_kernel(*_DISTRIBUTIONS, types={"dtype": FLOATS}, host_memory=["shape"])
class FillOp(StreamKernel):
    """Fills a tensor with numbers of one distribution."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw as many numbers as the shape of input 0 has elements."""
        ctx.set_output(0, self.drawn(ctx.input(0), _DISTRIBUTIONS[self.type_string]))

    def drawn(self, shape: Any, distribution: Distribution) -> Any:
        """The tensor."""
        sizes = shape_of(shape, self.dtype)
        count = 1
        for size in sizes:
            count *= size
        return distribution(self.generator.reserve_outputs(count), sizes, self.dtype)


def random_uniform_int_shape(c: InferenceContext) -> None:
    """The shape, the bounds."""
    check_bounds(c, 1)
    common_shapes.random_shape(c)


register_op(
    "RandomUniformInt",
    inputs=["shape: T", "minval: Tout", "maxval: Tout"],
    outputs=["output: Tout"],
    attrs=[*SEEDS, "Tout: {int32, int64}", "T: {int32, int64}"],
    shape_fn=random_uniform_int_shape,
    is_stateful=True,
    traits="any_order clustering=stateful_random",
    doc="Integers from `minval` to `maxval`, without `maxval`.",
)


@register_kernel(
    "RandomUniformInt", types={"Tout": INDEX}, host_memory=["shape", "minval", "maxval"]
)
class RandomUniformInt(FillOp):
    """Integers between bounds."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw them."""
        low, high = bounds_of(ctx.input(1), ctx.input(2))
        ctx.set_output(0, self.drawn(ctx.input(0), uniform_int(low, high)))
