"""`run_shape_fn`: run an op's shape function on a context, as every graph builder must.

Source: InferenceContext::Run and AttachContext in TensorFlow core/framework/shape_inference.cc.
"""

import numpy as np

from opkernel.errors import FailedPreconditionError, OpError
from opkernel.opdef.inference_context import InferenceContext
from opkernel.opdef.op_def_builder import OpRegistrationData
from opkernel.opdef.shape_handles import ShapeHandle
from opkernel.opdef.summary import summarize_node_def
from opkernel.opdef.tensor_summary import summarize_values
from opkernel.types import as_dtype

__all__ = ["run_shape_fn"]

_MAX_VALUES = 256


def run_shape_fn(registration: OpRegistrationData, context: InferenceContext) -> None:
    """Run the op's shape function; afterwards every output of the context has a shape.

    Outputs that the function leaves alone are of unknown shape.

    Raises:
        FailedPreconditionError: the op was registered without a shape function.
        OpError: what the function raised, with the node, its input shapes and the constants that
            the function used added to the message.
    """
    if registration.shape_inference_fn is None:
        raise FailedPreconditionError(
            f"Shape inference function missing: op '{context.node_def.op}' was registered without "
            "one; give it unknown_shape to say that nothing is known"
        )
    try:
        registration.shape_inference_fn(context)
    except OpError as error:
        node = context.node_def
        message = f"{error.message}{_describe(context)}"
        raise type(error)(message, node=node.name, op=node.op) from error
    for i, shape in enumerate(context.outputs()):
        if shape is None:
            context.set_output(i, ShapeHandle())


def _describe(context: InferenceContext) -> str:
    """The node and the inputs of a failed shape function, as the end of its message."""
    shapes = ", ".join(repr(context.input(i)) for i in range(context.num_inputs()))
    text = f" for '{summarize_node_def(context.node_def)}' with input shapes: {shapes}"
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
            values = summarize_values(array, as_dtype(array.dtype), _MAX_VALUES)
            tensors.append(f"input[{i}] = <{values}>")
    if tensors:
        text += f" and with computed input tensors: {', '.join(tensors)}"
    if partial_shapes:
        text += f" and with input tensors computed as partial shapes: {','.join(partial_shapes)}"
    return text + "."
