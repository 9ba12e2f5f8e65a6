"""Calls that are replaced by the bodies of their functions.

The node lists are those of TensorFlow's own tests (core/common_runtime/function_test.cc).
"""

import pytest
from tests.graph.function_builders import (
    ADD_AND_MUL,
    X_TIMES_16,
    X_TIMES_FOUR,
    X_TIMES_TWO,
    attr_value,
    define,
    graph_of,
    library_of,
    shown,
)

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.graph import (
    ExpandInlineFunctionsOptions,
    InlineFunctionBodyOptions,
    KeepCallerNode,
    Operation,
    OutputControlSource,
    expand_inline_functions,
    inline_function_body,
    instantiate_function,
    remove_identity_nodes,
    validate_inlining,
)
from opkernel.proto import AttrValue
from opkernel.types import DataType

FLOAT = {"T": AttrValue(type=DataType.DT_FLOAT)}
ON_DATA_OUTPUTS = InlineFunctionBodyOptions()


@pytest.fixture
def library():
    return library_of(X_TIMES_TWO, X_TIMES_FOUR, X_TIMES_16, ADD_AND_MUL)


def expanded(graph, native=ON_DATA_OUTPUTS):
    options = ExpandInlineFunctionsOptions(native_options=native)
    assert expand_inline_functions(graph, options)
    return shown(graph.get_operations())


class TestExpandInlineFunctions:
    def test_one_level_of_calls_at_a_time(self, library):
        graph = instantiate_function(library, "XTimes16", FLOAT).graph
        assert expanded(graph) == [
            "Func/x4/input/_0 = Identity(x)",
            "Func/x4/output/_1 = Identity(x4/y)",
            "Func/y/input/_2 = Identity(Func/x4/output/_1)",
            "Func/y/output/_3 = Identity(y/y)",
            "x = _Arg()",
            "x4/x2 = XTimesTwo(Func/x4/input/_0)",
            "x4/y = XTimesTwo(x4/x2)",
            "y/x2 = XTimesTwo(Func/y/input/_2)",
            "y/y = XTimesTwo(y/x2)",
            "y_RetVal = _Retval(Func/y/output/_3)",
        ]
        lines = expanded(graph)
        assert "Func/x4/x2/input/_4 = Identity(Func/x4/input/_0)" in lines
        assert "Func/x4/y/input/_6 = Identity(Func/x4/x2/output/_5)" in lines
        assert "Func/x4/output/_1 = Identity(Func/x4/y/output/_7)" in lines
        assert "Func/y/y/output/_11 = Identity(y/y/y)" in lines
        assert "y/y/scale = Cast(y/y/two)" in lines
        assert len(lines) == 26
        assert not expand_inline_functions(graph)
        assert remove_identity_nodes(graph)
        assert shown(graph.get_operations()) == [
            "x = _Arg()",
            *(
                line
                for call, x in (("x4/x2", "x"), ("x4/y", "x4/x2/y"), ("y/x2", "x4/y/y"),
                                ("y/y", "y/x2/y"))
                for line in (
                    f"{call}/scale = Cast({call}/two)",
                    f"{call}/two = Const()",
                    f"{call}/y = Mul({x}, {call}/scale)",
                )
            ),
            "y_RetVal = _Retval(y/y/y)",
        ]  # fmt: skip

    def test_operations_stand_after_what_they_take(self, library):
        graph = instantiate_function(library, "XTimes16", FLOAT).graph
        expanded(graph)
        expanded(graph)
        seen: set[Operation] = set()
        for op in graph.get_operations():
            assert seen.issuperset(tensor.op for tensor in op.inputs)
            seen.add(op)

    def test_control_inputs_of_a_call_come_before_all_of_the_body(self, library):
        graph = graph_of(
            library,
            "a = _Arg[T=float; index=0]()",
            "c = NoOp()",
            "b = XTimesFour[T=float](a) @ c",
            "b_RetVal = _Retval[T=float; index=0](b)",
        )
        assert expanded(graph) == [
            "Func/b/input/_1 = Identity(a) @ Func/b/input_control_node/_0",
            "Func/b/input_control_node/_0 = NoOp() @ c",
            "Func/b/output/_2 = Identity(b/y)",
            "a = _Arg()",
            "b/x2 = XTimesTwo(Func/b/input/_1) @ Func/b/input_control_node/_0",
            "b/y = XTimesTwo(b/x2) @ Func/b/input_control_node/_0",
            "b_RetVal = _Retval(Func/b/output/_2)",
            "c = NoOp()",
        ]
        lines = expanded(graph)
        assert lines[:3] == [
            "Func/b/input/_1 = Identity(a) @ Func/b/input_control_node/_0",
            "Func/b/input_control_node/_0 = NoOp() @ c",
            "Func/b/output/_2 = Identity(Func/b/y/output/_8)",
        ]
        for line in (
            "Func/b/x2/input_control_node/_3 = NoOp() @ Func/b/input_control_node/_0",
            "Func/b/x2/input/_4 = Identity(Func/b/input/_1) @ Func/b/x2/input_control_node/_3",
            "b/x2/two = Const() @ Func/b/x2/input_control_node/_3",
            "Func/b/y/input_control_node/_6 = NoOp() @ Func/b/input_control_node/_0",
            "b/y/two = Const() @ Func/b/y/input_control_node/_6",
            "b/y/scale = Cast(b/y/two)",
        ):
            assert line in lines

    @pytest.mark.parametrize(
        ("source", "waits_for"),
        [
            (OutputControlSource.DATA_OUTPUTS, "Func/b/output/_1"),
            (OutputControlSource.CONTROL_OUTPUTS, "b/add"),
        ],
    )
    def test_what_waited_for_a_call_waits_for_its_outputs(self, library, source, waits_for):
        graph = graph_of(
            library,
            "a = _Arg[T=float; index=0]()",
            "b = AddAndMul(a)",
            "c = NoOp() @ b",
            "ret = _Retval[T=float; index=0](b) @ c",
        )
        assert expanded(graph, InlineFunctionBodyOptions(output_control_src=source)) == [
            "Func/b/input/_0 = Identity(a)",
            "Func/b/output/_1 = Identity(b/ret)",
            f"Func/b/output_control_node/_2 = NoOp() @ {waits_for}",
            "a = _Arg()",
            "b/add = Add(Func/b/input/_0, Func/b/input/_0)",
            "b/ret = Mul(Func/b/input/_0, Func/b/input/_0)",
            "c = NoOp() @ Func/b/output_control_node/_2",
            "ret = _Retval(Func/b/output/_1) @ c",
        ]

    @pytest.mark.parametrize(
        ("keep", "caller"),
        [
            (
                KeepCallerNode.FETCHABLE,
                "b = IdentityN(Func/b/output/_1) @ Func/b/output_control_node/_2",
            ),
            (KeepCallerNode.TARGETABLE, "b = NoOp() @ Func/b/output_control_node/_2"),
        ],
    )
    def test_the_name_of_a_call_may_stay(self, library, keep, caller):
        graph = graph_of(library, "a = _Arg[T=float; index=0]()", "b = AddAndMul(a)")
        call = graph.get_operation_by_name("b")
        options = InlineFunctionBodyOptions(
            keep_caller_node=keep, output_control_src=OutputControlSource.CONTROL_OUTPUTS
        )
        assert expanded(graph, options) == [
            "Func/b/input/_0 = Identity(a)",
            "Func/b/output/_1 = Identity(b/ret)",
            "Func/b/output_control_node/_2 = NoOp() @ b/add",
            "a = _Arg()",
            caller,
            "b/add = Add(Func/b/input/_0, Func/b/input/_0)",
            "b/ret = Mul(Func/b/input/_0, Func/b/input/_0)",
        ]
        assert graph.get_operation_by_name("b") is call

    def test_calls_by_attr_are_inlined_and_wait_for_control_outputs(self, library):
        graph = graph_of(
            library,
            "a = _Arg[T=float; index=0]()",
            "b = StatefulPartitionedCall[Tin={float}; Tout={float}; f=AddAndMul](a)",
            "c = NoOp() @ b",
        )
        assert "Func/b/output_control_node/_2 = NoOp() @ b/add" in expanded(graph)

    def test_calls_that_depend_on_each_other_are_inlined_together(self, library):
        graph = graph_of(
            library,
            "a = _Arg[T=float; index=0]()",
            "b = AddAndMul(a)",
            "c = AddAndMul(b) @ b",
        )
        lines = expanded(graph)
        assert "Func/c/input_control_node/_3 = NoOp() @ Func/b/output_control_node/_2" in lines
        assert (
            "Func/c/input/_4 = Identity(Func/b/output/_1) @ Func/c/input_control_node/_3" in lines
        )

    def test_what_may_not_be_inlined_stays(self):
        kept = define("Kept() -> ()", ["n = NoOp()"])
        kept.attr["_noinline"].b = True
        broken = define("Broken() -> ()", ["n = Nope()"])
        graph = graph_of(library_of(kept, broken), "k = Kept()", "b = Broken()")
        assert not expand_inline_functions(graph)
        assert shown(graph.get_operations()) == ["b = Broken()", "k = Kept()"]

    def test_recursion_is_unrolled_once(self):
        again = define("Again() -> ()", ["n = Again()"])
        graph = graph_of(library_of(again), "a = Again()")
        assert expanded(graph) == ["a/n = Again()"]


class TestBody:
    def test_loops_colocation_and_origin_follow_the_new_names(self):
        function = define(
            "F(x: float) -> (y: float)",
            ["e = Enter[T=float; frame_name='loop'](x)", "y = Exit[T=float](e:output:0)",
             "z = NoOp() @ x"],
            y="y:output:0",
        )  # fmt: skip
        groups = function.node_def[1].attr["_class"].list
        groups.s.extend([b"loc:@e", b"loc:@x", b"loc:@far", b"other"])
        function.node_def[2].device = "/cpu:0"
        graph = graph_of(library_of(function), "x = _Arg[T=float; index=0]()", "call = F(x)")
        graph.get_operation_by_name("x").set_device("/cpu:1")
        lines = expanded(graph)
        assert "call/z = NoOp() @ Func/call/input/_0" in lines
        enter, leave, last, first = (
            graph.get_operation_by_name(name).node_def
            for name in ("call/e", "call/y", "call/z", "Func/call/input/_0")
        )
        assert enter.attr["frame_name"].s == b"call/loop"
        assert list(leave.attr["_class"].list.s) == [
            b"loc:@call/e", b"loc:@Func/call/input/_0", b"loc:@far", b"other",
        ]  # fmt: skip
        assert (last.device, first.device) == ("/cpu:0", "/cpu:1")
        info = last.experimental_debug_info
        assert [*info.original_node_names, *info.original_func_names] == ["z", "F"]

    def test_names_that_are_taken_become_unique(self, library):
        graph = graph_of(
            library,
            "a = _Arg[T=float; index=0]()",
            "b/add = NoOp()",
            "Func/b/input/_0 = NoOp()",
            "b = AddAndMul(a)",
        )
        lines = expanded(graph)
        assert "b/add_1 = Add(Func/b/input/_1, Func/b/input/_1)" in lines

    @pytest.mark.parametrize(
        ("function", "options", "message"),
        [
            (define("F() -> ()"), {}, "inputs do not match function arguments: inputs=1 arg_types=0"),
            (define("F(i: float) -> ()"), {}, "do not match function returns: outputs=1 ret_types=0"),
            (define("F(i: int32) -> (o: int32)", o="i"), {},
             "input type doesn't match function argument type: float != int32 @ index=0"),
            (define("F(i: float) -> (o: int32)",
                    ["s = Shape[T=float; out_type=int32](i)"], o="s:output:0"), {},
             "output type doesn't match function return type: float != int32 @ index=0"),
            (ADD_AND_MUL, {"disable_inlining": True}, "explicitly disabled"),
        ],
    )  # fmt: skip
    def test_bodies_that_do_not_fit_are_refused(self, library, function, options, message):
        graph = graph_of(library, "a = _Arg[T=float; index=0]()", "b = AddAndMul(a)")
        call, before = graph.get_operation_by_name("b"), shown(graph.get_operations())
        body = instantiate_function(library, function)
        options = InlineFunctionBodyOptions(**options)
        with pytest.raises(InvalidArgumentError, match=message):
            validate_inlining(call, body, options)
        with pytest.raises(InternalError, match=f"^Inlining mismatch: .*{message}"):
            inline_function_body(graph, call, body, options)
        assert shown(graph.get_operations()) == before

    @pytest.mark.parametrize(
        ("attr", "value", "message", "allowing"),
        [
            ("_noinline", "true", "marked with '_noinline'", InlineFunctionBodyOptions(ignore_noinline=True)),
            ("api_implements", "'api'", "implementation selection group function AddAndMul",
             InlineFunctionBodyOptions(inline_impl_selection_group_functions=True)),
        ],
    )  # fmt: skip
    def test_attrs_of_functions_refuse_unless_options_allow(self, attr, value, message, allowing):
        function = define("AddAndMul(i: float) -> (o: float)", o="i")
        function.attr[attr].CopyFrom(attr_value(value))
        library = library_of(function)
        graph = graph_of(library, "a = _Arg[T=float; index=0]()", "b = AddAndMul(a)")
        call, body = graph.get_operation_by_name("b"), instantiate_function(library, "AddAndMul")
        with pytest.raises(InvalidArgumentError, match=message):
            validate_inlining(call, body, InlineFunctionBodyOptions())
        inline_function_body(graph, call, body, allowing)
        assert "Func/b/output/_1 = Identity(Func/b/input/_0)" in shown(graph.get_operations())
