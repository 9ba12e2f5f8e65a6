"""Reading, assigning and counting variables.

Source: TensorFlow core/ops/resource_variable_ops.cc, state_ops.cc,
core/kernels/resource_variable_ops.cc, count_up_to_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
)
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
    register_op,
    validate_variable_resource_handle,
)
from opkernel.ops.input_checks import require_equal, require_scalar
from opkernel.ops.kernel_types import ALL, FLOAT8, INDEX, NUMBERS, QUANTIZED
from opkernel.ops.registration import register_kernel
from opkernel.ops.variables.handles import check_variants, set_value
from opkernel.ops.variables.var import (
    Var,
    frozen,
    known_variable,
    owned_input,
    variable_of,
    writing,
)
from opkernel.types import DataType, PartialTensorShape, TensorShape

# Reading


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
    if c.get_attr("N") != len(dtypes):
        raise InvalidArgumentError("Mismatched number of arguments to ReadVariablesOp")
    for i, dtype in enumerate(dtypes):
        held = c.input_handle_shapes_and_types(i)
        if held and held[0].dtype != dtype:
            raise InvalidArgumentError(
                "Trying to read variable with wrong dtype. "
                f"Expected {held[0].dtype.string} got {dtype.string}"
            )
        c.set_output(i, held[0].shape if held else c.unknown_shape())


register_op(
    "ReadVariableOp",
    inputs=["resource: resource"],
    outputs=["value: dtype"],
    attrs=["dtype: type"],
    shape_fn=read_variable_shape,
    traits="only_reads_state function_gradient=yes",
    is_stateful=True,
    doc="The tensor that the variable has now.",
)
register_op(
    "_ReadVariablesOp",
    inputs=["resources: N * resource"],
    outputs=["values: dtypes"],
    attrs=["N: int >= 0", "dtypes: list(type) >= 1"],
    shape_fn=read_variables_shape,
    traits="only_reads_state",
    is_stateful=True,
    doc="The tensors that the variables have now.",
)


@register_kernel("ReadVariableOp")
class ReadVariableOp(OpKernel):
    """Hands out the variable's array."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("dtype")

    def compute(self, ctx: OpKernelContext) -> None:
        with known_variable(ctx) as variable:
            ctx.set_output(0, variable.read(self.dtype))


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


# Assigning


def assign_variable_shape(c: InferenceContext) -> None:
    """The value must be of the shape that the variable is known to have."""
    held = validate_variable_resource_handle(c)
    c.merge(held[0].shape, c.input(1))
    check_variants(c, 1, held)


register_op(
    "AssignVariableOp",
    inputs=["resource: resource", "value: dtype"],
    attrs=["dtype: type", "validate_shape: bool = false"],
    shape_fn=assign_variable_shape,
    is_stateful=True,
    doc="Gives the variable a value; with `validate_shape` it must be of the shape it has.",
)
for _change, _doc in (("Add", "Adds to the variable."), ("Sub", "Subtracts from the variable.")):
    register_op(
        f"Assign{_change}VariableOp",
        inputs=["resource: resource", "value: dtype"],
        attrs=["dtype: type"],
        shape_fn=assign_variable_shape,
        is_stateful=True,
        doc=_doc,
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


class AssignUpdateVariableOp(OpKernel):
    """Changes the variable by a ufunc of it and a value of its shape."""

    ufunc: Any

    def compute(self, ctx: OpKernelContext) -> None:
        value = ctx.input(1)
        with variable_of(ctx) as variable, writing(variable.tensor_ref) as tensor:
            if variable.dtype != self.input_types[1]:
                raise InvalidArgumentError("DType of variable handle and value does not match.")
            if tensor.shape != value.shape:
                raise InvalidArgumentError(
                    f"Cannot update variable with shape {TensorShape(tensor.shape)} using a "
                    f"Tensor with shape {TensorShape(value.shape)}, shapes must be equal."
                )
            self.ufunc(tensor, value, out=tensor)


@register_kernel("AssignAddVariableOp", types={"dtype": NUMBERS})
class AssignAddVariableOp(AssignUpdateVariableOp):
    """Adds."""

    ufunc = np.add


@register_kernel("AssignSubVariableOp", types={"dtype": NUMBERS})
class AssignSubVariableOp(AssignUpdateVariableOp):
    """Subtracts."""

    ufunc = np.subtract


# Counting


def resource_count_up_to_shape(c: InferenceContext) -> None:
    """The shape of the variable, which must be a scalar of type `T`."""
    held = c.input_handle_shapes_and_types(0)
    if not held:
        raise InvalidArgumentError("Handle has no shape/type information.")
    dtype = c.get_attr("T")
    if dtype != held[0].dtype:
        raise InvalidArgumentError(
            f"Data types do not match: {dtype.string} and {held[0].dtype.string}"
        )
    c.set_output(0, c.with_rank(held[0].shape, 0))


register_op(
    "ResourceCountUpTo",
    inputs=["resource: resource"],
    outputs=["output: T"],
    attrs=["limit: int", "T: {int32, int64}"],
    shape_fn=resource_count_up_to_shape,
    is_stateful=True,
    doc="The value of the variable, which is then one more; an error once it is `limit`.",
)


@register_kernel("ResourceCountUpTo", types={"T": INDEX})
class ResourceCountUpTo(OpKernel):
    """Counts, unless the limit is reached."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.dtype: DataType = construction.get_attr("T")
        self.limit: int = construction.get_attr("limit")

    def compute(self, ctx: OpKernelContext) -> None:
        with variable_of(ctx) as variable, variable.tensor_ref.mutex:
            before = variable.read(self.dtype)
            variable.tensor_ref.replace(next_count(before, self.limit))
        ctx.set_output(0, before)


def next_count(before: Any, limit: int) -> Any:
    """One more than a count below the limit.

    Raises:
        InvalidArgumentError: the count is no scalar.
        OutOfRangeError: the limit is reached.
    """
    require_scalar(before, "input is not a scalar: {}")
    if before >= limit:
        raise OutOfRangeError(f"Reached limit of {limit}")
    return frozen(np.array(before + 1, before.dtype))


@g.register_gradient("ReadVariableOp")
def read_variable_gradient(op: g.Operation, grad: g.Gradient) -> g.Gradients:
    return grad
