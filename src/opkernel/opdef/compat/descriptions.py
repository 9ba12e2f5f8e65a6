"""Take the documentation out of OpDefs: files of ops, and comparisons, go without it.

Source: TensorFlow core/framework/op_def_util.cc.
"""

from opkernel.proto import OpDef, OpList


def remove_non_deprecation_descriptions_from_op_def(op_def: OpDef) -> None:
    """Clear, in place, every text for people but the explanation of a deprecation."""
    for parts in (op_def.input_arg, op_def.output_arg, op_def.attr):
        for part in parts:
            part.ClearField("description")
    op_def.ClearField("summary")
    op_def.ClearField("description")


def remove_descriptions_from_op_def(op_def: OpDef) -> None:
    """Clear, in place, every text for people. A deprecation stays, without its explanation."""
    remove_non_deprecation_descriptions_from_op_def(op_def)
    if op_def.HasField("deprecation"):
        op_def.deprecation.ClearField("explanation")


def remove_descriptions_from_op_list(op_list: OpList) -> None:
    """Clear, in place, every text for people in all ops of a list."""
    for op_def in op_list.op:
        remove_descriptions_from_op_def(op_def)
