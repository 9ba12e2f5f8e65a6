"""Changes of variables at given indices: ResourceScatter and ResourceScatterNd.

Source: TensorFlow core/ops/resource_variable_ops.cc, state_ops.cc,
core/kernels/resource_variable_ops.cc, scatter_nd_op.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import (
    InferenceContext,
    register_op,
    scatter_nd_shape,
    validate_variable_resource_handle,
)
from opkernel.ops.array.bad_indices import BadIndicesPolicy
from opkernel.ops.array.scatter import scatter_slices
from opkernel.ops.kernel_types import INDEX, NUMBERS, POD, POD_OR_STRING, REAL_NUMBERS
from opkernel.ops.registration import register_kernel
from opkernel.ops.variables.scatter_rows import SCATTER_AT, check_rank, scatter_rows
from opkernel.ops.variables.shared_tensor import writing
from opkernel.ops.variables.var import Var, variable_of
from opkernel.ops.variables.variable_shapes import check_scatter, check_variants
from opkernel.types import DataType, TensorShape

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
                if params.ndim == 0:
                    raise InvalidArgumentError("params must be at least 1-D, got shape []")
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
                if params.ndim == 0:
                    raise InvalidArgumentError("Output must be at least 1-D, got shape: []")
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
        device="CPU",
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
        f"ResourceScatterNd{_change}",
        device="CPU",
        types={"T": _types, "Tindices": INDEX},
        host_memory=["ref"],
    )(ResourceScatterNd)
