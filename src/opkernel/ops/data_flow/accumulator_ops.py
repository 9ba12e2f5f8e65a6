"""Ops on accumulators of gradients.

Source: TensorFlow core/ops/data_flow_ops.cc, core/kernels/conditional_accumulator_base_op.h,
conditional_accumulator_op.cc, sparse_conditional_accumulator_op.cc.
"""

from functools import partial
from typing import Any, ClassVar

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext
from opkernel.opdef import register_op, scalar_shape
from opkernel.opdef.common_shapes.rules import (
    checked_no_outputs,
    checked_unknown,
    unknown_from_scalars,
)
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.data_flow.accumulator import (
    ConditionalAccumulator,
    ConditionalAccumulatorBase,
    SparseConditionalAccumulator,
    SparseGradient,
)
from opkernel.ops.data_flow.waiting import Done, WaitingKernel
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.registration import register_kernel
from opkernel.ops.resource_op_kernel import ResourceOpKernel, register_fact, resource_of_handle
from opkernel.ops.step_resources import InexpensiveKernel
from opkernel.types import DataType, PartialTensorShape

# What the ops are

_DTYPE = "dtype: numbertype"
_TO_MAKE = (
    _DTYPE,
    "shape: shape",
    "container: string = ''",
    "shared_name: string = ''",
    "reduction_type: {'MEAN', 'SUM'} = 'MEAN'",
)

for _name, _handle in (
    ("ConditionalAccumulator", "Ref(string)"),
    ("ResourceConditionalAccumulator", "resource"),
    ("SparseConditionalAccumulator", "Ref(string)"),
):
    register_op(
        _name,
        outputs=[f"handle: {_handle}"],
        attrs=_TO_MAKE,
        shape_fn=shape_rule("-> [2]"),
        is_stateful=True,
        doc="An accumulator of gradients.",
    )

for _prefix, _handle in (("", "Ref(string)"), ("Resource", "resource")):
    _is_resource = _handle == "resource"
    register_op(
        f"{_prefix}AccumulatorNumAccumulated",
        inputs=[f"handle: {_handle}"],
        outputs=["num_accumulated: int32"],
        shape_fn=scalar_shape,
        is_stateful=_is_resource,
        doc="How many gradients have been added since the last were taken.",
    )
    register_op(
        f"{_prefix}AccumulatorSetGlobalStep",
        inputs=[f"handle: {_handle}", "new_global_step: int64"],
        shape_fn=checked_no_outputs(".0"),
        is_stateful=_is_resource,
        doc="Sets the step before which gradients are stale.",
    )
    register_op(
        f"{_prefix}AccumulatorApplyGradient",
        inputs=[f"handle: {_handle}", "local_step: int64", "gradient: dtype"],
        attrs=[_DTYPE],
        shape_fn=checked_no_outputs(".0"),
        is_stateful=_is_resource,
        doc="Adds a gradient, unless it is stale.",
    )
    register_op(
        f"{_prefix}AccumulatorTakeGradient",
        inputs=[f"handle: {_handle}", "num_required: int32"],
        outputs=["average: dtype"],
        attrs=[_DTYPE],
        shape_fn=checked_unknown(".0"),
        is_stateful=_is_resource,
        doc="Takes the mean, or sum, of the gradients out; waits until there are enough.",
    )
register_op(
    "SparseAccumulatorApplyGradient",
    inputs=[
        "handle: Ref(string)",
        "local_step: int64",
        "gradient_indices: int64",
        "gradient_values: dtype",
        "gradient_shape: int64",
    ],
    attrs=[_DTYPE, "has_known_shape: bool"],
    shape_fn=unknown_from_scalars(1),
    doc="Adds rows of a gradient, unless it is stale.",
)
register_op(
    "SparseAccumulatorTakeGradient",
    inputs=["handle: Ref(string)", "num_required: int32"],
    outputs=["indices: int64", "values: dtype", "shape: int64"],
    attrs=[_DTYPE],
    shape_fn=unknown_from_scalars(1),
    doc="Takes the mean, or sum, of the rows out; waits until there are enough gradients.",
)

# The kernels

_TYPES = {"dtype": (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)}


@register_kernel("ConditionalAccumulator", "ResourceConditionalAccumulator", types=_TYPES)
class ConditionalAccumulatorOp(ResourceOpKernel):
    """Makes an accumulator."""

    resource_type = ConditionalAccumulatorBase
    accumulator_type: ClassVar[type[ConditionalAccumulatorBase]] = ConditionalAccumulator

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")
        self.shape: PartialTensorShape = construction.get_attr("shape")
        self.is_mean: bool = construction.get_attr("reduction_type") == "MEAN"

    def create_resource(self, ctx: OpKernelContext) -> ConditionalAccumulatorBase:
        return self.accumulator_type(self.dtype, self.shape, self.info.name, self.is_mean)


@register_kernel("SparseConditionalAccumulator", types=_TYPES)
class SparseConditionalAccumulatorOp(ConditionalAccumulatorOp):
    """Makes an accumulator of rows."""

    accumulator_type = SparseConditionalAccumulator


def _scalar(ctx: OpKernelContext, name: str) -> int:
    tensor = ctx.input(name)
    require_scalar(tensor, f"Argument {name} must be scalar, but had bad shape {{}}")
    return int(tensor)


def _check_kind(accumulator: Any, kind: type[ConditionalAccumulatorBase]) -> None:
    if not isinstance(accumulator, kind):
        raise InvalidArgumentError(
            f"The handle names a {type(accumulator).__name__}, where a {kind.__name__} is expected"
        )


register_fact(
    "AccumulatorNumAccumulated",
    "ResourceAccumulatorNumAccumulated",
    of=ConditionalAccumulatorBase,
    fact=lambda accumulator: accumulator.num_accumulated,
)


@register_kernel("AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep")
class AccumulatorSetGlobalStep(InexpensiveKernel):
    """Sets the global step."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, ConditionalAccumulatorBase) as accumulator:
            accumulator.set_global_step(_scalar(ctx, "new_global_step"))


@register_kernel("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient")
class AccumulatorApplyGradient(OpKernel):
    """Adds a gradient."""

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, ConditionalAccumulatorBase) as accumulator:
            _check_kind(accumulator, ConditionalAccumulator)
            types = [self.input_types[0], DataType.DT_INT64, accumulator.dtype]
            ctx.match_signature(types, [])
            accumulator.apply_gradient(_scalar(ctx, "local_step"), ctx.input("gradient"))


@register_kernel("SparseAccumulatorApplyGradient")
class SparseAccumulatorApplyGradient(OpKernel):
    """Adds rows of a gradient."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.has_known_shape: bool = construction.get_attr("has_known_shape")

    def compute(self, ctx: OpKernelContext) -> None:
        with resource_of_handle(ctx, ConditionalAccumulatorBase) as accumulator:
            _check_kind(accumulator, SparseConditionalAccumulator)
            int64 = DataType.DT_INT64
            types = [self.input_types[0], int64, int64, accumulator.dtype, int64]
            ctx.match_signature(types, [])
            gradient = SparseGradient(
                ctx.input("gradient_indices"),
                ctx.input("gradient_values"),
                ctx.input("gradient_shape") if self.has_known_shape else None,
            )
            accumulator.apply_gradient(_scalar(ctx, "local_step"), gradient)


@register_kernel("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient")
class AccumulatorTakeGradient(WaitingKernel[ConditionalAccumulatorBase]):
    """Takes the mean or sum out."""

    resource_type = ConditionalAccumulatorBase

    def access(
        self, accumulator: ConditionalAccumulatorBase, ctx: OpKernelContext, done: Done
    ) -> None:
        _check_kind(accumulator, ConditionalAccumulator)
        ctx.match_signature(self.input_types, [accumulator.dtype])
        deliver = partial(ctx.set_output, 0)
        accumulator.take_gradient(_scalar(ctx, "num_required"), ctx, done, deliver)


@register_kernel("SparseAccumulatorTakeGradient")
class SparseAccumulatorTakeGradient(WaitingKernel[ConditionalAccumulatorBase]):
    """Takes the mean or sum of the rows out."""

    resource_type = ConditionalAccumulatorBase

    def access(
        self, accumulator: ConditionalAccumulatorBase, ctx: OpKernelContext, done: Done
    ) -> None:
        _check_kind(accumulator, SparseConditionalAccumulator)
        int64 = DataType.DT_INT64
        ctx.match_signature(self.input_types, [int64, accumulator.dtype, int64])
        deliver = ctx.set_outputs_by_arg
        accumulator.take_gradient(_scalar(ctx, "num_required"), ctx, done, deliver)
