"""Reading, assigning and changing variables, those with handles and those of TensorFlow 1.

ReadVariableOp, AssignVariableOp, Assign, AssignAdd, CountUpTo, StridedSliceAssign and the like.

Source: TensorFlow core/ops/resource_variable_ops.cc, state_ops.cc, array_ops.cc, core/framework/ref_var.cc,
core/kernels/resource_variable_ops.cc, dense_update_ops.cc, count_up_to_op.cc, strided_slice_op.cc.
"""

from __future__ import annotations

import numpy as np

import opkernel.gradients as g
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    handle_from_input,
    lookup_or_create_resource,
    lookup_resources,
)
from opkernel.opdef import (
    InferenceContext,
    merge_both_inputs_shape_fn,
    no_outputs,
    register_op,
    unchanged_shape,
    unchanged_shape_with_rank,
    validate_variable_resource_handle,
)
from opkernel.ops.array.strided_slice import MASK_ATTRS, SLICE_TYPES, slice_assigner
from opkernel.ops.input_checks import require, require_equal, require_scalar
from opkernel.ops.registration import ALL, FLOAT8, INDEX, NUMBERS, QUANTIZED, register_kernel
from opkernel.ops.variables.handles import check_variants, set_value
from opkernel.ops.variables.var import (
    WRONG_DTYPE,
    Var,
    VariableUpdate,
    frozen,
    known_variable,
    owned_input,
    writing,
)
from opkernel.types import DataType, PartialTensorShape, TensorShape


def read_variable_shape(c: InferenceContext) -> None:
    """The known content of the handle, or the attr `_shape`, which needs no declaration."""
    annotation = c.find_attr("_shape")
    if isinstance(annotation, PartialTensorShape):
        c.set_output(0, c.make_shape_from_partial_shape(annotation))
        return
    held = validate_variable_resource_handle(c)
    set_value(c, held[0].shape, held)


def read_variables_shape(c: InferenceContext) -> None:
    """The known content of the handles."""
    dtypes = c.get_attr("dtypes")
    require(c.get_attr("N") == len(dtypes), "Mismatched number of arguments to ReadVariablesOp")
    for i, dtype in enumerate(dtypes):
        held = c.input_handle_shapes_and_types(i)
        if held:
            require_equal(held[0].dtype.string, dtype.string, WRONG_DTYPE)
        c.set_output(i, held[0].shape if held else c.unknown_shape())


register_op(
    "ReadVariableOp(resource: resource) -> value: dtype",
    attrs=["dtype: type"],
    shape_fn=read_variable_shape,
    traits="only_reads_state function_gradient=yes",
    is_stateful=True,
    doc="The tensor that the variable has now.",
)
register_op(
    "_ReadVariablesOp(resources: N * resource) -> values: dtypes",
    attrs=["N: int >= 0", "dtypes: list(type) >= 1"],
    shape_fn=read_variables_shape,
    traits="only_reads_state",
    is_stateful=True,
    doc="The tensors that the variables have now.",
)


@register_kernel("ReadVariableOp")
class ReadVariableOp(OpKernel):
    """Hands out the variable's array."""

    def compute(self, ctx: OpKernelContext) -> None:
        with known_variable(ctx) as variable:
            ctx.set_output(0, variable.read(self.output_types[0]))


@register_kernel("_ReadVariablesOp")
class ReadVariablesOp(OpKernel):
    """Hands out the variables' arrays."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtypes: list[DataType] = construction.get_attr("dtypes")
        count = construction.get_attr("N")
        require_equal(
            count, len(self.dtypes), "Mismatched number of arguments to ReadVariablesOp ({} vs. {})"
        )

    def compute(self, ctx: OpKernelContext) -> None:
        handles = [handle_from_input(tensor) for tensor in ctx.inputs]
        variables = lookup_resources(ctx, handles, Var)
        missing = [h.name for h, v in zip(handles, variables, strict=True) if v is None]
        for index, variable in enumerate(variables):
            if variable is not None:
                with variable:
                    ctx.outputs[index] = variable.read(self.dtypes[index])
        if missing:
            raise FailedPreconditionError(
                "In ReadVariablesOp the following variables were found uninitialized: "
                + ", ".join(missing),
                resource=missing[0],
            )


def assign_variable_shape(c: InferenceContext) -> None:
    """The value must be of the shape that the variable is known to have."""
    held = validate_variable_resource_handle(c)
    c.merge(held[0].shape, c.input(1))
    check_variants(c, 1, held)


register_op(
    "AssignVariableOp(resource: resource, value: dtype)",
    attrs=["dtype: type", "validate_shape: bool = false"],
    shape_fn=assign_variable_shape,
    is_stateful=True,
    doc="Gives the variable a value; with `validate_shape` it must be of the shape it has.",
)

_NARROW = tuple(
    DataType.from_string(name) for name in ("int2", "int4", "uint2", "uint4", "float4_e2m1fn")
)


@register_kernel("AssignVariableOp", types={"dtype": (*ALL, *QUANTIZED, *FLOAT8, *_NARROW)})
class AssignVariableOp(OpKernel):
    """Takes the value over, or a copy where others have it; makes the variable if need be."""

    forwards_inputs = True

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")
        self.validate_shape: bool = construction.get_attr("validate_shape")

    def compute(self, ctx: OpKernelContext) -> None:
        value, handle = owned_input(ctx, 1), handle_from_input(ctx.input(0))
        with lookup_or_create_resource(
            ctx, handle, Var, lambda: Var(self.dtype, value)
        ) as variable:
            variable.assign(value, self.dtype, validate_shape=self.validate_shape)


@g.register_gradient("ReadVariableOp")
def read_variable_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    return grad


def assign_shape(c: InferenceContext) -> None:
    """The shape of the value, which is the variable's if `validate_shape` says so."""
    if c.get_attr("validate_shape"):
        merge_both_inputs_shape_fn(c)
    else:
        c.set_output(0, c.input(1))


register_op(
    "Assign(ref: Ref(T), value: T) -> output_ref: Ref(T)",
    attrs=["T: type", "validate_shape: bool = true", "use_locking: bool = true"],
    shape_fn=assign_shape,
    allows_uninitialized_input=True,
    doc="Gives the variable a value; with `validate_shape` it must be of the shape it has.",
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


# Adding and subtracting

for _change, _doc in (("Add", "Adds to the variable."), ("Sub", "Subtracts from the variable.")):
    register_op(
        f"Assign{_change}(ref: Ref(T), value: T) -> output_ref: Ref(T)",
        attrs=["T: numbertype", "use_locking: bool = false"],
        shape_fn=merge_both_inputs_shape_fn,
        doc=_doc,
    )
    register_op(
        f"Assign{_change}VariableOp(resource: resource, value: dtype)",
        attrs=["dtype: type"],
        shape_fn=assign_variable_shape,
        is_stateful=True,
        doc=_doc,
    )


@register_kernel("AssignAdd", "AssignSub", types={"T": NUMBERS})
@register_kernel("AssignAddVariableOp", "AssignSubVariableOp", types={"dtype": NUMBERS})
class AssignUpdate(VariableUpdate):
    """Adds a value of the variable's shape, or subtracts it."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.ufunc = np.add if self.type_string.startswith("AssignAdd") else np.subtract

    def check_dtype(self, dtype: DataType) -> None:
        require(dtype == self.input_types[1], "DType of variable handle and value does not match.")

    def compute(self, ctx: OpKernelContext) -> None:
        value = ctx.input(1)
        with writing(self.target(ctx)) as tensor:
            if tensor.shape != value.shape:
                raise InvalidArgumentError(
                    "Parameters and update must be the same size"
                    if self.is_ref
                    else f"Cannot update variable with shape {TensorShape(tensor.shape)} using a "
                    f"Tensor with shape {TensorShape(value.shape)}, shapes must be equal."
                )
            self.ufunc(tensor, value, out=tensor)


# Counting


def resource_count_up_to_shape(c: InferenceContext) -> None:
    """The shape of the variable, which must be a scalar of type `T`."""
    held = c.input_handle_shapes_and_types(0)
    if not held:
        raise InvalidArgumentError("Handle has no shape/type information.")
    dtype = c.get_attr("T")
    require_equal(dtype.string, held[0].dtype.string, "Data types do not match: {} and {}")
    c.set_output(0, c.with_rank(held[0].shape, 0))


register_op(
    "CountUpTo(ref: Ref(T)) -> output: T",
    attrs=["limit: int", "T: {int32, int64}"],
    shape_fn=unchanged_shape_with_rank(0),
    doc="The value of the variable, which is then one more; an error once it is `limit`.",
)
register_op(
    "ResourceCountUpTo(resource: resource) -> output: T",
    attrs=["limit: int", "T: {int32, int64}"],
    shape_fn=resource_count_up_to_shape,
    is_stateful=True,
    doc="The value of the variable, which is then one more; an error once it is `limit`.",
)


@register_kernel("CountUpTo", "ResourceCountUpTo", types={"T": INDEX})
class CountUpTo(VariableUpdate):
    """Counts, unless the limit is reached."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.limit: int = construction.get_attr("limit")

    def check_dtype(self, dtype: DataType) -> None:
        require_equal(self.output_types[0].string, dtype.string, WRONG_DTYPE)

    def compute(self, ctx: OpKernelContext) -> None:
        ref = self.ref(ctx)
        with ref.mutex:
            before = ref.tensor
            require_scalar(before, "input is not a scalar: {}")
            if before >= self.limit:
                raise OutOfRangeError(f"Reached limit of {self.limit}")
            ref.replace(frozen(np.array(before + 1, before.dtype)))
        ctx.set_output(0, before)


# Assigning to slices: `v[begin:end:strides] = value`

_DOC = "Writes `value`, broadcast, to where StridedSlice would take its result from."
_ATTRS = ["T: type", "Index: {int32, int64}", *MASK_ATTRS]

register_op(
    "ResourceStridedSliceAssign(ref: resource, begin: Index, end: Index, strides: Index, value: T)",
    attrs=_ATTRS,
    shape_fn=no_outputs,
    is_stateful=True,
    doc=_DOC,
)
register_op(
    "StridedSliceAssign(ref: Ref(T), begin: Index, end: Index, strides: Index, value: T) "
    "-> output_ref: Ref(T)",
    attrs=_ATTRS,
    shape_fn=unchanged_shape,
    doc=_DOC,
)
_PLACE = ("begin", "end", "strides")


@register_kernel(
    "ResourceStridedSliceAssign", types={"T": SLICE_TYPES}, host_memory=["ref", *_PLACE]
)
@register_kernel("StridedSliceAssign", types={"T": SLICE_TYPES}, host_memory=_PLACE)
class StridedSliceAssign(VariableUpdate):
    """Writes to slices of a variable."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.assign = slice_assigner(construction.get_attr("T"), construction)

    def check_dtype(self, dtype: DataType) -> None:
        message = "l-value dtype {} does not match r-value dtype {}"
        require_equal(dtype.string, self.input_types[4].string, message)

    def compute(self, ctx: OpKernelContext) -> None:
        _, begin, end, strides, value = ctx.inputs
        with writing(self.target(ctx)) as tensor:
            self.assign(tensor, begin, end, strides, value)
