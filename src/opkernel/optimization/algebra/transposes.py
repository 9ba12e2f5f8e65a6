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
        what = "is undone" if source is not op.inputs[0] else "moves nothing"
        editor.pass_on(op, source)
        editor.note(op, what)
    elif source is not op.inputs[0]:
        axes = _axes(editor, permutation, op.name, op.device)
        editor.become(op, "Transpose", [source, axes], _attrs(source))
        editor.note(op, f"does what {inner.name!r} did, too")


def _turn(editor: GraphEditor, op: Operation, turn: Turn) -> None:
    """Move an operation in front of the transposes that it takes."""
    found = (_permutation(editor, source) for source in op.edges[::2])
    permutation = next((one for one in found if one is not None), None)
    if permutation is None or op.control_inputs or editor.is_conditional(op):
        return
    inputs = turn(_Turning(editor, op, permutation))
    if inputs is None:
        return
    turned = editor.add(op.type, inputs, f"{op.name}/turned", editor.attrs(op), op.device)
    axes = _axes(editor, permutation, op.name, op.device)
    editor.become(op, "Transpose", [turned.outputs[0], axes], _attrs(turned.outputs[0]))
    editor.note(op, "comes before a transpose")


class _Turning:
    """An operation that moves in front of transposes; each method gives the inputs of one kind of op."""

    def __init__(self, editor: GraphEditor, op: Operation, permutation: Permutation) -> None:
        self._editor, self._op, self._permutation = editor, op, permutation

    def _source(self, tensor: Tensor) -> Tensor | None:
        """What a tensor is a transpose of, alike and for this operation only; None for other tensors."""
        is_one = _permutation(self._editor, tensor.op) == self._permutation
        is_one = is_one and self._editor.only_consumer(tensor.op) is not None
        return tensor.op.inputs[0] if is_one else None

    def _constant(self, tensor: Tensor, value: Any, device: str) -> Tensor:
        """A constant that stands for another one before the transpose."""
        array = np.asarray(value, order="C")
        return self._editor.constant(array, tensor.dtype, f"{tensor.op.name}/turned", device)

    def pointwise(self) -> list[Tensor] | None:
        """All are transposed alike, or constants, which are broadcast along the axes as they were before."""
        inputs, rank = [], len(self._permutation)
        for tensor in self._op.inputs:
            value, source = self._editor.free_value(tensor), self._source(tensor)
            if source is not None:
                inputs.append(source)
            elif value is None or value.ndim > rank:
                return None
            elif value.ndim == 0:
                inputs.append(tensor)
            else:
                whole = value.reshape((1,) * (rank - value.ndim) + value.shape)
                turned = whole.transpose(np.argsort(self._permutation))
                inputs.append(self._constant(tensor, turned, tensor.op.device))
        return inputs

    def reduction(self) -> list[Tensor] | None:
        """A reduction that keeps its dimensions."""
        op, rank = self._op, len(self._permutation)
        axes, source = self._editor.free_value(op.inputs[1]), self._source(op.inputs[0])
        if axes is None or source is None or not op.attr["keep_dims"].b:
            return None
        if axes.size and (axes.min() < -rank or axes.max() >= rank):
            return None
        turned = np.array([self._permutation[axis % rank] for axis in axes.flat], axes.dtype)
        return [source, self._constant(op.inputs[1], turned.reshape(axes.shape), op.device)]

    def pad(self) -> list[Tensor] | None:
        """A tensor that is padded along its axes."""
        op = self._op
        sizes, source = self._editor.free_value(op.inputs[1]), self._source(op.inputs[0])
        if sizes is None or source is None or sizes.shape != (len(self._permutation), 2):
            return None
        turned = sizes[np.argsort(self._permutation)]
        return [source, self._constant(op.inputs[1], turned, op.device), *op.inputs[2:]]

    def concat(self) -> list[Tensor] | None:
        """Tensors that are transposed alike."""
        *tensors, last = self._op.inputs
        axis, rank = self._editor.free_value(last), len(self._permutation)
        if axis is None or axis.ndim or not -rank <= axis < rank:
            return None
        sources = [source for tensor in tensors if (source := self._source(tensor)) is not None]
        if len(sources) < len(tensors):
            return None
        turned = np.array(self._permutation[int(axis) % rank], axis.dtype)
        return [*sources, self._constant(last, turned, self._op.device)]


Turn = Callable[[_Turning], "list[Tensor] | None"]
"""Gives the inputs of an operation that does the same on tensors which are not transposed yet."""

_TURNS: dict[str, Turn] = {
    "ConcatV2": _Turning.concat,
    **dict.fromkeys(("Pad", "PadV2", "MirrorPad"), _Turning.pad),
}


def _turn_of(op: Operation) -> Turn | None:
    """How operations of an op are moved in front of transposes; None where they are not."""
    traits = op.traits
    if traits.pointwise or traits.passes_on:
        return _Turning.pointwise
    return _Turning.reduction if traits.reduces else _TURNS.get(op.type)
