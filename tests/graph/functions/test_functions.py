"""Functions: libraries, instantiation, bodies as graphs, and graphs as functions."""

import pytest
from google.protobuf import text_format
from tests.graph.builders import REGISTRY, node, parse

from opkernel.errors import InternalError, InvalidArgumentError, NotFoundError
from opkernel.graph import (
    FunctionLibraryDefinition,
    canonical_function_name,
    function_def_hash,
    function_defs_equal,
    instantiate_function,
    instantiate_nodes,
    print_instantiated,
)
from opkernel.opdef import global_op_registry, unknown_shape
from opkernel.proto import AttrValue, FunctionDef, FunctionDefLibrary, NameAttrList
from opkernel.types import DataType, float32, int32

FLOAT = AttrValue(type=DataType.DT_FLOAT)


def function(text: str) -> FunctionDef:
    return text_format.Parse(text, FunctionDef())


def nodes(text: str) -> str:
    return text.replace("node {", "node_def {")


def arg(kind: str, name: str, how: str) -> str:
    return f"{kind}_arg {{ name: '{name}' {how} }} "


TWICE = function(
    "signature { name: 'Twice' input_arg { name: 'x' type_attr: 'T' } "
    "output_arg { name: 'y' type_attr: 'T' } attr { name: 'T' type: 'type' } } "
    + nodes(node("sum", "AddV2", "x", "x", attrs="T placeholder: 'T'"))
    + "ret { key: 'y' value: 'sum:z:0' }"
)
LISTS = function(
    "signature { name: 'Lists' input_arg { name: 'x' type_attr: 'T' number_attr: 'N' } "
    "output_arg { name: 'y' type_attr: 'T' number_attr: 'N' } output_arg { name: 's' type_attr: 'T' } "
    "attr { name: 'T' type: 'type' } attr { name: 'N' type: 'int' } } "
    + nodes(node("sum", "AddN", "x", attrs="T placeholder: 'T'; N placeholder: 'N'"))
    + nodes(node("last", "NoOp", "^sum", "^x"))
    + "ret { key: 'y' value: 'x' } ret { key: 's' value: 'sum:sum' } "
    "control_ret { key: 'done' value: 'last' }"
)
CALLER = function(
    "signature { name: 'Caller' input_arg { name: 'x' type: DT_FLOAT } "
    "output_arg { name: 'y' type: DT_FLOAT } control_output: 'done' } "
    + nodes(node("call", "Twice", "x:0", attrs="T type: DT_FLOAT"))
    + nodes(node("n", "NoOp", "^call"))
    + "ret { key: 'y' value: 'call:y' } control_ret { key: 'done' value: 'n' }"
)


@pytest.fixture
def library() -> FunctionLibraryDefinition:
    return FunctionLibraryDefinition(REGISTRY, FunctionDefLibrary(function=[TWICE, LISTS, CALLER]))


class TestLibrary:
    def test_is_a_mapping_by_name(self, library: FunctionLibraryDefinition) -> None:
        assert sorted(library) == ["Caller", "Lists", "Twice"]
        assert (len(library), "Twice" in library, "Q" in library) == (3, True, False)
        assert library["Twice"] == library.get_function("Twice") == TWICE
        assert library.get("Q") is None
        with pytest.raises(NotFoundError, match="Function Q is not defined"):
            library.get_function("Q")

    def test_a_function_is_an_op(self, library: FunctionLibraryDefinition) -> None:
        registration = library.look_up("Twice")
        assert registration.op_def == TWICE.signature
        assert registration.is_function_op
        assert registration.shape_inference_fn is unknown_shape
        assert library.look_up("AddV2") is REGISTRY.look_up("AddV2")
        assert library.look_up("_Arg").op_def.name == "_Arg"
        with pytest.raises(NotFoundError, match="'Q'"):
            library.look_up("Q")

    def test_the_library_has_copies(self, library: FunctionLibraryDefinition) -> None:
        own = FunctionDef.FromString(TWICE.SerializeToString())
        own.signature.name = "Own"
        library.add_function(own)
        own.signature.name = "Changed"
        assert library["Own"].signature.name == "Own"

    def test_equal_functions_may_be_added_again(self, library: FunctionLibraryDefinition) -> None:
        library.add_function(TWICE)
        assert len(library) == 3

    def test_what_clashes_is_refused(self, library: FunctionLibraryDefinition) -> None:
        other = function("signature { name: 'Twice' }")
        with pytest.raises(InvalidArgumentError, match="'Twice' because a different function"):
            library.add_function(other)
        with pytest.raises(InvalidArgumentError, match="'AddV2' because an op with the same name"):
            library.add_function(function("signature { name: 'AddV2' }"))

    def test_adding_a_library_is_all_or_nothing(self, library: FunctionLibraryDefinition) -> None:
        more = FunctionDefLibrary(
            function=[function("signature { name: 'New' }"), function("signature { name: 'NoOp' }")]
        )
        with pytest.raises(InvalidArgumentError):
            library.add_library(more)
        assert "New" not in library
        with pytest.raises(NotFoundError):
            library.look_up("New")

    def test_gradients(self, library: FunctionLibraryDefinition) -> None:
        library.add_gradient("Twice", "G")
        library.add_gradient("Twice", "G")
        assert (library.find_gradient("Twice"), library.find_gradient("Q")) == ("G", "")
        message = "gradient function 'H' to 'Twice' because it already has gradient function 'G'"
        with pytest.raises(InvalidArgumentError, match=message):
            library.add_gradient("Twice", "H")

    def test_remove(self, library: FunctionLibraryDefinition) -> None:
        library.remove_function("Twice")
        assert "Twice" not in library
        with pytest.raises(InvalidArgumentError, match="non-existent function 'Twice'"):
            library.remove_function("Twice")
        library.add_function(TWICE)

    def test_round_trip(self, library: FunctionLibraryDefinition) -> None:
        library.add_gradient("Twice", "G")
        again = FunctionLibraryDefinition(REGISTRY, library.to_proto())
        assert again.to_proto() == library.copy().to_proto() == library.to_proto()

    def test_get_attr_of_the_called_function(self, library: FunctionLibraryDefinition) -> None:
        marked = function("signature { name: 'M' } attr { key: '_noinline' value { b: true } }")
        library.add_function(marked)
        call, gradient = parse(
            node("c", "M") + node("g", "SymbolicGradient", attrs="f func { name: 'M' }")
        ).node
        for one in (call, gradient):
            value = library.get_attr(one, "_noinline")
            assert value is not None
            assert value.b is True
        assert library.get_attr(call, "_other") is None

    def test_reachable_definitions(self, library: FunctionLibraryDefinition) -> None:
        for name in ("G", "H", "InList", "Lonely"):
            library.add_function(function(f"signature {{ name: '{name}' }}"))
        implements = (
            "attr {{ key: 'api_implements' value {{ s: 'api' }} }} signature {{ name: '{}' }}"
        )
        library.add_function(function(implements.format("Here")))
        library.add_function(function(implements.format("There")))
        library.add_gradient("Twice", "G")
        used = parse(
            node("c", "Caller")
            + node(
                "l", "NoOp", attrs="fs list { func { name: 'InList' } }; f func { name: 'Here' }"
            )
        ).node
        reached = library.reachable_definitions(used)
        assert sorted(reached) == ["Caller", "G", "Here", "InList", "There", "Twice"]
        assert (library["Caller"], library["Twice"]) == (CALLER, TWICE)  # nothing was added
        assert reached.find_gradient("Twice") == "G"

    def test_functions_may_be_left_out_with_what_they_alone_need(
        self, library: FunctionLibraryDefinition
    ) -> None:
        used = parse(node("c", "Caller") + node("l", "Lists")).node
        assert sorted(library.reachable_definitions(used, without=["Caller"])) == ["Lists"]
        assert sorted(library.reachable_definitions(used, without=["Twice"])) == ["Caller", "Lists"]

    def test_the_attrs_of_a_gradient_are_those_of_its_function(
        self, library: FunctionLibraryDefinition
    ) -> None:
        marked = function("signature { name: 'G' } attr { key: '_noinline' value { b: true } }")
        library.add_function(marked)
        library.add_gradient("Twice", "G")
        (gradient,) = parse(node("g", "SymbolicGradient", attrs="f func { name: 'Twice' }")).node
        value = library.get_attr(gradient, "_noinline")
        assert value is not None
        assert value.b
        (nothing,) = parse(node("g", "SymbolicGradient")).node
        assert library.get_attr(nothing, "_noinline") is None

    def test_two_libraries(self, library: FunctionLibraryDefinition) -> None:
        twice = function("signature { name: 'Twice' description: 'another' }")
        other = FunctionLibraryDefinition(REGISTRY)
        for one in (twice, function("signature { name: 'New' }")):
            other.add_function(one)
        other.add_gradient("New", "Twice")
        joined = library.joined_with(other)
        assert sorted(joined) == ["Caller", "Lists", "New", "Twice"]
        assert (joined["Twice"], joined.find_gradient("New")) == (twice, "Twice")
        assert joined.look_up("New").is_function_op
        library.add_missing(other)
        assert sorted(library) == ["Caller", "Lists", "New", "Twice"]
        assert library["Twice"] == TWICE
        library.clear()
        assert len(library) == 0
        with pytest.raises(NotFoundError):
            library.look_up("Twice")
        assert sorted(joined) == ["Caller", "Lists", "New", "Twice"]

    def test_traits_and_files_are_those_of_ops(self, library: FunctionLibraryDefinition) -> None:
        library.add_function(function("signature { name: 'ReadFile' }"))
        assert not library.traits("ReadFile").reads_files
        assert not library.may_open_files("ReadFile")
        files = FunctionLibraryDefinition(global_op_registry())
        assert files.traits("ReadFile").reads_files
        assert files.may_open_files("ReadFile")
        assert not files.may_open_files("MatMul")

    def test_functions_that_call_each_other_are_reached_once(self) -> None:
        library = FunctionLibraryDefinition(REGISTRY)
        for name, callee in (("A", "B"), ("B", "A")):
            library.add_function(
                function(f"signature {{ name: '{name}' }}" + nodes(node("c", callee)))
            )
        assert sorted(library.reachable_definitions(parse(node("a", "A")).node)) == ["A", "B"]


def test_equality_and_hash_do_not_look_at_the_order_of_nodes() -> None:
    signature = "signature { name: 'F' } "
    a, b = nodes(node("a", "NoOp")), nodes(node("b", "NoOp"))
    one, other = function(signature + a + b), function(signature + b + a)
    assert function_defs_equal(one, other)
    assert function_def_hash(one) == function_def_hash(other) != function_def_hash(CALLER)
    assert not function_defs_equal(function(signature + a), function(signature + b))
    for change in ("ret { key: 'y' value: 'a' }", "control_ret { key: 'y' value: 'a' }",
                   "attr { key: 'a' value { b: true } }"):  # fmt: skip
        assert not function_defs_equal(function(signature + a), function(signature + a + change))


class TestInstantiation:
    def test_placeholders_and_names(self) -> None:
        result = instantiate_nodes(TWICE, {"T": FLOAT}, REGISTRY.look_up_op_def)
        assert print_instantiated(result.nodes) == (
            "\n(x:float) -> (sum:float) {\n  sum = AddV2[T=float](x, x)\n}\n"
        )
        assert [n.name for n in result.nodes] == ["x", "sum", "y_RetVal"]
        assert (result.arg_types, result.ret_types) == ([float32], [float32])
        assert canonical_function_name("Twice", {"T": FLOAT}) == "Twice[T=float]"

    def test_canonical_names(self) -> None:
        def canonical(text: str) -> str:
            function = text_format.Parse(f"name: 'F' {text}", NameAttrList())
            return canonical_function_name(function.name, function.attr)

        def attr(key: str, value: str) -> str:
            return f"attr {{ key: '{key}' value {{ {value} }} }} "

        types = attr("l", "list { type: [DT_INT32, DT_FLOAT] }") + attr("T", "type: DT_INT32")
        types += attr("s", "s: 'x'")
        inner = f"func {{ name: 'k' {types} }}"
        outer = f"func {{ name: 'g' {attr('h', inner)} }}"
        assert canonical(attr("f", outer)) == 'F[f=g[h=k[T=int32, l={int32, float}, s="x"]]]'
        assert canonical(attr("s", "s: 'x'")) == "F[s=13942860475667539970]"  # Fingerprint64
        assert canonical(attr("s", "list { s: ['x'] }")) == 'F[s=["x"]]'
        assert (
            canonical(attr("_executor", "s: 'X Y'") + attr("A", "i: 1")) == "F[A=1,_executor=X Y]"
        )
        assert canonical(attr("_executor", "s: ''") + attr("b", "b: true")) == "F[b=true]"

    def test_lists_become_nodes_of_their_own(self) -> None:
        attrs = {"T": FLOAT, "N": AttrValue(i=2)}
        result = instantiate_nodes(LISTS, attrs, REGISTRY.look_up_op_def)
        assert print_instantiated(result.nodes) == (
            "\n(x_0:float, x_1:float) -> (x_0:float, x_1:float, sum:float) {\n"
            "  sum = AddN[N=2, T=float](x_0, x_1)\n  last = NoOp() @ sum, x_0\n}\n"
        )
        assert [n.name for n in result.nodes[-3:]] == ["y_RetVal_0", "y_RetVal_1", "s_RetVal"]

    def test_defaults_of_attrs_and_ops(self) -> None:
        text = (
            "signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT } "
            "attr { name: 'flip' type: 'bool' default_value { b: true } } } "
            + nodes(node("p", "MatMul", "x", "x", attrs="T type: DT_FLOAT; transpose_a placeholder: 'flip'"))
        )  # fmt: skip
        with pytest.raises(NotFoundError, match="Attr flip is not found from"):
            instantiate_nodes(function(text), {}, REGISTRY.look_up_op_def)
        given = {"flip": AttrValue(b=False)}
        product = instantiate_nodes(function(text), given, REGISTRY.look_up_op_def).nodes[1]
        assert product.attr["transpose_a"].b is False
        assert product.attr["transpose_b"].HasField("b")

    def test_the_function_is_not_changed(self) -> None:
        before = TWICE.SerializeToString(deterministic=True)
        instantiate_nodes(TWICE, {"T": FLOAT}, REGISTRY.look_up_op_def)
        assert TWICE.SerializeToString(deterministic=True) == before

    def test_ints_on_the_device_and_attrs_of_arguments(self) -> None:
        text = (
            "signature { name: 'F' input_arg { name: 'i' type: DT_INT32 } "
            "output_arg { name: 'o' type: DT_INT32 } } ret { key: 'o' value: 'i' } "
            "attr { key: 'experimental_ints_on_device' value { b: true } } "
            "arg_attr { key: 0 value { attr { key: '_user' value { s: 'me' } } } } "
            "resource_arg_unique_id { key: 0 value: 7 }"
        )
        first, last = instantiate_nodes(function(text), {}, REGISTRY.look_up_op_def).nodes
        assert (first.op, last.op) == ("_DeviceArg", "_DeviceRetval")
        assert first.attr["_user"].s == b"me"
        assert first.attr["_resource_arg_unique_id"].i == 7

    @pytest.mark.parametrize(
        ("signature", "body", "error", "message"),
        [
            (arg("input", "x", "type: DT_FLOAT") * 2, "", InvalidArgumentError,
             "Duplicated arg name: x"),
            ("", nodes(node("a", "NoOp") * 2), InvalidArgumentError, "Duplicated ret name: a"),
            ("", nodes(node("a", "Identity", "z", attrs="T type: DT_FLOAT")), InvalidArgumentError,
             "input z is not found: .*node a"),
            ("", nodes(node("a", "NoOp", "^z")), InvalidArgumentError,
             r"input\[0\] == '\^z', is not found"),
            ("", nodes(node("a", "NoOp", "z")), InvalidArgumentError,
             r"Expected input\[0\] == 'z' to be a control input"),
            ("", nodes(node("a", "Identity", attrs="T type: DT_FLOAT")), InvalidArgumentError,
             "Attempt to access beyond input size: 0 >= 0"),
            (arg("input", "x", "type: DT_INT32"),
             nodes(node("a", "Identity", "x", attrs="T type: DT_FLOAT")), InvalidArgumentError,
             r"input input\[0\] expected type float != int32, the type of x\[0\]"),
            (arg("output", "y", "type: DT_FLOAT"), "", InvalidArgumentError, "Return y missing"),
            (arg("output", "y", "type: DT_FLOAT"), "ret { key: 'y' value: 'z' }",
             InvalidArgumentError, "Return y -> z is not found"),
            (arg("input", "x", "type: DT_INT32") + arg("output", "y", "type: DT_FLOAT"),
             "ret { key: 'y' value: 'x' }", InvalidArgumentError,
             "Invalid ret types y : float vs. int32"),
            ("", nodes(node("a", "Nope")), NotFoundError, "'Nope'"),
            ("", nodes(node("a", "NoOp", attrs="x placeholder: 'Q'")), InvalidArgumentError,
             r"Failed to bind all placeholders in \$Q"),
            (arg("input", "x", "type: DT_FLOAT number_attr: 'N'")
             + "attr { name: 'N' type: 'int' } ", "", InternalError, "at least one dtype"),
            (arg("input", "x", "type_list_attr: 'L'"), "", NotFoundError,
             "type list attr not found: L"),
            (arg("input", "a", "type: DT_FLOAT") + arg("input", "x", "type_list_attr: 'Ts'"),
             nodes(node("s", "AddN", "a", "x", attrs="T type: DT_FLOAT; N i: 3")),
             InvalidArgumentError,
             r"input inputs\[2\] expected type float != int32, the type of x\[1\]"),
            (arg("input", "x", "type: DT_FLOAT number_attr: 'Q'"), "", NotFoundError,
             "number attr not found: Q"),
            (arg("input", "x", "type_attr: 'Q'"), "", NotFoundError, "type attr not found: Q"),
            (arg("input", "x", "type: DT_FLOAT number_attr: 'Two'"),
             nodes(node("a", "Identity", "x", attrs="T type: DT_FLOAT")), InvalidArgumentError,
             "Input x too long for input"),
            ("", nodes(node("a", "_Arg", attrs="T type: DT_FLOAT; index i: 0")), InvalidArgumentError,
             "are those of its signature; node 'a' is a further _Arg"),
            (arg("input", "x", "type: DT_FLOAT number_attr: 'M'"), "", InvalidArgumentError,
             "out of range: 4611686018427387904"),
        ],
    )  # fmt: skip
    def test_broken_functions(self, signature: str, body: str, error, message: str) -> None:
        text = f"signature {{ name: 'F' {signature} }} {body}"
        attrs = {"N": AttrValue(i=0), "M": AttrValue(i=2**62), "Two": AttrValue(i=2)}
        attrs["Ts"] = AttrValue(list=AttrValue.ListValue(type=[float32, int32]))
        with pytest.raises(error, match=message):
            instantiate_nodes(function(text), attrs, REGISTRY.look_up_op_def)

    def test_an_attr_of_the_wrong_type(self) -> None:
        with pytest.raises(InvalidArgumentError, match=r"'int' when 'type' expected\n.*attr 'T'"):
            instantiate_nodes(TWICE, {"T": AttrValue(i=3)}, REGISTRY.look_up_op_def)


class TestBody:
    def test_is_a_graph(self, library: FunctionLibraryDefinition) -> None:
        body = instantiate_function(library, "Caller")
        assert body.name == "Caller"
        assert [op.name for op in body.graph.get_operations()] == ["x", "call", "n", "y_RetVal"]
        assert [t.name for t in body.inputs] == ["x:0"]
        assert [t.name for t in body.outputs] == ["call:0"]
        assert [op.type for op in body.arg_nodes + body.ret_nodes] == ["_Arg", "_Retval"]
        assert [op.name for op in body.control_ret_nodes] == ["n"]
        assert (body.arg_types, body.ret_types) == ((float32,), (float32,))
        assert body.graph.function_library is library

    def test_attrs_come_from_the_reference(self, library: FunctionLibraryDefinition) -> None:
        reference = NameAttrList(name="Lists")
        reference.attr["T"].type = DataType.DT_INT32
        reference.attr["N"].i = 12
        body = instantiate_function(library, reference)
        assert body.arg_types == (int32,) * 12
        assert [op.get_attr("index") for op in body.arg_nodes] == list(range(12))
        assert [op.get_attr("index") for op in body.ret_nodes] == list(range(13))
        assert [t.name for t in body.outputs[-2:]] == ["x_11:0", "sum:0"]

    def test_control_returns_that_are_not_there(self, library: FunctionLibraryDefinition) -> None:
        text = "signature { name: 'F' control_output: 'c' } "
        for body in ("", "control_ret { key: 'c' value: 'zz' }"):
            with pytest.raises(InvalidArgumentError, match="returns control from node"):
                instantiate_function(library, function(text + body))

    def test_what_graphs_refuse_bodies_refuse(self, library: FunctionLibraryDefinition) -> None:
        clash = function(
            "signature { name: 'F' input_arg { name: 'y' type: DT_FLOAT } }"
            + nodes(node("y", "NoOp"))
        )
        with pytest.raises(InvalidArgumentError, match="Node 'y' is not unique"):
            instantiate_function(library, clash)
        with pytest.raises(NotFoundError, match="Function Q is not defined"):
            instantiate_function(library, "Q")

    def test_shapes_of_arguments(self, library: FunctionLibraryDefinition) -> None:
        text = (
            "signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT } } arg_attr { key: 0 value "
            "{ attr { key: '_output_shapes' value { list { shape { dim { size: 3 } } } } } } }"
        )
        body = instantiate_function(library, function(text))
        assert body.inputs[0].shape.as_list() == [3]
