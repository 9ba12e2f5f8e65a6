"""Shape materialisation: what follows from shapes that are known becomes a constant.

Where all sizes but one are known, a Reshape to them gets a constant target that leaves this one
open; it must be sure to be the one that the target has.

Source: TensorFlow core/grappler/optimizers/constant_folding.cc.
"""

from typing import Any

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.core.control_flow_ops import SWITCH_OPS
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.algebra.rearrangements import surely_reshapes
from opkernel.types import DataType

_MAX_ELEMENTS = 1024
"""No shape is larger, nor much that is computed from shapes."""


def shape_materialization(editor: GraphEditor) -> None:
    """Replace shapes that are known, and what is computed from them, by constants."""
    of_shapes: set[Operation] = set()
    for op in editor.operations():
        if op.type == "Reshape" and op.edges[2].type != "Const":
            _fix_target(editor, op)
        computed = not of_shapes.isdisjoint(op.edges) and _gives_indices(op)
        if computed or op.traits.reads_shapes_only:
            of_shapes.add(op)
            if _may_replace(editor, op):
                _materialize(editor, op)


def _gives_indices(op: Operation) -> bool:
    return all(dtype.is_integer or dtype.is_bool for dtype in op.output_types)


def _may_replace(editor: GraphEditor, op: Operation) -> bool:
    """Whether a constant that waits for the inputs does what the operation does."""
    if op in editor.feeds or op.op_def.is_stateful:
        return False
    return not any(source.type in SWITCH_OPS for source in op.edges[::2])


def _materialize(editor: GraphEditor, op: Operation) -> None:
    """Replace the outputs of an operation that are known."""
    for tensor in op.outputs:
        value = editor.known_value(tensor)
        if value is not None and (0 < value.size <= _MAX_ELEMENTS or value.shape == (0,)):
            replace_by_value(editor, tensor, np.asarray(value, tensor.dtype.numpy_dtype))


def replace_by_value(editor: GraphEditor, tensor: Tensor, value: np.ndarray[Any, Any]) -> None:
    """Have all who take a tensor take a constant, which is there when the tensor would be."""
    op = tensor.op
    if len(op.outputs) == 1:
        editor.become_constant(op, value)
    elif editor.consumers(tensor):
        controls = [*op.control_inputs, *editor.pivots(op)]
        name = f"{op.name}/known_{tensor.value_index}"
        constant = editor.constant(value, tensor.dtype, name, op.device, controls)
        editor.redirect(tensor, constant)
    else:
        return
    editor.note(op, f"is known to be {value.tolist()}")


def _fix_target(editor: GraphEditor, op: Operation) -> None:
    """Give a Reshape a constant target, where it follows from what is known of its result."""
    shape = editor.shape(op.outputs[0])
    if shape.rank is None or op in editor.feeds or editor.is_conditional(op):
        return
    dims = shape.as_list()
    if None in dims and (dims.count(None) > 1 or 0 in dims or not surely_reshapes(editor, op)):
        return
    sizes = np.array([-1 if dim is None else dim for dim in dims], np.int32)
    target = editor.constant(sizes, DataType.DT_INT32, f"{op.name}/target", op.device)
    attrs = {"T": op.input_types[0], "Tshape": DataType.DT_INT32}
    editor.become(op, "Reshape", [op.inputs[0], target], attrs)
    editor.note(op, f"has the constant target {sizes.tolist()}")
