"""Changes of variables at given indices: ResourceScatter and ResourceScatterNd.

The scatter ops on variables and rows: the parts of a tensor along its first dimension.

Source: TensorFlow core/ops/resource_variable_ops.cc, state_ops.cc, core/kernels/resource_variable_ops.cc,
scatter_nd_op.cc, core/kernels/scatter_functor.h, scatter_op.cc, resource_variable_ops.cc.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import (
    InferenceContext,
    register_op,
    scatter_nd_shape,
    validate_variable_resource_handle,
)
from opkernel.ops.array.bad_indices import BadIndicesPolicy
from opkernel.ops.array.scatter import ScatterAt, max_at, min_at, scatter_slices, set_at
from opkernel.ops.input_checks import require_rank_at_least
from opkernel.ops.kernel_types import INDEX, NUMBERS, POD, POD_OR_STRING, REAL_NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.ops.variables.handles import check_scatter, check_variants
from opkernel.ops.variables.var import Var, variable_of, writing
from opkernel.types import DataType, TensorShape

__all__ = ["SCATTER_AT", "check_indices", "check_rank", "rank_error", "scatter_rows", "subtract_at"]


def subtract_at(params: Any, rows: Any, updates: Any) -> None:
    """Truth values minus each other are true where they differ, as in C++."""
    subtract = np.logical_xor if params.dtype == np.bool_ else np.subtract
    subtract.at(params, rows, updates)


def divide_at(params: Any, rows: Any, updates: Any) -> None:
    """Integers are divided as in C++, towards zero.

    Raises:
        InvalidArgumentError: an integer is divided by zero.
    """
    if params.dtype.kind not in "iu":
        np.divide.at(params, rows, updates)
        return
    if not updates.all():
        raise InvalidArgumentError("Integer division by zero")
    unsigned = np.dtype(f"u{params.dtype.itemsize}")
    magnitudes, negative = np.abs(params).view(unsigned), params < 0
    np.floor_divide.at(magnitudes, rows, np.abs(updates).view(unsigned))
    np.logical_xor.at(negative, rows, updates < 0)
    quotients = magnitudes.view(params.dtype)
    params[...] = np.where(negative, -quotients, quotients)


SCATTER_AT: dict[str, ScatterAt] = {
    "Add": np.add.at,
    "Div": divide_at,
    "Max": max_at,
    "Min": min_at,
    "Mul": np.multiply.at,
    "Sub": subtract_at,
    "Update": set_at,
}
"""The update of rows of a tensor by each op, by the end of the op's name."""


def scatter_rows(scatter_at: ScatterAt, params: Any, indices: Any, updates: Any) -> None:
    """Change rows of `params`, which is contiguous and the caller's own.

    Args:
        scatter_at: Changes rows of a matrix.
        params: The tensor.
        indices: The rows to change.
        updates: A row for each index, of at least as many elements; or one scalar for all.

    Raises:
        InvalidArgumentError: rows are too short, or an index is bad; what stands before it is done.
    """
    if indices.size == 0 or params.size == 0:
        check_indices(indices, len(params))
        return
    flat, matrix = indices.reshape(-1), params.reshape((len(params), -1))
    bad = (flat < 0) | (flat >= len(params))
    count = int(np.argmax(bad)) if bad.any() else flat.size
    rows = updates.reshape((flat.size, -1))[:count] if updates.ndim else updates
    if rows.ndim and rows.shape[1] != matrix.shape[1]:
        _scatter_other_rows(scatter_at, matrix, flat[:count], rows)
    else:
        scatter_at(matrix, flat[:count], rows)
    check_indices(indices, len(params))


def _scatter_other_rows(scatter_at: ScatterAt, matrix: Any, indices: Any, rows: Any) -> None:
    """Scatter rows that are longer than the tensor's rows; their further elements do not count.

    A row that is put in the place of another one, though, goes on into the next row.

    Raises:
        InvalidArgumentError: the rows are shorter.
    """
    width, length = matrix.shape[1], rows.shape[1]
    if length < width:
        raise InvalidArgumentError(
            f"Rows of {length} elements cannot update rows of {width} elements"
        )
    if scatter_at is not set_at:
        scatter_at(matrix, indices, rows[:, :width])
        return
    places = indices.astype(np.int64)[:, None] * width + np.arange(length)
    inside = places < matrix.size
    matrix.reshape(-1)[places[inside]] = rows[inside]


def check_indices(indices: Any, limit: int, shown: int | None = None) -> None:
    """Raise InvalidArgumentError unless all `indices` are in [0, limit); the message has `shown` as the limit."""
    bad = (indices < 0) | (indices >= limit)
    if bad.any():
        at = np.unravel_index(np.argmax(bad), bad.shape)
        place = f"[{','.join(map(str, at))}]" if at else ""
        raise InvalidArgumentError(
            f"indices{place} = {np.asarray(indices)[at]} is not in "
            f"[0, {limit if shown is None else shown})"
        )


def check_rank(params: Any, indices: Any, updates: Any) -> None:
    """Raise InvalidArgumentError unless updates may be rows for the indices, or one scalar."""
    if updates.ndim and updates.ndim != indices.ndim + params.ndim - 1:
        raise rank_error(params, indices, updates)


def rank_error(params: Any, indices: Any, updates: Any) -> InvalidArgumentError:
    """The error for updates that do not fit."""
    updates_shape, indices_shape, params_shape = (
        TensorShape(tensor.shape) for tensor in (updates, indices, params)
    )
    return InvalidArgumentError(
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
        f"updates.shape {updates_shape}, indices.shape {indices_shape}, "
        f"params.shape {params_shape}"
    )


_SCATTERED = {
    "Add": "Adds `updates` to the rows",
    "Sub": "Subtracts `updates` from the rows",
    "Mul": "Multiplies the rows by `updates`",
    "Div": "Divides the rows by `updates`",
    "Min": "Takes the smaller of `updates` and the rows",
    "Max": "Takes the larger of `updates` and the rows",
    "Update": "Puts `updates` in the place of the rows",
}


def resource_scatter_shape(c: InferenceContext) -> None:
    """Updates, unless they are one scalar for all, are [indices..., rest of the variable...]."""
    held = validate_variable_resource_handle(c)
    check_scatter(c, held[0].shape)
    check_variants(c, 2, held)


def resource_scatter_nd_shape(c: InferenceContext) -> None:
    """The slices of the variable, if the resource is known to hold one."""
    held = c.input_handle_shapes_and_types(0)
    variable = held[0].shape if held else c.input(0)
    indices = c.with_rank_at_least(c.input(1), 1)
    scatter_nd_shape(c, indices, c.with_rank_at_least(c.input(2), 1), variable)


def _check_type(kernel: OpKernel, variable: Var) -> None:
    if variable.dtype != kernel.input_types[2]:
        raise InvalidArgumentError("DType of scatter resource and updates does not match.")


class ResourceScatter(OpKernel):
    """Changes rows of a variable."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.scatter_at = SCATTER_AT[self.type_string.removeprefix("ResourceScatter")]

    def compute(self, ctx: OpKernelContext) -> None:
        indices, updates = ctx.input(1), ctx.input(2)
        with variable_of(ctx) as variable:
            _check_type(self, variable)
            with writing(variable.tensor_ref) as params:
                check_rank(params, indices, updates)
                require_rank_at_least(params, 1, "params must be at least 1-D, got shape []")
                if updates.ndim and updates.shape[: indices.ndim] != indices.shape:
                    raise InvalidArgumentError(
                        f"The shape of indices ({TensorShape(indices.shape)}) must be a prefix of "
                        f"the shape of updates ({TensorShape(updates.shape)})"
                    )
                scatter_rows(self.scatter_at, params, indices, updates)


class ResourceScatterNd(OpKernel):
    """Changes slices of a variable."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.scatter_at = SCATTER_AT[self.type_string.removeprefix("ResourceScatterNd")]
        self.policy = BadIndicesPolicy.from_attr(construction.get_attr("bad_indices_policy"))

    def compute(self, ctx: OpKernelContext) -> None:
        with variable_of(ctx) as variable:
            _check_type(self, variable)
            with writing(variable.tensor_ref) as params:
                require_rank_at_least(params, 1, "Output must be at least 1-D, got shape: []")
                scatter_slices(self.scatter_at, params, ctx.input(1), ctx.input(2), self.policy)


for _change, _types in (
    *((name, NUMBERS) for name in ("Add", "Sub", "Mul", "Div")),
    *((name, REAL_NUMBERS) for name in ("Min", "Max")),
    ("Update", (*POD_OR_STRING, DataType.DT_VARIANT)),
):
    register_op(
        f"ResourceScatter{_change}",
        inputs=["resource: resource", "indices: Tindices", "updates: dtype"],
        attrs=[
            "dtype: type" if _change == "Update" else "dtype: numbertype",
            "Tindices: {int32, int64}",
        ],
        shape_fn=resource_scatter_shape,
        is_stateful=True,
        doc=f"{_SCATTERED[_change]} of the variable that `indices` name.",
    )
    register_kernel(
        f"ResourceScatter{_change}",
        types={"dtype": _types, "Tindices": INDEX},
        host_memory=["resource"],
    )(ResourceScatter)

for _change, _types in (
    ("Add", POD),
    ("Sub", POD),
    ("Min", REAL_NUMBERS),
    ("Max", REAL_NUMBERS),
    ("Update", POD_OR_STRING),
):
    register_op(
        f"ResourceScatterNd{_change}",
        inputs=["ref: resource", "indices: Tindices", "updates: T"],
        attrs=[
            "T: type",
            "Tindices: {int32, int64}",
            "use_locking: bool = true",
            "bad_indices_policy: string = ''",
        ],
        shape_fn=resource_scatter_nd_shape,
        is_stateful=True,
        doc=f"{_SCATTERED[_change].replace('rows', 'slices')} of the variable that `indices` name.",
    )
    register_kernel(
        f"ResourceScatterNd{_change}", types={"T": _types, "Tindices": INDEX}, host_memory=["ref"]
    )(ResourceScatterNd)
