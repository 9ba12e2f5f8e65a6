"""Shapes of the ops that save and restore tensors.

Source: TensorFlow core/ops/io_ops.cc.
"""

from collections.abc import Callable

from opkernel.checkpoint import parse_shape_and_slice
from opkernel.opdef import InferenceContext, ShapeHandle
from opkernel.ops.declared.rules import check_scalars

__all__ = ["restored_shape", "save_shape"]


def save_shape(lists: int) -> Callable[[InferenceContext], None]:
    """A file name, then `lists` vectors with an element for each of the tensors that follow."""

    def check(c: InferenceContext) -> None:
        check_scalars(c, 0)
        for i in range(1, lists + 1):
            names = c.with_rank(c.input(i), 1)
            c.with_value(c.dim(names, 0), c.num_inputs() - lists - 1)

    return check


def restored_shape(c: InferenceContext, shape_and_slice: bytes | str) -> ShapeHandle:
    """The shape of a restored tensor, of which the checkpoint holds a slice; unknown if empty."""
    text = shape_and_slice
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    return c.make_shape(parse_shape_and_slice(text)[2]) if text else c.unknown_shape()
