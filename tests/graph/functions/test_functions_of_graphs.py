"""Graphs as functions: names, arguments, results, what is kept of arguments, what is refused."""

import pytest
from tests.graph.builders import REGISTRY, node, parse
from tests.graph.functions.test_functions import CALLER, LISTS, TWICE

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import (
    FunctionLibraryDefinition,
    Graph,
    GraphImporter,
    ImportOptions,
    graph_to_function_def,
    instantiate_function,
)
from opkernel.proto import AttrValue, FunctionDef, FunctionDefLibrary
from opkernel.types import float32


@pytest.fixture
def library() -> FunctionLibraryDefinition:
    return FunctionLibraryDefinition(REGISTRY, FunctionDefLibrary(function=[TWICE, LISTS, CALLER]))


def placeholder(graph, name, **attrs):
    attrs = {"dtype": float32, **attrs}
    return graph.create_op("Placeholder", attrs=attrs, name=name).outputs[0]


def body_graph(text):
    """A graph with nodes that only functions have."""
    graph = Graph(REGISTRY)
    options = ImportOptions(allow_internal_names=True, validate_nodes=False)
    importer = GraphImporter(graph, parse(text), options)
    importer.prepare()
    importer.commit()
    return graph


def ends(*indices, op="_Arg"):
    return "".join(
        node(f"a{i}", op, attrs=f"T type: DT_FLOAT; index i: {index}")
        for i, index in enumerate(indices)
    )


def test_round_trip_of_a_body(library):
    body = instantiate_function(library, "Caller")
    written = graph_to_function_def(
        body.graph,
        "Caller",
        output_names=["y"],
        control_outputs={"done": body.control_ret_nodes[0]},
    )
    expected = FunctionDef.FromString(CALLER.SerializeToString())
    expected.node_def[0].input[0] = "x"
    expected.ret["y"] = "call:y:0"
    assert written == expected


class TestNames:
    def test_results_come_first_then_arguments_then_nodes(self, graph):
        x, y = placeholder(graph, "In/X"), placeholder(graph, "in_x")
        split = graph.create_op("Split", [0, x], attrs={"num_split": 2}, name="s")
        with graph.control_dependencies([y]):
            both = graph.create_op("IdentityN", [split.outputs[1], y], name="b")
        written = graph_to_function_def(graph, "F", [x, y], [both.outputs[1], x])
        signature = written.signature
        assert [a.name for a in signature.output_arg] == ["b", "in_x"]
        assert [a.name for a in signature.input_arg] == ["in_x_0", "in_x_1"]
        assert {n.name: list(n.input) for n in written.node_def} == {
            "s/split_dim": [],
            "s": ["s/split_dim:output:0", "in_x_0"],
            "b_0": ["s:output:1", "in_x_1"],
        }
        assert dict(written.ret) == {"b": "b_0:output:1", "in_x": "in_x_0"}
        assert not signature.is_stateful
        library = FunctionLibraryDefinition(REGISTRY)
        library.add_function(written)
        assert instantiate_function(library, "F").ret_types == (float32, float32)

    @pytest.mark.parametrize(
        ("name", "expected"), [("_7Up", "up"), ("Aé.B", "a__b"), ("12", "unknown"), ("x_1", "x_1")]
    )
    def test_of_arguments_are_lower_case_and_start_with_a_letter(self, name, expected):
        graph = body_graph(
            node(name.replace("é", "-"), "_Arg", attrs="T type: DT_FLOAT; index i: 0")
        )
        written = graph_to_function_def(graph, "F")
        assert [a.name for a in written.signature.input_arg] == [expected]

    def test_of_results_are_as_they_are_given(self, graph):
        x = placeholder(graph, "x")
        written = graph_to_function_def(graph, "F", [x], [x, x], output_names=["X", "x"])
        assert [a.name for a in written.signature.output_arg] == ["X", "x"]
        assert dict(written.ret) == {"X": "x_0", "x": "x_0"}
        with pytest.raises(InvalidArgumentError, match="'X' appears more than once"):
            graph_to_function_def(graph, "F", [x], [x, x], output_names=["X", "X"])
        with pytest.raises(InvalidArgumentError, match=r"outputs \(2\).*names \(1\)"):
            graph_to_function_def(graph, "F", [x], [x, x], output_names=["X"])

    def test_a_hash_tells_functions_apart(self, graph):
        x = placeholder(graph, "x")
        y = graph.create_op("AddV2", [x, x]).outputs[0]
        names = [
            graph_to_function_def(
                graph, "F", [x], results, append_hash_to_fn_name=True
            ).signature.name
            for results in ([y], [y], [y, y])
        ]
        assert names[0] == names[1] != names[2]
        assert all(len(name) == 13 and name[:2] == "F_" and name[2:].isalnum() for name in names)


class TestBody:
    def test_may_be_some_of_the_nodes(self, graph):
        x = placeholder(graph, "x")
        y = graph.create_op("AddV2", [x, x], name="y").outputs[0]
        z = graph.create_op("AddV2", [y, y], name="z").outputs[0]
        written = graph_to_function_def(graph, "F", [y], [z], body=[z.op])
        assert [n.name for n in written.node_def] == ["z_0"]
        with pytest.raises(
            InvalidArgumentError, match=r"Input 0, 'y:0', of node 'z' in function 'F' is not avail"
        ):
            graph_to_function_def(graph, "F", [x], [z], body=[z.op])
        with pytest.raises(InvalidArgumentError, match="TF_Output y:0 is neither in the function"):
            graph_to_function_def(graph, "F", [x], [y], body=[])

    def test_an_input_may_be_in_it(self, graph):
        x = placeholder(graph, "x")
        split = graph.create_op("Split", [0, x], attrs={"num_split": 2}, name="s")
        total = graph.create_op("AddV2", list(split.outputs), name="t").outputs[0]
        written = graph_to_function_def(
            graph, "F", [x, split.outputs[0]], [total], body=[split.inputs[0].op, split, total.op]
        )
        assert list(written.node_def[-1].input) == ["s", "s_0:output:1"]

    def test_is_what_lies_between_arguments_and_results(self):
        text = ends(1, 0) + node("sum", "AddV2", "a0", "a1", attrs="T type: DT_FLOAT")
        text += node("r", "_Retval", "sum", attrs="T type: DT_FLOAT; index i: 0")
        written = graph_to_function_def(body_graph(text), "F")
        assert [a.name for a in written.signature.input_arg] == ["a1", "a0"]
        assert [n.name for n in written.node_def] == ["sum_0"]
        assert list(written.node_def[0].input) == ["a0", "a1"]
        assert dict(written.ret) == {"sum": "sum_0:z:0"}

    def test_arguments_are_numbered_one_by_one(self):
        with pytest.raises(InvalidArgumentError, match="Multiple '_Arg' nodes found with index 0"):
            graph_to_function_def(body_graph(ends(0, 0)), "F")
        with pytest.raises(InvalidArgumentError, match="Missing '_Arg' node at index 1"):
            graph_to_function_def(body_graph(ends(0, 2)), "F")

    def test_is_stateful_if_a_node_is(self, graph):
        graph.create_op("Variable", attrs={"dtype": float32})
        assert graph_to_function_def(graph, "F", [], []).signature.is_stateful


class TestSignature:
    def test_an_input_twice_is_refused(self, graph):
        x = placeholder(graph, "x")
        with pytest.raises(InvalidArgumentError, match="twice"):
            graph_to_function_def(graph, "F", [x, x], [])

    def test_shapes_and_internal_attrs_of_arguments_are_kept(self, graph):
        x = placeholder(graph, "x", shape=[3, None])
        x.op.set_attr("_user", AttrValue(s=b"me"))
        x.op.set_attr("_resource_arg_unique_id", AttrValue(i=7))
        written = graph_to_function_def(graph, "F", [x], [x])
        assert written.arg_attr[0].attr["_user"].s == b"me"
        assert "dtype" not in written.arg_attr[0].attr
        assert written.resource_arg_unique_id[0] == 7
        library = FunctionLibraryDefinition(REGISTRY)
        library.add_function(written)
        assert instantiate_function(library, "F").inputs[0].shape.as_list() == [3, None]

    def test_control_outputs_have_names(self, graph):
        x = placeholder(graph, "x")
        y = graph.create_op("AddV2", [x, x], name="y")
        controls = {"second": y, "first": y}
        written = graph_to_function_def(graph, "F", [x], [x], control_outputs=controls)
        assert list(written.signature.control_output) == ["second", "first"]
        assert dict(written.control_ret) == {"first": "y", "second": "y"}
        with pytest.raises(InvalidArgumentError, match="must be not empty"):
            graph_to_function_def(graph, "F", [x], [x], control_outputs={"": y})
        with pytest.raises(InvalidArgumentError, match="'c' is not in the function body"):
            graph_to_function_def(graph, "F", [x], [x], body=[], control_outputs={"c": y})

    def test_control_edges_come_from_the_body(self, graph):
        x = placeholder(graph, "x")
        before = graph.create_op("NoOp", name="before")
        with graph.control_dependencies([before]):
            y = graph.create_op("AddV2", [x, x], name="y")
        with pytest.raises(InvalidArgumentError, match="source of control edge before -> y is not"):
            graph_to_function_def(graph, "F", [x], y.outputs, body=[y])

    def test_attrs_and_description(self, graph):
        x = placeholder(graph, "x")
        written = graph_to_function_def(
            graph, "F", [x], [x], attrs={"_noinline": AttrValue(b=True)}, description="Gives x."
        )
        assert written.attr["_noinline"].b
        assert written.signature.description == "Gives x."

    def test_placeholders_of_nodes_become_attrs(self, graph):
        x = placeholder(graph, "x")
        y = graph.create_op("AddV2", [x, x], name="y")
        y.attr["T"].placeholder = "U"
        written = graph_to_function_def(graph, "F", [x], y.outputs, copy_placeholder_attrs=True)
        assert [(a.name, a.type) for a in written.signature.attr] == [("U", "type")]
        y.attr["_mine"].placeholder = "V"
        with pytest.raises(UnimplementedError, match=r"not in OpDef\. Attribute: _mine"):
            graph_to_function_def(graph, "F", [x], y.outputs, copy_placeholder_attrs=True)


def test_what_resources_hold_stands_in_the_signature():
    graph = Graph()
    with graph.as_default():
        attrs = {"dtype": float32, "shape": [2, 3]}
        variable = graph.create_op("VarHandleOp", [], attrs=attrs).outputs[0]
        argument = graph.create_op("Identity", [variable]).outputs[0]
        result = graph.create_op("Identity", [argument]).outputs[0]
    function = graph_to_function_def(graph, "f", [argument], [result])
    for arg in (function.signature.input_arg[0], function.signature.output_arg[0]):
        (held,) = arg.handle_data
        assert (held.dtype, [dim.size for dim in held.shape.dim]) == (float32, [2, 3])
