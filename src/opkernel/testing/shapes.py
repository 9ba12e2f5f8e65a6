"""The results of an op's shape function, for tests of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.opdef import (
    InferenceContext,
    OpRegistry,
    global_op_registry,
    is_list_arg,
    run_shape_fn,
)
from opkernel.proto import OpDef
from opkernel.testing.op_runs import graph_def_version_for, node_of
from opkernel.types import DataType, PartialTensorShape

Shape = PartialTensorShape | Sequence[int | None] | None
"""Sizes, None for one that is not known; None by itself for a shape of unknown rank."""


def infer_shapes(
    op: str,
    shapes: Sequence[Shape] = (),
    *,
    attrs: Mapping[str, Any] | None = None,
    values: Mapping[int, Any] | None = None,
    op_registry: OpRegistry | None = None,
) -> list[PartialTensorShape]:
    """The shapes of the outputs of an op for inputs of some shapes.

    Args:
        op: The op's name.
        shapes: The shape of each input tensor, flat.
        attrs: Attrs. Types that are neither given nor have a default are the first that the op
            allows; the length of the one list argument follows from `shapes`.
        values: The values of inputs that are constant, by flat index.
        op_registry: Where the op is found; the global registry if None.

    Raises:
        InvalidArgumentError: The shape function refuses these shapes, values or attrs.
    """
    ops = global_op_registry() if op_registry is None else op_registry
    registration = ops.look_up(op)
    op_def = registration.op_def
    node = node_of(op_def, _with_some_types(op_def, dict(attrs or {}), len(shapes)))
    constants = {index: np.asarray(value) for index, value in (values or {}).items()}
    context = InferenceContext(
        op_def,
        node,
        [PartialTensorShape(shape) for shape in shapes],
        [constants.get(index) for index in range(len(shapes))],
        graph_def_version=graph_def_version_for(op_def),
    )
    run_shape_fn(registration, context)
    return [PartialTensorShape(_dims(context, i)) for i in range(context.num_outputs())]


def expect_shapes(
    op: str,
    shapes: Sequence[Shape],
    expected: Sequence[Shape],
    *,
    attrs: Mapping[str, Any] | None = None,
    values: Mapping[int, Any] | None = None,
    op_registry: OpRegistry | None = None,
) -> None:
    """Assert the output shapes of an op's shape function; arguments are as for `infer_shapes`.

    expect_shapes("MatMul", [[2, None], [None, 3]], [[2, 3]])
    """
    found = infer_shapes(op, shapes, attrs=attrs, values=values, op_registry=op_registry)
    wanted = [PartialTensorShape(shape) for shape in expected]
    if [str(shape) for shape in found] != [str(shape) for shape in wanted]:
        raise AssertionError(
            f"{op} gives {', '.join(map(str, found)) or 'no shapes'}; "
            f"expected {', '.join(map(str, wanted)) or 'none'}"
        )


def _dims(context: InferenceContext, index: int) -> list[int | None] | None:
    shape = context.output(index)
    if shape is None or shape.dims is None:
        return None
    return [None if dim.value < 0 else dim.value for dim in shape.dims]


def _with_some_types(op_def: OpDef, attrs: dict[str, Any], num_inputs: int) -> dict[str, Any]:
    """The attrs, with the ones filled in that no shape depends on."""
    lists = [arg for arg in op_def.input_arg if is_list_arg(arg)]
    length = num_inputs - (len(op_def.input_arg) - len(lists))
    for attr in op_def.attr:
        if attr.name in attrs or attr.HasField("default_value"):
            continue
        some_type = next(iter(attr.allowed_values.list.type), DataType.DT_FLOAT)
        if attr.type == "type":
            attrs[attr.name] = some_type
        elif attr.name in {arg.number_attr for arg in lists}:
            attrs[attr.name] = length
        elif attr.name in {arg.type_list_attr for arg in lists}:
            attrs[attr.name] = [some_type] * length
    return attrs
