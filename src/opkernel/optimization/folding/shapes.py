"""Shapes: what follows from shapes that are known becomes a constant.

Where all sizes but one are known, a Reshape to them gets a constant target that leaves this one open; it must be sure to
be the one that the target has.

A session that is fed the same shapes again and again has a graph of its own for them (`runtime/adaptive/shapes.py`), so
that this holds for graphs whose feeds may have any shape, too.

Source: TensorFlow core/grappler/optimizers/constant_folding.cc (MaterializeShapes), costs/graph_properties.cc.
"""

from __future__ import annotations

import numpy as np

from opkernel.errors import OpError
from opkernel.graph import Operation, Tensor
from opkernel.graph.core.structural_ops import LOW_LEVEL_CONTROL_FLOW
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.graph.inference.whole_graph_refiner import WholeGraphRefiner
from opkernel.optimization.algebra.rearrangements import surely_reshapes
from opkernel.optimization.control_flow.dead_code import drop_variables
from opkernel.types import Array, DataType

_MAX_ELEMENTS = 1024
"""No shape is larger, nor much that is computed from shapes."""


def shape_materialization(editor: GraphEditor) -> None:
    """Replace shapes that are known, and what is computed from them, by constants."""
    of_shapes: set[Operation] = set()
    for op in editor.operations():
        if op.type == "Reshape" and op.edges[2].type != "Const":
            _fix_target(editor, op)
        is_computed = not of_shapes.isdisjoint(op.edges) and all(
            dtype.is_integer or dtype.is_bool for dtype in op.output_types
        )
        if is_computed or op.traits.reads_shapes_only:
            of_shapes.add(op)
            for tensor in op.outputs if _may_replace(editor, op) else ():
                value = editor.known_value(tensor)
                if value is not None and (0 < value.size <= _MAX_ELEMENTS or value.shape == (0,)):
                    replace_by_value(editor, tensor, np.asarray(value, tensor.dtype.numpy_dtype))


def _may_replace(editor: GraphEditor, op: Operation) -> bool:
    """Whether a constant that waits for the inputs does what the operation does.

    It does not do what control flow does: an Enter gives its output in another loop than its input is in.
    """
    is_left = op in editor.feeds or op.type in LOW_LEVEL_CONTROL_FLOW
    return not (is_left or op.op_def.is_stateful)


def replace_by_value(editor: GraphEditor, tensor: Tensor, value: Array) -> None:
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


def shape_specialization(editor: GraphEditor) -> None:
    """Follow known shapes through loops and lists; a plan of its own for feeds that repeat."""
    if any(op.outputs and editor.dims(op.outputs[0]) is None for op in editor.feeds):
        return
    try:
        refiner = WholeGraphRefiner.settle(editor.graph)
    except OpError:  # the step that runs the node will say what is wrong
        return
    editor.graph.refiner.adopt(refiner)
    for op in editor.operations():
        if op.traits.item_rule in ("get", "pop") and op not in editor.feeds:
            value = refiner.values.value_of((op, len(op.outputs) - 1))
            if value is not None:  # all items of the list are the same
                replace_by_value(editor, op.outputs[-1], value)
        elif op.traits.calls == "while" and op not in editor.feeds and not op.op_def.is_stateful:
            drop_variables(editor, op, refiner.facts_of_arguments(op))
