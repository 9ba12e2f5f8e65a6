"""IncreaseDynamismForAutoJit: a program for a Slice serves every place where the slice may begin.

A compiler has to know the shape of what it slices. That of a Slice follows from its input `size`, and from where it begins
if some size is -1: all that is left. Such sizes are computed here,

    Slice(input, begin, size)  =>  Slice(input, begin, size < 0 ? shape(input) - begin : size)

so that the compiler need know them alone. `partially_decluster` then computes them outside of the cluster.

Source: TensorFlow compiler/jit/increase_dynamism_for_auto_jit_pass.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.clusters.marks import (
    CLUSTER,
    COMPILE_TIME_CONSTANT_INPUTS,
    cluster_of,
)
from opkernel.proto import AttrValue
from opkernel.types import DataType

_INT64 = DataType.DT_INT64
_SIZE_ALONE = AttrValue(list=AttrValue.ListValue(s=[b"size"]))


def increase_dynamism_for_auto_jit(editor: GraphEditor) -> None:
    """Have the shapes of slices in clusters depend on the input `size` alone."""
    options = editor.jit
    if options is None:
        return
    for op in editor.operations():
        if op.type != "Slice" or not cluster_of(op) or op in editor.feeds:
            continue
        sizes, begin = editor.value(op.inputs[2]), op.inputs[1].op
        if sizes is None or sizes.ndim != 1 or (sizes < -1).any():
            continue
        if begin.type != "Const" and begin in options.compiler.must_be_constant([op]):
            _StaticShapedSlice(editor, op, sizes).build()


class _StaticShapedSlice:
    """A Slice in a cluster, and its sizes where these are constants, -1 for what is left."""

    def __init__(self, editor: GraphEditor, op: Operation, sizes: np.ndarray[Any, Any]) -> None:
        self._editor, self._op = editor, op
        self._sizes = sizes.astype(np.int64)
        self._mark = AttrValue(s=cluster_of(op).encode())

    def build(self) -> None:
        """Have the Slice take sizes that say all of its shape."""
        source, begin, _ = self._op.inputs
        if begin.dtype is not _INT64:
            begin = self._add("Cast", [begin], "begin", {"SrcT": begin.dtype, "DstT": _INT64})
        inputs = [source, begin, self._size(source, begin)]
        attrs = {"T": source.dtype, "Index": _INT64}
        self._editor.become(self._op, "Slice", inputs, attrs)
        self._op.set_attrs({CLUSTER: self._mark, COMPILE_TIME_CONSTANT_INPUTS: _SIZE_ALONE})
        self._editor.note(self._op, "is compiled once for all places where it may begin")

    def _size(self, source: Tensor, begin: Tensor) -> Tensor:
        is_open = self._sizes < 0
        given = self._constant(self._sizes, "size")
        if not is_open.any():
            return given
        left = self._add("Sub", [self._shape(source, is_open), begin], "left", {"T": _INT64})
        chosen = [self._constant(is_open, "is_open"), left, given]
        return self._add("SelectV2", chosen, "sizes", {"T": _INT64})

    def _shape(self, source: Tensor, is_open: np.ndarray[Any, Any]) -> Tensor:
        """The shape of what is sliced; where the sizes that matter are known, these, with zeros."""
        known = self._editor.shape(source)
        dims: Sequence[int | None] = [] if known.rank is None else known.as_list()
        if len(dims) == len(is_open) and None not in np.array(dims, object)[is_open]:
            return self._constant([dim or 0 for dim in dims], "shape")
        return self._add("Shape", [source], "shape", {"T": source.dtype, "out_type": _INT64})

    def _constant(self, value: Any, name: str) -> Tensor:
        array = np.asarray(value)
        array = array if array.dtype == np.bool_ else array.astype(np.int64)
        tensor = self._editor.constant(array, None, f"{self._op.name}/{name}", self._op.device)
        return self._placed(tensor.op)

    def _add(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        name: str,
        attrs: Mapping[str, Any] = MappingProxyType({}),
    ) -> Tensor:
        name, device = f"{self._op.name}/{name}", self._op.device
        return self._placed(self._editor.add(op_type, inputs, name, attrs, device))

    def _placed(self, new: Operation) -> Tensor:
        """The output of a new operation, once that is in the cluster, on the device, of the Slice."""
        new.set_attr(CLUSTER, self._mark)
        devices = self._editor.graph.assigned_devices
        if self._op in devices:
            devices[new] = devices[self._op]
        return new.outputs[0]
