"""SparseFillEmptyRows, and its gradient.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_fill_empty_rows_op.cc.
"""

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import making_bytes
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_input_ranks, set_outputs
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.kernel_types import ALL, NARROW_FLOATS, NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.tensors import check_entries, check_parts, check_rank
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType, TensorShape


def sparse_fill_empty_rows_shape(c: InferenceContext) -> None:
    """A truth value for each row of the dense shape, a place for each value."""
    indices, values, shape, _ = check_input_ranks(c, 2, 1, 1, 0)
    rows = c.merge(c.dim(indices, 0), c.dim(values, 0))
    c.merge(c.dim(indices, 1), c.dim(shape, 0))
    filled = [c.matrix(None, c.num_elements(shape)), c.vector(None)]
    dense = c.make_shape_from_shape_tensor(2)
    set_outputs(c, [*filled, c.vector(c.dim(dense, 0)), c.vector(rows)])


SPARSE_FILL_EMPTY_ROWS = register_op(
    "SparseFillEmptyRows",
    inputs=["indices: int64", "values: T", "dense_shape: int64", "default_value: T"],
    outputs=[
        "output_indices: int64",
        "output_values: T",
        "empty_row_indicator: bool",
        "reverse_index_map: int64",
    ],
    attrs=["T: type"],
    shape_fn=sparse_fill_empty_rows_shape,
    doc="A sparse tensor with the default value in the first column of each row without entries.",
)
SPARSE_FILL_EMPTY_ROWS_GRAD = register_op(
    "SparseFillEmptyRowsGrad",
    inputs=["reverse_index_map: int64", "grad_values: T"],
    outputs=["d_values: T", "d_default_value: T"],
    attrs=["T: type"],
    shape_fn=shape_rule("[?], [?] -> in0, []"),
    doc="The gradients of the values and of the default value of SparseFillEmptyRows.",
)


@register_kernel(SPARSE_FILL_EMPTY_ROWS, types={"T": ALL})
def sparse_fill_empty_rows(
    indices: Any, values: Any, dense_shape: Any, default_value: Any, *, T: DataType
) -> tuple[Any, Any, Any, Any]:
    check_rank(0, default_value=default_value)
    check_parts(indices, values, dense_shape)
    if not len(dense_shape):
        raise InvalidArgumentError("Dense shape cannot be empty.")
    (height,) = TensorShape(dense_shape[:1].tolist())
    check_allocation((height, indices.shape[1]), DataType.DT_INT64)
    _check_rows(indices[:, 0], height)
    return fill_empty_rows(indices, values, height, default_value, T)


_OF_ROW = 32
"""The bytes of a row's numbers while rows are put in order."""


def _check_rows(rows: Any, height: int) -> None:
    if len(rows) and not height:
        raise InvalidArgumentError(
            f"Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {len(rows)}"
        )
    outside = (rows < 0) | (rows >= height)
    if outside.any():
        at = int(np.argmax(outside))
        rule = "< 0" if rows[at] < 0 else f">= {height}"
        raise InvalidArgumentError(f"indices({at}, 0) is invalid: {rows[at]} {rule}")


def fill_empty_rows(
    indices: Any, values: Any, height: int, default_value: Any, dtype: DataType
) -> tuple[Any, Any, Any, Any]:
    """The outputs of SparseFillEmptyRows; the first columns of the indices are in 0 ... `height` - 1."""
    columns = indices.shape[1]
    is_empty = np.ones(height, bool)
    is_empty[indices[:, 0]] = False
    missing = np.flatnonzero(is_empty)
    count = len(indices) + len(missing)
    check_entries(count, columns, dtype)
    with making_bytes("rows in order", (_OF_ROW + 8 * columns) * count):
        return _filled(indices, values, missing, is_empty, default_value)


def _filled(
    indices: Any, values: Any, missing: Any, is_empty: Any, default_value: Any
) -> tuple[Any, Any, Any, Any]:
    rows, columns = indices[:, 0], indices.shape[1]
    order = stable_order(np.concatenate((rows, missing)))
    filled = np.zeros((len(missing), columns), np.int64)
    filled[:, 0] = missing
    defaults = np.full(len(missing), default_value, values.dtype)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return (
        np.concatenate((indices, filled))[order],
        np.concatenate((values, defaults))[order],
        is_empty,
        places[: len(rows)],
    )


@register_kernel(SPARSE_FILL_EMPTY_ROWS_GRAD, types={"T": NUMBERS})
def sparse_fill_empty_rows_grad(
    reverse_index_map: Any, grad_values: Any, *, T: DataType
) -> tuple[Any, Any]:
    check_rank(1, reverse_index_map=reverse_index_map, grad_values=grad_values)
    outside = (reverse_index_map < 0) | (reverse_index_map >= len(grad_values))
    if outside.any():
        raise InvalidArgumentError(
            f"Elements in reverse index must be in [0, {len(grad_values)}) but got "
            f"{reverse_index_map[np.argmax(outside)]}"
        )
    is_default = np.ones(len(grad_values), bool)
    is_default[reverse_index_map] = False
    wide = np.float32 if T in NARROW_FLOATS else grad_values.dtype
    total = grad_values[is_default].sum(dtype=wide).astype(grad_values.dtype)
    return grad_values[reverse_index_map], total


@g.register_gradient("SparseFillEmptyRows")
def sparse_fill_empty_rows_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    values, default = g.nodes.SparseFillEmptyRowsGrad(op.outputs[3], grads[1])
    return [None, values, None, default]
