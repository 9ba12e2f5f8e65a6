"""Bodies of functions without dead nodes, identities and list converters.

The node lists are those of TensorFlow's own tests (OptimizationTest), but for dead nodes that nothing
consumes, which TensorFlow leaves where the graph was just imported.
"""

from tests.graph.function_builders import define, graph_of, library_of, shown

from opkernel.graph import (
    instantiate_function,
    remove_dead_nodes,
    remove_identity_nodes,
    remove_list_array_converter,
)

ONE = "Const[dtype=int32; value=<dtype: DT_INT32 tensor_shape {} int_val: 1>]()"


def body_of(function):
    return instantiate_function(library_of(), function)


class TestRemoveDeadNodes:
    FUNCTION = define(
        "F(x: int32, unused: int32) -> (y: int32)",
        [
            "a = Square[T=int32](x)",
            f"o = {ONE}",
            "x1 = Add[T=int32](o:output:0, o:output:0)",
            "x2 = Mul[T=int32](a:y:0, x1:z:0)",
            "x3 = Mul[T=int32](x1:z:0, x2:z:0)",
            "keep_me = RandomUniform[T=int32; dtype=float](o:output:0)",
            "y = Add[T=int32](a:y:0, o:output:0)",
        ],
        controls="x2=x2",
        y="y:z:0",
    )

    def test_what_has_no_effect_and_no_result_needs_goes(self):
        graph = body_of(self.FUNCTION).graph
        assert remove_dead_nodes(graph)
        names = [op.name for op in graph.get_operations()]
        assert sorted(names) == ["a", "keep_me", "o", "unused", "x", "y", "y_RetVal"]
        assert not remove_dead_nodes(graph)

    def test_control_outputs_stay(self):
        body = body_of(self.FUNCTION)
        assert remove_dead_nodes(body.graph, body.control_ret_nodes)
        assert {"x1", "x2"} <= {op.name for op in body.graph.get_operations()}
        assert "x3" not in [op.name for op in body.graph.get_operations()]

    def test_control_flow_stays(self):
        graph = graph_of(
            library_of(),
            "p = Placeholder[dtype=bool]()",
            "s = Switch[T=bool](p, p)",
            "n = NoOp()",
        )
        assert remove_dead_nodes(graph)
        assert [op.name for op in graph.get_operations()] == ["p", "s"]


class TestRemoveIdentityNodes:
    def test_a_chain_of_identities_goes(self):
        graph = body_of(
            define(
                "F(x: int32) -> (y: int32)",
                [
                    "a = Square[T=int32](x)",
                    f"o = {ONE}",
                    "x1 = Identity[T=int32](a:y:0)",
                    "x2 = Identity[T=int32](x1:output:0)",
                    "x3 = Identity[T=int32](x2:output:0)",
                    "keep_me = RandomUniform[T=int32; dtype=float](o:output:0) @ x3",
                    "y = Add[T=int32](a:y:0, o:output:0)",
                ],
                y="y:z:0",
            )
        ).graph
        assert remove_identity_nodes(graph)
        assert shown(graph.get_operations()) == [
            "a = Square(x)",
            "keep_me = RandomUniform(o) @ a",
            "o = Const()",
            "x = _Arg()",
            "y = Add(a, o)",
            "y_RetVal = _Retval(y)",
        ]

    def test_what_reads_a_reference_stays(self):
        graph = body_of(
            define(
                "F() -> (ret: float)",
                [
                    "v = Variable[dtype=float]()",
                    "v_read = Identity[T=float](v:ref:0)",
                    "ret = Add[T=float](v_read:output:0, v_read:output:0)",
                ],
                ret="ret:z:0",
            )
        ).graph
        assert not remove_identity_nodes(graph)

    def test_what_waits_carries_deadness_or_is_not_consumed_stays(self):
        graph = graph_of(
            library_of(),
            "p = Placeholder[dtype=bool]()",
            "s = Switch[T=bool](p, p)",
            "pivot = Identity[T=bool](s)",
            "waits = Identity[T=bool](p) @ s",
            "end = Identity[T=bool](waits) @ pivot",
            "name = Identity[T=bool](p)",
        )
        assert not remove_identity_nodes(graph)


class TestRemoveListArrayConverter:
    FUNCTION = define(
        "Test(i: float) -> (o: float)",
        [
            "zero = Const[dtype=int32; value=<dtype: DT_INT32 tensor_shape {} int_val: 0>]()",
            "s = Split[num_split=4; T=float](zero:output:0, i)",
            "a = _ArrayToList[N=4; T=float; out_types={float, float, float, float}](s:output)",
            "l = Mul[T=float](a:output:0, a:output:1)",
            "r = Mul[T=float](a:output:2, a:output:3)",
            "x = _ListToArray[N=2; T=float; Tin={float, float}](l:z, r:z)",
            "o = AddN[N=2; T=float](x:output)",
        ],
        o="o:sum:0",
    )

    def test_each_tensor_gets_an_identity(self):
        graph = body_of(self.FUNCTION).graph
        assert remove_list_array_converter(graph)
        assert shown(graph.get_operations()) == [
            "Func/a/input/_0 = Identity(s)",
            "Func/a/input/_1 = Identity(s:1)",
            "Func/a/input/_2 = Identity(s:2)",
            "Func/a/input/_3 = Identity(s:3)",
            "Func/x/input/_4 = Identity(l)",
            "Func/x/input/_5 = Identity(r)",
            "i = _Arg()",
            "l = Mul(Func/a/input/_0, Func/a/input/_1)",
            "o = AddN(Func/x/input/_4, Func/x/input/_5)",
            "o_RetVal = _Retval(o)",
            "r = Mul(Func/a/input/_2, Func/a/input/_3)",
            "s = Split(zero, i)",
            "zero = Const()",
        ]
        assert remove_identity_nodes(graph)
        assert "o = AddN(l, r)" in shown(graph.get_operations())
        assert not remove_list_array_converter(graph)

    def test_control_edges_lead_around_it(self):
        graph = body_of(
            define(
                "Test(i: float) -> (o: float)",
                [
                    f"dummy = {ONE}",
                    "x = _ListToArray[N=2; T=float; Tin={float, float}](i, i) @ dummy",
                    "o = AddN[N=2; T=float](x:output) @ x",
                ],
                o="o:sum:0",
            )
        ).graph
        assert remove_list_array_converter(graph)
        expected = [
            "Func/x/input/_0 = Identity(i) @ Func/x/input_control_node/_2",
            "Func/x/input/_1 = Identity(i) @ Func/x/input_control_node/_2",
            "Func/x/input_control_node/_2 = NoOp() @ dummy",
            "Func/x/output_control_node/_3 = NoOp() @ Func/x/input/_0, Func/x/input/_1",
            "dummy = Const()",
            "i = _Arg()",
            "o = AddN(Func/x/input/_0, Func/x/input/_1) @ Func/x/output_control_node/_3",
            "o_RetVal = _Retval(o)",
        ]
        assert shown(graph.get_operations()) == expected
        assert not remove_identity_nodes(graph)
        assert shown(graph.get_operations()) == expected
