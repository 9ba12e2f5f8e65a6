"""Changes of the variables of TensorFlow 1: assignments, counts, scatters, slices.

Each passes its reference on, so that later nodes can be made to wait for it.

Source: TensorFlow core/ops/state_ops.cc, array_ops.cc, core/framework/ref_var.cc,
core/kernels/dense_update_ops.cc, scatter_op.cc, scatter_nd_op.cc, count_up_to_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import (
    InferenceContext,
    merge_both_inputs_shape_fn,
    register_op,
    scatter_nd_shape,
    unchanged_shape_with_rank,
)
from opkernel.ops.array.bad_indices import BadIndicesPolicy
from opkernel.ops.array.scatter import scatter_slices
from opkernel.ops.input_checks import require_equal, require_rank_at_least
from opkernel.ops.kernel_types import (
    ALL,
    INDEX,
    NUMBERS,
    POD,
    POD_OR_STRING,
    QUANTIZED,
    REAL_NUMBERS,
)
from opkernel.ops.registration import register_kernel
from opkernel.ops.variables.handles import check_scatter
from opkernel.ops.variables.read_and_assign import next_count
from opkernel.ops.variables.scatter import SCATTER_AT, rank_error, scatter_rows
from opkernel.ops.variables.var import initialized_ref, owned_input, writing
from opkernel.types import DataType, TensorShape

# Assign, AssignAdd, AssignSub


def assign_shape(c: InferenceContext) -> None:
    """The shape of the value, which is the variable's if `validate_shape` says so."""
    if c.get_attr("validate_shape"):
        merge_both_inputs_shape_fn(c)
    else:
        c.set_output(0, c.input(1))


register_op(
    "Assign",
    inputs=["ref: Ref(T)", "value: T"],
    outputs=["output_ref: Ref(T)"],
    attrs=["T: type", "validate_shape: bool = true", "use_locking: bool = true"],
    shape_fn=assign_shape,
    allows_uninitialized_input=True,
    doc="Gives the variable a value; with `validate_shape` it must be of the shape it has.",
)
for _change, _doc in (("Add", "Adds to the variable."), ("Sub", "Subtracts from the variable.")):
    register_op(
        f"Assign{_change}",
        inputs=["ref: Ref(T)", "value: T"],
        outputs=["output_ref: Ref(T)"],
        attrs=["T: numbertype", "use_locking: bool = false"],
        shape_fn=merge_both_inputs_shape_fn,
        doc=_doc,
    )


@register_kernel("Assign", types={"T": (*ALL, *QUANTIZED, DataType.DT_QUINT16)})
class Assign(OpKernel):
    """Takes the value over, or a copy where others have it."""

    forwards_inputs = True

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.validate_shape: bool = construction.get_attr("validate_shape")

    def compute(self, ctx: OpKernelContext) -> None:
        value, ref = owned_input(ctx, 1), ctx.input_ref(0)
        ctx.set_output_ref(0, ref)
        with ref.mutex:
            if self.validate_shape and ref.shape != value.shape:
                raise InvalidArgumentError(
                    "Assign requires shapes of both tensors to match. "
                    f"lhs shape= {TensorShape(ref.shape)} rhs shape= {TensorShape(value.shape)}"
                )
            ref.replace(value)


class DenseUpdate(OpKernel):
    """Changes the variable by a ufunc of it and a value of its shape."""

    ufunc: Any

    def compute(self, ctx: OpKernelContext) -> None:
        value, ref = ctx.input(1), initialized_ref(ctx)
        ctx.set_output_ref(0, ref)
        with writing(ref) as tensor:
            require_equal(tensor.shape, value.shape, "Parameters and update must be the same size")
            self.ufunc(tensor, value, out=tensor)


@register_kernel("AssignAdd", types={"T": NUMBERS})
class AssignAdd(DenseUpdate):
    """Adds."""

    ufunc = np.add


@register_kernel("AssignSub", types={"T": NUMBERS})
class AssignSub(DenseUpdate):
    """Subtracts."""

    ufunc = np.subtract


# CountUpTo

register_op(
    "CountUpTo",
    inputs=["ref: Ref(T)"],
    outputs=["output: T"],
    attrs=["limit: int", "T: {int32, int64}"],
    shape_fn=unchanged_shape_with_rank(0),
    doc="The value of the variable, which is then one more; an error once it is `limit`.",
)


@register_kernel("CountUpTo", types={"T": INDEX})
class CountUpTo(OpKernel):
    """Counts, unless the limit is reached."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.limit: int = construction.get_attr("limit")

    def compute(self, ctx: OpKernelContext) -> None:
        ref = initialized_ref(ctx)
        with ref.mutex:
            before = ref.tensor
            ref.replace(next_count(before, self.limit))
        ctx.set_output(0, before)


# Scatter


def scatter_shape(c: InferenceContext) -> None:
    """The variable, whose rows the updates must be like."""
    check_scatter(c, c.input(0))
    c.set_output(0, c.input(0))


def ref_scatter_nd_shape(c: InferenceContext) -> None:
    """The variable, with whose slices the updates must agree."""
    indices = c.with_rank_at_least(c.input(1), 1)
    scatter_nd_shape(c, indices, c.with_rank_at_least(c.input(2), 1), c.input(0))


class ScatterUpdate(OpKernel):
    """Changes rows of a variable."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.scatter_at = SCATTER_AT[self.type_string.removeprefix("Scatter")]

    def compute(self, ctx: OpKernelContext) -> None:
        ref, indices, updates = initialized_ref(ctx), ctx.input(1), ctx.input(2)
        ctx.set_output_ref(0, ref)
        with writing(ref) as params:
            require_rank_at_least(params, 1, "params must be at least 1-D, got shape []")
            if updates.ndim and updates.shape != indices.shape + params.shape[1:]:
                raise rank_error(params, indices, updates)
            scatter_rows(self.scatter_at, params, indices, updates)


class ScatterNdUpdate(OpKernel):
    """Changes slices of a variable."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.scatter_at = SCATTER_AT[self.type_string.removeprefix("ScatterNd")]
        self.policy = BadIndicesPolicy.from_attr(construction.get_attr("bad_indices_policy"))

    def compute(self, ctx: OpKernelContext) -> None:
        ref = initialized_ref(ctx)
        ctx.set_output_ref(0, ref)
        with writing(ref) as params:
            require_rank_at_least(params, 1, "Output must be at least 1-D, got shape: []")
            scatter_slices(self.scatter_at, params, ctx.input(1), ctx.input(2), self.policy)


def _declare_scatter(name: str, declared: str, types: tuple[DataType, ...], locking: str) -> None:
    nd = name.startswith("ScatterNd")
    policy = ["bad_indices_policy: string = ''"] if nd else []
    register_op(
        name,
        inputs=["ref: Ref(T)", "indices: Tindices", "updates: T"],
        outputs=["output_ref: Ref(T)"],
        attrs=[
            f"T: {declared}",
            "Tindices: {int32, int64}",
            f"use_locking: bool = {locking}",
            *policy,
        ],
        shape_fn=ref_scatter_nd_shape if nd else scatter_shape,
        doc=f"As Resource{name}, on the variable that `ref` refers to.",
    )
    register_kernel(name, types={"T": types, "Tindices": INDEX})(
        ScatterNdUpdate if nd else ScatterUpdate
    )


for _change in ("Add", "Sub", "Mul", "Div"):
    _declare_scatter(f"Scatter{_change}", "numbertype", NUMBERS, "false")
for _change in ("Min", "Max"):
    _declare_scatter(
        f"Scatter{_change}", "{half, bfloat16, float, double, int32, int64}", REAL_NUMBERS, "false"
    )
    _declare_scatter(f"ScatterNd{_change}", "numbertype", REAL_NUMBERS, "false")
for _change in ("Add", "Sub"):
    _declare_scatter(f"ScatterNd{_change}", "numbertype", POD, "false")
_declare_scatter("ScatterUpdate", "type", ALL, "true")
_declare_scatter("ScatterNdUpdate", "type", POD_OR_STRING, "true")
