"""Variables: what they hold is a value of the program, and an assignment gives them another one.

Parts of variables are gathered, changed at given indices, or assigned to as slices. Indices out of bounds are moved
inside where something is read, and dropped where something is written. The steps of optimisers are those of the CPU's
kernels, on variables of the program.

Source: TensorFlow compiler/tf2xla/kernels/variable_ops.cc, gather_op.cc, training_ops.cc, resource_strided_slice_assign in
strided_slice_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction
from opkernel.ops.array.gather import gather_nd, gather_v2
from opkernel.ops.array.scatter import checked_depth
from opkernel.ops.input_checks import int32_attr
from opkernel.ops.optimizers import OPTIMIZERS
from opkernel.ops.variables.gather_and_scatter import check_rank
from opkernel.types import DataType, TensorShape
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.kernels.scatter_and_stitch import CHANGES, Change
from opkernel.xla.kernels.slice_and_strided_slice import TensorStridedSliceUpdateOp
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.resource import XlaResource
from opkernel.xla.traced_array import TracedArray


@register_xla_kernel("ReadVariableOp", resources=True)
def read_variable(variable: XlaResource, *, dtype: DataType) -> Any:
    """The value that the variable has at this place of the program."""
    return variable.read(dtype)


@register_xla_kernel("AssignVariableOp", resources=True)
def assign_variable(variable: XlaResource, value: Any, *, dtype: DataType) -> None:
    """Set the value for what follows."""
    variable.assign(dtype, value)


@register_xla_kernel("AssignAddVariableOp", resources=True)
def assign_add_variable(variable: XlaResource, value: Any, *, dtype: DataType) -> None:
    variable.assign(dtype, variable.read() + value)


@register_xla_kernel("AssignSubVariableOp", resources=True)
def assign_sub_variable(variable: XlaResource, value: Any, *, dtype: DataType) -> None:
    variable.assign(dtype, variable.read() - value)


@register_xla_kernel("VarIsInitializedOp", resources=True)
def var_is_initialized(variable: XlaResource) -> Any:
    """Whether there is a value, which the compiler knows."""
    return np.asarray(variable.is_initialized)


@register_xla_kernel("VariableShape", resources=True, metadata=True)
def variable_shape(variable: XlaResource, *, out_type: DataType) -> Any:
    """The shape of the value, which the compiler knows."""
    return np.asarray(variable.read().shape, out_type.numpy_dtype)


@register_xla_kernel("ResourceGather", resources=True)
def resource_gather(
    variable: XlaResource, indices: Any, *, batch_dims: int, dtype: DataType, xp: Any
) -> Any:
    """Slices along the first dimension that is no batch, as GatherV2 takes them from a tensor."""
    axis = int32_attr("batch_dims", batch_dims)
    params = xp.asarray(variable.read(dtype))
    return gather_v2(params, indices, np.array(axis), batch_dims=axis, xp=xp)


@register_xla_kernel("ResourceGatherNd", resources=True)
def resource_gather_nd(variable: XlaResource, indices: Any, *, dtype: DataType, xp: Any) -> Any:
    """Slices at index vectors, as GatherNd takes them from a tensor."""
    gather = gather_nd(bad_indices_policy="", Tparams=dtype, xp=xp)
    return gather(xp.asarray(variable.read(dtype)), indices)


_Vectors = Callable[[Any, Any, Any], tuple[Any, Any]]
"""The index vectors, and a slice for each, of what a variable holds, indices and updates."""


def _rows(params: Any, indices: Any, updates: Any) -> tuple[Any, Any]:
    """Each index names a row; one scalar may update them all."""
    check_rank(params, indices, updates)
    shape = (*indices.shape, *params.shape[1:])
    if updates.ndim and updates.shape != shape:
        raise InvalidArgumentError(
            f"Updates of shape {TensorShape(updates.shape)} do not fit: the indices ask for "
            f"{TensorShape(shape)}"
        )
    return indices[..., None], jnp().broadcast_to(updates, shape)


def _slices(params: Any, indices: Any, updates: Any) -> tuple[Any, Any]:
    """The last dimension of indices holds index vectors; a vector of indices, vectors of one index."""
    checked_depth(params, indices, updates)
    return indices if indices.ndim > 1 else indices[..., None], updates


def _register_scatter(op: str, change: Change, vectors: _Vectors) -> None:
    """Register the kernel that changes slices of a variable."""

    @register_xla_kernel(op, resources=True, factory=True)
    def make(*, construction: OpKernelConstruction) -> Callable[[XlaResource, Any, Any], None]:
        dtype = construction.input_types[2]

        def scatter(variable: XlaResource, indices: Any, updates: Any) -> None:
            params = jnp().asarray(variable.read(dtype))
            if params.ndim == 0:
                raise InvalidArgumentError("params must be at least 1-D, got shape []")
            variable.assign(dtype, change(params, *vectors(params, indices, updates)))

        return scatter


for _name, _change in CHANGES.items():
    _register_scatter(f"ResourceScatter{_name}", _change, _rows)
for _name in ("Add", "Sub", "Min", "Max", "Update"):
    _register_scatter(f"ResourceScatterNd{_name}", CHANGES[_name], _slices)


@register_xla_kernel(
    "ResourceStridedSliceAssign", compile_time_constants=["begin", "end", "strides"], resources=True
)
class ResourceStridedSliceAssignOp(TensorStridedSliceUpdateOp):
    """A slice of a variable gets another value."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give the variable its value with the slice."""
        variable, dtype = ctx.resource("ref"), self.input_types[4]
        tensor = jnp().asarray(variable.read(dtype))
        variable.assign(dtype, self.updated(ctx, tensor, ctx.input("value")))


@register_xla_kernel([f"ResourceApply{name}" for name in OPTIMIZERS], resources=True, factory=True)
def resource_apply(*, construction: OpKernelConstruction) -> Callable[..., None]:
    """A step on a variable and its slots, with a gradient of their shape."""
    optimizer = OPTIMIZERS[construction.node_def.op.removeprefix("ResourceApply")]
    names, count = optimizer.inputs(sparse=False), len(optimizer.variables)
    attrs = construction.keyword_values(optimizer.attrs)

    def step(*inputs: Any) -> None:
        variables = inputs[:count]
        arrays = [TracedArray(one.read()) for one in variables]
        arrays += [TracedArray(one) for one in inputs[count:]]
        _check_shapes(names, arrays, count)
        optimizer.step(*arrays, **attrs)
        for variable, array in zip(variables, arrays, strict=False):
            variable.assign(variable.dtype, array.value)

    return step


def _check_shapes(names: Sequence[str], arrays: Sequence[TracedArray], count: int) -> None:
    """Refuse slots and gradients of another shape than the first of `count` variables, and rates that are no scalars."""
    shape = arrays[0].shape
    for place, (name, array) in enumerate(zip(names, arrays, strict=True)):
        is_gradient = name in ("grad", "delta")
        if (place < count or is_gradient) and array.shape != shape:
            raise InvalidArgumentError(
                f"var and {name} do not have the same shape: {list(shape)} and {list(array.shape)}"
            )
        if place >= count and not is_gradient and array.shape:
            raise InvalidArgumentError(f"{name} is not a scalar: {list(array.shape)}")
