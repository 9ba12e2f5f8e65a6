"""What is known of shapes before a graph runs, and the values that shape functions get."""

from typing import Any

import numpy as np
import pytest
from tests.graph.builders import REGISTRY, const, identity, node, parse
from tests.graph.shape_builders import constant, element, op, placeholder

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Tensor, import_graph_def
from opkernel.opdef import InferenceContext, OpRegistry, ShapeAndType, register_op
from opkernel.types import float32, int32, int64


def filled(graph: Graph, dims: object) -> list[int | None] | None:
    """What is known of the shape of Fill(dims)."""
    shape = op(graph, "Fill", dims, 1.0).shape
    return None if shape.rank is None else shape.as_list()


class TestShapesFromValues:
    def test_constants(self, graph: Graph) -> None:
        assert filled(graph, constant(graph, [2, 3])) == [2, 3]
        assert filled(graph, constant(graph, [], int64)) == []
        assert filled(graph, constant(graph, [2, -1])) == [2, None]

    def test_what_is_not_known(self, graph: Graph) -> None:
        assert filled(graph, placeholder(graph, [3], int32)) == [None, None, None]
        assert filled(graph, placeholder(graph, [None], int32)) is None
        assert filled(graph, placeholder(graph, None, int32)) is None

    def test_shape_of_a_tensor(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 5])
        assert filled(graph, op(graph, "Shape", x)) == [None, 5]
        assert filled(graph, op(graph, "Shape", x, out_type=int64)) == [None, 5]
        assert filled(graph, op(graph, "Shape", placeholder(graph))) is None

    def test_pack_of_elements(self, graph: Graph) -> None:
        shape = op(graph, "Shape", placeholder(graph, [None, 5]))
        packed = op(
            graph, "Pack", element(graph, shape, 0), element(graph, shape, 1), constant(graph, 7)
        )
        assert filled(graph, packed) == [None, 5, 7]

    def test_rank_and_size(self, graph: Graph) -> None:
        x = placeholder(graph, [4, 6])
        packed = op(graph, "Pack", op(graph, "Rank", x), op(graph, "Size", x))
        assert filled(graph, packed) == [2, 24]

    def test_concat_slice_and_cast(self, graph: Graph) -> None:
        shape = op(graph, "Shape", placeholder(graph, [None, 5, 6]))
        tail = op(graph, "StridedSlice", shape, [1], [0], [1], end_mask=1)
        joined = op(graph, "ConcatV2", [tail, constant(graph, [9])], 0)
        assert filled(graph, joined) == [5, 6, 9]
        assert filled(graph, op(graph, "Cast", joined, DstT=int64)) == [5, 6, 9]
        reverse = op(graph, "StridedSlice", shape, [0], [0], [-1], begin_mask=1, end_mask=1)
        assert filled(graph, reverse) == [6, 5, None]

    def test_a_long_chain_does_not_recurse(self, graph: Graph) -> None:
        shape = op(graph, "Shape", placeholder(graph, [None, 5]))
        for _ in range(3000):
            shape = op(graph, "Cast", shape, DstT=int32)
        assert filled(graph, shape) == [None, 5]

    def test_a_wide_chain_takes_no_exponential_time(self, graph: Graph) -> None:
        shape = op(graph, "Shape", placeholder(graph, []))
        for _ in range(60):
            shape = op(graph, "ConcatV2", [shape, shape], 0)
        assert filled(graph, shape) in ([], None)

    def test_the_runtime_evaluates_the_rest(
        self, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []

        def evaluate(tensors: list[Tensor], *_: Any) -> list[np.ndarray | None]:
            asked.extend(tensor.name for tensor in tensors)
            known = np.array([4, 4], np.int32)
            return [known if tensor.op.type == "AddN" else None for tensor in tensors]

        monkeypatch.setattr("opkernel.runtime.calls.constants.constant_values", evaluate)
        total = op(graph, "AddN", [constant(graph, [1, 2]), constant(graph, [3, 2])])
        assert filled(graph, total) == [4, 4]
        assert filled(graph, total) == [4, 4]
        assert asked == ["AddN:0"]

    @pytest.mark.parametrize("source", ["Placeholder", "Variable"])
    def test_what_is_fed_or_has_state_is_not_evaluated(
        self, graph: Graph, monkeypatch: pytest.MonkeyPatch, source: str
    ) -> None:
        def evaluate(tensors: list[Tensor], *_: Any) -> None:
            raise AssertionError(tensors)

        monkeypatch.setattr("opkernel.runtime.calls.constants.constant_values", evaluate)
        x = graph.create_op(source, attrs={"dtype": int32}).outputs[0]
        total = op(graph, "AddN", [x, constant(graph, [3, 2])])
        assert filled(graph, total) is None

    def test_only_small_parts_of_a_graph_are_evaluated(
        self, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[list[Tensor]] = []
        hooks = "opkernel.runtime.calls.constants.constant_values"
        monkeypatch.setattr(hooks, lambda tensors, *_: asked.append(tensors))
        total = constant(graph, [1, 2])
        for _ in range(200):
            total = op(graph, "AddN", [total, total])
        assert filled(graph, total) is None
        assert asked == []

    def test_values_that_are_no_shape_are_refused(self, graph: Graph) -> None:
        with pytest.raises(InvalidArgumentError, match="-2"):
            filled(graph, constant(graph, [-2]))


class TestImportedGraphs:
    def test_shapes_wait_until_they_are_asked_for(self) -> None:
        wrong = (
            node("x", "Placeholder", attrs="dtype type: DT_FLOAT; shape shape { dim { size: 2 } }")
            + node(
                "y", "Placeholder", attrs="dtype type: DT_FLOAT; shape shape { dim { size: 3 } }"
            )
            + node("z", "AddV2", "x", "y", attrs="T type: DT_FLOAT")
            + identity("after", "z")
        )
        graph = Graph(REGISTRY)
        import_graph_def(parse(wrong), graph=graph, name="")
        assert graph.get_tensor_by_name("x:0").shape.as_list() == [2]
        for _ in range(2):
            with pytest.raises(
                InvalidArgumentError, match=r"equal, but are 2 and 3.*'{{node z}}"
            ) as e:
                assert graph.get_tensor_by_name("after:0").shape
            assert e.value.node == "z"

    def test_given_output_shapes_are_merged(self) -> None:
        given = "_output_shapes list { shape { dim { size: -1 } dim { size: 4 } } }"
        shape = "shape shape { dim { size: 3 } dim { size: -1 } }"
        text = node("x", "Placeholder", attrs=f"dtype type: DT_FLOAT; {shape}; {given}")
        graph = Graph(REGISTRY)
        import_graph_def(parse(text), graph=graph, name="")
        assert graph.get_tensor_by_name("x:0").shape.as_list() == [3, 4]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ("shape { dim { size: 1 } }", "inconsistent with the GraphDef for output #0"),
            ("shape { dim { size: -5 } }", "an invalid _output_shapes attribute for output #0.*-5"),
            ("", "1 outputs but the _output_shapes attribute specifies shapes for 0 outputs"),
        ],
    )
    def test_given_output_shapes_that_are_wrong(self, given: str, message: str) -> None:
        attr = f"attr {{ key: '_output_shapes' value {{ list {{ {given} }} }} }}"
        graph = Graph(REGISTRY)
        import_graph_def(parse(const("a", attr)), graph=graph, name="")
        with pytest.raises(InvalidArgumentError, match=f"'a' has .*{message}") as e:
            assert graph.get_tensor_by_name("a:0").shape
        assert e.value.node == "a"

    @pytest.mark.parametrize(
        "given", ["i: 3", "list { i: 3 }", "list { shape { } shape { dim { size: 3 } } }"]
    )
    def test_given_output_shapes_that_do_not_matter(self, given: str) -> None:
        """Of another kind, or of outputs that there are not."""
        attr = f"attr {{ key: '_output_shapes' value {{ {given} }} }}"
        graph = Graph(REGISTRY)
        import_graph_def(parse(const("a", attr)), graph=graph, name="")
        assert graph.get_tensor_by_name("a:0").shape.as_list() == []

    def test_shapes_can_be_exported(self, graph: Graph) -> None:
        placeholder(graph, [None, 2])
        exported = graph.as_graph_def(add_shapes=True).node[0]
        shape = exported.attr["_output_shapes"].list.shape[0]
        assert [dim.size for dim in shape.dim] == [-1, 2]
        assert "_output_shapes" not in graph.get_operations()[0].node_def.attr
        again = Graph(REGISTRY)
        import_graph_def(graph.as_graph_def(add_shapes=True), graph=again, name="")
        assert again.as_graph_def(add_shapes=True).node[0] == exported


class TestSetShape:
    def test_adds_what_the_caller_knows(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3])
        x.set_shape([2, None])
        assert x.get_shape().as_list() == [2, 3]
        assert op(graph, "Identity", x).shape.as_list() == [2, 3]
        with pytest.raises(InvalidArgumentError, match="must be equal, but are 2 and 5"):
            x.set_shape([5, 3])
        with pytest.raises(InvalidArgumentError, match="rank"):
            x.set_shape([2])


def test_what_resources_hold_is_handed_on() -> None:
    registry = OpRegistry()

    def make(c: InferenceContext) -> None:
        c.set_output(0, c.scalar())
        c.set_output_handle_shapes_and_types(0, [ShapeAndType(c.matrix(2, 3), float32)])

    def read(c: InferenceContext) -> None:
        held = c.input_handle_shapes_and_types(0)
        assert held is not None
        c.set_output(0, held[0].shape)

    register_op("Make", outputs=["r: resource"], shape_fn=make, registry=registry)
    register_op(
        "Read", inputs=["r: resource"], outputs=["v: float"], shape_fn=read, registry=registry
    )
    graph = Graph(registry)
    value = graph.create_op("Read", [graph.create_op("Make").outputs[0]])
    assert value.outputs[0].shape.as_list() == [2, 3]


def test_a_dimension_stays_the_same_unknown_along_the_graph(graph: Graph) -> None:
    seen = []

    def look(c: InferenceContext) -> None:
        seen.append(c.dim(c.input(0), 0).same_handle(c.dim(c.input(1), 0)))

    registry = OpRegistry()
    for name in ("Placeholder", "Identity"):
        registry.register(REGISTRY.look_up(name))
    register_op("Look", inputs=["a: float", "b: float"], shape_fn=look, registry=registry)
    own = Graph(registry)
    x = placeholder(own, [None])
    own.create_op("Look", [x, op(own, "Identity", x)])
    own.create_op("Look", [x, placeholder(own, [None])])
    assert seen == [True, False]
