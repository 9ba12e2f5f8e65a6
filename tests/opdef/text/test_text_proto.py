import pytest

from opkernel.opdef.text.text_proto import TextProtoError, merge_text
from opkernel.proto import AttrValue, NameAttrList, TensorProto, TensorShapeProto


def read(text, message):
    merge_text(text, message)
    return message


def test_scalars_and_messages():
    shape = read("dim { size: 2 name: 'n' } dim <size:-1> # rest", TensorShapeProto())
    assert [(dim.size, dim.name) for dim in shape.dim] == [(2, "n"), (-1, "")]
    tensor = read(
        "dtype: DT_INT32 tensor_shape { dim { size: 3 } } int_val: [1, -2, +3]", TensorProto()
    )
    assert (tensor.dtype, list(tensor.int_val)) == (3, [1, -2, 3])


def test_maps():
    func = read(
        "name: 'f' attr { key: 'a' value { i: 1 } } attr { value { b: true } key: 'b' }"
        " attr { key: 'a' value { i: 2 } }",
        NameAttrList(),
    )
    assert dict(func.attr) == {"a": AttrValue(i=2), "b": AttrValue(b=True)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("i: 017", AttrValue(i=17)),
        ("i: +5", AttrValue(i=5)),
        ("f: 0x1p3", AttrValue(f=8)),
        ("f: .5", AttrValue(f=0.5)),
        ("f: -Infinity", AttrValue(f=float("-inf"))),
        ("b: 0", AttrValue(b=False)),
        ("type: 19", AttrValue(type=19)),
        ("type: 1000", AttrValue(type=1000)),
        ("i: 7 words: that name nothing", AttrValue(i=7)),
        ("s: '\\x41\\''", AttrValue(s=b"A'")),
    ],
)
def test_what_tensorflow_reads_and_protobuf_does_not_or_otherwise(text, value):
    assert read(text, AttrValue()) == value


@pytest.mark.parametrize(
    "text",
    [
        "i: 0x1F",
        "i: 007",
        "i: 9223372036854775808",
        "i: 1.0",
        "i: 7;",
        "i 7",
        "i: 1 i: 2",
        "i: 1 b: true",
        "f: 1.5f",
        "f: 1e",
        "b: yes",
        "s: 'open",
        "s: '\\q'",
        "type: DT_NONE",
        "shape: 3",
        "shape { dim { size: 1 }",
        "shape { dim { size: 1 > }",
        "list { i: [1, 2 }",
        "list { i: [] }",
        "list { type: [DT_FLOAT , DT_INT32] }",
        "func { attr { key: 'a' } }",
        "$",
    ],
)
def test_refused(text):
    with pytest.raises(TextProtoError):
        merge_text(text, AttrValue())


def test_deep_nesting_is_refused_and_does_not_exhaust_the_stack():
    text = "func { attr { key: 'a' value { " * 100_000
    with pytest.raises(TextProtoError, match="too deeply"):
        merge_text(text, AttrValue())
