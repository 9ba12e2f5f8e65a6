"""Layout: convolutions and pools of channels-first images, which no CPU kernel takes, are turned.

    Conv2D[NCHW](x) = Transpose(Conv2D[NHWC](Transpose(x, NCHW to NHWC)), NHWC to NCHW)

The transposes between two such operations then undo each other.

Source: TensorFlow core/grappler/optimizers/generic_layout_optimizer.cc.
"""

from __future__ import annotations

from typing import Any

from opkernel.graph import Operation
from opkernel.opdef import attr_to_python
from opkernel.optimization.graph_editor import GraphEditor
from opkernel.optimization.pass_registry import Grouping, register_optimization
from opkernel.optimization.transposes import transpose

__all__ = ["layout"]

_TO_LAST = {b"NCHW": (0, 2, 3, 1), b"NCDHW": (0, 2, 3, 4, 1)}
_TO_FIRST = {b"NCHW": (0, 3, 1, 2), b"NCDHW": (0, 4, 1, 2, 3)}
_LAST = {b"NCHW": "NHWC", b"NCDHW": "NDHWC"}
_TURNED = frozenset(
    {"AvgPool", "AvgPool3D", "BiasAdd", "Conv2D", "Conv3D", "DepthwiseConv2dNative"}
    | {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "MaxPool", "MaxPool3D"}
)
_BY_AXIS = ("strides", "ksize", "dilations")
"""Attrs with one number for each dimension."""


@register_optimization(Grouping.POST_PLACEMENT, 34, ops=_TURNED)
def layout(editor: GraphEditor) -> None:
    """Turn what works on channels-first images into what works on channels-last ones."""
    order = [op for op in editor.operations() if op.type in _TURNED and op not in editor.feeds]
    first = [op for op in order if op._node_def.attr["data_format"].s in _LAST]
    if all(op.type == "BiasAdd" for op in first):
        return  # of which there is a kernel
    for op in first:
        is_alone = op not in editor.preserved or len(op.outputs) == 1
        has_images = op.type != "BiasAdd" or editor.shape(op.inputs[0]).rank == 4
        if is_alone and has_images and not editor.is_conditional(op):
            _turn(editor, op, op._node_def.attr["data_format"].s)


def _turn(editor: GraphEditor, op: Operation, data_format: bytes) -> None:
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
    """The attrs of a node, those that have a number for each dimension in another order."""
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
