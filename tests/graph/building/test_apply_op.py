"""Nodes by keyword: the cases that TensorFlow's own tests of `apply_op` pin, and ours."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from opkernel.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from opkernel.graph import Graph, Operation, Tensor, apply_op, reset_default_graph
from opkernel.opdef import OpRegistry, register_op, unknown_shape
from opkernel.proto import NodeDef
from opkernel.types import DataType, PartialTensorShape, float32, int32, int64, string

OPS: dict[str, tuple[str, str, str]] = {  # inputs, outputs, attrs
    "Const": ("", "output: dtype", "value: tensor; dtype: type"),
    "Pack": ("values: N * T", "output: T", "N: int >= 1; T: type; axis: int = 0"),
    "OutT": ("", "a: T", "T: type"),
    "Simple": ("a: int32", "out: float", ""),
    "ReservedInput": ("in: int32", "", ""),
    "ReservedAttr": ("", "", "import: int"),
    "Polymorphic": ("a: T", "out: T", "T: type"),
    "PolymorphicDefaultOut": ("", "out: T", "T: type = DT_STRING"),
    "Binary": ("a: T; b: T", "out: T", "T: type"),
    "Restrict": ("a: T", "out: T", "T: {string, bool}"),
    "TypeList": ("a: T", "", "T: list(type) >= 0"),
    "TypeListTwice": ("a: T; b: T", "", "T: list(type) >= 0"),
    "Attr": ("", "", "a: int"),
    "AttrBool": ("", "", "a: bool"),
    "AttrFloat": ("", "", "a: float"),
    "AttrListMin": ("", "", "a: list(int) >= 2"),
    "AttrMin": ("", "", "a: int >= 5"),
    "AttrEnum": ("", "", "a: {'apples', 'oranges'}"),
    "AttrShape": ("", "", "a: shape"),
    "AttrDefault": ("", "", "a: string = 'banana'"),
    "AttrListDefault": ("", "", "a: list(int) = [5, 15]"),
    "AttrTypeDefault": ("a: T", "", "T: type = DT_INT32"),
    "AttrAllowedDefault": ("a: T", "", "T: {int32, int64, float} = DT_INT64"),
    "NIntsIn": ("a: N * int32", "", "N: int >= 2"),
    "NPolymorphicIn": ("a: N * T", "", "T: type; N: int >= 2"),
    "NInTwice": ("a: N * int32; b: N * string", "", "N: int >= 0"),
    "InPolymorphicTwice": ("a: N * T; b: M * T", "", "T: type; N: int >= 0; M: int >= 0"),
    "NIntsOut": ("", "a: N * int32", "N: int >= 2"),
    "NIntsOutDefault": ("", "a: N * int32", "N: int >= 2 = 3"),
    "MixedStruct": ("", "a: n_a * int32; b: float", "n_a: int >= 0"),
    "ComplexStruct": (
        "",
        "a: n_a * int32; b: n_b * int64; c: t_c",
        "n_a: int >= 0; n_b: int >= 0; t_c: list(type) >= 0",
    ),
    "RefIn": ("a: Ref(T)", "", "T: type"),
    "TwoRefsIn": ("a: Ref(T); b: Ref(T)", "", "T: type"),
    "RefOut": ("", "a: Ref(T)", "T: type"),
}


def make_registry() -> OpRegistry:
    registry = OpRegistry()
    for name, specs in OPS.items():
        inputs, outputs, attrs = ([s for s in text.split("; ") if s] for text in specs)
        register_op(
            name,
            inputs=inputs,
            outputs=outputs,
            attrs=attrs,
            shape_fn=unknown_shape if outputs else lambda c: None,
            registry=registry,
        )
    register_op(
        "Old", outputs=["o: float"], shape_fn=unknown_shape, deprecated=(9, "Use New"),
        registry=registry,
    )  # fmt: skip
    return registry


REGISTRY = make_registry()


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    """The default graph, over the ops above."""
    with Graph(REGISTRY).as_default() as made:
        yield made


def tensor(dtype: DataType, name: str = "in") -> Tensor:
    made = apply_op("OutT", T=dtype, name=name)
    assert isinstance(made, Tensor)
    return made


def node(made: Any) -> NodeDef:
    return made.node_def if isinstance(made, Operation) else made.op.node_def


def expected(text: str) -> NodeDef:
    return text_format.Parse(text, NodeDef())


def test_nodes_are_named_after_their_ops(graph: Graph) -> None:
    out = apply_op("Simple", a=3)
    assert (out.dtype, node(out)) == (
        float32,
        expected("name: 'Simple' op: 'Simple' input: 'Simple/a'"),
    )
    assert node(apply_op("Simple", a=4)).name == "Simple_1"
    assert list(node(apply_op("Simple", a=4, name="named")).input) == ["named/a"]
    with graph.name_scope("scope"):
        assert list(node(apply_op("Simple", a=4)).input) == ["scope/Simple/a"]
    assert graph.get_operation_by_name("Simple_1/a").get_attr("dtype") == int32


def test_words_of_python_take_an_underscore() -> None:
    assert list(node(apply_op("ReservedInput", in_=7, name="x")).input) == ["x/in"]
    assert apply_op("ReservedAttr", import_=7).get_attr("import") == 7
    as_in_the_op: dict[str, Any] = {"import": 8}
    assert apply_op("ReservedAttr", **as_in_the_op).get_attr("import") == 8


def test_types_follow_from_the_inputs() -> None:
    assert apply_op("Polymorphic", a=7).dtype == int32
    assert apply_op("Polymorphic", a=["s", "t"]).dtype == string
    assert apply_op("Binary", a=8, b=9).dtype == int32
    assert apply_op("Binary", a=1, b=tensor(float32)).dtype == float32
    assert apply_op("Binary", a=np.int64(1), b=2).dtype == int64
    mixed = apply_op("NPolymorphicIn", a=[1, tensor(float32, "x")], name="q")
    assert node(mixed) == expected(
        "name: 'q' op: 'NPolymorphicIn' input: 'q/a_0' input: 'x' "
        "attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'N' value { i: 2 } }"
    )


def test_defaults_decide_where_the_value_goes_with_them() -> None:
    assert apply_op("AttrTypeDefault", a=[]).get_attr("T") == int32
    assert apply_op("AttrTypeDefault", a=[1.0]).get_attr("T") == float32
    assert apply_op("AttrAllowedDefault", a=1).get_attr("T") == int32
    assert apply_op("AttrAllowedDefault", a=[]).get_attr("T") == float32
    assert apply_op("PolymorphicDefaultOut").dtype == string
    assert apply_op("PolymorphicDefaultOut", T=None).dtype == string


def test_lists_are_counted_and_typed() -> None:
    lists = apply_op("TypeList", a=["foo", 3.5], name="z")
    assert (list(lists.node_def.input), lists.get_attr("T")) == (
        ["z/a_0", "z/a_1"],
        [string, float32],
    )
    assert apply_op("TypeList", a=[]).get_attr("T") == []
    twice = apply_op("NInTwice", a=[1, 2], b=["one", "two"], name="n")
    assert list(twice.node_def.input) == ["n/a_0", "n/a_1", "n/b_0", "n/b_1"]
    assert apply_op("NInTwice", a=[], b=[]).get_attr("N") == 0
    both = apply_op("InPolymorphicTwice", a=[8], b=[], name="o")
    assert [both.get_attr(name) for name in ("T", "N", "M")] == [int32, 1, 0]


def test_lists_with_tensors_in_them_are_packed(graph: Graph) -> None:
    packed = apply_op("Polymorphic", a=[tensor(float32, "x"), 1], name="n")
    assert (packed.dtype, list(node(packed).input)) == (float32, ["n/a"])
    pack = graph.get_operation_by_name("n/a")
    assert (pack.type, list(pack.node_def.input)) == ("Pack", ["x", "n/a/1"])
    nested = apply_op("Simple", a=[[tensor(int32)], [2]], name="m").op.inputs[0]
    assert [t.op.type for t in nested.op.inputs] == ["Pack", "Const"]
    with pytest.raises(InvalidArgumentError, match=r"'b' .* type int32 .* type float32 of .* 'a'"):
        apply_op("Binary", a=tensor(float32), b=[tensor(int32), 1])


def test_attrs() -> None:
    assert apply_op("AttrFloat", a=1).get_attr("a") == 1.0
    assert apply_op("AttrBool", a=True).get_attr("a") is True
    assert (
        apply_op("AttrShape", a=[3, None]).get_attr("a") == PartialTensorShape([3, None]).to_proto()
    )
    assert apply_op("AttrDefault").get_attr("a") == b"banana"
    assert apply_op("AttrDefault", a=None).get_attr("a") == b"banana"
    assert apply_op("AttrListDefault", a=[]).get_attr("a") == []


def test_outputs_are_structured() -> None:
    assert isinstance(apply_op("Attr", a=1), Operation)
    assert [t.dtype for t in apply_op("NIntsOut", N=2)] == [int32, int32]
    assert len(apply_op("NIntsOutDefault", N=None)) == 3
    a, b = apply_op("MixedStruct", n_a=0)
    assert (a, b.dtype) == ([], float32)
    found = apply_op("ComplexStruct", n_a=1, n_b=0, t_c=[int32, float32])
    assert ([len(part) for part in found], found.c[1].dtype) == ([1, 0, 2], float32)


def test_a_node_stands_beside_its_references(graph: Graph) -> None:
    ref = apply_op("RefOut", T=DataType.DT_BOOL, name="o")
    assert ref.dtype == DataType.DT_BOOL_REF
    assert node(apply_op("RefIn", a=ref, name="i")) == expected(
        "name: 'i' op: 'RefIn' input: 'o' attr { key: 'T' value { type: DT_BOOL } } "
        "attr { key: '_class' value { list { s: 'loc:@o' } } }"
    )
    one, two = (apply_op("RefOut", T=int32, name=name) for name in "vu")
    both = apply_op("TwoRefsIn", a=one, b=two)
    assert both.colocation_groups() == [b"loc:@u", b"loc:@v"]
    value = apply_op("Simple", a=one, name="s")
    assert node(value) == expected("name: 's' op: 'Simple' input: 'v'")
    with pytest.raises(InvalidArgumentError, match="expected int32_ref"):
        apply_op("RefIn", a=2)


def test_constants_fall_under_the_scopes_too(graph: Graph) -> None:
    with graph.device("/job:a"):
        apply_op("Simple", a=3)
    assert [op.device for op in graph.get_operations()] == ["/job:a", "/job:a"]


def test_the_graph_is_that_of_the_inputs(graph: Graph) -> None:
    there = tensor(int32)
    reset_default_graph()
    with Graph(REGISTRY).as_default() as other:
        assert apply_op("Simple", a=there).graph is graph
        assert apply_op("NIntsIn", a=[1, there]).graph is graph
        assert apply_op("Simple", a=3).graph is other
        with pytest.raises(InvalidArgumentError, match=r"'in' .* not an element of this graph"):
            apply_op("Binary", a=tensor(int32), b=there)


@pytest.mark.parametrize(
    ("op", "arguments", "message"),
    [
        ("Simple", {}, "Simple.. is missing its argument for input 'a'"),
        ("Simple", {"wrong": 7}, "got unexpected keyword arguments: wrong; it takes a"),
        ("Simple", {"a": 6, "extra2": 1, "extra1": 2}, "keyword arguments: extra1, extra2"),
        ("OutT", {}, "is missing its argument for attr 'T'"),
        ("Polymorphic", {"a": "s", "T": string}, "infers attr 'T'; it should not be specified"),
    ],
)
def test_wrong_arguments(op: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        apply_op(op, **arguments)


@pytest.mark.parametrize(
    ("op", "arguments", "message"),
    [
        ("Simple", {"a": "Bad string"}, "'a' of 'Simple' expected int32, got 'Bad string' of type 'str'"),
        ("Simple", {"a": {"label": 1}}, "expected int32, got {'label': 1} of type 'dict'"),
        ("Simple", {"a": 1.5}, "expected int32, got 1.5 of type 'float'"),
        ("Polymorphic", {"a": None}, "'a' of 'Polymorphic' Op to a tensor and failed"),
        ("Binary", {"a": "left", "b": 12}, "'b' of 'Binary' expected string, got 12 of type 'int'"),
        ("Restrict", {"a": 17}, "not in the list of allowed values: string, bool"),
        ("TypeList", {"a": "not a list"}, "list for 'a' argument to 'TypeList' Op, not 'not a list'"),
        ("NIntsIn", {"a": 17}, "Expected list for 'a' argument to 'NIntsIn' Op, not 17"),
        ("NIntsIn", {"a": [99]}, "'N' of 1 must be at least minimum 2"),
        ("NPolymorphicIn", {"a": [38, "bar"]}, "expected int32, got 'bar' of type 'str'"),
        ("NPolymorphicIn", {"a": []}, "type variable 'T' from empty input list .* 'a' of 'NPoly"),
        ("NInTwice", {"a": [1, 2, 3], "b": ["x"]}, "'b' of .* length 1 .* length 3 of argument 'a'"),
        ("NIntsOut", {"N": 1}, "'N' of 1 must be at least minimum 2"),
        ("NIntsOut", {"N": [3]}, r"Attr 'N' of 'NIntsOut' Op: \[3\] is not a value .* type int"),
        ("OutT", {"T": None}, "Attr 'T' of 'OutT' Op: None is not a value .* type type"),
        ("AttrBool", {"a": 0}, "Attr 'a' of 'AttrBool' Op: 0 is not a value .* type bool"),
        ("AttrMin", {"a": 2}, "'a' of 2 must be at least minimum 5"),
        ("AttrListMin", {"a": [17]}, "Length for attr 'a' of 1 must be at least minimum 2"),
        ("AttrEnum", {"a": "invalid"}, "'a' of \"invalid\" is not in .* \"apples\", \"oranges\""),
    ],
)  # fmt: skip
def test_wrong_values(op: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        apply_op(op, **arguments)


def test_tensors_of_other_types() -> None:
    text, number = tensor(string, "text"), tensor(int32, "number")
    for op, arguments, message in (
        ("Simple", {"a": text}, "'a' of 'Simple' Op has type string .* expected type of int32"),
        ("Binary", {"a": text, "b": number}, "'b' .* type int32 .* type string of argument 'a'"),
        ("NIntsIn", {"a": [number, text]}, r"'a' of 'NIntsIn' .* \[int32, string\] .* of int32"),
        ("InPolymorphicTwice", {"a": [number], "b": [text]}, r"'b' .*\[string\] .* int32 of .* 'a'"),
        ("TypeListTwice", {"a": [text, number], "b": [text, text]}, "'b' .* string, int32 of .* 'a'"),
    ):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match=message):
            apply_op(op, **arguments)


def test_ops_that_are_not_to_be_had() -> None:
    with pytest.raises(NotFoundError, match="Op type not registered 'Unknown'"):
        apply_op("Unknown")
    with pytest.raises(UnimplementedError, match=r"Op Old is not available .* version 9"):
        apply_op("Old")
