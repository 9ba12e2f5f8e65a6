"""SparseFillEmptyRows and RaggedFillEmptyRows: a default value for each row that has none.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/fill_empty_rows_functor.h.
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
from opkernel.ops.input_checks import require_equal, require_scalar, require_vector
from opkernel.ops.kernel_types import ALL, NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.tensors import check_entries, check_parts, check_rank
from opkernel.ops.stable_order import stable_order
from opkernel.types import DataType, TensorShape

_WHERE = ["empty_row_indicator: bool", "reverse_index_map: int64"]


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
    outputs=["output_indices: int64", "output_values: T", *_WHERE],
    attrs=["T: type"],
    shape_fn=sparse_fill_empty_rows_shape,
    doc="A sparse tensor with the default value in the first column of each row without entries.",
)
RAGGED_FILL_EMPTY_ROWS = register_op(
    "RaggedFillEmptyRows",
    inputs=["value_rowids: int64", "values: T", "nrows: int64", "default_value: T"],
    outputs=["output_value_rowids: int64", "output_values: T", *_WHERE],
    attrs=["T: type"],
    shape_fn=shape_rule("[n], [n], [], [] -> [?], [?], [?], [n]"),
    doc="The values in the order of their rows, with `default_value` in each row that had none.",
)
SPARSE_FILL_EMPTY_ROWS_GRAD, RAGGED_FILL_EMPTY_ROWS_GRAD = (
    register_op(
        f"{filled}Grad",
        inputs=["reverse_index_map: int64", "grad_values: T"],
        outputs=["d_values: T", "d_default_value: T"],
        attrs=["T: type"],
        shape_fn=shape_rule("[?], [?] -> in0, []"),
        doc=f"The gradients of the values and of the default value of {filled}.",
    )
    for filled in ("SparseFillEmptyRows", "RaggedFillEmptyRows")
)


@register_kernel(SPARSE_FILL_EMPTY_ROWS, types={"T": ALL})
def sparse_fill_empty_rows(
    indices: Any, values: Any, dense_shape: Any, default_value: Any, *, T: DataType
) -> tuple[Any, Any, Any, Any]:
    check_rank(0, default_value=default_value)
    check_parts(indices, values, dense_shape)
    if not len(dense_shape):
        raise InvalidArgumentError("Dense shape cannot be empty.")
    return _fill_empty_rows(indices, values, dense_shape[0], default_value, T)


@register_kernel(RAGGED_FILL_EMPTY_ROWS, types={"T": ALL})
def ragged_fill_empty_rows(
    value_rowids: Any, values: Any, nrows: Any, default_value: Any, *, T: DataType
) -> tuple[Any, Any, Any, Any]:
    require_scalar(nrows, "nrows must be a scalar, saw: {}")
    require_vector(value_rowids, "value_rowids must be a vector, saw: {}")
    require_vector(values, "values must be a vector, saw: {}")
    require_equal(
        values.size,
        value_rowids.size,
        "The length of `values` ({}) must match the first dimension of `value_rowids` ({}).",
    )
    require_scalar(default_value, "default_value must be a scalar, saw: {}")
    indices = value_rowids.reshape(-1, 1)
    rows, *others = _fill_empty_rows(indices, values, nrows, default_value, T)
    return rows.reshape(-1), *others


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
        raise InvalidArgumentError(f"indices({at}, 0) is invalid: {rows[at]} >= {height}")


def _fill_empty_rows(
    indices: Any, values: Any, height: Any, default_value: Any, dtype: DataType
) -> tuple[Any, Any, Any, Any]:
    """The outputs of SparseFillEmptyRows, for a dense shape of which only the height matters."""
    (height,) = TensorShape([int(height)])
    columns = indices.shape[1]
    check_allocation((height, columns), DataType.DT_INT64)
    _check_rows(indices[:, 0], height)
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


@register_kernel(SPARSE_FILL_EMPTY_ROWS_GRAD, RAGGED_FILL_EMPTY_ROWS_GRAD, types={"T": NUMBERS})
def fill_empty_rows_grad(reverse_index_map: Any, grad_values: Any) -> tuple[Any, Any]:
    """The default's gradient is summed one value after another, as TensorFlow does."""
    require_vector(reverse_index_map, "reverse_index_map must be a vector, saw: {}")
    require_vector(grad_values, "grad_values must be a vector, saw: {}")
    outside = (reverse_index_map < 0) | (reverse_index_map >= len(grad_values))
    if outside.any():
        raise InvalidArgumentError(
            f"Elements in reverse index must be in [0, {len(grad_values)}) but got "
            f"{reverse_index_map[np.argmax(outside)]}"
        )
    is_default = np.ones(len(grad_values), bool)
    is_default[reverse_index_map] = False
    addends = np.concatenate((np.zeros(1, grad_values.dtype), grad_values[is_default]))
    return grad_values[reverse_index_map], np.add.accumulate(addends, dtype=addends.dtype)[-1]


@g.register_gradient("SparseFillEmptyRows")
def sparse_fill_empty_rows_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    values, default = g.nodes.SparseFillEmptyRowsGrad(op.outputs[3], grads[1])
    return [None, values, None, default]


@g.register_gradient("RaggedFillEmptyRows")
def ragged_fill_empty_rows_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    values, default = g.nodes.RaggedFillEmptyRowsGrad(op.outputs[3], grads[1])
    return [None, values, None, default]
