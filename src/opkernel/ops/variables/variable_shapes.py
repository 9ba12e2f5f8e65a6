"""Pieces of the shape functions of ops on variables.

Source: TensorFlow core/ops/resource_variable_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, ShapeAndType, ShapeHandle
from opkernel.types import DataType

__all__ = ["check_scatter", "check_variants", "set_value"]


def set_value(c: InferenceContext, shape: ShapeHandle, held: list[ShapeAndType]) -> None:
    """The output is the value of a variable. A variant keeps the rest of the handle data."""
    c.set_output(0, shape)
    if held[0].dtype == DataType.DT_VARIANT and len(held) > 1:
        c.set_output_handle_shapes_and_types(0, held[1:])


def check_variants(c: InferenceContext, index: int, held: list[ShapeAndType]) -> None:
    """Refuse to write an input into a variable of variants that hold another number of tensors."""
    written = c.input_handle_shapes_and_types(index)
    expected = len(held) - 1
    if held[0].dtype != DataType.DT_VARIANT or expected == 0 or written is None:
        return
    if len(written) != expected:
        raise InvalidArgumentError(
            "Incompatible handle variant shape_and_type size and input shape_and_type size: "
            f"{expected} vs. {len(written)}"
        )


def check_scatter(c: InferenceContext, variable: ShapeHandle) -> None:
    """Refuse updates unless they are one scalar, or [indices..., rest of the variable...]."""
    rows = c.concatenate(c.input(1), c.subshape(variable, 1))
    if c.rank(c.input(2)) != 0:
        c.merge(c.input(2), rows)
