"""Parts of variables at given indices: ResourceGather, ResourceGatherNd.

Source: TensorFlow core/ops/resource_variable_ops.cc, core/kernels/resource_variable_ops.cc.
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
    gather_nd_shape,
    register_op,
    validate_variable_resource_handle,
)
from opkernel.ops.array.gather import gather_nd
from opkernel.ops.input_checks import require_rank_at_least
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.kernel_types import ALL, INDEX, QUANTIZED
from opkernel.ops.registration import register_kernel
from opkernel.ops.variables.handles import set_value
from opkernel.ops.variables.scatter import check_indices
from opkernel.ops.variables.var import variable_of
from opkernel.types import DataType, TensorShape


def resource_gather_shape(c: InferenceContext) -> None:
    """Variable [batch..., n, rest...] at indices [batch..., i...] -> [batch..., i..., rest...]."""
    held = validate_variable_resource_handle(c)
    variable, indices = held[0].shape, c.input(1)
    batch_dims = int32_attr("batch_dims", c.get_attr("batch_dims"))
    if batch_dims < 0:
        raise InvalidArgumentError(f"batch_dims is negative ({batch_dims})")
    c.with_rank_at_least(variable, batch_dims + 1)
    c.with_rank_at_least(indices, batch_dims)
    batch = c.subshape(variable, 0, batch_dims)
    rest = c.subshape(variable, batch_dims + 1)
    chosen = c.concatenate(batch, c.subshape(indices, batch_dims))
    set_value(c, c.concatenate(chosen, rest), held)


register_op(
    "ResourceGather",
    inputs=["resource: resource", "indices: Tindices"],
    outputs=["output: dtype"],
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
    "ResourceGatherNd",
    inputs=["resource: resource", "indices: Tindices"],
    outputs=["output: dtype"],
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
        self.dtype: DataType = construction.get_attr("dtype")
        self.batch_dims = int32_attr("batch_dims", construction.get_attr("batch_dims"))

    def compute(self, ctx: OpKernelContext) -> None:
        with variable_of(ctx) as variable:
            params = variable.read(self.dtype)
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
        self.dtype: DataType = construction.get_attr("dtype")
        self.gather = gather_nd(
            bad_indices_policy="", Tparams=self.dtype, xp=construction.array_namespace
        )

    def compute(self, ctx: OpKernelContext) -> None:
        with variable_of(ctx) as variable:
            params = variable.read(self.dtype)
        ctx.set_output(0, self.gather(params, ctx.input(1)))


@g.register_gradient("ResourceGather")
def resource_gather_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    from opkernel.ops.array.gradients.gather import rows_gradient

    handle, indices = op.inputs
    return rows_gradient(g.nodes.VariableShape(handle), indices, grad), None


@g.register_gradient("ResourceGatherNd")
def resource_gather_nd_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    from opkernel.ops.array.gradients.gather import points_gradient

    handle, indices = op.inputs
    shape = g.nodes.VariableShape(handle, out_type=indices.dtype)
    return points_gradient(shape, indices, grad), None
