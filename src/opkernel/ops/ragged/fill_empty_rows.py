"""RaggedFillEmptyRows: a default value for each row that has none.

Source: TensorFlow core/ops/sparse_ops.cc, core/kernels/sparse_fill_empty_rows_op.cc.
"""

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_equal
from opkernel.ops.kernel_types import ALL, NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.ops.sparse.fill_empty_rows import fill_empty_rows
from opkernel.types import DataType, TensorShape

RAGGED_FILL_EMPTY_ROWS = register_op(
    "RaggedFillEmptyRows",
    inputs=["value_rowids: int64", "values: T", "nrows: int64", "default_value: T"],
    outputs=[
        "output_value_rowids: int64",
        "output_values: T",
        "empty_row_indicator: bool",
        "reverse_index_map: int64",
    ],
    attrs=["T: type"],
    shape_fn=shape_rule("[n], [n], [], [] -> [?], [?], [?], [n]"),
    doc="The values in the order of their rows, with `default_value` in each row that had none.",
)

RAGGED_FILL_EMPTY_ROWS_GRAD = register_op(
    "RaggedFillEmptyRowsGrad",
    inputs=["reverse_index_map: int64", "grad_values: T"],
    outputs=["d_values: T", "d_default_value: T"],
    attrs=["T: type"],
    shape_fn=shape_rule("[?], [?] -> in0, []"),
    doc="The gradients of RaggedFillEmptyRows: of the values, and of the default.",
)


def _check_rank(name: str, tensor: Any, rank: int) -> None:
    if tensor.ndim != rank:
        kind = "vector" if rank else "scalar"
        raise InvalidArgumentError(f"{name} must be a {kind}, saw: {TensorShape(tensor.shape)}")


@register_kernel(RAGGED_FILL_EMPTY_ROWS, types={"T": ALL})
def ragged_fill_empty_rows(
    value_rowids: Any, values: Any, nrows: Any, default_value: Any, *, T: DataType
) -> tuple[Any, Any, Any, Any]:
    _check_rank("nrows", nrows, 0)
    _check_rank("value_rowids", value_rowids, 1)
    _check_rank("values", values, 1)
    _check_rank("default_value", default_value, 0)
    require_equal(value_rowids.size, values.size, "{} row ids do not fit {} values")
    rows = int(nrows)
    check_allocation((rows,), DataType.DT_INT64)
    if values.size and not 0 <= value_rowids.min() <= value_rowids.max() < rows:
        raise InvalidArgumentError(
            f"value_rowids must be in [0, {rows}), but are "
            f"{value_rowids.min()} ... {value_rowids.max()}"
        )
    outputs = fill_empty_rows(value_rowids.reshape(-1, 1), values, rows, default_value, T)
    return outputs[0].reshape(-1), *outputs[1:]


@register_kernel(RAGGED_FILL_EMPTY_ROWS_GRAD, types={"T": NUMBERS})
def ragged_fill_empty_rows_grad(
    reverse_index_map: Any, grad_values: Any, *, T: DataType
) -> tuple[Any, Any]:
    _check_rank("reverse_index_map", reverse_index_map, 1)
    _check_rank("grad_values", grad_values, 1)
    count = grad_values.size
    wrong = (reverse_index_map < 0) | (reverse_index_map >= count)
    if wrong.any():
        raise InvalidArgumentError(
            f"Elements in reverse index must be in [0, {count}) but got "
            f"{reverse_index_map[wrong.argmax()]}"
        )
    is_default = np.ones(count, np.bool_)
    is_default[reverse_index_map] = False
    total = grad_values[is_default].sum(dtype=T.numpy_dtype)
    return grad_values[reverse_index_map], np.asarray(total, T.numpy_dtype)[()]


@g.register_gradient("RaggedFillEmptyRows")
def ragged_fill_empty_rows_gradient(
    op: g.Operation, _rows: Any, grad: g.Tensor, _empty: Any, _map: Any
) -> g.Gradients:
    values, default = g.nodes.RaggedFillEmptyRowsGrad(op.outputs[3], grad)
    return None, values, None, default
