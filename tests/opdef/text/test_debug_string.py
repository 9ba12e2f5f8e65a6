import pytest
from google.protobuf import text_format

from opkernel.opdef.text.debug_string import short_debug_string
from opkernel.proto import AttrValue, NodeDef, OpDef, TensorProto


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (OpDef(name="Foo"), 'name: "Foo"'),
        (OpDef(), ""),
        (OpDef(name="É\n"), 'name: "\\303\\211\\n"'),
        (
            OpDef(attr=[OpDef.AttrDef(name="a", has_minimum=True, minimum=-1)]),
            'attr { name: "a" has_minimum: true minimum: -1 }',
        ),
        (AttrValue(f=1), "f: 1"),
        (AttrValue(type=1), "type: DT_FLOAT"),
        (AttrValue(type=1000), "type: 1000"),
        (
            AttrValue(list=AttrValue.ListValue(type=[1, 3])),
            "list { type: DT_FLOAT type: DT_INT32 }",
        ),
        (AttrValue(list=AttrValue.ListValue()), "list { }"),
        (TensorProto(double_val=[0.1], bool_val=[True]), "double_val: 0.1 bool_val: true"),
    ],
)
def test_text(message, text):
    assert short_debug_string(message) == text


def test_maps_are_printed_by_key_and_everything_reads_back():
    node = NodeDef(name="n", input=["a", "^b"])
    node.attr["z"].f = 0.25
    node.attr["a"].func.name = "f"
    node.attr["a"].func.attr["k"].s = b"\xff\"'"
    text = short_debug_string(node)
    assert text == (
        'name: "n" input: "a" input: "^b" attr { key: "a" value { func { name: "f" '
        'attr { key: "k" value { s: "\\377\\"\\\'" } } } } } attr { key: "z" value { f: 0.25 } }'
    )
    assert text_format.Parse(text, NodeDef()) == node
