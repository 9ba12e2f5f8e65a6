"""`run_shape_fn`: run an op's shape function on a context, as every graph builder must.

Source: InferenceContext::Run and AttachContext in TensorFlow core/framework/shape_inference.cc.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.errors import FailedPreconditionError, OpError
from opkernel.messages import short_repr
from opkernel.opdef import text as summaries
from opkernel.opdef.core.op_def_builder import OpRegistrationData
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import ShapeHandle
from opkernel.proto import NodeDef
from opkernel.types import as_dtype

_MAX_VALUES = 256


class UnsetOutputError(TypeError):
    """A shape function returned shapes, which nobody uses, and did not set them."""


def infer_call(
    registration: OpRegistrationData,
    node_def: NodeDef,
    shapes: Sequence[Sequence[int | None] | None],
    values: Sequence[Any],
    graph_def_version: int,
) -> InferenceContext:
    """The context of the shape function after its run on the inputs of one call.

    Args:
        registration: The op.
        node_def: The node.
        shapes: The shapes of its inputs, flat.
        values: Their values; None for a value to withhold; empty to withhold all.
        graph_def_version: The version of GraphDef whose rules count.

    Raises:
        Exception: The error of the shape function.
    """
    context = InferenceContext(
        registration.op_def,
        node_def,
        shapes,
        values,
        [_as_shape(value) for value in values],
        graph_def_version=graph_def_version,
    )
    run_shape_fn(registration, context)
    return context


def _as_shape(value: Any) -> list[int] | None:
    """The shape that a value may stand for, where it is one."""
    if value is None or value.ndim != 1 or value.dtype not in (np.int32, np.int64):
        return None
    return None if value.min(initial=0) < 0 else list(value.tolist())


def run_shape_fn(registration: OpRegistrationData, context: InferenceContext) -> None:
    """Run the op's shape function; afterwards every output of the context has a shape.

    Outputs that the function leaves alone are of unknown shape.

    Raises:
        FailedPreconditionError: the op was registered without a shape function.
        UnsetOutputError: the function returned a value and left an output without a shape.
        OpError: the error of the function, with the node, its input shapes and the constants that
            the function used added to the message.
    """
    if registration.shape_inference_fn is None:
        raise FailedPreconditionError(
            f"Shape inference function missing: op '{context.node_def.op}' was registered without "
            "one; give it unknown_shape to say that nothing is known"
        )
    context.forget_doubts()
    try:
        returned: object = registration.shape_inference_fn(context)
    except OpError as error:
        node = context.node_def
        message = f"{error.message}{_describe(context)}"
        raise type(error)(message, node=node.name, op=node.op) from error
    if returned is not None:
        _check_all_set(context, returned)
    for i, shape in enumerate(context.outputs()):
        if shape is None:
            context.set_output(i, ShapeHandle())


def _check_all_set(context: InferenceContext, returned: object) -> None:
    """Raise UnsetOutputError for a shape function that returned a value in place of a `set_output`."""
    outputs = context.outputs()
    unset = next((i for i, shape in enumerate(outputs) if shape is None), None)
    if unset is not None:
        raise UnsetOutputError(
            f"the shape function of {context.node_def.op} returned {short_repr(returned)} and left output "
            f"{unset + 1} of {len(outputs)} without a shape; it must call c.set_output({unset}, shape): "
            "nothing uses a returned value"
        )


def _describe(context: InferenceContext) -> str:
    """The node and the inputs of a failed shape function, as the end of its message."""
    shapes = ", ".join(repr(context.input(i)) for i in range(context.num_inputs()))
    text = f" for '{summaries.summarize_node_def(context.node_def)}' with input shapes: {shapes}"
    tensors, partial_shapes = [], []
    for i in range(context.num_inputs()):
        as_shape = tensor = None
        if context.requested_input_tensor_as_partial_shape(i):
            as_shape = context.input_tensors_as_shape(i)
        if context.requested_input_tensor(i):
            tensor = context.input_tensor(i)
        if as_shape is not None and context.rank_known(as_shape):
            partial_shapes.append(f"input[{i}] = {as_shape}")
        elif tensor is not None:
            array = np.asarray(tensor)
            values = summaries.summarize_values(array, as_dtype(array.dtype), _MAX_VALUES)
            tensors.append(f"input[{i}] = <{values}>")
    if tensors:
        text += f" and with computed input tensors: {', '.join(tensors)}"
    if partial_shapes:
        text += f" and with input tensors computed as partial shapes: {','.join(partial_shapes)}"
    return text + "."
