"""Transposes: if one undoes another, both go; the operations between them are turned instead.

    Transpose(Transpose(x, p), q) = Transpose(x, q of p)
    Relu(Transpose(x, p)) = Transpose(Relu(x), p)

An operation is moved in front of a transpose only if that brings the transpose nearer to another
one, which may undo it.

Source: TensorFlow core/grappler/optimizers/generic_layout_optimizer_transposer.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.types import DataType

Permutation = tuple[int, ...]
Turn = Callable[[GraphEditor, Operation, Permutation], "list[Tensor] | None"]
"""The inputs of an operation that does the same on tensors which are not transposed yet."""


def transposes(editor: GraphEditor) -> None:
    """Cancel transposes that undo each other, and turn the operations between them."""
    order = editor.operations()
    if sum(op.type == "Transpose" for op in order) < 2:
        return
    leads_to_transpose: set[Operation] = set()
    turns = {op: turn for op in order if (turn := _turn_of(op)) is not None}
    for op in reversed(turns):
        consumers = [consumer for consumer, _ in op.consumer_edges()]
        if any(c.type == "Transpose" or c in leads_to_transpose for c in consumers):
            leads_to_transpose.add(op)
    for op in order:
        if op in editor.feeds:
            continue
        if op in leads_to_transpose:
            _turn(editor, op, turns[op])
        elif op.type == "Transpose":
            _merge(editor, op)


def transpose(editor: GraphEditor, tensor: Tensor, permutation: Sequence[int], name: str) -> Tensor:
    """A new transpose of a tensor."""
    axes, attrs = _axes(editor, permutation, name, tensor.op.device), _attrs(tensor)
    return editor.add("Transpose", [tensor, axes], name, attrs, tensor.op.device).outputs[0]


def _axes(editor: GraphEditor, permutation: Sequence[int], name: str, device: str) -> Tensor:
    value = np.array(permutation, np.int32)
    return editor.constant(value, DataType.DT_INT32, f"{name}/perm", device)


def _attrs(tensor: Tensor) -> dict[str, Any]:
    return {"T": tensor.dtype.base, "Tperm": DataType.DT_INT32}


def _permutation(editor: GraphEditor, op: Operation) -> Permutation | None:
    """The permutation of a Transpose that may move; None for all other operations."""
    if op.type != "Transpose" or op in editor.feeds or op.control_inputs:
        return None
    axes = editor.free_value(op.inputs[1])
    if axes is None or axes.shape != (editor.shape(op.inputs[0]).rank,) or not editor.is_valid(op):
        return None
    return tuple((axes % axes.size).tolist()) if axes.size else ()


def _merge(editor: GraphEditor, op: Operation) -> None:
    """Do two transposes in one, or in none."""
    inner = op.inputs[0].op
    first, second = _permutation(editor, inner), _permutation(editor, op)
    if second is None or editor.is_conditional(op):
        return
    source, permutation = op.inputs[0], second
    if first is not None and len(first) == len(second):
        source, permutation = inner.inputs[0], tuple([first[axis] for axis in second])
    if permutation == tuple(range(len(permutation))):
        editor.pass_on(op, source, "is undone" if source is not op.inputs[0] else "moves nothing")
    elif source is not op.inputs[0]:
        axes = _axes(editor, permutation, op.name, op.device)
        editor.become(op, "Transpose", [source, axes], _attrs(source))
        editor.note(op, f"does what {inner.name!r} did, too")


def _turn(editor: GraphEditor, op: Operation, turn: Turn) -> None:
    """Move an operation in front of the transposes that it takes."""
    permutation = next(
        (p for s in op.edges[::2] if (p := _permutation(editor, s)) is not None), None
    )
    if permutation is None or op.control_inputs or editor.is_conditional(op):
        return
    inputs = turn(editor, op, permutation)
    if inputs is None:
        return
    dtype = op.output_types[0]
    turned = editor.add(op.type, inputs, f"{op.name}/turned", editor.attrs(op), op.device)
    axes = _axes(editor, permutation, op.name, op.device)
    editor.become(
        op, "Transpose", [turned.outputs[0], axes], {"T": dtype, "Tperm": DataType.DT_INT32}
    )
    editor.note(op, "comes before a transpose")


def _turn_pointwise(
    editor: GraphEditor, op: Operation, permutation: Permutation
) -> list[Tensor] | None:
    """All are transposed alike, or constants."""
    inputs = []
    for tensor in op.inputs:
        value = editor.free_value(tensor)
        if _permutation(editor, tensor.op) == permutation and editor.only_consumer(tensor.op):
            inputs.append(tensor.op.inputs[0])
        elif value is not None and value.ndim <= len(permutation):
            inputs.append(_turned_constant(editor, tensor, value, permutation))
        else:
            return None
    return inputs


def _turned_constant(
    editor: GraphEditor, tensor: Tensor, value: np.ndarray[Any, Any], permutation: Permutation
) -> Tensor:
    """A constant that is broadcast along the axes as they were before the transpose."""
    if value.ndim == 0:
        return tensor
    rank = len(permutation)
    whole = value.reshape((1,) * (rank - value.ndim) + value.shape)
    turned = np.ascontiguousarray(whole.transpose(np.argsort(permutation)))
    return editor.constant(turned, tensor.dtype, f"{tensor.op.name}/turned", tensor.op.device)


def _turn_reduction(
    editor: GraphEditor, op: Operation, permutation: Permutation
) -> list[Tensor] | None:
    """A reduction that keeps its dimensions."""
    axes = editor.free_value(op.inputs[1])
    source = op.inputs[0].op
    if axes is None or not op.attr["keep_dims"].b or not editor.only_consumer(source):
        return None
    rank = len(permutation)
    if axes.size and (axes.min() < -rank or axes.max() >= rank):
        return None
    turned = np.array([permutation[axis % rank] for axis in axes.reshape(-1)], axes.dtype)
    name = f"{op.inputs[1].op.name}/turned"
    constant = editor.constant(turned.reshape(axes.shape), op.inputs[1].dtype, name, op.device)
    return [source.inputs[0], constant]


def _turn_pad(editor: GraphEditor, op: Operation, permutation: Permutation) -> list[Tensor] | None:
    sizes = editor.free_value(op.inputs[1])
    source = op.inputs[0].op
    if sizes is None or sizes.shape != (len(permutation), 2) or not editor.only_consumer(source):
        return None
    turned = np.ascontiguousarray(sizes[np.argsort(permutation)])
    name = f"{op.inputs[1].op.name}/turned"
    constant = editor.constant(turned, op.inputs[1].dtype, name, op.device)
    return [source.inputs[0], constant, *op.inputs[2:]]


def _turn_concat(
    editor: GraphEditor, op: Operation, permutation: Permutation
) -> list[Tensor] | None:
    *tensors, axis_tensor = op.inputs
    axis, rank = editor.free_value(axis_tensor), len(permutation)
    if axis is None or axis.ndim or not -rank <= axis < rank:
        return None
    sources = [tensor.op for tensor in tensors]
    for source in sources:
        if _permutation(editor, source) != permutation or not editor.only_consumer(source):
            return None
    turned = np.array(permutation[int(axis) % rank], axis.dtype)
    name = f"{axis_tensor.op.name}/turned"
    constant = editor.constant(turned, axis_tensor.dtype, name, op.device)
    return [*(source.inputs[0] for source in sources), constant]


_TURNS: dict[str, Turn] = {
    "ConcatV2": _turn_concat,
    **dict.fromkeys(("Pad", "PadV2", "MirrorPad"), _turn_pad),
}


def _turn_of(op: Operation) -> Turn | None:
    """How operations of an op are moved in front of transposes; None where they are not."""
    traits = op.traits
    if traits.pointwise or traits.passes_on:
        return _turn_pointwise
    return _turn_reduction if traits.reduces else _TURNS.get(op.type)
