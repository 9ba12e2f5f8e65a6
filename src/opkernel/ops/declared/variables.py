"""Shapes of ops on variables: those that are references to tensors, and those behind resources.

Source: TensorFlow core/ops/state_ops.cc, resource_variable_ops.cc, array_ops.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import (
    InferenceContext,
    OpShapeInferenceFn,
    ShapeAndType,
    ShapeHandle,
    explicit_shape,
    gather_nd_shape,
    merge_both_inputs_shape_fn,
    no_outputs,
    scalar_shape,
    scatter_nd_shape,
    unchanged_shape,
    unchanged_shape_with_rank,
    unknown_shape,
    validate_variable_resource_handle,
)
from opkernel.ops.int32_attr import int32_attr
from opkernel.types import DataType, PartialTensorShape

# References


def _variable(c: InferenceContext) -> None:
    """The attr `shape`; `Variable` says that the shape is unknown with that of a scalar."""
    if c.get_attr("shape").rank:
        explicit_shape(c)
    else:
        unknown_shape(c)


def _assign(c: InferenceContext) -> None:
    if c.get_attr("validate_shape"):
        merge_both_inputs_shape_fn(c)
    else:
        c.set_output(0, c.input(1))


def _check_scatter(c: InferenceContext, variable: ShapeHandle) -> None:
    """Updates, unless they are one scalar for all, are [indices..., rest of the variable...]."""
    rows = c.concatenate(c.input(1), c.subshape(variable, 1))
    if c.rank(c.input(2)) != 0:
        c.merge(c.input(2), rows)


def _scatter(c: InferenceContext) -> None:
    _check_scatter(c, c.input(0))
    c.set_output(0, c.input(0))


def _scatter_nd(c: InferenceContext) -> None:
    """Into a reference, or the variable that the resource is known to hold."""
    held = c.input_handle_shapes_and_types(0)
    variable = held[0].shape if held else c.input(0)
    indices = c.with_rank_at_least(c.input(1), 1)
    scatter_nd_shape(c, indices, c.with_rank_at_least(c.input(2), 1), variable)


# Handles


def _set_handle(
    c: InferenceContext, index: int, shape: PartialTensorShape, dtype: DataType
) -> None:
    """The output is a handle to one variable."""
    c.set_output(index, c.scalar())
    held = ShapeAndType(c.make_shape_from_partial_shape(shape), dtype)
    c.set_output_handle_shapes_and_types(index, [held])


def _var_handle(c: InferenceContext) -> None:
    _set_handle(c, 0, c.get_attr("shape"), c.get_attr("dtype"))


def _var_handles(c: InferenceContext) -> None:
    n, dtypes, shapes = c.get_attr("N"), c.get_attr("dtypes"), c.get_attr("shapes")
    for kind, values in (("dtypes", dtypes), ("shapes", shapes)):
        if len(values) != n:
            raise InvalidArgumentError(
                f"Mismatched number of {kind} (n={n}, num {kind}={len(values)})"
            )
    for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True)):
        _set_handle(c, i, shape, dtype)


def _set_value(c: InferenceContext, shape: ShapeHandle, held: list[ShapeAndType]) -> None:
    """The output is the value of a variable; if that is a variant, it holds what is left."""
    c.set_output(0, shape)
    if held[0].dtype == DataType.DT_VARIANT and len(held) > 1:
        c.set_output_handle_shapes_and_types(0, held[1:])


def _read_variable(c: InferenceContext) -> None:
    """What the handle is known to hold, or the attr `_shape`, which needs no declaration."""
    annotation = c.find_attr("_shape")
    if isinstance(annotation, PartialTensorShape):
        c.set_output(0, c.make_shape_from_partial_shape(annotation))
        return
    held = validate_variable_resource_handle(c)
    _set_value(c, held[0].shape, held)


def _read_variables(c: InferenceContext) -> None:
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


def _check_variants(c: InferenceContext, index: int, held: list[ShapeAndType]) -> None:
    """Refuse to write an input into a variable of variants that hold another number of tensors."""
    written = c.input_handle_shapes_and_types(index)
    expected = len(held) - 1
    if held[0].dtype != DataType.DT_VARIANT or expected == 0 or written is None:
        return
    if len(written) != expected:
        raise InvalidArgumentError(
            "Incompatible handle variant shape_and_type size and input shape_and_type size: "
            f"{expected} vs. {len(written)}"
        )


def _assign_variable(c: InferenceContext) -> None:
    held = validate_variable_resource_handle(c)
    c.merge(held[0].shape, c.input(1))
    _check_variants(c, 1, held)


def _variable_shape(c: InferenceContext) -> None:
    """A vector, whose length is the rank of the variable."""
    held = c.input_handle_shapes_and_types(0)
    known = held[0].shape if held else c.unknown_shape()
    c.set_output(0, c.vector(c.rank(known) if c.rank_known(known) else None))


def _gather(c: InferenceContext) -> None:
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
    _set_value(c, c.concatenate(chosen, rest), held)


def _resource_scatter(c: InferenceContext) -> None:
    held = validate_variable_resource_handle(c)
    _check_scatter(c, held[0].shape)
    _check_variants(c, 2, held)


def _resource_count_up_to(c: InferenceContext) -> None:
    held = c.input_handle_shapes_and_types(0)
    if not held:
        raise InvalidArgumentError("Handle has no shape/type information.")
    dtype = c.get_attr("T")
    if dtype != held[0].dtype:
        raise InvalidArgumentError(
            f"Data types do not match: {dtype.string} and {held[0].dtype.string}"
        )
    c.set_output(0, c.with_rank(held[0].shape, 0))


SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "Assign": _assign,
    "AssignAdd": merge_both_inputs_shape_fn,
    "AssignAddVariableOp": _assign_variable,
    "AssignSub": merge_both_inputs_shape_fn,
    "AssignSubVariableOp": _assign_variable,
    "AssignVariableOp": _assign_variable,
    "CountUpTo": unchanged_shape_with_rank(0),
    "DestroyTemporaryVariable": unchanged_shape,
    "DisableCopyOnRead": no_outputs,
    "IsVariableInitialized": scalar_shape,
    "ReadVariableOp": _read_variable,
    "ResourceCountUpTo": _resource_count_up_to,
    "ResourceGather": _gather,
    "ResourceGatherNd": gather_nd_shape,
    "ResourceStridedSliceAssign": no_outputs,
    "StridedSliceAssign": unchanged_shape,
    "TemporaryVariable": explicit_shape,
    "VarHandleOp": _var_handle,
    "VarIsInitializedOp": scalar_shape,
    "Variable": _variable,
    "VariableShape": _variable_shape,
    "VariableV2": explicit_shape,
    "_ReadVariablesOp": _read_variables,
    "_VarHandlesOp": _var_handles,
}
for change in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update"):
    SHAPE_FNS[f"Scatter{change}"] = _scatter
    SHAPE_FNS[f"ResourceScatter{change}"] = _resource_scatter
for change in ("Add", "Max", "Min", "Sub", "Update"):
    SHAPE_FNS[f"ScatterNd{change}"] = _scatter_nd
    SHAPE_FNS[f"ResourceScatterNd{change}"] = _scatter_nd
