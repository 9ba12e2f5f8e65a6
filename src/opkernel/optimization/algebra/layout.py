"""Layout: convolutions and pools of channels-first images, which no CPU kernel takes, are turned.

    Conv2D[NCHW](x) = Transpose(Conv2D[NHWC](Transpose(x, NCHW to NHWC)), NHWC to NCHW)

The transposes between two such operations then undo each other.

Source: TensorFlow core/grappler/optimizers/generic_layout_optimizer.cc.
"""

from __future__ import annotations

from typing import Any

from opkernel.graph import Operation
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.opdef import attr_to_python

_TO_LAST = {b"NCHW": (0, 2, 3, 1), b"NCDHW": (0, 2, 3, 4, 1)}
_TO_FIRST = {b"NCHW": (0, 3, 1, 2), b"NCDHW": (0, 4, 1, 2, 3)}
_LAST = {b"NCHW": "NHWC", b"NCDHW": "NDHWC"}
_BY_AXIS = ("strides", "ksize", "dilations")
"""Attrs with one number for each dimension."""


def layout(editor: GraphEditor) -> None:
    """Turn operations on channels-first images into operations on channels-last images."""
    order = [op for op in editor.operations() if op.traits.has_data_format]
    order = [op for op in order if op not in editor.feeds]
    first = [op for op in order if op.attr["data_format"].s in _LAST]
    if all(op.type == "BiasAdd" for op in first):
        return  # of which there is a kernel
    for op in first:
        is_alone = op not in editor.preserved or len(op.outputs) == 1
        has_images = op.type != "BiasAdd" or editor.shape(op.inputs[0]).rank == 4
        if is_alone and has_images and not editor.is_conditional(op) and editor.is_valid(op):
            _turn(editor, op, op.attr["data_format"].s)


def _turn(editor: GraphEditor, op: Operation, data_format: bytes) -> None:
    from opkernel.optimization.algebra.transposes import transpose  # few graphs have such images

    to_last, to_first = _TO_LAST[data_format], _TO_FIRST[data_format]
    image, *others = op.inputs
    inputs = [transpose(editor, image, to_last, f"{op.name}/channels_last"), *others]
    attrs = _turned_attrs(editor, op, to_last) | {"data_format": _LAST[data_format]}
    name = f"{op.name}/{_LAST[data_format]}"
    turned = editor.add(op.type, inputs, name, attrs, op.device, op.control_inputs)
    back = transpose(editor, turned.outputs[0], to_first, f"{op.name}/channels_first")
    for old, new in zip(op.outputs, (back, *turned.outputs[1:]), strict=True):
        editor.redirect(old, new)
    if op in editor.preserved:
        editor.become(op, "Identity", [back], {"T": back.dtype.base})
    editor.note(op, f"has its channels last, as {turned.name!r}")


def _turned_attrs(editor: GraphEditor, op: Operation, to_last: tuple[int, ...]) -> dict[str, Any]:
    """The attrs of a node; attrs with a number for each dimension are put in another order."""
    attrs: dict[str, Any] = editor.attrs(op)
    for name in _BY_AXIS:
        if name in attrs and len(attrs[name].list.i) == len(to_last):
            attrs[name] = [attrs[name].list.i[axis] for axis in to_last]
    if "explicit_paddings" in attrs and attrs["explicit_paddings"].list.i:
        paddings = attr_to_python(attrs["explicit_paddings"], "list(int)")
        attrs["explicit_paddings"] = [
            paddings[2 * axis + side] for axis in to_last for side in (0, 1)
        ]
    return attrs
