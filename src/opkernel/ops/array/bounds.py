"""Where values would be put into sorted rows: LowerBound, UpperBound.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/searchsorted_op.cc.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import in_pieces
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes.rules import check_input_ranks
from opkernel.ops.input_checks import require_equal, require_rank
from opkernel.ops.kernel_types import INDEX, REAL_NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_INT32_MAX = 2**31 - 1


def bound_shape(c: InferenceContext) -> None:
    """The shape of `values`, as it is given: where its rank is unknown, that stays so."""
    check_input_ranks(c, 2, 2)
    c.set_output(0, c.input(1))


def _declare(name: str, doc: str) -> OpHandle:
    return register_op(
        name,
        inputs=["sorted_inputs: T", "values: T"],
        outputs=["output: out_type"],
        attrs=["T: type", "out_type: {int32, int64} = DT_INT32"],
        shape_fn=bound_shape,
        doc=doc,
    )


LOWER_BOUND = _declare(
    "LowerBound",
    "For each value the first place in its row of `sorted_inputs` where it is not too large.",
)
UPPER_BOUND = _declare(
    "UpperBound",
    "For each value the first place in its row of `sorted_inputs` with something larger.",
)


def _register(op: OpHandle, is_before: Callable[[Any, Any], Any]) -> None:
    """`is_before(element, value)` says whether the bound of `value` is behind `element`."""

    def make(*, out_type: DataType, xp: Any) -> Callable[[Any, Any], Any]:
        def bound(sorted_inputs: Any, values: Any) -> Any:
            _check(sorted_inputs, values, out_type)
            return _bounds(sorted_inputs, values, is_before, xp).astype(out_type.numpy_dtype)

        return bound

    make.__name__ = op.name
    types = {"T": REAL_NUMBERS, "out_type": INDEX}
    register_kernel(op, types=types, factory=True)(make)


def _check(sorted_inputs: Any, values: Any, out_type: DataType) -> None:
    for name, tensor in (("sorted_inputs", sorted_inputs), ("values", values)):
        require_rank(
            tensor, 2, f"Shape must be rank 2 but is rank {tensor.ndim} for `{name}` argument"
        )
    require_equal(len(sorted_inputs), len(values), "Leading dim_size of both tensors must match.")
    if out_type == DataType.DT_INT32 and max(values.size, sorted_inputs.shape[1]) >= _INT32_MAX:
        raise InvalidArgumentError("values tensor size must less than INT_MAX")


def _bounds(rows: Any, values: Any, is_before: Callable[[Any, Any], Any], xp: Any) -> Any:
    """Binary search for all values at once.

    It takes the steps of the C++ library. So NaN, which has no order, ends up in the same places.
    """
    count = rows.shape[1]

    def search(row: Any, values: Any) -> Any:
        first = xp.full(values.shape, 0)
        length = xp.full(values.shape, count)
        for _ in range(count.bit_length()):
            half = length >> 1
            middle = first + half
            element = rows[row, xp.minimum(middle, count - 1)]
            behind = (length > 0) & is_before(element, values)
            first = xp.where(behind, middle + 1, first)
            length = xp.where(behind, length - half - 1, half)
        return first

    row = xp.arange(len(rows))[:, None]
    return in_pieces(search, row, values) if xp is np else search(row, values)


_register(LOWER_BOUND, lambda element, value: element < value)
_register(UPPER_BOUND, lambda element, value: ~(value < element))
