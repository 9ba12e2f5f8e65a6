"""Batch-norm folding: what scales and shifts channels goes into the convolution before it.

    conv(x, w) * s = conv(x, w * s)        conv(x, w) + b - m = conv(x, w) + (b - m)

So what stands behind a convolution or matrix product in a frozen network, be it FusedBatchNorm or
the Mul, Sub and AddV2 that it was taken apart into, ends as one BiasAdd. Results change by rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opkernel.graph import Operation
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.algebra.arithmetic import is_moderate
from opkernel.optimization.built_in import FILTERS
from opkernel.types import Array, DataType

if TYPE_CHECKING:
    from opkernel.optimization.optimize import Pattern


_LINEAR: Pattern = frozenset({"Mul", "AddV2", "Add", "Sub", "BiasAdd"})
_NORMALISATIONS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
_TYPES = frozenset({DataType.DT_FLOAT, DataType.DT_DOUBLE})


def batch_norm_folding(editor: GraphEditor) -> None:
    """Fold scales and shifts of channels into the filters of convolutions and one bias."""
    for op in editor.operations():
        if op.type in FILTERS and _is_plain(editor, op):
            _fold_chain(editor, op)


def _is_plain(editor: GraphEditor, op: Operation) -> bool:
    """Whether the last dimension of the output are the channels, and a new constant can be taken."""
    if op.output_types[0] not in _TYPES or op in editor.feeds or editor.is_conditional(op):
        return False
    attrs = op.attr
    if op.type == "MatMul":
        return not (attrs["transpose_b"].b or attrs["grad_b"].b)
    return attrs["data_format"].s in (b"NHWC", b"NDHWC")


def _fold_chain(editor: GraphEditor, source: Operation) -> None:
    """Fold all that scales or shifts the channels of `source`, before and behind it."""
    filters, rank = source.inputs[1], FILTERS[source.type].rank
    is_known = filters.op.type == "Const" and filters.shape.is_fully_defined()
    if not is_known or filters.shape.rank != rank:
        return
    axes, sizes = FILTERS[source.type].channels, tuple(filters.shape.as_tensor_shape())
    channels = tuple([sizes[axis] for axis in axes])
    depth = int(np.prod(channels))
    scale, shift = np.ones(depth), np.zeros(depth)  # in double, for one rounding at the end
    chain = [source]
    while (step := _next_step(editor, chain[-1], depth, rank)) is not None:
        consumer, factor, summand = step
        scale, shift = scale * factor, shift * factor + summand
        chain.append(consumer)
    is_scaled = bool((scale != 1).any())
    if len(chain) == 1 or (len(chain) == 2 and not is_scaled and chain[-1].type == "BiasAdd"):
        return
    if is_scaled:
        weights = editor.value(filters)  # filters may be large: they are read where they change
        if weights is None:
            return
        shape = [channels[axes.index(axis)] if axis in axes else 1 for axis in range(rank)]
        weights = weights * scale.reshape(shape).astype(weights.dtype)
        name = f"{source.name}/folded_filter"
        source.update_input(1, editor.constant(weights, source.input_types[1], name, source.device))
    _put_bias(editor, source, chain[-1], shift.astype(source.output_types[0].numpy_dtype))


def _put_bias(editor: GraphEditor, source: Operation, last: Operation, bias: Array) -> None:
    """Have a BiasAdd behind `source` do what `last` did."""
    dtype, name = source.output_types[0], f"{source.name}/folded_bias"
    summand = editor.constant(bias, dtype, name, source.device)
    inputs, attrs = [source.outputs[0], summand], {"T": dtype, "data_format": "NHWC"}
    editor.note(last, f"is folded into {source.name!r}")
    if len(last.outputs) == 1:
        editor.become(last, "BiasAdd", inputs, attrs)
    else:
        biased = editor.add("BiasAdd", inputs, f"{last.name}/bias", attrs, last.device)
        editor.redirect(last.outputs[0], biased.outputs[0])


def _next_step(
    editor: GraphEditor, op: Operation, depth: int, rank: int
) -> tuple[Operation, Array | float, Array | float] | None:
    """The only consumer of an operation, what it multiplies the channels by, and what it adds."""
    following = editor.only_consumer(op)
    if following is None or editor.is_conditional(following[0]):
        return None
    consumer, index = following
    if consumer.type in _NORMALISATIONS:
        is_right = index == 0 and editor.is_valid(consumer)
        return _normalisation(editor, consumer, depth) if is_right else None
    if consumer.type not in _LINEAR or consumer in editor.feeds or consumer.device != op.device:
        return None
    value = editor.value(consumer.inputs[1 - index])
    if value is None or not _is_of_channels(value, rank, depth):
        return None
    if consumer.type == "BiasAdd":
        is_first = consumer.attr["data_format"].s == b"NCHW"
        if is_first or index or value.shape != (depth,):
            return None
    values = value.astype(np.float64).reshape(-1)
    if consumer.type == "Mul":
        return (consumer, values, 0.0) if _may_scale(values) else None
    if consumer.type == "Sub":
        return (consumer, 1.0, -values) if index == 0 else (consumer, -1.0, values)
    return consumer, 1.0, values


def _is_of_channels(value: Array, rank: int, depth: int) -> bool:
    """Whether a value is broadcast along the channels alone."""
    if value.ndim > rank or value.size not in (1, depth):
        return False
    return value.size == 1 or value.shape[-1] == depth


def _may_scale(factor: Array) -> bool:
    """Whether filters that are multiplied by a factor give what the product multiplied by it is."""
    return is_moderate(factor[factor != 0])


def _normalisation(
    editor: GraphEditor, op: Operation, depth: int
) -> tuple[Operation, Array, Array] | None:
    """The scale and shift of a FusedBatchNorm with given statistics."""
    attrs = op.attr
    if attrs["is_training"].b or attrs["data_format"].s not in (b"NHWC", b"NDHWC"):
        return None
    if op in editor.preserved or any(editor.consumers(tensor) for tensor in op.outputs[1:]):
        return None
    values = [editor.value(tensor) for tensor in op.inputs[1:]]
    if any(value is None or value.shape != (depth,) for value in values):
        return None
    scale, offset, mean, variance = (np.asarray(value, np.float64) for value in values)
    factor = scale / np.sqrt(variance + attrs["epsilon"].f)
    return (op, factor, offset - mean * factor) if _may_scale(factor) else None
