"""OpDefs as the REGISTER_OP statements of C++ that declare them; Python shows an OpDef so.

Source: TensorFlow core/framework/op.h (REGISTER_OP).
"""

from collections.abc import Iterator

from opkernel.escaping import terminal_text
from opkernel.opdef.text.escaping import c_escape
from opkernel.opdef.text.spec_text import arg_spec, attr_spec
from opkernel.proto import OpDef

_FLAGS = {
    "is_aggregate": "SetIsAggregate",
    "is_commutative": "SetIsCommutative",
    "is_stateful": "SetIsStateful",
    "allows_uninitialized_input": "SetAllowsUninitializedInput",
    "is_distributed_communication": "SetIsDistributedCommunication",
}


def registration_text(op_def: OpDef) -> str:
    """`REGISTER_OP("Add").Input("x: T")...`, a line for each part; documentation is left out."""
    lines = [f"REGISTER_OP({_quoted(op_def.name)})", *_parts(op_def)]
    return terminal_text("\n    ".join(lines))


def _parts(op_def: OpDef) -> Iterator[str]:
    for arg in op_def.input_arg:
        yield f".Input({_spec(arg_spec(arg))})"
    for arg in op_def.output_arg:
        yield f".Output({_spec(arg_spec(arg))})"
    for name in op_def.control_output:
        yield f".ControlOutput({_quoted(name)})"
    for attr in op_def.attr:
        yield f".Attr({_spec(attr_spec(attr))})"
    for flag, method in _FLAGS.items():
        if getattr(op_def, flag):
            yield f".{method}()"
    if op_def.HasField("deprecation"):
        found = op_def.deprecation
        yield f".Deprecated({found.version}, {_quoted(found.explanation)})"


def _spec(spec: str) -> str:
    """A spec as a string of C++, with single quotes inside where it can have them."""
    return _quoted(spec if "'" in spec or "\\" in spec else spec.replace('"', "'"))


def _quoted(text: str) -> str:
    escaped = c_escape(text.encode()).replace("\\'", "'")
    return f'"{escaped}"'
