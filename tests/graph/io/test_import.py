"""import_graph_def: what is accepted, what becomes of it, and what is refused and how."""

import gc
import sys

import pytest
from tests.graph.builders import BASE_TEXT, REGISTRY, add, colocated, const, identity, node, parse

from opkernel import Session
from opkernel.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnimplementedError,
)
from opkernel.graph import Graph, GraphImporter, ImportOptions, import_graph_def
from opkernel.proto import GraphDef, OpDef, OpList, VersionDef
from opkernel.types import DataType

T = "T type: DT_FLOAT"
BASE = BASE_TEXT
OF_FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
LOOP = (
    const("c")
    + node("e", "Enter", "c", attrs=f"{T}; frame_name s: 'f'")
    + node("m", "Merge", "e", "nx", attrs=f"{T}; N i: 2")
    + identity("body", "m")
    + node("nx", "NextIteration", "body", attrs=T)
)


def load(text: str, graph: Graph | None = None, **options) -> Graph:
    graph = graph or Graph(REGISTRY)
    import_graph_def(parse(text), graph=graph, name=options.pop("name", ""), **options)
    return graph


def wiring(graph: Graph) -> dict[str, list[str]]:
    return {n.name: list(n.input) for n in graph.as_graph_def().node}


class TestNodes:
    def test_inputs_are_written_as_tensorflow_writes_them(self) -> None:
        graph = load(BASE)
        assert wiring(graph) == {
            "a": [], "b": [], "s": ["a", "b"], "i": ["s", "^a", "^b"], "n": ["^i"],
        }  # fmt: skip
        i = graph.get_operation_by_name("i")
        assert [op.name for op in i.control_inputs] == ["b", "a"]
        assert [t.name for t in i.inputs] == ["s:0"]
        assert i.traceback is None

    def test_nodes_may_stand_in_any_order(self) -> None:
        graph = load(add("s", "a", "b") + identity("i", "s") + const("b") + const("a"))
        assert list(wiring(graph)) == ["b", "a", "s", "i"]
        assert [op.name for op in graph.get_tensor_by_name("s:0").consumers()] == ["i"]

    def test_defaults_of_the_op_are_filled_in(self) -> None:
        graph = load(const("a") + node("m", "MatMul", "a", "a", attrs=T))
        assert graph.get_operation_by_name("m").get_attr("transpose_a") is False
        assert "transpose_b" in graph.as_graph_def().node[1].attr

    def test_the_message_of_the_caller_is_not_changed(self) -> None:
        message = parse(const("a") + node("m", "MatMul", "a:0", "a", attrs=T))
        before = message.SerializeToString(deterministic=True)
        import_graph_def(message, graph=Graph(REGISTRY))
        assert message.SerializeToString(deterministic=True) == before

    def test_attrs_that_the_op_lacks_are_kept(self) -> None:
        graph = load(node("n", "NoOp", attrs="_zz i: 1; other s: 'x'"))
        assert graph.get_operation_by_name("n").get_attr("_zz") == 1
        assert graph.get_operation_by_name("n").get_attr("other") == b"x"

    def test_references_pass_as_values(self) -> None:
        graph = load(node("v", "Variable", attrs="dtype type: DT_FLOAT") + identity("i", "v"))
        assert graph.get_tensor_by_name("v:0").dtype == DataType.DT_FLOAT_REF

    def test_one_signature_stands_for_all_equal_nodes(self) -> None:
        graph = load(const("a") + identity("i", "a") + identity("j", "i"))
        i, j = (graph.get_operation_by_name(name) for name in "ij")
        assert i.signature is j.signature

    def test_a_deep_graph_does_not_recurse(self) -> None:
        depth = 5 * sys.getrecursionlimit()
        text = const("n0") + "".join(identity(f"n{k + 1}", f"n{k}") for k in range(depth))
        graph = load(text)
        assert graph.get_tensor_by_name(f"n{depth}:0").shape.as_list() == []

    def test_the_collector_is_left_as_it_was(self) -> None:
        load(BASE)
        assert gc.isenabled()
        with pytest.raises(InvalidArgumentError):
            load(const("a") + const("a"))
        assert gc.isenabled()


class TestNamesThatAreTaken:
    @pytest.fixture
    def taken(self) -> Graph:
        graph = Graph(REGISTRY)
        for name in ("a", "s/b", "c_1"):
            graph.create_op("NoOp", name=name)
        return graph

    def names(self, graph: Graph, *names: str, uniquify: bool = True) -> list[str]:
        options = ImportOptions(uniquify_names=uniquify)
        importer = GraphImporter(graph, parse("".join(node(n, "NoOp") for n in names)), options)
        importer.prepare()
        importer.commit()
        return [op.name for op in graph.get_operations()][3:]

    def test_get_a_number(self, taken: Graph) -> None:
        assert self.names(taken, "a", "b", "s", "c", "s/b") == ["a_1", "b", "s_1", "c", "s/b_1"]

    def test_get_no_number_that_the_import_brings_itself(self, taken: Graph) -> None:
        assert self.names(taken, "a", "a_1", "a_2") == ["a_3", "a_1", "a_2"]

    def test_are_refused_on_demand(self, taken: Graph) -> None:
        assert self.names(taken, "b", "s", uniquify=False) == ["b", "s"]
        with pytest.raises(InvalidArgumentError, match="Node name 'a' already exists in the Graph"):
            self.names(taken, "new", "a", uniquify=False)


class TestVersionsOfProducers:
    @pytest.mark.parametrize(("ahead", "is_told"), [(0, False), (21, False), (22, True)])
    def test_an_error_tells_of_producers_that_are_too_far_ahead(
        self, ahead: int, is_told: bool
    ) -> None:
        """TensorFlow promises to read graphs of three weeks ahead."""
        text = f"versions {{ producer: {2474 + ahead} }}" + node("n", "Nope")
        with pytest.raises(NotFoundError, match="'Nope'") as raised:
            load(text)
        assert ("too far ahead of version 2474" in str(raised.value)) is is_told

    def test_a_graph_has_the_versions_that_suit_all_its_parts(self) -> None:
        graph = load("versions { producer: 1000 min_consumer: 5 bad_consumers: [9, 7] }")
        versions = graph.graph_def_versions
        assert (versions.producer, versions.min_consumer) == (1000, 5)
        load("versions { producer: 2000 min_consumer: 3 bad_consumers: 8 }", graph)
        versions = graph.graph_def_versions
        assert (versions.producer, versions.min_consumer) == (1000, 5)
        assert list(versions.bad_consumers) == [7, 8, 9]

    def test_the_limits_themselves_are_taken(self) -> None:
        load("versions { producer: 0 min_consumer: 2474 bad_consumers: [2473, 2475] }")


class TestWhatIsNoGraph:
    def test_long_cycles_are_named_in_part(self) -> None:
        for count, names in ((8, "'n0', 'n1', .*'n7'"), (9, "'n0', .*'n7', [.]{3}")):
            text = "".join(node(f"n{i}", "NoOp", f"^n{(i - 1) % count}") for i in range(count))
            with pytest.raises(InvalidArgumentError, match=rf"{count} nodes .* \({names}\)"):
                load(text)

    def test_a_file_name_is_none(self) -> None:
        with pytest.raises(
            TypeError, match=r"must be a GraphDef, not 'model\.pb'; opkernel\.load_graph"
        ):
            import_graph_def("model.pb", graph=Graph(REGISTRY))  # type: ignore[arg-type]  # the mistake

    def test_prefixes_that_lead_to_no_names(self) -> None:
        for prefix in ("a b", "_a", "/a"):
            with pytest.raises(InvalidArgumentError, match=r"not a valid|invalid node names"):
                import_graph_def(parse(const("a")), graph=Graph(REGISTRY), name=prefix)


class TestLoops:
    def test_a_loop_leads_back_through_next_iteration_and_merge(self) -> None:
        graph = load(LOOP)
        assert list(wiring(graph)) == ["c", "e", "m", "body", "nx"]
        merge = graph.get_operation_by_name("m")
        assert [t.name for t in merge.inputs] == ["e:0", "nx:0"]
        assert graph.get_tensor_by_name("nx:0").consumers() == [merge]

    def test_shapes_of_a_loop_do_not_depend_on_where_one_asks_first(self) -> None:
        shapes = [
            [load(LOOP).get_tensor_by_name(f"{name}:0").shape for name in names]
            for names in (["c", "e", "m", "body", "nx"], ["nx", "body", "m", "e", "c"])
        ]
        assert shapes[0] == shapes[1][::-1]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (identity("i", "j") + identity("j", "i"), r"2 nodes in a cycle .*'i', 'j'"),
            (identity("i", "i"), "1 nodes in a cycle"),
            (node("p", "NoOp", "^q") + node("q", "NoOp", "^p"), "2 nodes in a cycle"),
            (const("c") + identity("x", "nx") + node("nx", "NextIteration", "x", attrs=T),
             "2 nodes in a cycle"),
            (LOOP.replace("input: 'e' input: 'nx'", "input: 'e' input: 'e' input: '^nx'"),
             "3 nodes in a cycle"),
            (LOOP.replace("input: 'nx'", "input: 'nx:3'"), "'m': Connecting to invalid output 3"),
            (LOOP.replace("input: 'body' attr { key: 'T' value { type: DT_FLOAT",
                          "input: 'two:1' attr { key: 'T' value { type: DT_INT32")
             + node("two", "Two"),
             "Input 1 of node m was passed int32 from nx:0 incompatible with expected float"),
        ],
    )  # fmt: skip
    def test_other_cycles_and_bad_back_edges_are_refused(self, text: str, message: str) -> None:
        with pytest.raises(InvalidArgumentError, match=message):
            load(text)


MALFORMED = {
    "duplicate name": (const("a") + const("a"), "Node 'a' is not unique"),
    "no name": (node("", "NoOp"), "Node '': Node name contains invalid characters"),
    "internal name": (const("_a"), "Node '_a': Node name contains invalid characters"),
    "colon in name": (const("a:b"), "Node 'a:b': Node name contains invalid characters"),
    "no op": ("node { name: 'a' }", "Node 'a' does not specify an operation"),
    "missing input": (identity("i", "a"), "Node 'i': Unknown input node 'a'"),
    "missing control input": (node("n", "NoOp", "^q"), r"Node 'n': Unknown input node '\^q'"),
    "empty input": (identity("i", ""), "Node 'i': Unknown input node ''"),
    "caret alone": (node("n", "NoOp", "^"), r"Unknown input node '\^'"),
    "negative index": (const("a") + identity("i", "a:-1"), "Unknown input node 'a:-1'"),
    "index of control": (const("a") + node("n", "NoOp", "^a:0"), r"Unknown input node '\^a:0'"),
    "index too high": (const("a") + identity("i", "a:1"),
        "Node 'i': Connecting to invalid output 1 of source node a which has 1 outputs"),
    "index absurd": (const("a") + identity("i", "a:" + "9" * 5000), "invalid output 9999999999"),
    "no outputs": (node("n", "NoOp") + identity("i", "n"), "which has 0 outputs"),
    "control before data": (const("a") + identity("i", "^a", "a"),
        "Node 'i': Control dependencies must come after regular dependencies"),
    "too few inputs": (const("a") + add("s", "a"), "'float, float' do not match 1 inputs"),
    "too many inputs": (const("a") + add("s", "a", "a", "a"), "do not match 3 inputs"),
    "wrong type": (node("t", "Two") + identity("i", "t:1"),
        "Input 0 of node i was passed int32 from t:1 incompatible with expected float"),
    "value for a reference": (const("a") + node("s", "Assign", "a", "a", attrs=T),
        "incompatible with expected float_ref"),
    "missing attr": (node("p", "Placeholder"), "NodeDef missing attr 'dtype'"),
    "attr of wrong kind": (node("p", "Placeholder", attrs="dtype i: 1"),
        "AttrValue had value with type 'int' when 'type' expected"),
    "attr not allowed": (node("t", "Two") + node("s", "AddV2", "t", "t", attrs="T type: DT_BOOL"),
        "'T' of bool is not in the list of allowed values"),
    "attr below minimum": (node("s", "AddN", attrs=f"{T}; N i: 0"), "0 must be at least minimum 1"),
    "type that is none": (node("p", "Placeholder", attrs="dtype type: DT_INVALID"), "dtype"),
    "length absurd": (node("s", "Split", "a", "b", attrs=f"{T}; num_split i: 1099511627776")
        + const("a") + const("b"), "too big: 1099511627776"),
    "negative length": (const("a") + node("s", "AddN", attrs=f"{T}; N i: -5"), "-5"),
    "colocated with nothing": (const("a", colocated("zz")),
        "Node 'a' expects to be colocated with unknown node 'zz'"),
    "producer too old": ("versions { producer: -1 }",
        "GraphDef producer version -1 below min producer 0 .* Please regenerate your graph"),
    "consumer too new": ("versions { min_consumer: 999999 }",
        "GraphDef min consumer version 999999 above current version 2474"),
    "bad consumer": ("versions { bad_consumers: [1, 2474] }",
        "GraphDef disallows consumer version 2474"),
    "two functions of one name": (
        "library { function { signature { name: 'F' } } function { signature { name: 'F' is_stateful: true } } }",
        "Cannot add function 'F' because a different function"),
    "function named as an op": ("library { function { signature { name: 'NoOp' } } }",
        "Cannot add function 'NoOp' because an op with the same name"),
    "function without outputs used": (
        "library { function { signature { name: 'F' } } }" + node("f", "F") + identity("i", "f"),
        "which has 0 outputs"),
    "function with an impossible signature": (
        "library { function { signature { name: 'F' input_arg { name: 'x' type_attr: 'Q' } } } }"
        + const("a") + node("f", "F", "a"), "Q"),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_graphs_are_refused_and_change_nothing(case: str) -> None:
    text, message = MALFORMED[case]
    graph = load(const("kept"))
    before = graph.as_graph_def()
    with pytest.raises(OpError, match=message):
        load(text, graph)
    assert graph.as_graph_def() == before


EMPTY_AND = 'node {{ name: "s" op: "Shape" input: "c" attr {{ key: "{}" value {{}} }} {} }}'


class TestEmptyAttrs:
    """An AttrValue without a value, as TensorFlow's importer in Python takes it."""

    def test_the_default_stands_for_it(self) -> None:
        text = const("c") + EMPTY_AND.format("out_type", OF_FLOAT)
        graph = Graph()
        import_graph_def(parse(text), name="", graph=graph)
        assert graph.as_graph_def().node[-1].attr["out_type"].type == DataType.DT_INT32

    def test_a_second_node_of_the_kind_gets_it_too(self) -> None:
        one = EMPTY_AND.format("out_type", OF_FLOAT)
        graph = Graph()
        import_graph_def(parse(const("c") + one + one.replace('"s"', '"t"')), name="", graph=graph)
        assert [n.attr["out_type"].type for n in graph.as_graph_def().node[1:]] == [3, 3]

    @pytest.mark.parametrize(
        "text", [EMPTY_AND.format("T", ""), const("d").replace("type: DT_FLOAT", "", 1)]
    )
    def test_without_a_default_it_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidArgumentError, match="AttrValue missing value"):
            import_graph_def(parse(const("c") + text), graph=Graph())

    def test_nodes_of_functions_must_have_their_values(self) -> None:
        body = EMPTY_AND.format("out_type", OF_FLOAT).replace('"c"', '"x"').replace("node", "", 1)
        function = (
            'library { function { signature { name: "F" input_arg { name: "x" type: DT_FLOAT } '
            f'output_arg {{ name: "y" type: DT_INT32 }} }} node_def {body} '
            'ret { key: "y" value: "s:output:0" } } }'
        )
        call = (
            'node { name: "f" op: "PartitionedCall" input: "c" '
            'attr { key: "f" value { func { name: "F" } } } '
            'attr { key: "Tin" value { list { type: DT_FLOAT } } } '
            'attr { key: "Tout" value { list { type: DT_INT32 } } } }'
        )
        graph = Graph()
        import_graph_def(parse(const("c") + call + function), name="", graph=graph)
        with pytest.raises(InvalidArgumentError, match="bind all placeholders"):
            Session(graph).run("f:0")


class TestUnknownOps:
    def test_are_refused(self) -> None:
        with pytest.raises(NotFoundError, match="Op type not registered 'Nope' in binary running"):
            load(node("a", "Nope"))

    def test_can_be_let_pass(self) -> None:
        text = const("c") + node("u", "Nope", "c", attrs="x i: 3") + identity("i", "u:4")
        graph = load(text, allow_unregistered=True)
        unknown = graph.get_operation_by_name("u")
        assert unknown.op_def == OpDef(name="Nope")
        assert [t.dtype for t in unknown.outputs] == [DataType.DT_INVALID] * 5
        assert unknown.get_attr("x") == 3
        assert unknown.outputs[4].shape.rank is None
        assert graph.get_tensor_by_name("i:0").dtype == DataType.DT_FLOAT
        assert load(text, allow_unregistered=True).as_graph_def() == graph.as_graph_def()

    def test_let_pass_with_an_absurd_output_are_refused(self) -> None:
        text = node("u", "Nope") + identity("i", "u:99999999999")
        with pytest.raises(InvalidArgumentError, match="99999999999"):
            load(text, allow_unregistered=True)

    def test_of_a_known_op_are_still_checked(self) -> None:
        with pytest.raises(InvalidArgumentError, match="missing attr"):
            load(node("p", "Placeholder"), allow_unregistered=True)


class TestVersions:
    def test_an_op_that_was_removed(self) -> None:
        text = node("o", "Old")
        with pytest.raises(UnimplementedError, match="Old is not available in GraphDef version 10"):
            load(text + "versions { producer: 10 }")
        with pytest.warns(DeprecationWarning, match="Op Old is deprecated"):
            load(text + "versions { producer: 8 }")

    def test_merge(self) -> None:
        graph = load("versions { producer: 21 min_consumer: 3 bad_consumers: [7, 5] }")
        load("versions { producer: 999999 min_consumer: 1 bad_consumers: [6, 7] }", graph)
        assert graph.graph_def_versions == VersionDef(
            producer=21, min_consumer=3, bad_consumers=[5, 6, 7]
        )

    def test_an_error_in_a_graph_from_the_future_says_so(self) -> None:
        with pytest.raises(InvalidArgumentError, match="forward compatibility guarantee"):
            load(identity("i", "a") + "versions { producer: 2496 }")
        with pytest.raises(InvalidArgumentError) as caught:
            load(identity("i", "a") + "versions { producer: 2495 }")
        assert "forward compatibility" not in str(caught.value)


class TestNames:
    def test_prefix(self) -> None:
        graph = load(BASE, name=None)
        assert wiring(graph)["import/i"] == ["import/s", "^import/a", "^import/b"]
        assert "import_1/a" in wiring(load(BASE, graph, name="import"))
        assert graph.unique_name("import") == "import_2"

    def test_prefix_inside_a_name_scope(self, graph: Graph) -> None:
        with graph.name_scope("sc"):
            load(const("a"), graph, name="foo/bar")
            load(const("a"), graph, name="")
        assert list(wiring(graph)) == ["sc/foo/bar/a", "a"]

    def test_names_that_are_taken_get_a_number(self) -> None:
        graph = load(BASE, load(BASE))
        assert wiring(graph)["i_1"] == ["s_1", "^a_1", "^b_1"]
        load(const("a") + const("a_2") + identity("b_5", "a"), graph)
        assert wiring(graph)["b_5"] == ["a_3"]
        assert "a_2" in wiring(graph)

    def test_a_scope_counts_as_taken(self, graph: Graph) -> None:
        load(const("foo/abc"), graph)
        load(const("foo"), graph)
        assert list(wiring(graph)) == ["foo/abc", "foo_1"]

    def test_colocation_follows_the_names(self) -> None:
        text = const("a", colocated("b")) + const("b", colocated("a", "b"))
        graph = load(text, load(text), name="p")
        assert graph.get_operation_by_name("p/a").colocation_groups() == [b"loc:@p/b"]
        load(const("a") + identity("b", "a", extra=colocated("a")), graph)
        assert graph.get_operation_by_name("b_1").colocation_groups() == [b"loc:@a_1"]

    def test_colocation_with_nothing_can_be_let_pass(self) -> None:
        text = const("a", colocated("zz"))
        graph = load(text, validate_colocation_constraints=False)
        assert graph.get_operation_by_name("a").colocation_groups() == [b"loc:@zz"]

    @pytest.mark.parametrize("name", ["!foo", "_foo", "a b"])
    def test_bad_prefix(self, name: str) -> None:
        with pytest.raises(InvalidArgumentError, match="not a valid scope name"):
            load(BASE, name=name)


class TestInputMap:
    def test_inputs_lead_to_the_graph(self) -> None:
        graph = load(const("x") + const("y"))
        x = graph.get_tensor_by_name("x:0")
        returned = import_graph_def(
            parse(BASE),
            graph=graph,
            name="m",
            input_map={"a:0": x, "^b": x.op},
            return_elements=["a:0", "a", "s:0", "n"],
        )
        assert returned is not None
        assert [element.name for element in returned] == ["x:0", "m/a", "m/s:0", "m/n"]
        assert wiring(graph)["m/s"] == ["x", "m/b"]
        assert wiring(graph)["m/i"] == ["m/s", "^m/a", "^x"]

    def test_inputs_that_the_message_lacks(self) -> None:
        graph = load(const("x"))
        load(identity("i", "new:3"), graph, input_map={"new:3": graph.get_tensor_by_name("x:0")})
        assert wiring(graph)["i"] == ["x"]

    def test_values_become_constants(self) -> None:
        graph = load(identity("i", "new"), input_map={"new": 2.5})
        assert graph.get_operation_by_name("i").inputs[0].op.type == "Const"

    def test_a_mapped_input_may_come_later_than_its_user(self) -> None:
        graph = load(BASE)
        late = graph.get_tensor_by_name("i:0")
        load(identity("z", "a") + const("a"), graph, name="p", input_map={"a": late})
        assert wiring(graph)["p/z"] == ["i"]

    @pytest.mark.parametrize(
        ("key", "message"),
        [
            ("q:0", r"not found in graph_def: \[q:0\]"),
            ("^q", r"not found in graph_def: \[\^q\]"),
            ("n:0", r"not found in graph_def: \[n:0\]"),
        ],
    )
    def test_keys_that_name_nothing(self, key: str, message: str) -> None:
        graph = load(const("x"))
        with pytest.raises(InvalidArgumentError, match=message):
            load(BASE, graph, input_map={key: graph.get_tensor_by_name("x:0")})
        assert len(graph.get_operations()) == 1

    def test_what_cannot_be_mapped(self, make_graph) -> None:
        graph = load(BASE)
        n, s = graph.get_operation_by_name("n"), graph.get_tensor_by_name("s:0")
        with pytest.raises(InvalidArgumentError, match="between control edge and non-control edge"):
            load(BASE, graph, input_map={"a:0": n})
        with pytest.raises(InvalidArgumentError, match="not an element of this graph"):
            load(BASE, make_graph(), input_map={"a:0": s})
        with pytest.raises(InvalidArgumentError, match="must be a name"):
            load(BASE, graph, input_map={s: s})


class TestReturnElements:
    def test_none_asked_for_is_none(self) -> None:
        assert import_graph_def(parse(BASE), graph=Graph(REGISTRY)) is None
        assert import_graph_def(parse(BASE), graph=Graph(REGISTRY), return_elements=[]) == []

    @pytest.mark.parametrize(
        ("element", "message"),
        [
            ("q", "Requested return node 'q' not found in graph def"),
            ("q:0", "Requested return tensor 'q:0' not found in graph def"),
            ("a:1", r"Invalid return output 1 of node 'a', which has 1 output\(s\)"),
            ("^a", r"Requested return node '\^a' not found"),
            (3, "return_elements must be names, not 3"),
        ],
    )
    def test_what_is_not_there(self, element, message: str) -> None:
        graph = Graph(REGISTRY)
        with pytest.raises(InvalidArgumentError, match=message):
            load(BASE, graph, return_elements=[element])
        assert graph.get_operations() == []


class TestDevices:
    def test_scopes_apply_and_what_the_node_says_goes_before(self, graph: Graph) -> None:
        text = const("a") + const("b", "device: '/gpu:0'") + const("c", colocated("b"))
        with graph.device("/job:w/cpu:1"):
            load(text, graph)
        found = {op.name: op.device for op in graph.get_operations()}
        gpu = "/job:w/device:GPU:0"
        assert found == {"a": "/job:w/device:CPU:1", "b": gpu, "c": gpu}

    def test_without_a_scope_devices_stay_as_written(self) -> None:
        graph = load(const("b", "device: '/gpu:0'"))
        assert graph.get_operation_by_name("b").device == "/gpu:0"

    def test_a_device_can_be_demanded(self, graph: Graph) -> None:
        importer = GraphImporter(graph, parse(const("a")), ImportOptions(expect_device=True))
        with pytest.raises(InvalidArgumentError, match="Node 'a' is missing a device spec"):
            importer.prepare()


class TestFunctions:
    LIBRARY = (
        "library { function { signature { name: 'F' input_arg { name: 'x' type: DT_FLOAT } "
        "output_arg { name: 'y' type: DT_FLOAT } } ret { key: 'y' value: 'x' } } "
        "gradient { function_name: 'F' gradient_func: 'G' } }"
    )

    def test_are_ops_of_the_nodes(self) -> None:
        graph = load(const("a") + node("f", "F", "a") + self.LIBRARY)
        assert graph.get_tensor_by_name("f:0").dtype == DataType.DT_FLOAT
        assert graph.function_library.find_gradient("F") == "G"
        assert graph.create_op("F", [1.0]).outputs[0].shape.as_list() == []

    def test_are_part_of_the_export(self) -> None:
        graph_def = load(self.LIBRARY).as_graph_def()
        assert graph_def.library == parse(self.LIBRARY).library
        assert load("", load(self.LIBRARY)).as_graph_def().library == graph_def.library


class TestProducerOps:
    PRODUCER = OpList(
        op=[OpDef(name="NoOp", attr=[OpDef.AttrDef(name="new", type="int"), ])]
    )  # fmt: skip

    def test_defaults_of_attrs_that_are_new_are_dropped(self) -> None:
        producer = OpList.FromString(self.PRODUCER.SerializeToString())
        producer.op[0].attr[0].default_value.i = 17
        text = node("a", "NoOp", attrs="new i: 17") + node("b", "NoOp", attrs="new i: 9")
        graph = load(text, producer_op_list=producer)
        assert "new" not in graph.get_operation_by_name("a").node_def.attr
        assert graph.get_operation_by_name("b").get_attr("new") == 9


def test_a_finalized_graph_is_refused(graph: Graph) -> None:
    graph.finalize()
    with pytest.raises(FailedPreconditionError, match="finalized"):
        load(BASE, graph)


def test_messages_of_another_library_are_taken() -> None:
    class Foreign:
        def SerializeToString(self) -> bytes:
            return parse(BASE).SerializeToString()

    graph = Graph(REGISTRY)
    import_graph_def(Foreign(), graph=graph)  # type: ignore[arg-type]  # as TensorFlow's GraphDef
    assert len(graph.get_operations()) == 5


def test_what_nests_too_deep_is_refused() -> None:
    message = GraphDef()
    value = message.node.add(name="n", op="NoOp").attr["f"]
    for _ in range(200):
        value = value.func.attr["f"]
    value.i = 1
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        import_graph_def(message, graph=Graph(REGISTRY))
