"""Shape of XlaDot, whose axes stand in an attr as a serialized DotDimensionNumbers message.

Source: XlaDotShapeFunction in TensorFlow compiler/tf2xla/ops/xla_ops.cc, xla_data.proto.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, unknown_shape
from opkernel.ops.declared.dimension_numbers import dimension_numbers

__all__ = ["xla_dot_shape"]


def xla_dot_shape(c: InferenceContext) -> None:
    """Batch dimensions, then those of each operand that are neither batched nor contracted."""
    left, right = c.input(0), c.input(1)
    if left.dims is None or right.dims is None:
        unknown_shape(c)
        return
    axes = dimension_numbers(c.get_attr("dimension_numbers"))
    left_contracted, right_contracted, left_batch, right_batch = (axes[i] for i in (1, 2, 3, 4))
    _check_equal_counts("contracting", left_contracted, right_contracted)
    for i, j in zip(left_contracted, right_contracted, strict=True):
        c.merge(c.dim(left, i), c.dim(right, j))
    _check_equal_counts("batch", left_batch, right_batch)
    dims = [
        c.merge(c.dim(left, i), c.dim(right, j))
        for i, j in zip(left_batch, right_batch, strict=True)
    ]
    used = {0: left_contracted + left_batch, 1: right_contracted + right_batch}
    for side, shape in enumerate((left.dims, right.dims)):
        dims += [dim for i, dim in enumerate(shape) if i not in used[side]]
    c.set_output(0, c.make_shape(dims))


def _check_equal_counts(kind: str, left: list[int], right: list[int]) -> None:
    if len(left) != len(right):
        raise InvalidArgumentError(
            f"Must specify the same number of {kind} dimensions for lhs and rhs. "
            f"Got: {len(left)} and {len(right)}"
        )
