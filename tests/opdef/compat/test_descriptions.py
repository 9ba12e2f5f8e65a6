from google.protobuf import text_format

from opkernel.opdef import (
    remove_descriptions_from_op_def,
    remove_descriptions_from_op_list,
    remove_non_deprecation_descriptions_from_op_def,
)
from opkernel.proto import OpDef, OpList

DOCUMENTED = """
name: 'A' summary: 's' description: 'd'
input_arg { name: 'x' type: 1 description: 'i' }
output_arg { name: 'y' type: 1 description: 'o' }
attr { name: 'n' type: 'int' description: 'a' default_value { i: 1 } }
deprecation { version: 3 explanation: 'e' }
"""
REST = """
name: 'A'
input_arg { name: 'x' type: 1 }
output_arg { name: 'y' type: 1 }
attr { name: 'n' type: 'int' default_value { i: 1 } }
"""


def op(text):
    return text_format.Parse(text, OpDef())


def test_explanations_of_deprecations_may_stay():
    op_def = op(DOCUMENTED)
    remove_non_deprecation_descriptions_from_op_def(op_def)
    assert op_def == op(REST + "deprecation { version: 3 explanation: 'e' }")


def test_all_descriptions():
    op_def = op(DOCUMENTED)
    remove_descriptions_from_op_def(op_def)
    assert op_def == op(REST + "deprecation { version: 3 }")


def test_no_deprecation_appears():
    op_def = op(REST)
    remove_descriptions_from_op_def(op_def)
    assert not op_def.HasField("deprecation")


def test_lists():
    ops = OpList(op=[op(DOCUMENTED), op("name: 'B' summary: 's'")])
    remove_descriptions_from_op_list(ops)
    assert ops == OpList(op=[op(REST + "deprecation { version: 3 }"), OpDef(name="B")])
