"""Which operations change nothing: x * 1, a Cast to the same type, a Pad by nothing.

The result has to be the input in type, shape and every bit, whatever is fed; so a shape has to be
known where the op could change it, or refuse it. That it is valid as far as the graph tells is for the
caller to see to.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.types import Array

Rule = Callable[[GraphEditor, Operation], "Tensor | None"]


def unchanged_input(editor: GraphEditor, op: Operation) -> Tensor | None:
    """The input that an operation of one output gives as it is; None where there is none."""
    rule = _RULES.get(op.type)
    return None if rule is None else rule(editor, op)


def _neutral(number: float, *, commutes: bool, only_integers: bool = False) -> Rule:
    """The rule of an op for which `number` is neutral as its second input, or as either input."""

    def rule(editor: GraphEditor, op: Operation) -> Tensor | None:
        if only_integers and not op.output_types[0].is_integer:
            return None
        for index in (1, 0) if commutes else (1,):
            value = editor.free_input(op, index)
            if value is not None and _is_all(value, number):
                tensor = op.inputs[1 - index]
                if keeps_shape(editor, tensor, value):
                    return tensor
        return None

    return rule


def _is_all(value: Array, number: float) -> bool:
    """Whether all elements are a number; zeros have to have its sign."""
    if value.dtype.kind not in "biuf" or not value.size or value.item(0) != number:
        return False
    if (value != number).any():
        return False
    return value.dtype.kind != "f" or bool((np.signbit(value) == np.signbit(number)).all())


def keeps_shape(editor: GraphEditor, tensor: Tensor, value: Array) -> bool:
    """Whether to broadcast a tensor against a value leaves its shape as it is."""
    if value.ndim == 0:
        return True
    shape = editor.shape(tensor)
    if shape.rank is None or value.ndim > shape.rank:
        return False
    sizes = shape.as_list()[shape.rank - value.ndim :]
    return all(have in (1, size) for have, size in zip(value.shape, sizes, strict=True))


def _sum(editor: GraphEditor, op: Operation) -> Tensor | None:
    """The x of x + 0 of integers, and of x + (-0.0) of floats."""
    return (_ZERO if op.output_types[0].is_integer else _MINUS_ZERO)(editor, op)


_ZERO = _neutral(0, commutes=True, only_integers=True)
_MINUS_ZERO = _neutral(-0.0, commutes=True)


def _of_equal_types(first: str, second: str) -> Rule:
    """The rule of an op that changes a type, which two attrs say."""

    def rule(editor: GraphEditor, op: Operation) -> Tensor | None:
        attrs = op.attr
        return op.inputs[0] if attrs[first].type == attrs[second].type else None

    return rule


def _same_shape(editor: GraphEditor, op: Operation) -> Tensor | None:
    """The input of an op that gives its elements in another shape, if that is the same."""
    source = op.inputs[0]
    dims = editor.dims(source)
    return source if dims is not None and dims == editor.dims(op.outputs[0]) else None


def _broadcast(editor: GraphEditor, op: Operation) -> Tensor | None:
    """Broadcast to the shape that it has; a size of -1, which shape functions leave open, is none."""
    wanted = editor.known_value(op.inputs[1])
    return None if wanted is None or (wanted < 0).any() else _same_shape(editor, op)


def _pad(editor: GraphEditor, op: Operation) -> Tensor | None:
    """Padded by nothing, with a scalar."""
    value, rank = editor.free_value(op.inputs[1]), editor.shape(op.inputs[0]).rank
    if value is None or value.shape != (rank, 2) or value.any():
        return None
    return op.inputs[0] if all(editor.shape(t).rank == 0 for t in op.inputs[2:]) else None


def _mirror_pad(editor: GraphEditor, op: Operation) -> Tensor | None:
    """Padded by nothing; of no elements there is nothing to reflect."""
    dims = editor.dims(op.inputs[0])
    return None if dims is None or 0 in dims else _pad(editor, op)


def _tile(editor: GraphEditor, op: Operation) -> Tensor | None:
    value, rank = editor.free_value(op.inputs[1]), editor.shape(op.inputs[0]).rank
    if value is None or value.shape != (rank,) or (value != 1).any():
        return None
    return op.inputs[0]


def _of_no_axes(editor: GraphEditor, op: Operation) -> Tensor | None:
    value = editor.free_value(op.inputs[1])
    return op.inputs[0] if value is not None and value.size == 0 and value.ndim == 1 else None


def _slice(editor: GraphEditor, op: Operation) -> Tensor | None:
    begin = editor.free_value(op.inputs[1])
    if begin is None or begin.any():
        return None
    return _same_shape(editor, op)


def _strided_slice(editor: GraphEditor, op: Operation) -> Tensor | None:
    """All of a tensor: by steps of one, and of the same shape."""
    attrs, strides = op.attr, editor.free_value(op.inputs[3])
    if strides is None or (strides != 1).any() or any(attrs[mask].i for mask in _MASKS):
        return None
    return _same_shape(editor, op)


_MASKS = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
"""The attrs by which a StridedSlice changes the dimensions of its input."""


def _select(editor: GraphEditor, op: Operation) -> Tensor | None:
    """The tensor that a Select with a uniform constant condition chooses."""
    value = editor.free_value(op.inputs[0])
    if value is None or not value.size or (value.all() != value.any()):
        return None
    chosen = op.inputs[1 if value.all() else 2]
    dims = editor.dims(chosen)
    if dims is None or dims != editor.dims(op.outputs[0]):
        return None
    return chosen if all(editor.dims(tensor) is not None for tensor in op.inputs) else None


def _undivided(editor: GraphEditor, op: Operation) -> Tensor | None:
    """The only part of a tensor, which there is of a Split in one."""
    axis, rank = editor.free_value(op.inputs[0]), editor.shape(op.inputs[1]).rank
    return None if axis is None or rank is None else op.inputs[1]


def _repack(editor: GraphEditor, op: Operation) -> Tensor | None:
    """The tensor whose parts, all of them and in order, a Pack puts together again."""
    inner: Operation = op.edges[0]
    if inner.type != "Unpack" or op.inputs != inner.outputs or inner.control_inputs:
        return None
    dims = editor.shape(inner.inputs[0]).dims or ()
    axes = [node.attr["axis"].i for node in (op.message, inner.message)]
    if not all(-len(dims) <= axis < len(dims) for axis in axes):
        return None
    is_all = axes[0] % len(dims) == axes[1] % len(dims) and dims[axes[0]] == len(op.inputs)
    return inner.inputs[0] if is_all else None


_RULES: dict[str, Rule] = {
    "Add": _sum,
    "AddN": lambda editor, op: op.inputs[0] if len(op.edges) == 2 else None,
    "AddV2": _sum,
    "Bitcast": _of_equal_types("T", "type"),
    "BroadcastTo": _broadcast,
    "Cast": _of_equal_types("SrcT", "DstT"),
    "Div": _neutral(1, commutes=False),
    "FloorDiv": _neutral(1, commutes=False, only_integers=True),
    "LogicalAnd": _neutral(True, commutes=True),
    "LogicalOr": _neutral(False, commutes=True),
    "Max": _of_no_axes,
    "Min": _of_no_axes,
    "MirrorPad": _mirror_pad,
    "Mul": _neutral(1, commutes=True),
    "Pack": _repack,
    "Pad": _pad,
    "PadV2": _pad,
    "Pow": _neutral(1, commutes=False),
    "Prod": _of_no_axes,
    "RealDiv": _neutral(1, commutes=False),
    "Reshape": _same_shape,
    "ReverseV2": _of_no_axes,
    "Slice": _slice,
    "Squeeze": _same_shape,
    "Select": _select,
    "SelectV2": _select,
    "Split": _undivided,
    "StridedSlice": _strided_slice,
    "Sub": _neutral(0, commutes=False),
    "Sum": _of_no_axes,
    "Tile": _tile,
    "TruncateDiv": _neutral(1, commutes=False, only_integers=True),
}
