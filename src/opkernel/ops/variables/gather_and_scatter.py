"""Variables at given indices: ResourceGather, ResourceGatherNd, and the ops Scatter and ScatterNd on handles and on references.

Rows are the parts of a tensor along its first dimension.

Source: TensorFlow core/ops/resource_variable_ops.cc, state_ops.cc, core/kernels/resource_variable_ops.cc,
scatter_nd_op.cc, core/kernels/scatter_functor.h, scatter_op.cc, resource_variable_ops.cc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import (
    InferenceContext,
    ShapeHandle,
    gather_nd_shape,
    register_op,
    scatter_nd_shape,
    validate_variable_resource_handle,
)
from opkernel.ops.array.gather import gather_nd, ignores_bad_indices, points_gradient, rows_gradient
from opkernel.ops.array.scatter import (
    ScatterAt,
    add_at,
    at_rows,
    max_at,
    min_at,
    scatter_slices,
    set_at,
    subtract_at,
)
from opkernel.ops.input_checks import int32_attr, require, require_rank_at_least
from opkernel.ops.registration import (
    ALL,
    INDEX,
    NUMBERS,
    POD,
    POD_OR_STRING,
    QUANTIZED,
    REAL_NUMBERS,
    register_kernel,
)
from opkernel.ops.variables.handles import check_scatter, check_variants, set_value
from opkernel.ops.variables.var import VariableUpdate, variable_of, writing
from opkernel.types import DataType, TensorShape

__all__ = ["check_rank"]


def _subtract_at(params: Any, rows: Any, updates: Any) -> None:
    """Truth values minus each other are true where they differ, as in C++."""
    scatter_at = np.logical_xor.at if params.dtype == np.bool_ else subtract_at
    scatter_at(params, rows, updates)


def _divide_at(params: Any, rows: Any, updates: Any) -> None:
    """Integers are divided as in C++, towards zero.

    Raises:
        InvalidArgumentError: an integer is divided by zero.
    """
    if params.dtype.kind not in "iu":
        at_rows(np.divide)(params, rows, updates)
        return
    require(updates.all(), "Integer division by zero")
    unsigned = np.dtype(f"u{params.dtype.itemsize}")
    magnitudes, negative = np.abs(params).view(unsigned), params < 0
    np.floor_divide.at(magnitudes, rows, np.abs(updates).view(unsigned))
    np.logical_xor.at(negative, rows, updates < 0)
    quotients = magnitudes.view(params.dtype)
    params[...] = np.where(negative, -quotients, quotients)


_SCATTER_AT: dict[str, ScatterAt] = {
    "Add": add_at,
    "Div": _divide_at,
    "Max": max_at,
    "Min": min_at,
    "Mul": at_rows(np.multiply),
    "Sub": _subtract_at,
    "Update": set_at,
}
"""The update of rows of a tensor by each op, by the end of the op's name."""


def _scatter_rows(scatter_at: ScatterAt, params: Any, indices: Any, updates: Any) -> None:
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
    message = f"Rows of {length} elements cannot update rows of {width} elements"
    require(length >= width, message)
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
        raise _rank_error(params, indices, updates)


def _rank_error(params: Any, indices: Any, updates: Any) -> InvalidArgumentError:
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
    _check_scatter_nd(c, held[0].shape if held else c.input(0))


def scatter_shape(c: InferenceContext) -> None:
    """The variable, whose rows the updates must be like."""
    check_scatter(c, c.input(0))
    c.set_output(0, c.input(0))


def ref_scatter_nd_shape(c: InferenceContext) -> None:
    """The variable, with whose slices the updates must agree."""
    _check_scatter_nd(c, c.input(0))


def _check_scatter_nd(c: InferenceContext, variable: ShapeHandle) -> None:
    indices = c.with_rank_at_least(c.input(1), 1)
    scatter_nd_shape(c, indices, c.with_rank_at_least(c.input(2), 1), variable)


class Scatter(VariableUpdate):
    """Changes rows of a variable."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        change = self.type_string.partition("Scatter")[2].removeprefix("Nd")
        self.scatter_at = _SCATTER_AT[change]

    def check_dtype(self, dtype: DataType) -> None:
        if dtype != self.input_types[2]:
            raise InvalidArgumentError("DType of scatter resource and updates does not match.")

    def compute(self, ctx: OpKernelContext) -> None:
        indices, updates = ctx.input(1), ctx.input(2)
        with writing(self.target(ctx)) as params:
            if not self.is_ref:
                check_rank(params, indices, updates)
            require_rank_at_least(params, 1, "params must be at least 1-D, got shape []")
            if self.is_ref and updates.ndim and updates.shape != indices.shape + params.shape[1:]:
                raise _rank_error(params, indices, updates)
            if updates.ndim and updates.shape[: indices.ndim] != indices.shape:
                raise InvalidArgumentError(
                    f"The shape of indices ({TensorShape(indices.shape)}) must be a prefix of "
                    f"the shape of updates ({TensorShape(updates.shape)})"
                )
            _scatter_rows(self.scatter_at, params, indices, updates)


class ScatterNd(Scatter):
    """Changes slices of a variable."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.ignore = ignores_bad_indices(construction.get_attr("bad_indices_policy"))

    def compute(self, ctx: OpKernelContext) -> None:
        with writing(self.target(ctx)) as params:
            require_rank_at_least(params, 1, "Output must be at least 1-D, got shape: []")
            scatter_slices(self.scatter_at, params, ctx.input(1), ctx.input(2), self.ignore)


_INDICES = "Tindices: {int32, int64}"
_POLICY = "bad_indices_policy: string = ''"
_EXTREMES = "{half, bfloat16, float, double, int32, int64}"

for _change, _declared, _types, _ref_types in (
    *((change, "numbertype", NUMBERS, NUMBERS) for change in ("Add", "Sub", "Mul", "Div")),
    *((change, _EXTREMES, REAL_NUMBERS, REAL_NUMBERS) for change in ("Min", "Max")),
    ("Update", "type", (*POD_OR_STRING, DataType.DT_VARIANT), ALL),
):
    _is_update = _change == "Update"
    register_op(
        f"ResourceScatter{_change}(resource: resource, indices: Tindices, updates: dtype)",
        attrs=["dtype: type" if _is_update else "dtype: numbertype", _INDICES],
        shape_fn=resource_scatter_shape,
        is_stateful=True,
        doc=f"{_SCATTERED[_change]} of the variable that `indices` name.",
    )
    register_op(
        f"Scatter{_change}(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T)",
        attrs=[f"T: {_declared}", _INDICES, f"use_locking: bool = {str(_is_update).lower()}"],
        shape_fn=scatter_shape,
        doc=f"As ResourceScatter{_change}, on the variable that `ref` refers to.",
    )
    register_kernel(
        f"ResourceScatter{_change}",
        types={"dtype": _types, "Tindices": INDEX},
        host_memory=["resource"],
    )(Scatter)
    register_kernel(f"Scatter{_change}", types={"T": _ref_types, "Tindices": INDEX})(Scatter)

for _change, _types in (
    ("Add", POD),
    ("Sub", POD),
    ("Min", REAL_NUMBERS),
    ("Max", REAL_NUMBERS),
    ("Update", POD_OR_STRING),
):
    _is_update = _change == "Update"
    register_op(
        f"ResourceScatterNd{_change}(ref: resource, indices: Tindices, updates: T)",
        attrs=["T: type", _INDICES, "use_locking: bool = true", _POLICY],
        shape_fn=resource_scatter_nd_shape,
        is_stateful=True,
        doc=f"{_SCATTERED[_change].replace('rows', 'slices')} of the variable that `indices` name.",
    )
    register_op(
        f"ScatterNd{_change}(ref: Ref(T), indices: Tindices, updates: T) -> output_ref: Ref(T)",
        attrs=[
            "T: type" if _is_update else "T: numbertype",
            _INDICES,
            f"use_locking: bool = {str(_is_update).lower()}",
            _POLICY,
        ],
        shape_fn=ref_scatter_nd_shape,
        doc=f"As ResourceScatterNd{_change}, on the variable that `ref` refers to.",
    )
    register_kernel(
        f"ResourceScatterNd{_change}", types={"T": _types, "Tindices": INDEX}, host_memory=["ref"]
    )(ScatterNd)
    register_kernel(f"ScatterNd{_change}", types={"T": _types, "Tindices": INDEX})(ScatterNd)


def resource_gather_shape(c: InferenceContext) -> None:
    """Variable [batch..., n, rest...] at indices [batch..., i...] -> [batch..., i..., rest...]."""
    held = validate_variable_resource_handle(c)
    variable, indices = held[0].shape, c.input(1)
    batch_dims = int32_attr("batch_dims", c.get_attr("batch_dims"))
    require(batch_dims >= 0, f"batch_dims is negative ({batch_dims})")
    c.with_rank_at_least(variable, batch_dims + 1)
    c.with_rank_at_least(indices, batch_dims)
    batch = c.subshape(variable, 0, batch_dims)
    rest = c.subshape(variable, batch_dims + 1)
    chosen = c.concatenate(batch, c.subshape(indices, batch_dims))
    set_value(c, c.concatenate(chosen, rest), held)


register_op(
    "ResourceGather(resource: resource, indices: Tindices) -> output: dtype",
    attrs=[
        "batch_dims: int = 0",
        "validate_indices: bool = true",
        "dtype: type",
        "Tindices: {int32, int64}",
    ],
    shape_fn=resource_gather_shape,
    traits="only_reads_state",
    is_stateful=True,
    doc="The slices of the variable along dimension `batch_dims` that `indices` name.",
)
register_op(
    "ResourceGatherNd(resource: resource, indices: Tindices) -> output: dtype",
    attrs=["dtype: type", "Tindices: {int32, int64}"],
    shape_fn=gather_nd_shape,
    traits="only_reads_state",
    is_stateful=True,
    doc="The slices of the variable at the index vectors that the last dimension of `indices` holds.",
)


@register_kernel(
    "ResourceGather",
    types={"dtype": (*ALL, *QUANTIZED), "Tindices": INDEX},
    host_memory=["resource"],
)
class ResourceGather(OpKernel):
    """Takes slices of the variable."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.batch_dims = int32_attr("batch_dims", construction.get_attr("batch_dims"))

    def compute(self, ctx: OpKernelContext) -> None:
        with variable_of(ctx) as variable:
            params = variable.read(self.output_types[0])
        ctx.set_output(0, gathered(params, ctx.input(1), self.batch_dims))


def gathered(params: Any, indices: Any, batch_dims: int) -> Any:
    """Params [batch..., n, rest...] at indices [batch..., i...] -> [batch..., i..., rest...].

    As in TensorFlow an index that leaves its batch and stays within `params` is none too many.

    Raises:
        InvalidArgumentError: the shapes do not fit, or an index is outside of `params`.
    """
    require_rank_at_least(params, 1, "params must be at least 1 dimensional")
    batch, rest = params.shape[:batch_dims], params.shape[batch_dims + 1 :]
    if not 0 <= batch_dims < params.ndim or indices.shape[:batch_dims] != batch:
        raise InvalidArgumentError(
            f"params must have at least {batch_dims} (batch_dims) dimensions and one more, and "
            f"share the first with indices, but its shape is {TensorShape(params.shape)} and that "
            f"of indices {TensorShape(indices.shape)}"
        )
    length = params.shape[batch_dims]
    places = indices
    if batch_dims and indices.size:
        starts = np.arange(math.prod(batch)) * length
        places = (indices.reshape((starts.size, -1)) + starts[:, None]).reshape(indices.shape)
    check_indices(places, math.prod(batch) * length, shown=len(params))
    flat = params.reshape((math.prod(batch) * length, *rest))
    return flat.take(places.reshape(-1), axis=0).reshape((*indices.shape, *rest))


@register_kernel(
    "ResourceGatherNd", types={"dtype": ALL, "Tindices": INDEX}, host_memory=["resource"]
)
class ResourceGatherNd(OpKernel):
    """Gathers from a variable as GatherNd does from a tensor."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.gather = gather_nd(
            bad_indices_policy="", Tparams=self.output_types[0], xp=construction.array_namespace
        )

    def compute(self, ctx: OpKernelContext) -> None:
        with variable_of(ctx) as variable:
            params = variable.read(self.output_types[0])
        ctx.set_output(0, self.gather(params, ctx.input(1)))


@g.register_gradient("ResourceGather")
def resource_gather_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    handle, indices = op.inputs
    return rows_gradient(g.nodes.VariableShape(handle), indices, grad), None


@g.register_gradient("ResourceGatherNd")
def resource_gather_nd_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    handle, indices = op.inputs
    shape = g.nodes.VariableShape(handle, out_type=indices.dtype)
    return points_gradient(shape, indices, grad), None
