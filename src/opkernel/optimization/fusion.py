"""Fusion: a convolution or matrix product, its bias and its activation become one operation.

The fused ops are TensorFlow's own, which its optimiser makes as well. A kernel of a fused op adds
the bias and applies the activation while what was computed is in the cache.

What plain TensorFlow has kernels for, and what only its builds with oneDNN have, are passes of their
own, so that `opkernel optimize` can write graphs for either.

Source: TensorFlow core/grappler/optimizers/remapper.cc.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from opkernel.graph import Operation, Tensor
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.optimization.optimize import Pattern
from opkernel.types import DataType

_CONVOLUTION_TYPES = frozenset({DataType.DT_FLOAT, DataType.DT_DOUBLE})
_TYPES = {
    "Conv2D": _CONVOLUTION_TYPES,
    "DepthwiseConv2dNative": frozenset({DataType.DT_FLOAT}),
    "MatMul": frozenset({DataType.DT_FLOAT}),
}
_AFTER_CONVOLUTIONS: Pattern = frozenset({"Relu", "Relu6", "Elu", "LeakyRelu"})
_ACTIVATIONS: dict[str, Pattern] = {
    "Conv2D": _AFTER_CONVOLUTIONS,
    "DepthwiseConv2dNative": _AFTER_CONVOLUTIONS,
    "MatMul": _AFTER_CONVOLUTIONS | {"Tanh", "Sigmoid"},
}


def fusion_onednn(editor: GraphEditor) -> None:
    """Fuse depthwise convolutions, tensors added, and GELU, as TensorFlow does with oneDNN."""
    if "Mul" in editor.op_types():  # with which a GELU ends
        _fuse_gelus(editor)
    for op in editor.operations():
        bias = _bias_of(editor, op)
        if bias is not None:
            addition = _addition_of(editor, bias)
            if addition is not None or op.type == "DepthwiseConv2dNative":
                _fuse(editor, op, bias, addition)


def fusion(editor: GraphEditor) -> None:
    """Fuse convolutions and matrix products with their bias and activation."""
    for op in editor.operations():
        bias = None if op.type == "DepthwiseConv2dNative" else _bias_of(editor, op)
        if bias is not None:
            _fuse(editor, op, bias, None)


def _bias_of(editor: GraphEditor, op: Operation) -> Operation | None:
    """The BiasAdd behind an operation that has a fused form."""
    if op.type not in _TYPES:
        return None
    following = editor.only_consumer(op)
    if following is None or following[1] != 0 or following[0].type != "BiasAdd":
        return None
    bias = following[0]
    is_last = bias.attr["data_format"].s != b"NCHW"
    is_right = is_last and bias.device == op.device and bias not in editor.feeds
    return bias if is_right and _has_fused_form(editor, op) else None


def _has_fused_form(editor: GraphEditor, op: Operation) -> bool:
    if op.output_types[0] not in _TYPES[op.type] or op in editor.feeds:
        return False
    attrs = op.attr
    if op.type == "MatMul":
        return not (attrs["grad_a"].b or attrs["grad_b"].b)
    if attrs["data_format"].s != b"NHWC" or not editor.is_valid(op):
        return False
    if op.type == "DepthwiseConv2dNative":
        return attrs["padding"].s != b"EXPLICIT" and set(attrs["dilations"].list.i) <= {1}
    image, filters = (editor.shape(tensor) for tensor in op.inputs)
    if image.rank != 4 or filters.rank != 4:
        return False
    channels = image.as_list()[3]
    return channels is not None and channels == filters.as_list()[2]  # there are no groups


def _addition_of(editor: GraphEditor, bias: Operation) -> Operation | None:
    """The only consumer of a BiasAdd, if it adds a tensor of the same shape."""
    following = editor.only_consumer(bias)
    if following is None or following[0].type not in ("Add", "AddV2"):
        return None
    addition, index = following
    if addition.device != bias.device or addition in editor.feeds:
        return None
    other = addition.inputs[1 - index]
    return addition if editor.have_one_shape(bias.outputs[0], other) else None


def _fuse(
    editor: GraphEditor, source: Operation, bias: Operation, addition: Operation | None
) -> None:
    """Have the last of the operations do what all of them do."""
    chain, names, attrs = [source, bias], ["BiasAdd"], {}
    if addition is not None:
        chain.append(addition)
        names.append("Add")
    following = editor.only_consumer(chain[-1])
    if following is not None:
        activation = following[0]
        is_free = activation not in editor.feeds and activation.device == source.device
        if activation.type in _ACTIVATIONS[source.type] and is_free:
            chain.append(activation)
            names.append(activation.type)
            if activation.type == "LeakyRelu":
                attrs["leakyrelu_alpha"] = activation.attr["alpha"].f
    args = [] if addition is None else [t for t in addition.inputs if t.op is not bias]
    _become_fused(editor, chain, names, args, attrs)


def _fuse_gelus(editor: GraphEditor) -> None:
    """Fuse each GELU with the matrix product and the bias before it."""
    from opkernel.optimization.gelu_fusion import find_gelu  # few graphs multiply

    for op in editor.operations():
        gelu = find_gelu(editor, op)
        if gelu is not None and gelu.x.op.type == "BiasAdd":
            bias, source = gelu.x.op, gelu.x.op.inputs[0].op
            if source.type == "MatMul" and _bias_of(editor, source) is bias:
                _become_fused(editor, [source, bias, *gelu.chain], ["BiasAdd", gelu.name])


def _become_fused(
    editor: GraphEditor,
    chain: Sequence[Operation],
    names: list[str],
    args: Sequence[Tensor] = (),
    attrs: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Have the last of a chain do what all of them do: a product, its bias, and what follows."""
    source, bias, *_ = chain
    *others, last = chain
    args = [bias.inputs[1], *args]
    without = ["grad_a", "grad_b"]
    without += ["explicit_paddings"] if source.type == "DepthwiseConv2dNative" else []
    own = {name: value for name, value in editor.attrs(source).items() if name not in without}
    attrs = {**own, **attrs, "num_args": len(args), "fused_ops": names}
    if source.type == "Conv2D":
        attrs |= {"TArgs": [source.output_types[0]] * len(args), "filter_format": "HWIO"}
    editor.become(last, f"_Fused{source.type}", [*source.inputs, *args], attrs)
    last.add_control_inputs([control for op in others for control in op.control_inputs])
    editor.note(last, f"does {' and '.join([source.type, *names])} at once", chain)
