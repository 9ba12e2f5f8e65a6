"""Rearrangements: elements that are moved twice are moved once, or not at all.

Each rule looks at one operation; it says what it has changed. Results stay the same to the last bit.

Source: TensorFlow core/grappler/optimizers/arithmetic_optimizer.cc, shape_optimizer.cc.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.opdef import UNKNOWN_DIM, DimensionHandle
from opkernel.types import DataType


def merged_reshape(editor: GraphEditor, op: Operation) -> str:
    """A Reshape of a reshaped tensor becomes a Reshape of the original tensor."""
    inner = op.inputs[0].op
    if not inner.traits.reshapes or inner in editor.feeds:
        return ""
    if inner.control_inputs or editor.is_conditional(inner) or not surely_reshapes(editor, inner):
        return ""
    op.update_input(0, inner.inputs[0])
    return f"does not need {inner.name!r}"


def surely_reshapes(editor: GraphEditor, op: Operation) -> bool:
    """Whether an operation that gives elements in another shape cannot fail, whatever is fed.

    Either shape has the same number of elements, by the sizes that are known and the unknown ones that
    are the same in both; or one size follows from the others, which divide the number of elements.
    """
    if editor.shape(op.inputs[0]).rank is None or editor.shape(op.outputs[0]).rank is None:
        return False
    (given, free), (wanted, chosen) = (_number(editor, t) for t in (op.inputs[0], op.outputs[0]))
    if free == chosen:
        return given == wanted
    sizes = editor.value(op.inputs[1]) if op.type == "Reshape" else None
    is_one = sizes is not None and np.count_nonzero(sizes == -1) == 1
    return is_one and wanted > 0 and given % wanted == 0


def _number(editor: GraphEditor, tensor: Tensor) -> tuple[int, Counter[DimensionHandle]]:
    """The product of the known sizes of a tensor, whose rank is known, and its unknown dimensions."""
    dims = editor.graph.refiner.shape_handle((tensor.op, tensor.value_index)).dims or ()
    unknown = Counter(dim for dim in dims if dim.value == UNKNOWN_DIM)
    return prod(dim.value for dim in dims if dim.value != UNKNOWN_DIM), unknown


def merged_bitcast(editor: GraphEditor, op: Operation) -> str:
    """A Bitcast of a Bitcast becomes one Bitcast of the original, if one keeps the shape."""
    inner = op.inputs[0].op
    if inner.type != "Bitcast" or inner.control_inputs or not editor.may_bypass(inner):
        return ""
    source = inner.inputs[0]
    size = inner.output_types[0].size
    if size not in (source.dtype.base.size, op.output_types[0].size):
        return ""
    editor.become(op, "Bitcast", [source], {"T": source.dtype.base, "type": op.output_types[0]})
    return f"does not need {inner.name!r}"


def cast_back(editor: GraphEditor, op: Operation) -> str:
    """Bypass a Cast to a type that holds all values, and the Cast back."""
    inner = op.inputs[0].op
    if inner.type != "Cast" or inner.control_inputs or not editor.may_bypass(inner):
        return ""
    source = inner.inputs[0]
    types = source.dtype.base, inner.output_types[0]
    if types[0] != op.output_types[0] or not editor.may_bypass(op) or not _holds(*types):
        return ""
    editor.pass_on(op, source)
    return f"undoes {inner.name!r}"


def _holds(narrow: DataType, wide: DataType) -> bool:
    """Whether one type has all values of another; NumPy says so of float64 and int64, too."""
    if narrow.is_integer and not wide.is_integer and narrow.size >= 4 and wide.size != 8:
        return False
    is_one = narrow.size < wide.size or narrow.is_bool
    return is_one and np.can_cast(narrow.numpy_dtype, wide.numpy_dtype, "safe")


def merged_concat(editor: GraphEditor, op: Operation) -> str:
    """A ConcatV2 of a ConcatV2 along the same axis becomes one ConcatV2."""
    *tensors, axis = op.inputs
    found: list[Tensor] = []
    for index, tensor in enumerate(tensors):
        inner = editor.part(op, index, "ConcatV2")
        is_same = inner is not None and _is_same_axis(editor, inner.inputs[-1], axis, tensor)
        found += inner.inputs[:-1] if inner is not None and is_same else [tensor]
    if len(found) == len(tensors):
        return ""
    attrs = {"T": op.output_types[0], "N": len(found), "Tidx": axis.dtype.base}
    editor.become(op, "ConcatV2", [*found, axis], attrs)
    return f"puts {len(found)} tensors together at once"


def _is_same_axis(editor: GraphEditor, one: Tensor, other: Tensor, tensor: Tensor) -> bool:
    values = editor.free_value(one), editor.free_value(other)
    if values[0] is None or values[1] is None or values[0].ndim or values[1].ndim:
        return False
    first, second, rank = int(values[0]), int(values[1]), editor.shape(tensor).rank
    return first == second or (rank is not None and rank > 0 and first % rank == second % rank)


def unpacked(editor: GraphEditor, op: Operation) -> str:
    """Bypass an Unpack along the axis of its Pack."""
    inner = op.inputs[0].op
    if inner.type != "Pack" or not editor.may_bypass(op, *inner.inputs) or inner in editor.feeds:
        return ""
    axes = [node.attr["axis"].i for node in (op.message, inner.message)]
    rank = editor.shape(op.inputs[0]).rank
    if rank is None or axes[0] % rank != axes[1] % rank or not editor.is_valid(op):
        return ""
    if op in editor.preserved or len(op.outputs) != len(inner.inputs) or inner.control_inputs:
        return ""
    if not _are_alike(editor, inner):
        return ""
    for output, tensor in zip(op.outputs, inner.inputs, strict=True):
        editor.replace(output, tensor)
    return f"undoes {inner.name!r}"


def _are_alike(editor: GraphEditor, pack: Operation) -> bool:
    """Whether all that is packed has one shape; Pack would refuse shapes that differ."""
    first, *others = pack.inputs
    return all(editor.have_one_shape(first, tensor) for tensor in others)


def packed_slice(editor: GraphEditor, op: Operation) -> str:
    """One of the tensors that were packed, taken out by its index."""
    inner = op.inputs[0].op
    if inner.type != "Pack" or inner.control_inputs or inner in editor.feeds:
        return ""
    index = _only_index(editor, op)
    if index is None or inner.attr["axis"].i != 0:
        return ""
    if not -len(inner.inputs) <= index < len(inner.inputs) or not _are_alike(editor, inner):
        return ""
    if not (editor.may_bypass(op, inner.inputs[index]) and editor.is_valid(op)):
        return ""
    editor.pass_on(op, inner.inputs[index])
    return f"takes {inner.inputs[index].name} out again"


def _only_index(editor: GraphEditor, op: Operation) -> int | None:
    """The index of the element that a StridedSlice takes of the first dimension, and nothing more."""
    attrs = op.attr
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask")
    begin, stride = editor.free_value(op.inputs[1]), editor.free_value(op.inputs[3])
    if begin is None or stride is None or begin.shape != (1,) or stride.tolist() != [1]:
        return None
    if editor.dims(op.inputs[2]) != (1,):
        return None
    if attrs["shrink_axis_mask"].i != 1 or any(attrs[mask].i for mask in masks):
        return None
    return int(begin[0])


def size_of_shape(editor: GraphEditor, op: Operation) -> str:
    """The product of all of a shape is a size."""
    inner, axes = op.inputs[0].op, editor.free_value(op.inputs[1])
    if inner.type != "Shape" or inner.control_inputs or not editor.may_bypass(inner):
        return ""
    if axes is None or axes.reshape(-1).tolist() not in ([0], [-1]):
        return ""
    if op.attr["keep_dims"].b or not editor.is_valid(op):
        return ""
    source = inner.inputs[0]
    editor.become(op, "Size", [source], {"T": source.dtype.base, "out_type": op.output_types[0]})
    return f"is the size of {source.name}"


def transposed_product(editor: GraphEditor, op: Operation) -> str:
    """A product of transposed matrices takes them as they are."""
    flags = _TRANSPOSES[op.type]
    inputs, attrs = list(op.inputs), editor.attrs(op)
    changed: dict[str, Any] = {}
    for index, flag in enumerate(flags):
        inner = editor.part(op, index, "Transpose")
        if inner is not None and _swaps_last(editor, inner):
            inputs[index] = inner.inputs[0]
            changed[flag] = not op.attr[flag].b
    if not changed or any(dtype.is_complex for dtype in op.input_types):
        return ""
    editor.become(op, op.type, inputs, attrs | changed)
    return "transposes what it takes itself"


_TRANSPOSES = {
    "BatchMatMul": ("adj_x", "adj_y"),
    "BatchMatMulV2": ("adj_x", "adj_y"),
    "MatMul": ("transpose_a", "transpose_b"),
}


def _swaps_last(editor: GraphEditor, op: Operation) -> bool:
    """Whether a Transpose swaps the last two dimensions, and no others."""
    axes = editor.free_value(op.inputs[1])
    if axes is None or axes.ndim != 1 or axes.size < 2:
        return False
    rank = axes.size
    if editor.shape(op.inputs[0]).rank != rank:
        return False
    return bool((axes % rank == [*range(rank - 2), rank - 1, rank - 2]).all())
