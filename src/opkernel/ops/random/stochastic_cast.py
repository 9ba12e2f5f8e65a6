"""StochasticCastToInt: numbers rounded up as often as they are near the larger integer.

Source: TensorFlow core/ops/stochastic_cast_op.cc, core/kernels/stochastic_cast_op.cc, stochastic_cast_op.h.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import shape_rule
from opkernel.ops.random.distributions import uniforms_of_words
from opkernel.ops.random.inputs import check_philox, key_and_counter, of_key
from opkernel.ops.random.philox import Philox
from opkernel.ops.random.uniform_and_normal import KEY
from opkernel.ops.registration import FLOATS, register_kernel
from opkernel.types import Array, DataType

__all__ = ["StochasticRounding"]

_TYPES = (DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32)


register_op(
    f"StochasticCastToInt(input: Tin, {KEY}) -> output: Tout",
    attrs=["Tin: {half, bfloat16, float, double}", "Tout: {int8, int16, int32}"],
    shape_fn=shape_rule("_, [1], [?], [] -> in0"),
    doc="The integers beside numbers, the larger one as often as the number is near it.",
)
_PACKET = {DataType.DT_FLOAT: 8, DataType.DT_DOUBLE: 4}
"""How many numbers TensorFlow's vector instructions round at once, to int32."""

_WRITTEN_AT_ONCE = 8
"""How many int32 they write; what does not fill them is rounded one by one."""


class StochasticRounding:
    """How floating point numbers become integers.

    Attributes:
        packet: How many numbers one block of random words serves, as long as whole vectors are written.
    """

    def __init__(self, source: DataType, target: DataType) -> None:
        self._target = target.numpy_dtype
        limits = np.iinfo(self._target)
        self._least, self._most = (
            source.numpy_dtype.type(bound) for bound in (limits.min, limits.max)
        )
        self._one = source.numpy_dtype.type(1)
        self.packet = _PACKET.get(source, 1) if target == DataType.DT_INT32 else 1

    def whole(self, size: int) -> int:
        """How many of the numbers fill whole vectors."""
        return size // _WRITTEN_AT_ONCE * _WRITTEN_AT_ONCE if self.packet > 1 else 0

    def is_rounded(self, numbers: Any, xp: Any = np) -> Any:
        """Which numbers lie between integers of the type."""
        return (numbers < self._most) & (numbers > self._least) & (xp.floor(numbers) != numbers)

    def rounded(self, numbers: Any, inside: Any, drawn: Any, xp: Any) -> Any:
        """The integers, by a uniform number for each number that is rounded."""
        least, most = self._least, self._most
        up = xp.floor(numbers + self._one - drawn)
        result = xp.where(inside, xp.where(numbers < 0, xp.floor(numbers + drawn), up), numbers)
        result = xp.where(numbers >= most, most, xp.where(numbers <= least, least, result))
        wide = xp.where(xp.isnan(numbers), 0, result.astype(np.float64)).astype(np.int64)
        return wide.astype(self._target)


@register_kernel(
    "StochasticCastToInt", types={"Tin": FLOATS, "Tout": _TYPES}, host_memory=["alg"], factory=True
)
def stochastic_cast_to_int(*, Tin: DataType, Tout: DataType) -> Callable[[Any, Any, Any, Any], Any]:
    rounding = StochasticRounding(Tin, Tout)

    def rounded(numbers: Any, key: Any, counter: Any, alg: Any) -> Any:
        check_philox(key_and_counter(key, counter, alg))
        # TensorFlow's kernel takes the counter for the key, and the key for the counter
        random = of_key([0, int(key[0])], int(counter[0]))
        flat = numbers.reshape(-1)
        inside = rounding.is_rounded(flat)
        whole = rounding.whole(flat.size)
        drawn = _drawn(random, inside, whole, rounding.packet, Tin)
        result: Any = rounding.rounded(flat, inside, drawn, np)
        return result.reshape(numbers.shape)

    return rounded


def _drawn(random: Philox, inside: Array, whole: int, packet: int, dtype: DataType) -> Array:
    """A uniform number for each number: one block for each packet, one for each further fraction."""
    drawn = np.zeros(len(inside), dtype.numpy_dtype)
    packets = whole // packet
    if packets:
        uniforms = uniforms_of_words(random.blocks(packets), dtype)
        drawn[:whole] = np.tile(uniforms, packet // uniforms.shape[1]).reshape(-1)
    rest = whole + np.flatnonzero(inside[whole:])
    drawn[rest] = uniforms_of_words(random.skip(packets).blocks(len(rest)), dtype)[:, 0]
    return drawn
