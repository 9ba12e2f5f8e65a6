"""Variables: what they hold is a value of the program, and an assignment gives them another one.

Parts of variables: gathered, changed at given indices, or assigned to as slices.

Indices out of bounds are moved inside where something is read, and dropped where something is written.

Source: TensorFlow compiler/tf2xla/kernels/variable_ops.cc, compiler/tf2xla/kernels/gather_op.cc,
variable_ops.cc, resource_strided_slice_assign in strided_slice_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernelConstruction
from opkernel.ops.array.gather import gather_nd, gather_v2
from opkernel.ops.array.scatter import checked_depth
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.variables.scatter import check_rank
from opkernel.types import TensorShape
from opkernel.xla.context import XlaOpKernelContext
from opkernel.xla.jax_numpy import jnp
from opkernel.xla.kernels.scatter import CHANGES
from opkernel.xla.kernels.slicing import TensorStridedSliceUpdateOp
from opkernel.xla.op_kernel import XlaOpKernel
from opkernel.xla.register_kernel import register_xla_kernel


@register_xla_kernel("ReadVariableOp", resources=True)
class ReadVariableOp(XlaOpKernel):
    """The value."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give the value that the variable has at this place of the program."""
        ctx.set_output(0, ctx.resource(0).read(self.output_types[0]))


@register_xla_kernel("AssignVariableOp", resources=True)
class AssignVariableOp(XlaOpKernel):
    """Another value."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Set the value for what follows."""
        ctx.resource(0).assign(ctx.input_type(1), ctx.input(1))


def _assign(ctx: XlaOpKernelContext, value: Any) -> None:
    ctx.resource(0).assign(ctx.input_type(1), value)


@register_xla_kernel("AssignAddVariableOp", resources=True)
class AssignAddVariableOp(XlaOpKernel):
    """The value and more."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Add to the value."""
        _assign(ctx, ctx.resource(0).read() + ctx.input(1))


@register_xla_kernel("AssignSubVariableOp", resources=True)
class AssignSubVariableOp(XlaOpKernel):
    """The value and less."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Subtract from the value."""
        _assign(ctx, ctx.resource(0).read() - ctx.input(1))


@register_xla_kernel("VarIsInitializedOp", resources=True)
class VarIsInitializedOp(XlaOpKernel):
    """Whether there is a value, which the compiler knows."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give a constant."""
        ctx.set_output(0, np.asarray(ctx.resource(0).is_initialized))


@register_xla_kernel("VariableShape", resources=True, metadata=True)
class VariableShapeOp(XlaOpKernel):
    """The shape of the value, which the compiler knows."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give a constant."""
        dtype = self.output_types[0].numpy_dtype
        ctx.set_output(0, np.asarray(ctx.resource(0).read().shape, dtype))


@register_xla_kernel("ResourceGather", resources=True)
class ResourceGatherOp(XlaOpKernel):
    """Slices along the first dimension that is no batch."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.batch_dims = int32_attr("batch_dims", construction.get_attr("batch_dims"))

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Gather them as GatherV2 does from a tensor."""
        params = ctx.resource(0).read(self.output_types[0])
        gather = gather_v2(batch_dims=self.batch_dims, xp=jnp())
        ctx.set_output(0, gather(jnp().asarray(params), ctx.input(1), np.array(self.batch_dims)))


@register_xla_kernel("ResourceGatherNd", resources=True)
class ResourceGatherNdOp(XlaOpKernel):
    """Slices at index vectors."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Gather them as GatherNd does from a tensor."""
        dtype = self.output_types[0]
        gather = gather_nd(bad_indices_policy="", Tparams=dtype, xp=jnp())
        params = jnp().asarray(ctx.resource(0).read(dtype))
        ctx.set_output(0, gather(params, ctx.input(1)))


class _ScatterOp(XlaOpKernel):
    """Changes slices of a variable."""

    prefix: str

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give the variable its value with the changes."""
        variable, dtype = ctx.resource(0), self.input_types[2]
        change = CHANGES[self.node_def.op.removeprefix(self.prefix)]
        params = jnp().asarray(variable.read(dtype))
        if params.ndim == 0:
            raise InvalidArgumentError("params must be at least 1-D, got shape []")
        at, updates = self.vectors(params, ctx.input(1), ctx.input(2))
        variable.assign(dtype, change(params, at, updates))

    def vectors(self, params: Any, indices: Any, updates: Any) -> tuple[Any, Any]:
        """The index vectors, and a slice for each."""
        raise NotImplementedError


class ResourceScatterOp(_ScatterOp):
    """Indices are rows; one scalar may update them all."""

    prefix = "ResourceScatter"

    def vectors(self, params: Any, indices: Any, updates: Any) -> tuple[Any, Any]:
        """Each index is a vector."""
        check_rank(params, indices, updates)
        shape = (*indices.shape, *params.shape[1:])
        if updates.ndim and updates.shape != shape:
            raise InvalidArgumentError(
                f"Updates of shape {TensorShape(updates.shape)} do not fit: the indices ask for "
                f"{TensorShape(shape)}"
            )
        return indices[..., None], jnp().broadcast_to(updates, shape)


class ResourceScatterNdOp(_ScatterOp):
    """The last dimension of indices holds index vectors."""

    prefix = "ResourceScatterNd"

    def vectors(self, params: Any, indices: Any, updates: Any) -> tuple[Any, Any]:
        """A vector of indices holds vectors of one index."""
        checked_depth(params, indices, updates)
        return indices if indices.ndim > 1 else indices[..., None], updates


_OF_SLICES = ("Add", "Sub", "Min", "Max", "Update")
register_xla_kernel([f"ResourceScatter{name}" for name in CHANGES], resources=True)(
    ResourceScatterOp
)
register_xla_kernel([f"ResourceScatterNd{name}" for name in _OF_SLICES], resources=True)(
    ResourceScatterNdOp
)


@register_xla_kernel(
    "ResourceStridedSliceAssign",
    compile_time_constants=["begin", "end", "strides"],
    resources=True,
)
class ResourceStridedSliceAssignOp(TensorStridedSliceUpdateOp):
    """A slice of a variable gets another value."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Give the variable its value with the slice."""
        variable, dtype = ctx.resource("ref"), self.input_types[4]
        tensor = jnp().asarray(variable.read(dtype))
        variable.assign(dtype, self.updated(ctx, tensor, ctx.input("value")))
