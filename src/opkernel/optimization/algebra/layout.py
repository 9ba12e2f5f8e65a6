"""Layout: operations on channels-first images are turned into operations on channels-last images.

    Conv2D[NCHW](x) = Transpose(Conv2D[NHWC](Transpose(x, NCHW to NHWC)), NHWC to NCHW)

The transposes between two such operations then undo each other. The trait `images` of an op says which of its inputs are
turned.

Source: TensorFlow core/grappler/optimizers/generic_layout_optimizer.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.opdef import attr_to_python

if TYPE_CHECKING:
    from opkernel.opdef.shapes.channel_order import ChannelOrder

_BIASES = frozenset({"BiasAdd", "BiasAddGrad"})
"""Their kernels take both layouts, and neither is faster."""


def layout(editor: GraphEditor) -> None:
    """Turn operations on channels-first images into operations on channels-last images."""
    order = [op for op in editor.operations() if op.traits.images and op not in editor.feeds]
    first = [op for op in order if _format(op).startswith("NC")]
    if {op.type for op in first} <= _BIASES:
        return
    from opkernel.opdef.shapes.channel_order import CHANNELS_FIRST  # few graphs have such images

    for op in [op for op in first if _format(op) in CHANNELS_FIRST]:
        is_alone = op not in editor.preserved or len(op.outputs) == 1
        if is_alone and not editor.is_conditional(op) and editor.is_valid(op):
            _turn(editor, op, CHANNELS_FIRST[_format(op)])


def _format(op: Operation) -> str:
    return op.attr["data_format"].s.decode(errors="replace")


def _turn(editor: GraphEditor, op: Operation, order: ChannelOrder) -> None:
    roles = _roles(editor, op, len(order.to_last))
    if roles is None:
        return
    inputs = [
        _turned_input(editor, op, tensor, role, order)
        for tensor, role in zip(op.inputs, roles, strict=True)
    ]
    name, attrs = f"{op.name}/{order.last}", _turned_attrs(editor, op)
    turned = editor.add(op.type, inputs, name, attrs, op.device, op.control_inputs)
    first, *others = turned.outputs
    if not op.traits.images.endswith("-"):
        first = _transposed(editor, first, order.to_first, f"{op.name}/channels_first")
    for old, new in zip(op.outputs, (first, *others), strict=True):
        editor.redirect(old, new)
    if op in editor.preserved:
        editor.become(op, "Identity", [first], {"T": first.dtype.base})
    editor.note(op, f"has its channels last, as {turned.name!r}")


def _roles(editor: GraphEditor, op: Operation, rank: int) -> str | None:
    """What each input is, as in the trait; None where the first, or one that may be an image, is of unknown rank."""
    inputs, _, _ = op.traits.images.partition(":")
    roles = ""
    for tensor, role in zip(op.inputs, inputs.ljust(len(op.inputs), inputs[-1]), strict=True):
        if role == "?":
            found = editor.shape(tensor).rank
            if found is None or (found != rank and not roles):
                return None
            role = "i" if found == rank else "-"
        roles += role
    return roles


def _turned_input(
    editor: GraphEditor, op: Operation, tensor: Tensor, role: str, order: ChannelOrder
) -> Tensor:
    """The input with channels last, or the shape of such an input."""
    if role == "-":
        return tensor
    name = f"{op.name}/{tensor.op.name}/channels_last"
    if role == "i":
        return _transposed(editor, tensor, order.to_last, name)
    sizes = editor.free_value(tensor)
    if sizes is not None and sizes.shape == (len(order.to_last),):
        return editor.constant(sizes[list(order.to_last)], tensor.dtype, name, op.device)
    attrs = {"T": tensor.dtype.base, "src_format": _format(op), "dst_format": order.last}
    return editor.add("DataFormatVecPermute", [tensor], name, attrs, op.device).outputs[0]


def _transposed(
    editor: GraphEditor, tensor: Tensor, permutation: tuple[int, ...], name: str
) -> Tensor:
    from opkernel.optimization.algebra import transposes  # few graphs have such images

    return transposes.transpose(editor, tensor, permutation, name)


def _turned_attrs(editor: GraphEditor, op: Operation) -> dict[str, Any]:
    """The attrs of a node; attrs with a number for each dimension are put in another order."""
    from opkernel.opdef.shapes.channel_order import PER_DIMENSION, channels_last_attrs

    attrs: dict[str, Any] = editor.attrs(op)
    lists = [name for name in (*PER_DIMENSION, "explicit_paddings") if name in attrs]
    numbers = {name: attr_to_python(attrs[name], "list(int)") for name in lists}
    return attrs | channels_last_attrs({"data_format": _format(op), **numbers})
