"""Shapes of ops that call functions, and of ops that run for many requests at once.

Source: TensorFlow core/ops/functional_ops.cc, batch_ops.cc, script_ops.cc, dataset_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    unknown_shape,
)
from opkernel.opdef.common_shapes.rules import each_output_as_its_input
from opkernel.types import DataType


def _symbolic_gradient(c: InferenceContext) -> None:
    """A gradient has the shape of its input; the gradient of a resource has the shape of its contents."""
    if c.num_inputs() < c.num_outputs():
        raise InvalidArgumentError("len(inputs) < len(outputs)")
    for i, dtype in enumerate(c.get_attr("Tin")[: c.num_outputs()]):
        shape = c.input(i)
        if dtype == DataType.DT_RESOURCE:
            held = c.input_handle_shapes_and_types(i)
            shape = held[0].shape if held else c.unknown_shape()
        c.set_output(i, shape)


def _map_defun(c: InferenceContext) -> None:
    """[n, result...] of a function called with each of n rows of the arguments."""
    shapes = c.get_attr("output_shapes")
    if len(shapes) != c.num_outputs():
        raise InvalidArgumentError(
            "`output_shapes` must be the same length as `output_types` "
            f"({len(shapes)} vs. {c.num_outputs()})"
        )
    rows = _rows_of_arguments(c)
    for i, shape in enumerate(shapes):
        result = c.make_shape_from_partial_shape(shape)
        c.set_output(i, c.concatenate(c.vector(rows), result))


def _rows_of_arguments(c: InferenceContext) -> int | None:
    rows = None
    for i in range(len(c.get_attr("Targuments"))):
        if c.rank(c.input(i)) == 0:
            raise InvalidArgumentError(
                f"Arguments must have rank at least 1. Input {i} has rank of 0."
            )
        size = c.dim(c.input(i), 0)
        if not c.value_known(size):
            continue
        if rows not in (None, size.value):
            raise InvalidArgumentError("Arguments must have the same dimension 0.")
        rows = size.value
    return rows


def _batch(c: InferenceContext) -> None:
    """All inputs with more rows; which request each row came from, and the id of the batch."""
    batched = [c.replace_dim(shape, 0, None) for shape in c.input("in_tensors")]
    c.set_output("batched_tensors", batched)
    c.set_output("id", c.scalar())
    c.set_output("batch_index", c.matrix(None, 3))


def _unbatch(c: InferenceContext) -> None:
    c.set_output(0, c.replace_dim(c.input(0), 0, None))


def _unbatch_grad(c: InferenceContext) -> None:
    grad = c.input(2)
    c.set_output(
        0, c.unknown_shape_of_rank(c.rank(grad)) if c.rank_known(grad) else c.unknown_shape()
    )


TRAITS = {"SymbolicGradient": "calls=gradient"}

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "Batch": _batch,
    "BatchFunction": unknown_shape,
    "EagerPyFunc": unknown_shape,
    "MapDefun": _map_defun,
    "PyFunc": unknown_shape,
    "PyFuncStateless": unknown_shape,
    "SymbolicGradient": _symbolic_gradient,
    "Unbatch": _unbatch,
    "UnbatchGrad": _unbatch_grad,
    "_If": unknown_shape,
    "_While": each_output_as_its_input,
}
