"""Rows in random order: RandomShuffle, StatelessShuffle.

Source: TensorFlow core/ops/random_ops.cc, stateless_random_ops_v2.cc, core/kernels/random_shuffle_op.cc,
stateless_random_ops_v2.cc.
"""

from array import array
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import common_shapes, register_op
from opkernel.ops.kernel_types import ALL
from opkernel.ops.philox import Philox
from opkernel.ops.random.guarded import GuardedPhilox
from opkernel.ops.random.inputs import key_and_counter, philox_of
from opkernel.ops.random.keyed import KEY
from opkernel.ops.random.stateful import SEEDS
from opkernel.ops.registration import register_kernel

_INT32_MAX = 2**31 - 1
_AT_ONCE = 1 << 15
"""So many rows are moved at once."""

register_op(
    "RandomShuffle",
    inputs=["value: T"],
    outputs=["output: T"],
    attrs=[*SEEDS, "T: type"],
    shape_fn=common_shapes.unchanged_shape,
    is_stateful=True,
    traits="any_order clustering=stateful_random",
    doc="The rows of a tensor in random order.",
)
register_op(
    "StatelessShuffle",
    inputs=["value: T", *KEY],
    outputs=["output: T"],
    attrs=["T: type"],
    shape_fn=common_shapes.unchanged_shape,
    doc="The rows of a tensor in an order that a key and a counter determine.",
)


@register_kernel("RandomShuffle", device="CPU", types={"T": ALL})
class RandomShuffle(OpKernel):
    """Shuffles by the kernel's own stream."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.generator = GuardedPhilox(construction)

    def compute(self, ctx: OpKernelContext) -> None:
        """Shuffle."""
        value = ctx.input(0)
        if value.size > 1 and len(value) > 1:
            value = _shuffled(value, self.generator.reserve_words(len(value) - 1))
        ctx.set_output(0, value)


@register_kernel("StatelessShuffle", device="CPU", types={"T": ALL}, kind="view")
def stateless_shuffle(value: Any, key: Any, counter: Any, alg: Any) -> Any:
    random = philox_of(key, counter, key_and_counter(key, counter, alg))
    return _shuffled(value, random) if value.size > 1 and len(value) > 1 else value


def _shuffled(value: Any, random: Philox) -> Any:
    """Each row in turn changes places with itself or one of those after it."""
    count = len(value)
    order = array("q", range(count)) if count > _INT32_MAX else array("i", range(count))
    for start in in_time(range(0, count - 1, _AT_ONCE), SLOW):
        rows = np.arange(start, min(start + _AT_ONCE, count - 1))
        words = random.skip(start // 4).blocks(-(-len(rows) // 4)).reshape(-1)[: len(rows)]
        others = rows + (words % (count - rows).astype(np.uint32)).astype(np.intp)
        for row, other in enumerate(others.tolist(), start):
            order[row], order[other] = order[other], order[row]
    result = np.empty_like(value)
    for start in in_time(range(0, count, _AT_ONCE), SLOW):
        result[start : start + _AT_ONCE] = value[np.array(order[start : start + _AT_ONCE])]
    return result
