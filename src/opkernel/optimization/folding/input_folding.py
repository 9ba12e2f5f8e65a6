"""Input folding: what scales or pads the input of a convolution becomes part of it.

    conv(x * s, w) = conv(x, s * w)

Results change by rounding. What is added to the input stays: what is subtracted before a product may
be much larger than the difference, whose digits would be lost behind it.

Source: TensorFlow core/grappler/optimizers/constant_folding.cc (MulConvPushDown),
arithmetic_optimizer.cc (FoldMultiplyIntoConv).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.opdef import attr_to_python
from opkernel.optimization.algebra.arithmetic import is_moderate
from opkernel.optimization.algebra.redundant_ops import keeps_shape
from opkernel.optimization.built_in import FILTERS
from opkernel.types import Array, DataType

_PADDED = frozenset({"Conv2D", "DepthwiseConv2dNative"})
"""Ops with explicit paddings."""
_TYPES = frozenset({DataType.DT_FLOAT, DataType.DT_DOUBLE})


def input_folding(editor: GraphEditor) -> None:
    """Fold what scales or pads the input of a convolution or product into that."""
    for op in editor.operations():
        if op.type in FILTERS and op not in editor.feeds and not editor.is_conditional(op):
            if op.type in _PADDED:
                _fold_padding(editor, op)
            _fold_scale(editor, op)


def _inner(editor: GraphEditor, op: Operation) -> Operation | None:
    """The producer of an operation's first input, if it has no other consumer."""
    inner: Operation = op.edges[0]
    if inner in editor.feeds or inner.device != op.device or editor.only_consumer(inner) is None:
        return None
    return inner


def _take_instead(editor: GraphEditor, op: Operation, tensor: Tensor) -> None:
    """Have an operation take what its first input is made of, which nothing else needs."""
    inner = op.inputs[0].op
    op.update_input(0, tensor)
    inner.cut_off()  # so that it takes nothing
    editor.note(op, f"does what {inner.name!r} did, too")


# Scales


def _fold_scale(editor: GraphEditor, op: Operation) -> None:
    """Fold what scales the channels of the input into the filter."""
    filters, axis = op.inputs[1], _channel_axis(op)
    weights = editor.value(filters)
    if weights is None or weights.ndim != FILTERS[op.type].rank or axis is None:
        return
    shape = [-1 if dim == axis else 1 for dim in range(weights.ndim)]
    scaled: Array | None = None
    while (inner := _inner(editor, op)) is not None:
        found = _scale(editor, inner, weights.shape[axis])
        if found is None:
            break
        tensor, scale = found
        scaled = (weights if scaled is None else scaled) * scale.reshape(shape)
        _take_instead(editor, op, tensor)
    if scaled is not None:
        name = f"{op.name}/scaled_filter"
        constant = editor.constant(scaled.astype(weights.dtype), filters.dtype, name, op.device)
        op.update_input(1, constant)


def _channel_axis(op: Operation) -> int | None:
    """The dimension of the filter that goes with the last one of the input."""
    attrs = op.attr
    if op.output_types[0] not in _TYPES:
        return None
    if op.type == "MatMul":
        return None if attrs["transpose_a"].b else int(attrs["transpose_b"].b)
    return FILTERS[op.type].rank - 2 if attrs["data_format"].s in (b"NHWC", b"NDHWC") else None


def _scale(editor: GraphEditor, op: Operation, depth: int) -> tuple[Tensor, Array] | None:
    """The tensor of which an operation scales the channels, and by how much, in double."""
    if op.type not in ("Mul", "RealDiv"):
        return None
    for index in (0, 1) if op.type == "Mul" else (0,):
        tensor, value = op.inputs[index], editor.value(op.inputs[1 - index])
        if value is None or not is_moderate(value) or not keeps_shape(editor, tensor, value):
            continue
        if value.size == 1 or (value.size == depth == value.shape[-1]):
            scale = value.astype(np.float64).reshape(-1)
            return tensor, 1 / scale if op.type == "RealDiv" else scale
    return None


# Paddings


def _fold_padding(editor: GraphEditor, op: Operation) -> None:
    """Let a convolution pad its input with zeros itself."""
    attrs = op.attr
    is_valid, inner = attrs["padding"].s == b"VALID", _inner(editor, op)
    if inner is None or not is_valid or attrs["data_format"].s != b"NHWC":
        return
    if not editor.is_valid(op):
        return
    paddings = _zero_paddings(editor, inner)
    if paddings is None or paddings.shape != (4, 2) or paddings[[0, 3]].any():
        return
    changed: dict[str, Any] = editor.attrs(op)
    if _is_same(editor, op, inner.inputs[0], paddings):
        changed |= {"padding": "SAME"}
    else:
        changed |= {"padding": "EXPLICIT", "explicit_paddings": paddings.reshape(-1).tolist()}
    editor.become(op, op.type, op.inputs, changed)
    _take_instead(editor, op, inner.inputs[0])


def _zero_paddings(editor: GraphEditor, op: Operation) -> Array | None:
    """How many zeros an operation puts before and after each dimension; None for all others."""
    if op.type == "PadV2":
        value = editor.value(op.inputs[2])
        if value is None or value.ndim or value.any():
            return None
    elif op.type != "Pad":
        return None
    paddings = editor.value(op.inputs[1])
    return None if paddings is None or (paddings < 0).any() else paddings


def _is_same(editor: GraphEditor, op: Operation, image: Tensor, paddings: Array) -> bool:
    """Whether the padding SAME pads like this."""
    attrs = op.attr
    shape, filters = editor.shape(image), editor.dims(op.inputs[1])
    strides = attr_to_python(attrs["strides"], "list(int)")
    dilations = attr_to_python(attrs["dilations"], "list(int)") or [1, 1, 1, 1]
    if filters is None or {shape.rank, len(filters), len(strides), len(dilations)} != {4}:
        return False
    if min(strides) < 1:  # the step that runs the node will say so
        return False
    for axis in (1, 2):
        size = shape.as_list()[axis]
        if size is None:
            return False
        reach = (filters[axis - 1] - 1) * dilations[axis] + 1
        total = max((-(-size // strides[axis]) - 1) * strides[axis] + reach - size, 0)
        if paddings[axis].tolist() != [total // 2, total - total // 2]:
            return False
    return True
