import itertools

import pytest
from google.protobuf import text_format

from opkernel.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from opkernel.graph import Graph, import_graph_def, infer_full_types, instantiate_function
from opkernel.opdef import OpRegistry, full_type, global_op_registry, register_op, unknown_shape
from opkernel.opdef.full_type import FullTypeId
from opkernel.proto import FullTypeDef, GraphDef
from opkernel.types import DataType

INT, STRING, RESOURCE, VARIANT = 3, 7, 20, 21


def t(name, *args):
    return FullTypeDef(type_id=FullTypeId[f"TFT_{name}"], args=args)


INTS, FLOATS = t("TENSOR", t("INT32")), t("TENSOR", t("FLOAT"))
LIST, LIST_OF_INTS = t("ARRAY"), t("ARRAY", INTS)
DATASET, DATASET_OF_INTS = t("DATASET"), t("DATASET", t("PRODUCT", INTS))
ITERATOR_OF_INTS = t("ITERATOR", t("PRODUCT", INTS))
ENCODED = t("ENCODED", DATASET_OF_INTS, t("STRING"))

OF_VARIANTS = {"T": "type: DT_VARIANT"}
TWO_VARIANTS = {"T": "type: DT_VARIANT", "N": "i: 2"}
OF_INTS = {"element_dtype": "type: DT_INT32"}
INT_ROWS = {"output_types": "list { type: DT_INT32 }", "output_shapes": "list { shape {} }"}
SLICES = {"Toutput_types": "list { type: DT_INT32 type: DT_FLOAT }"}
SLICES["output_shapes"] = "list { shape {} shape {} }"


def graph_def_of(op, attrs, inputs, carried=None):
    """A node `n` whose inputs `p0`, `p1`, ... carry full types."""
    graph_def = GraphDef()
    graph_def.versions.producer = 2000
    for index, (dtype, carries) in enumerate(inputs):
        source = graph_def.node.add(name=f"p{index}", op="Placeholder")
        source.attr["dtype"].type = dtype
        if carries is not None:
            source.experimental_type.CopyFrom(t("PRODUCT", carries))
    node = graph_def.node.add(name="n", op=op, input=[f"p{i}" for i in range(len(inputs))])
    for name, text in attrs.items():
        text_format.Parse(text, node.attr[name])
    if carried is not None:
        node.experimental_type.CopyFrom(carried)
    return graph_def


def imported(graph_def, registry=None):
    graph = Graph(registry)
    with graph.as_default():
        import_graph_def(graph_def, name="")
    return graph


def inferred(graph):
    return {
        op.name: full_type.full_type_string(found).replace("TFT_", "")
        for op, found in infer_full_types(graph).items()
    }


# What TensorFlow 2.21 leaves in the NodeDefs when a session first runs such a graph.
@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "result"),
    [
        ("Identity", OF_VARIANTS, [(VARIANT, DATASET_OF_INTS)], [DATASET_OF_INTS]),
        ("Identity", OF_VARIANTS, [(VARIANT, None)], None),
        ("Exit", OF_VARIANTS, [(VARIANT, DATASET_OF_INTS)], [DATASET_OF_INTS]),
        ("NextIteration", OF_VARIANTS, [(VARIANT, DATASET_OF_INTS)], [DATASET_OF_INTS]),
        ("Enter", {**OF_VARIANTS, "frame_name": 's: "f"'}, [(VARIANT, LIST)], [LIST]),
        ("Switch", OF_VARIANTS, [(VARIANT, LIST_OF_INTS), (10, None)], [LIST_OF_INTS] * 2),
        (
            "Merge",
            TWO_VARIANTS,
            [(VARIANT, DATASET), (VARIANT, DATASET_OF_INTS)],
            [DATASET_OF_INTS, INTS],
        ),
        (
            "Merge",
            TWO_VARIANTS,
            [(VARIANT, None), (VARIANT, DATASET_OF_INTS)],
            [DATASET_OF_INTS, INTS],
        ),
        ("Merge", TWO_VARIANTS, [(VARIANT, None), (VARIANT, None)], None),
        (
            "TensorListFromTensor",
            {**OF_INTS, "shape_type": "type: DT_INT32"},
            [(INT, None), (INT, None)],
            [LIST_OF_INTS],
        ),
        (
            "TensorListSetItem",
            OF_INTS,
            [(VARIANT, LIST_OF_INTS), (INT, None), (INT, INTS)],
            [LIST_OF_INTS],
        ),
        (
            "EmptyTensorList",
            {"element_dtype": "type: DT_VARIANT", "shape_type": "type: DT_INT32"},
            [(INT, None), (INT, None)],
            [LIST],
        ),
        ("AutoShardDataset", INT_ROWS, [(VARIANT, DATASET), (9, None), (9, None)], None),
        ("RebatchDataset", INT_ROWS, [(VARIANT, DATASET_OF_INTS), (9, None)], None),
        ("RebatchDatasetV2", INT_ROWS, [(VARIANT, DATASET_OF_INTS), (9, None), (10, None)], None),
        ("DatasetToGraphV2", {}, [(VARIANT, DATASET_OF_INTS)], [ENCODED]),
        ("DatasetFromGraph", {}, [(STRING, ENCODED)], [DATASET_OF_INTS]),
        (
            "TensorSliceDataset",
            SLICES,
            [(INT, INTS), (1, None)],
            [t("DATASET", t("PRODUCT", INTS, FLOATS))],
        ),
        (
            "IteratorGetNextAsOptional",
            INT_ROWS,
            [(RESOURCE, ITERATOR_OF_INTS)],
            [t("OPTIONAL", t("PRODUCT", INTS))],
        ),
        (
            "MultiDeviceIteratorToStringHandle",
            {},
            [(RESOURCE, ITERATOR_OF_INTS)],
            [t("ENCODED", ITERATOR_OF_INTS, t("STRING"))],
        ),
        (
            "MultiDeviceIteratorFromStringHandle",
            {},
            [(STRING, t("ENCODED", ITERATOR_OF_INTS, t("STRING")))],
            [ITERATOR_OF_INTS],
        ),
    ],
)
def test_single_nodes(op, attrs, inputs, result):
    graph = imported(graph_def_of(op, attrs, inputs))
    if result is None and op.endswith(("Dataset", "DatasetV2")):
        result = [DATASET_OF_INTS]
    expected = None if result is None else t("PRODUCT", *result)
    graph.infer_full_types()
    assert graph.get_operation_by_name("n").full_type == expected


@pytest.mark.parametrize(
    ("op", "attrs", "inputs", "message"),
    [
        (
            "Merge",
            TWO_VARIANTS,
            [(VARIANT, LIST_OF_INTS), (VARIANT, DATASET)],
            "expected compatible input types, but input 1: TFT_DATASET is neither",
        ),
        (
            "AutoShardDataset",
            INT_ROWS,
            [(VARIANT, LIST), (9, None), (9, None)],
            "expected type TFT_DATASET for input 0, got TFT_ARRAY",
        ),
        (
            "AutoShardDataset",
            INT_ROWS,
            [(VARIANT, t("DATASET", INTS)), (9, None), (9, None)],
            "expected PRODUCT element type for input 0",
        ),
        (
            "BatchDatasetV2",
            INT_ROWS,
            [(VARIANT, t("DATASET", t("PRODUCT", FLOATS))), (9, None), (10, None)],
            "type mismatch for node 'n': expected a subtype of: TFT_PRODUCT",
        ),
        (
            "DatasetFromGraph",
            {},
            [(STRING, t("ENCODED", DATASET, t("INT32")))],
            "expected encoded type TFT_STRING for input 0",
        ),
        (
            "TensorListSetItem",
            OF_INTS,
            [(VARIANT, LIST_OF_INTS), (INT, None), (INT, FLOATS)],
            "for input 2 of a homogeneous container TFT_ARRAY, got ",
        ),
        (
            "TensorListSetItem",
            OF_INTS,
            [(VARIANT, DATASET), (INT, None), (INT, INTS)],
            "expected container type TFT_ARRAY for input 0, got TFT_DATASET",
        ),
        (
            "TensorListSetItem",
            OF_INTS,
            [(VARIANT, None), (INT, None), (INT, FLOATS)],
            "type mismatch for node 'n'",
        ),
    ],
)
def test_inputs_that_contradict_the_op(op, attrs, inputs, message):
    graph = imported(graph_def_of(op, attrs, inputs))
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        graph.infer_full_types()
    assert "'n'" in str(caught.value)
    assert (caught.value.node, caught.value.op) == ("n", op)
    assert graph.get_operation_by_name("n").full_type == full_type.full_type_of_node(
        graph_def_of(op, attrs, inputs).node[-1], global_op_registry().look_up(op)
    )


class TestWhatNodesCarry:
    def test_it_survives_import_and_export(self):
        graph_def = graph_def_of("Identity", OF_VARIANTS, [(VARIANT, LIST)], t("PRODUCT", LIST))
        exported = imported(graph_def).as_graph_def()
        assert [node.experimental_type for node in exported.node] == [t("PRODUCT", LIST)] * 2

    def test_what_the_op_declares_is_not_written_unless_asked_for(self):
        graph = imported(graph_def_of("Shape", {"T": "type: DT_INT32"}, [(INT, None)]))
        op = graph.get_operation_by_name("n")
        assert op.full_type == t("PRODUCT", t("SHAPE_TENSOR", t("INT32")))
        assert not graph.as_graph_def().node[1].HasField("experimental_type")
        graph.infer_full_types()
        assert graph.as_graph_def().node[1].experimental_type == op.full_type
        assert not graph.as_graph_def().node[0].HasField("experimental_type")
        assert graph.get_operation_by_name("p0").full_type is None

    @pytest.mark.parametrize(
        ("carried", "given", "result"),
        [
            (t("PRODUCT", DATASET_OF_INTS), DATASET, "PRODUCT[DATASET[PRODUCT[TENSOR[INT32]]]]"),
            (t("PRODUCT", DATASET), DATASET_OF_INTS, "PRODUCT[DATASET[PRODUCT[TENSOR[INT32]]]]"),
            (t("PRODUCT"), LIST, "PRODUCT[ARRAY]"),
            (FullTypeDef(), LIST, "PRODUCT[ARRAY]"),
        ],
    )
    def test_the_more_special_type_wins(self, carried, given, result):
        graph = imported(graph_def_of("Identity", OF_VARIANTS, [(VARIANT, given)], carried))
        assert inferred(graph)["n"] == result

    def test_it_must_agree(self):
        graph_def = graph_def_of("Identity", OF_VARIANTS, [(VARIANT, DATASET)], t("PRODUCT", LIST))
        with pytest.raises(InvalidArgumentError, match="type mismatch for node 'n'"):
            infer_full_types(imported(graph_def))

    def test_inferring_again_changes_nothing(self):
        graph = imported(graph_def_of("DatasetToGraphV2", {}, [(VARIANT, DATASET_OF_INTS)]))
        graph.infer_full_types()
        before = graph.as_graph_def()
        graph.infer_full_types()
        assert graph.as_graph_def() == before

    def test_what_is_no_product_tells_nothing(self):
        graph_def = graph_def_of("Identity", OF_VARIANTS, [(VARIANT, LIST)])
        graph_def.node[0].experimental_type.CopyFrom(LIST_OF_INTS)
        assert "n" not in inferred(imported(graph_def))

    def test_a_finalized_graph_keeps_its_nodes(self):
        graph = imported(graph_def_of("Identity", OF_VARIANTS, [(VARIANT, LIST)]))
        graph.finalize()
        with pytest.raises(FailedPreconditionError):
            graph.infer_full_types()
        assert inferred(graph)["n"] == "PRODUCT[ARRAY]"


class TestReverseInference:
    INPUTS = ((VARIANT, DATASET_OF_INTS), (RESOURCE, None))

    def test_an_iterator_takes_its_type_from_the_dataset(self):
        found = inferred(imported(graph_def_of("MakeIterator", {}, self.INPUTS)))
        assert found["p1"] == "PRODUCT[ITERATOR[PRODUCT[TENSOR[INT32]]]]"

    def test_the_nodes_behind_it_follow(self):
        graph_def = graph_def_of("MakeIterator", {}, self.INPUTS)
        graph_def.node.insert(0, graph_def.node.pop(1))
        handle = graph_def.node.add(name="h", op="MultiDeviceIteratorToStringHandle")
        handle.input.append("p1")
        graph_def.node.insert(1, graph_def.node.pop())
        expected = "PRODUCT[ENCODED[ITERATOR[PRODUCT[TENSOR[INT32]]], STRING]]"
        assert inferred(imported(graph_def))["h"] == expected

    def test_it_must_agree(self):
        floats = t("ITERATOR", t("PRODUCT", FLOATS))
        inputs = [(VARIANT, DATASET_OF_INTS), (RESOURCE, floats)]
        with pytest.raises(InvalidArgumentError, match="type mismatch for node 'p1'"):
            infer_full_types(imported(graph_def_of("MakeIterator", {}, inputs)))


def loop(registry, body, entering):
    """A loop of TensorFlow 1 around a node `b`; the nodes stand in the file against their order."""
    graph_def = GraphDef()
    graph_def.versions.producer = 2000

    def node(name, op, *inputs, **attrs):
        made = graph_def.node.add(name=name, op=op, input=inputs)
        for key, text in attrs.items():
            text_format.Parse(text, made.attr[key])
        return made

    variant, frame = "type: DT_VARIANT", 's: "f"'
    node("out", "Exit", "s", T=variant)
    node("m", "Merge", "in", "next", T=variant, N="i: 2")
    node("next", "NextIteration", "b", T=variant)
    node("b", body, "s:1", **({"T": variant} if body == "Identity" else {}))
    node("s", "Switch", "m", "c", T=variant)
    node("in", "Enter", "p", T=variant, frame_name=frame)
    node("c", "Enter", "q", T="type: DT_BOOL", frame_name=frame)
    source = node("p", "Placeholder", dtype=variant)
    source.experimental_type.CopyFrom(t("PRODUCT", entering))
    node("q", "Placeholder", dtype="type: DT_BOOL")
    return imported(graph_def, registry)


@pytest.fixture
def registry():
    """The catalogue, with ops of our own that say what they give."""
    registry = OpRegistry()
    registry.set_loader(lambda name: global_op_registry().look_up(name))

    def give(name, fn):
        register_op(
            name,
            inputs=["i: variant"],
            outputs=["o: variant"],
            shape_fn=unknown_shape,
            forward_type_fn=fn,
            registry=registry,
        )

    give("ToTensor", full_type.tensor(FullTypeId.TFT_INT32))
    give("ToList", full_type.unary_container_create(FullTypeId.TFT_ARRAY, 0))
    give("Call", full_type.function_call("f"))
    give("Buggy", lambda types, infer: types[7])
    register_op(
        "BadAttr",
        outputs=["o: variant"],
        attrs=["n: int"],
        shape_fn=unknown_shape,
        type_constructor=full_type.unary(FullTypeId.TFT_DATASET, "n"),
        registry=registry,
    )
    return registry


class TestLoops:
    def test_types_go_round(self):
        found = inferred(loop(None, "Identity", DATASET_OF_INTS))
        dataset = "DATASET[PRODUCT[TENSOR[INT32]]]"
        assert found == {
            **dict.fromkeys(["p", "in", "b", "next", "out"], f"PRODUCT[{dataset}]"),
            "m": f"PRODUCT[{dataset}, TENSOR[INT32]]",
            "s": f"PRODUCT[{dataset}, {dataset}]",
        }

    def test_what_comes_round_must_agree_with_what_enters(self, registry):
        with pytest.raises(InvalidArgumentError, match="expected compatible input types") as caught:
            infer_full_types(loop(registry, "ToTensor", LIST))
        assert caught.value.node == "m"

    def test_a_type_that_grows_at_every_turn_is_let_grow_a_little(self, registry):
        found = inferred(loop(registry, "ToList", LIST))
        assert found["m"] == "PRODUCT[ARRAY[ARRAY[ARRAY]], TENSOR[INT32]]"


def chain(registry, op, length, entering=None):
    graph_def = GraphDef()
    source = graph_def.node.add(name="n0", op="Placeholder")
    source.attr["dtype"].type = VARIANT
    if entering is not None:
        source.experimental_type.CopyFrom(t("PRODUCT", entering))
    for before, after in itertools.pairwise(range(length + 1)):
        node = graph_def.node.add(name=f"n{after}", op=op, input=[f"n{before}"])
        if op == "Identity":
            node.attr["T"].type = VARIANT
    return imported(graph_def, registry)


class TestTroublesomeGraphs:
    def test_types_pass_through_long_chains(self):
        assert inferred(chain(None, "Identity", 3000, LIST))["n3000"] == "PRODUCT[ARRAY]"

    def test_no_type_grows_beyond_what_a_file_holds(self, registry):
        assert inferred(chain(registry, "ToList", 50))["n50"].startswith("PRODUCT[" + "ARRAY[" * 50)
        with pytest.raises(InvalidArgumentError, match="node 'n63' has over 64 levels"):
            infer_full_types(chain(registry, "ToList", 5000))

    def test_nor_wider(self):
        graph_def = graph_def_of("Identity", OF_VARIANTS, [(VARIANT, LIST)])
        source = "n"
        for level in range(1, 30):
            attrs = {"Toutput_types": "list { type: DT_VARIANT type: DT_VARIANT }"}
            attrs["output_shapes"] = SLICES["output_shapes"]
            node = graph_def.node.add(name=f"d{level}", op="TensorSliceDataset")
            node.input.extend([source] * 2)
            for name, text in attrs.items():
                text_format.Parse(text, node.attr[name])
            node.experimental_type.CopyFrom(t("PRODUCT", t("ANY")))
            source = f"d{level}"
        with pytest.raises(InvalidArgumentError, match="100000 parts"):
            infer_full_types(imported(graph_def))

    def test_function_types_are_not_inferred(self, registry):
        with pytest.raises(UnimplementedError, match="function in attr 'f'") as caught:
            infer_full_types(chain(registry, "Call", 1))
        assert caught.value.node == "n1"

    def test_a_function_that_fails_is_an_error_of_its_node(self, registry):
        with pytest.raises(InvalidArgumentError, match="Buggy failed: IndexError") as caught:
            infer_full_types(chain(registry, "Buggy", 1))
        assert caught.value.node == "n1"

    def test_declared_types_that_do_not_fit_the_attrs(self, registry):
        graph = Graph(registry)
        op = graph.create_op("BadAttr", attrs={"n": 3}, name="bad")
        with pytest.raises(InvalidArgumentError, match="type error: unsupported attribute type i"):
            _ = op.full_type
        with pytest.raises(InvalidArgumentError, match=r"while expanding .* from {{node bad}}"):
            graph.infer_full_types()


def test_bodies_of_functions():
    graph_def = GraphDef()
    function = graph_def.library.function.add()
    text_format.Parse(
        """
        signature { name: "f" input_arg { name: "x" type: DT_INT32 }
                    output_arg { name: "y" type: DT_VARIANT } }
        node_def { name: "list" op: "TensorListFromTensor" input: "x" input: "x"
                   attr { key: "element_dtype" value { type: DT_INT32 } }
                   attr { key: "shape_type" value { type: DT_INT32 } } }
        node_def { name: "same" op: "Identity" input: "list:output_handle:0"
                   attr { key: "T" value { type: DT_VARIANT } } }
        ret { key: "y" value: "same:output:0" }
        """,
        function,
    )
    graph = imported(graph_def)
    body = instantiate_function(graph.function_library, "f")
    assert inferred(body.graph)["same"] == "PRODUCT[ARRAY[TENSOR[INT32]]]"


def test_graphs_that_are_made_by_hand():
    graph = Graph()
    tensor = graph.create_op("Placeholder", attrs={"dtype": DataType.DT_INT32}).outputs[0]
    made = graph.create_op("OptionalFromValue", [[tensor, tensor]], name="made")
    graph.create_op("Identity", [made.outputs[0]], name="same")
    optional = "PRODUCT[OPTIONAL[PRODUCT[TENSOR[INT32], TENSOR[INT32]]]]"
    assert inferred(graph) == {"made": optional, "same": optional}
