import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import attr_for_op, attr_from_python, attr_to_python, infer_attr_from_python
from opkernel.opdef.core.attr_value import attr_as_given
from opkernel.proto import AttrValue, NameAttrList, OpDef, TensorProto, TensorShapeProto
from opkernel.types import DataType, PartialTensorShape, TensorShape, float32, int32

Dim = TensorShapeProto.Dim


def list_of(**values):
    return AttrValue(list=AttrValue.ListValue(**values))


PAIRS = [
    ("string", "é", AttrValue(s="é".encode())),
    ("string", "\udcff", AttrValue(s=b"\xff")),
    ("int", 2**62, AttrValue(i=2**62)),
    ("float", 0.5, AttrValue(f=0.5)),
    ("bool", True, AttrValue(b=True)),
    ("type", float32, AttrValue(type=1)),
    (
        "shape",
        PartialTensorShape([2, None]),
        AttrValue(shape=TensorShapeProto(dim=[Dim(size=2), Dim(size=-1)])),
    ),
    ("shape", PartialTensorShape(None), AttrValue(shape=TensorShapeProto(unknown_rank=True))),
    ("func", NameAttrList(name="f"), AttrValue(func=NameAttrList(name="f"))),
    ("list(string)", ["a", "b"], list_of(s=[b"a", b"b"])),
    ("list(int)", [1, 2], list_of(i=[1, 2])),
    ("list(type)", [float32, int32], list_of(type=[1, 3])),
    ("list(bool)", [], list_of()),
]


@pytest.mark.parametrize(("type", "python", "value"), PAIRS)
def test_both_ways(type, python, value):
    assert attr_to_python(value, type) == python
    assert attr_from_python(python, type) == value


def test_dtypes_come_as_dtypes():
    assert isinstance(attr_to_python(AttrValue(type=1), "type"), DataType)
    assert isinstance(attr_to_python(list_of(type=[1]), "list(type)")[0], DataType)


def test_tensors():
    value = attr_from_python(np.array([[1, 2]], np.int32), "tensor")
    assert value.tensor.dtype == DataType.DT_INT32
    array = attr_to_python(value, "tensor")
    assert array.dtype == np.int32
    assert array.tolist() == [[1, 2]]
    proto = TensorProto(dtype=DataType.DT_FLOAT, float_val=[1])
    assert attr_from_python(proto, "tensor").tensor == proto


@pytest.mark.parametrize(
    ("type", "python", "value"),
    [
        ("string", b"\xff", AttrValue(s=b"\xff")),
        ("int", np.int8(3), AttrValue(i=3)),
        ("float", 3, AttrValue(f=3)),
        ("bool", np.True_, AttrValue(b=True)),
        ("type", "float32", AttrValue(type=1)),
        ("type", np.int32, AttrValue(type=3)),
        ("shape", [2], AttrValue(shape=TensorShapeProto(dim=[Dim(size=2)]))),
        ("shape", TensorShape([2]), AttrValue(shape=TensorShapeProto(dim=[Dim(size=2)]))),
        ("func", "f", AttrValue(func=NameAttrList(name="f"))),
        ("list(int)", (1, 2), list_of(i=[1, 2])),
        ("int", AttrValue(placeholder="N"), AttrValue(placeholder="N")),
    ],
)
def test_what_else_is_accepted(type, python, value):
    assert attr_from_python(python, type) == value


@pytest.mark.parametrize(
    ("type", "python"),
    [
        ("string", 3),
        ("int", 1.5),
        ("int", "1"),
        ("int", 2**63),
        ("float", "1"),
        ("float", None),
        ("bool", 1),
        ("type", "nothing"),
        ("shape", [-3]),
        ("func", 3),
        ("list(string)", "ab"),
        ("list(int)", 3),
        ("list(int)", [1, "a"]),
        ("any", 3),
    ],
)
def test_what_is_not(type, python):
    with pytest.raises(InvalidArgumentError, match=r"attr"):
        attr_from_python(python, type)


def test_a_value_of_another_type_is_not_read():
    with pytest.raises(InvalidArgumentError, match="'float' when 'int' expected"):
        attr_to_python(AttrValue(f=1), "int")
    with pytest.raises(InvalidArgumentError, match=r"'list\(int\)' when 'list\(float\)' expected"):
        attr_to_python(list_of(i=[1]), "list(float)")
    with pytest.raises(InvalidArgumentError, match="missing value with expected type 'shape'"):
        attr_to_python(AttrValue(), "shape")
    assert attr_to_python(AttrValue(), "list(int)") == []


@pytest.mark.parametrize(
    ("python", "value"),
    [
        (True, AttrValue(b=True)),
        (3, AttrValue(i=3)),
        (1.5, AttrValue(f=1.5)),
        ("s", AttrValue(s=b"s")),
        (float32, AttrValue(type=1)),
        (TensorShape([2]), AttrValue(shape=TensorShapeProto(dim=[Dim(size=2)]))),
        (["a"], list_of(s=[b"a"])),
        ((1, 2), list_of(i=[1, 2])),
        ([], list_of()),
        (NameAttrList(name="f"), AttrValue(func=NameAttrList(name="f"))),
    ],
)
def test_inferred_from_the_object_alone(python, value):
    assert infer_attr_from_python(python) == value


def test_an_object_that_no_type_goes_with():
    with pytest.raises(InvalidArgumentError, match="is not a value for an attr of any type"):
        infer_attr_from_python(object())


@pytest.mark.parametrize(
    ("value", "given"),
    [
        (AttrValue(s=b"a"), b"a"),
        (AttrValue(i=3), 3),
        (AttrValue(type=1), float32),
        (AttrValue(func=NameAttrList(name="f")), NameAttrList(name="f")),
        (AttrValue(shape=TensorShapeProto(unknown_rank=True)), TensorShapeProto(unknown_rank=True)),
        (list_of(type=[1, 3]), [float32, int32]),
        (list_of(s=[b"a"]), [b"a"]),
        (list_of(), []),
        (AttrValue(), []),
    ],
)
def test_as_tensorflow_gives_the_attrs_of_operations(value, given):
    found = attr_as_given(value)
    assert found == given
    assert type(found) is type(given)


def test_an_attr_of_an_op_is_named_with_it():
    declared = OpDef.AttrDef(name="n", type="int")
    assert attr_for_op("Op", declared, 3) == AttrValue(i=3)
    with pytest.raises(InvalidArgumentError, match=r"^Attr 'n' of 'Op' Op: 'a' is not a value"):
        attr_for_op("Op", declared, "a")


def test_messages_stay_as_they_are():
    assert infer_attr_from_python(AttrValue(placeholder="N")) == AttrValue(placeholder="N")
    proto = TensorShapeProto(dim=[Dim(size=2)])
    assert attr_from_python(proto, "shape").shape == proto
