"""One-line texts of ops, nodes, attr values and tensors, as error messages show them.

A tensor reads `Tensor<type: float shape: [2,2] values: [1 2][3...]>`.

Source: TensorFlow core/framework/op_def_util.cc (SummarizeOpDef), node_def_util.cc, attr_value_util.cc
(SummarizeAttrValue), tensor.cc (DebugString, SummarizeValue with three values).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.opdef.core.fingerprint import fingerprint64
from opkernel.opdef.text.attr_value_text import dtype_text
from opkernel.opdef.text.debug_string import double_text, float_text, short_debug_string
from opkernel.opdef.text.escaping import c_escape, utf8_safe_c_escape
from opkernel.proto import AttrValue, NameAttrList, NodeDef, OpDef, TensorProto
from opkernel.types import (
    Array,
    DataType,
    OpaqueVariant,
    PartialTensorShape,
    TensorShape,
    shape_proto_debug_string,
    tensor_from_proto,
)

MAX_DECODED_BYTES = 32 * 1024 * 1024
"""Protos of tensors larger than this are decoded neither to print nor to compare them."""

_MAX_VALUES = 3
_UNPRINTED = frozenset({DataType.DT_COMPLEX64, DataType.DT_COMPLEX128, DataType.DT_QINT32})
_WITHOUT_ROWS = _UNPRINTED | {DataType.DT_RESOURCE, DataType.DT_VARIANT}


def tensor_byte_size(proto: TensorProto) -> int:
    """The bytes of the decoded tensor; -1 where its shape is unknown, invalid or too large."""
    try:
        count = PartialTensorShape.from_proto(proto.tensor_shape).num_elements()
    except OpError:
        return -1
    element_size = next((dtype.size for dtype in DataType if dtype == proto.dtype), 0)
    size = -1 if count is None else count * element_size
    return size if size < 2**63 else -1


def summarize_tensor(proto: TensorProto) -> str:
    """The summary of the tensor; of the proto itself if that is huge, partial or invalid."""
    if not 0 <= tensor_byte_size(proto) <= MAX_DECODED_BYTES:
        return f"<TensorProto: {short_debug_string(proto)}>"
    try:
        dtype = DataType(proto.dtype)
        shape = TensorShape.from_proto(proto.tensor_shape)
        values = np.asarray(tensor_from_proto(proto))
    except OpError:
        return f"<Invalid TensorProto: {short_debug_string(proto)}>"
    return f"Tensor<type: {dtype.string} shape: {shape} values: {summarize_values(values, dtype)}>"


def summarize_values(values: Array, dtype: DataType, max_values: int = _MAX_VALUES) -> str:
    """The first values (all of them if `max_values` is negative): `1 2 3`, `[1 2][3...`."""
    limit = values.size if max_values < 0 else min(max_values, values.size)
    if dtype is DataType.DT_BOOL and limit == 0:
        return ""  # not even dots
    printed = [element_text(values.flat[i], dtype) for i in range(limit)]
    has_rows = values.ndim > 0 and dtype not in _WITHOUT_ROWS
    text = _rows_text(printed, values.shape) if has_rows else " ".join(printed)
    return text + "..." if values.size > limit else text


def _rows_text(printed: list[str], shape: tuple[int, ...], *, is_outermost: bool = True) -> str:
    """Nested rows of the values, which are taken from the list until it is empty.

    A row that is cut short ends in dots.
    """
    if len(shape) > 1:
        rows = ""
        for _ in range(shape[0]):
            if not printed:
                break
            rows += f"[{_rows_text(printed, shape[1:], is_outermost=False)}]"
        return rows
    row = printed[: shape[0]]
    del printed[: shape[0]]
    dots = "" if is_outermost or len(row) == shape[0] else "..."
    return " ".join(row) + dots


def element_text(value: Any, dtype: DataType) -> str:
    """The text of one value in a summary."""
    if dtype in _UNPRINTED:
        return "?"
    if dtype is DataType.DT_STRING:
        return utf8_safe_c_escape(value)
    if dtype is DataType.DT_RESOURCE:
        return f"<{value.summarize_value()}>"
    if dtype is DataType.DT_VARIANT:
        return "<[empty]>" if value == OpaqueVariant() else f"<{value}>"
    if dtype is DataType.DT_DOUBLE:
        return double_text(float(value))
    return float_text(float(value)) if dtype.is_floating else str(int(value))


_MAX_STRING_LENGTH = 80
_MAX_LIST_LENGTH = 30
_SHOWN_AT_EACH_END = 5
_SHOWN_CHARS_AT_EACH_END = 10

_DTYPE_NAMES = {int(dtype): dtype.name for dtype in DataType}

OP_FLAGS = (
    "is_commutative",
    "is_aggregate",
    "is_stateful",
    "allows_uninitialized_input",
    "is_distributed_communication",
)


def summarize_op_def(op_def: OpDef) -> str:
    """`Op<name=Add; signature=x:T, y:T -> z:T; attr=T:type,allowed=[DT_FLOAT, DT_INT32]>`."""
    parts = [
        f"Op<name={op_def.name}",
        f"signature={summarize_args(op_def.input_arg)} -> {summarize_args(op_def.output_arg)}",
        *(f"attr={_attr_text(attr)}" for attr in op_def.attr),
        *(f"{flag}=true" for flag in OP_FLAGS if getattr(op_def, flag)),
    ]
    return "; ".join(parts) + ">"


def summarize_args(args: Iterable[OpDef.ArgDef]) -> str:
    """`x:T, y:N*float`."""
    return ", ".join([_arg_text(arg) for arg in args])


def _arg_text(arg: OpDef.ArgDef) -> str:
    count = f"{arg.number_attr}*" if arg.number_attr else ""
    element = dtype_text(arg.type) if arg.type else arg.type_attr
    return f"{arg.name}:Ref({count}{element})" if arg.is_ref else f"{arg.name}:{count}{element}"


def _attr_text(attr: OpDef.AttrDef) -> str:
    text = f"{attr.name}:{attr.type}"
    if attr.HasField("default_value"):
        text += f",default={summarize_attr_value(attr.default_value)}"
    if attr.has_minimum:
        text += f",min={attr.minimum}"
    if attr.HasField("allowed_values"):
        text += f",allowed={summarize_attr_value(attr.allowed_values)}"
    return text


def summarize_node_def(node: NodeDef, max_inputs: int | None = None) -> str:
    """`{{node n}} = Add[T=DT_FLOAT](x, y:1, ^z)`, with at most `max_inputs` inputs shown."""
    inputs = list(node.input)
    if max_inputs is not None and len(inputs) > max_inputs:
        inputs[max_inputs:] = ["..."]
    attrs = summarize_attrs(node)
    return f"{format_node_name_for_error(node.name)} = {node.op}[{attrs}]({', '.join(inputs)})"


def summarize_attrs(node: NodeDef) -> str:
    """The node's attrs by name, and its device last."""
    attrs = [f"{name}={summarize_attr_value(value)}" for name, value in sorted(node.attr.items())]
    if node.device:
        attrs.append(f'_device="{node.device}"')
    return ", ".join(attrs)


def format_node_name_for_error(name: str) -> str:
    """`{{node n}}`, by which tools find nodes in messages."""
    return f"{{{{node {name}}}}}"


def format_node_def_for_error(node: NodeDef) -> str:
    """The node's name as `{{node n}}`, or the names of the nodes that it came from."""
    info = node.experimental_debug_info
    if not info.original_node_names:
        return format_node_name_for_error(node.name)
    functions = [f"{{{{function_node {name}}}}}" for name in info.original_func_names]
    functions += [""] * (len(info.original_node_names) - len(functions))
    return ", ".join(
        function + format_node_name_for_error(name)
        for function, name in zip(functions, info.original_node_names, strict=False)
    )


def summarize_attr_value(value: AttrValue) -> str:
    """The value on one line, long strings and lists shortened: `[1, 2, 3]`, `"foo"`, `DT_FLOAT`.

    A shortened list ends in the fingerprint of its full text, so that different values still
    differ.
    """
    kind = value.WhichOneof("value")
    if kind is None:
        return "<Unknown AttrValue type>"
    if kind == "list":
        return _summarize_list(_list_pieces(value.list))
    if kind == "placeholder":
        return f"${value.placeholder}"
    return _SUMMARIZE[kind](getattr(value, kind))


def _list_pieces(values: AttrValue.ListValue) -> list[str]:
    """The summaries of a list's elements; only the first kind that the list has is shown."""
    for kind, summarize in _SUMMARIZE.items():
        elements = getattr(values, kind)
        if elements:
            return [summarize(element) for element in elements]
    return []


def _summarize_list(pieces: Sequence[str]) -> str:
    if len(pieces) < _MAX_LIST_LENGTH:
        return "[" + ", ".join(pieces) + "]"
    shown = [*pieces[:_SHOWN_AT_EACH_END], "...", *pieces[-_SHOWN_AT_EACH_END:]]
    attr_hash = fingerprint64(",".join(pieces).encode("utf-8", "surrogateescape"))
    return "[" + ", ".join(shown) + f"]{{attr_hash={attr_hash}}}"


def _summarize_string(value: bytes) -> str:
    escaped = c_escape(value)
    if len(escaped) >= _MAX_STRING_LENGTH:
        shown = _SHOWN_CHARS_AT_EACH_END
        escaped = f"{escaped[:shown]}...{escaped[-shown:]}"
    return f'"{escaped}"'


def _summarize_func(func: NameAttrList) -> str:
    entries = sorted(f"{name}={summarize_attr_value(value)}" for name, value in func.attr.items())
    return f"{func.name}[{', '.join(entries)}]"


_SUMMARIZE: dict[str, Callable[[Any], str]] = {
    "s": _summarize_string,
    "i": str,
    "f": float_text,
    "b": lambda value: "true" if value else "false",
    "type": lambda number: _DTYPE_NAMES.get(number, ""),
    "shape": shape_proto_debug_string,
    "tensor": summarize_tensor,
    "func": _summarize_func,
}
