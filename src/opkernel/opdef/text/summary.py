"""One-line texts of ops and nodes, as error messages show them.

Source: TensorFlow core/framework/op_def_util.cc (SummarizeOpDef) and node_def_util.cc.
"""

from collections.abc import Iterable

from opkernel.opdef.text.attr_value_text import dtype_text, summarize_attr_value
from opkernel.proto import NodeDef, OpDef

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
