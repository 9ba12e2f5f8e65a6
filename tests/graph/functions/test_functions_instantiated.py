"""What FunctionDefs become, and how broken ones are refused.

After TensorFlow's core/framework/function_test.cc (TFunc, InstantiateErrors, FunctionLibraryDefinitionTest).
"""

import pytest
from tests.graph.function_builders import X_TIMES_TWO, attr_value, define, library_of

from opkernel.errors import InvalidArgumentError, NotFoundError, OpError
from opkernel.graph import (
    FunctionLibraryDefinition,
    instantiate_function,
    instantiate_nodes,
    print_instantiated,
)
from opkernel.opdef import OpDefBuilder, OpRegistry, global_op_registry
from opkernel.proto import AttrValue, FunctionDefLibrary, GradientDef


def make_registry() -> OpRegistry:
    registry = OpRegistry()
    for builder in (
        OpDefBuilder("One").output("y: T").attr("T: {float, double, int32, int64}"),
        OpDefBuilder("HasDefaultType").output("out: T").attr("T: {float, int32} = DT_FLOAT"),
        OpDefBuilder("Multi").output("y: N * T").output("z: T").attr("T: type").attr("N: int"),
    ):
        registry.register(builder.finalize())
    for name in ("AddV2", "AddN", "Mul", "NoOp", "Identity", "IdentityN", "_ListToArray"):
        registry.register(global_op_registry().look_up(name))
    return registry


REGISTRY = make_registry()
FLOAT = {"T": attr_value("float")}
SQUARE = define("Square(x: T) -> (y: T)", ["y = Mul[T=$T](x, x)"], "T: type", y="y:z:0")


def text_of(function, attrs=None, *others):
    library = FunctionLibraryDefinition(REGISTRY)
    for other in others:
        library.add_function(other)
    result = instantiate_nodes(function, attrs or {}, library.look_up_op_def)
    return print_instantiated(result.nodes)


class TestBecomes:
    def test_square_plus_one(self):
        function = define(
            "SquarePlusOne(x: T) -> (y: T)",
            ["a = Square[T=$T](x)", "o = One[T=$T]()", "y = AddV2[T=$T](a:y, o:y)"],
            "T: type",
            y="y:z:0",
        )
        assert text_of(function, FLOAT, SQUARE) == (
            "\n(x:float) -> (y:float) {\n  a = Square[T=float](x)\n  o = One[T=float]()\n"
            "  y = AddV2[T=float](a, o)\n}\n"
        )

    def test_control_inputs_may_be_arguments_and_nodes(self):
        function = define(
            "F(x: float) -> ()",
            ["a = One[T=float]() @ x", "u = NoOp() @ a", "b = One[T=float]() @ u"],
        )
        assert text_of(function) == (
            "\n(x:float) -> () {\n  a = One[T=float]() @ x\n  u = NoOp() @ a\n"
            "  b = One[T=float]() @ u\n}\n"
        )

    def test_control_returns_keep_their_order(self):
        function = define("F() -> ()", ["a = NoOp()", "b = NoOp()"], controls="z=b; a=a")
        body = instantiate_function(library_of(), function)
        assert [op.name for op in body.control_ret_nodes] == ["b", "a"]

    def test_an_attr_that_is_not_set_has_the_default_of_the_op(self):
        function = define("F() -> (y: float)", ["a = HasDefaultType()"], y="a:out:0")
        assert "a = HasDefaultType[T=float]()" in text_of(function)

    def test_lists_go_into_functions_that_take_lists(self):
        map_x = define(
            "MapX(x: N * T) -> (y: N * T)", ["m = AddN[N=$N; T=$T](x)"], "T: type; N: int", y="x"
        )
        function = define(
            "AddSquared(x: N * T) -> (y: T)",
            ["a = MapX[N=$N; T=$T](x)", "y = AddN[N=$N; T=$T](a:y)"],
            "N: int; T: type",
            y="y:sum",
        )
        assert text_of(function, {"N": attr_value("3"), **FLOAT}, map_x) == (
            "\n(x_0:float, x_1:float, x_2:float) -> (y:float) {\n"
            "  a = MapX[N=3, T=float](x_0, x_1, x_2)\n  y = AddN[N=3, T=float](a, a:1, a:2)\n}\n"
        )

    def test_a_result_may_be_a_list_of_types(self):
        function = define(
            "F(i: float) -> (o: list(L))",
            ["zero = One[T=int32]()", "a = IdentityN[T={float, int32}](i, zero:y)"],
            "L: list(type)",
            o="a:output",
        )
        text = text_of(function, {"L": attr_value("{float, int32}")})
        assert text.startswith("\n(i:float) -> (a:float, a:1:int32) {")

    def test_converters_of_lists_stand_between_arrays_and_lists(self):
        function = define(
            "F(i: float) -> (o: float)",
            [
                "x = _ListToArray[N=2; T=float; Tin={float, float}](i, i)",
                "o = AddN[N=2; T=float](x:output)",
            ],
            o="o:sum",
        )
        assert "  o = AddN[N=2, T=float](x, x:1)\n" in text_of(function)

    def test_outputs_of_several_arguments_are_counted_through(self):
        function = define(
            "F() -> (y: float, z: float)",
            ["m = Multi[N=2; T=float]()", "s = AddN[N=2; T=float](m:y)"],
            y="s:sum:0",
            z="m:z:0",
        )
        text = text_of(function)
        assert "-> (s:float, m:2:float)" in text
        assert "s = AddN[N=2, T=float](m, m:1)" in text

    def test_where_nodes_come_from_is_kept(self):
        function = define("F() -> ()", ["n = NoOp()"])
        function.node_def[0].experimental_debug_info.original_node_names.append("original")
        (op,) = instantiate_function(library_of(), function).graph.get_operations()
        assert list(op.node_def.experimental_debug_info.original_node_names) == ["original"]

    def test_internal_attrs_of_arguments_and_their_devices_are_kept(self):
        function = define("F(r: resource) -> ()")
        attrs = function.arg_attr[0].attr
        attrs["_composite_device"].s = b"/d"
        function.resource_arg_unique_id[0] = 3
        (op,) = instantiate_function(library_of(), function).arg_nodes
        assert op.get_attr("_composite_device") == b"/d"
        assert op.get_attr("_resource_arg_unique_id") == 3


def function_of(*lines, inputs="x: float, y: float", outputs="", attrs="", **ret):
    return define(f"F({inputs}) -> ({outputs})", lines, attrs, **ret)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (function_of(inputs="x: T", attrs="T: type"), NotFoundError, "Attr T is not found from "),
        (function_of("a = One[T=$U]()"), InvalidArgumentError, "Failed to bind all placeholders"),
        (function_of(inputs="x: float, x: float"), InvalidArgumentError, "Duplicated arg name"),
        (function_of("a = NoOp()", "a = NoOp()"), InvalidArgumentError, "Duplicated ret name"),
        (function_of("a = AddV2[T=float](x, z)"), InvalidArgumentError, "input z is not found"),
        (function_of("a = AddV2[T=int32](x, y)"), InvalidArgumentError,
         r"input x\[0\] expected type int32 != float, the type of x\[0\]"),
        (function_of("a = AddV2[T=float](x, y) @ x, z"), InvalidArgumentError,
         r"input\[3\] == '\^z', is not found\."),
        (function_of(outputs="y: float"), InvalidArgumentError, r"Return y missing\."),
        (function_of(outputs="o: float", o="z"), InvalidArgumentError,
         r"Return o -> z is not found\."),
        (function_of(outputs="o: float", z="x"), InvalidArgumentError, r"Return o missing\."),
        (function_of(outputs="o: double", o="x"), InvalidArgumentError,
         r"Invalid ret types o : double vs\. float"),
        (function_of(outputs="o: list(out_types)", o="x"), NotFoundError,
         "type list attr not found: out_types"),
        (function_of("a = IdentityN[T={float, float}](x, y)", outputs="o: float", o="a:output"),
         InvalidArgumentError, r"Invalid ret types o : float vs\. float, float"),
        (function_of("a = IdentityN[T={float, float}](x, z)"), InvalidArgumentError,
         "input z is not found"),
        (function_of("a = AddV2[T=float](x, y, x)"), InvalidArgumentError,
         r"Expected input\[2\] == 'x' to be a control input\."),
        (function_of("a = AddN[N=3; T=float](x, y)"), InvalidArgumentError,
         "Attempt to access beyond input size: 2 >= 2"),
        (function_of("m = Multi[N=2; T=float]()", "a = AddN[N=2; T=float](m:y, y)"),
         InvalidArgumentError, r"Expected input\[1\] == 'y' to be a control input\."),
        (function_of("m = Multi[N=2; T=float]()", "a = AddN[N=2; T=float](x, y, m:y)"),
         InvalidArgumentError, r"Expected input\[2\] == 'm:y' to be a control input\."),
        (function_of("m = Multi[N=2; T=float]()", "a = AddN[N=2; T=int32](m:y)"),
         InvalidArgumentError, r"input inputs\[0\] expected type int32 != float, the type of m:y"),
    ],
)  # fmt: skip
def test_broken_functions_are_refused(function, error, message):
    with pytest.raises(error, match=message):
        text_of(function)


def test_a_value_of_an_attr_is_no_placeholder():
    with pytest.raises(InvalidArgumentError, match="unexpected type 'placeholder'"):
        text_of(SQUARE, {"T": AttrValue(placeholder="x")})


class TestLibrary:
    def test_a_merge_that_fails_changes_nothing(self):
        library = library_of(X_TIMES_TWO)
        library.add_gradient("XTimesTwo", "G")
        new = define("New() -> ()")
        for conflict in (
            FunctionDefLibrary(function=[new, define("XTimesTwo() -> ()")]),
            FunctionDefLibrary(
                function=[new], gradient=[GradientDef(function_name="XTimesTwo", gradient_func="H")]
            ),
        ):
            with pytest.raises(InvalidArgumentError):
                library.add_library(conflict)
            assert list(library) == ["XTimesTwo"]
            assert library.find_gradient("XTimesTwo") == "G"

    def test_a_library_with_the_name_of_an_op_is_refused(self):
        library = FunctionDefLibrary(function=[define("NoOp() -> ()")])
        with pytest.raises(OpError, match="'NoOp' because an op with the same name"):
            FunctionLibraryDefinition(library=library)

    def test_may_be_cleared(self):
        library = library_of(X_TIMES_TWO)
        library.clear()
        assert len(library) == 0
        library.add_function(define("XTimesTwo() -> ()"))
        assert library.look_up("XTimesTwo").op_def == library["XTimesTwo"].signature

    def test_reaches_what_attrs_of_nodes_name(self):
        names = ("Callee", "InAttr", "InList", "Gradient", "Unused")
        functions = [define(f"{name}() -> ()") for name in names]
        caller = define("Caller() -> ()", ["c = Callee()", "n = NoOp[_f=InAttr]()"])
        caller.node_def[1].attr["_fs"].list.func.add(name="InList")
        library = library_of(*functions, caller)
        library.add_gradient("InAttr", "Gradient")
        reached = library.reachable_definitions(caller.node_def)
        assert sorted(reached) == ["Callee", "Gradient", "InAttr", "InList"]
