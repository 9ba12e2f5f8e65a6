"""Loops are followed until what is known of their variables holds at every turn.

Where the loops are TensorFlow 1's and nothing is fed, what is expected is what TensorFlow 2.21's
Grappler infers; it takes placeholders to be of any shape.
"""

import numpy as np
import pytest
from tests.graph.shape_builders import (
    constant,
    dims,
    element,
    function,
    known_dims,
    op,
    placeholder,
    v1_loop,
    while_loop,
)

from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, Tensor, import_graph_def
from opkernel.proto import GraphDef, NameAttrList
from opkernel.runtime import Session
from opkernel.types import DataType, PartialTensorShape, float32, int32


@pytest.fixture
def graph() -> Graph:
    return Graph()


def doubled(graph: Graph, x: Tensor) -> Tensor:
    return op(graph, "ConcatV2", [x, x], 0)


class TestLoopsOfTensorFlow1:
    def test_what_the_body_keeps_is_known(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3])
        (result,) = v1_loop(graph, [x], lambda v: op(graph, "Relu", v))
        assert dims(graph, result) == [None, 3]
        assert dims(graph, result, {x: [5, 3]}) == [5, 3]

    def test_a_dimension_that_the_body_keeps_is_the_same_dimension(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3])
        (result,) = v1_loop(graph, [x], lambda v: op(graph, "Relu", v))
        outer, inner = known_dims(graph, x, result)
        assert inner[0] is outer[0]

    def test_what_the_body_changes_is_given_up(self, graph: Graph) -> None:
        (result,) = v1_loop(graph, [placeholder(graph, [2, 8])], lambda v: doubled(graph, v))
        assert dims(graph, result) == [None, 8]

    def test_another_rank(self, graph: Graph) -> None:
        x = placeholder(graph, [2, 8])
        (result,) = v1_loop(graph, [x], lambda v: op(graph, "ExpandDims", v, 0))
        assert dims(graph, result) is None

    def test_variables_that_change_places(self, graph: Graph) -> None:
        variables = [placeholder(graph, [2, 3]), placeholder(graph, [4, 3])]
        results = v1_loop(graph, variables, lambda a, b: (b, a))
        assert [dims(graph, one) for one in results] == [[None, 3], [None, 3]]

    def test_a_change_that_goes_through_several_variables(self, graph: Graph) -> None:
        variables = [placeholder(graph, [2]) for _ in range(10)]
        results = v1_loop(graph, variables, lambda a, *rest: (doubled(graph, a), a, *rest[:-1]))
        assert [dims(graph, one) for one in results] == [[None]] * 10

    def test_a_loop_that_nothing_enters(self, graph: Graph) -> None:
        (head,) = v1_loop(graph, [placeholder(graph, [2])], lambda v: op(graph, "Relu", v))
        merge = head.op.inputs[0].op.inputs[0].op
        merge.update_input(0, merge.inputs[1])
        assert dims(graph, merge.outputs[0]) is None

    def test_nested_loops(self, graph: Graph) -> None:
        def outer(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
            (inner,) = v1_loop(graph, [a], lambda v: op(graph, "Transpose", v, [1, 0]), "inner")
            return inner, op(graph, "Relu", b)

        variables = [placeholder(graph, [2, 3]), placeholder(graph, [2, 3])]
        results = v1_loop(graph, variables, outer)
        assert [dims(graph, one) for one in results] == [[None, None], [2, 3]]

    def test_loops_one_after_the_other(self, graph: Graph) -> None:
        (first,) = v1_loop(graph, [placeholder(graph, [2, 8])], lambda v: doubled(graph, v), "a")
        (second,) = v1_loop(graph, [first], lambda v: op(graph, "Relu", v), "b")
        between = op(graph, "Relu", first)
        assert dims(graph, second) == [None, 8]
        assert dims(graph, between) == [None, 8]

    def test_a_counter_is_no_constant(self, graph: Graph) -> None:
        seen = []

        def body(i: Tensor) -> Tensor:
            seen.append(op(graph, "Fill", op(graph, "Pack", [i, constant(graph, 7)]), 1.0))
            return op(graph, "AddV2", i, 1)

        v1_loop(graph, [constant(graph, 0)], body)
        assert dims(graph, seen[0]) == [None, 7]

    def test_sizes_read_in_the_body_follow_the_shapes(self, graph: Graph) -> None:
        """What is worked out from the shapes of the first turn is worked out anew."""
        seen = []

        def body(v: Tensor) -> Tensor:
            seen.append(op(graph, "Fill", op(graph, "Shape", v), 1.0))
            return doubled(graph, v)

        v1_loop(graph, [placeholder(graph, [2, 8])], body)
        assert dims(graph, seen[0]) == [None, 8]

    def test_what_takes_a_variable_as_any_of_its_inputs_is_worked_out_anew(
        self, graph: Graph
    ) -> None:
        seen = []
        first = placeholder(graph, [1, 8])

        def body(v: Tensor) -> Tensor:
            seen.append(op(graph, "ConcatV2", [first, first, v], 0))
            return op(graph, "ConcatV2", [first, v], 0)

        (result,) = v1_loop(graph, [placeholder(graph, [2, 8])], body)
        assert dims(graph, result) == [None, 8]
        assert dims(graph, seen[0]) == [None, 8]

    def test_a_long_chain_of_changes_is_given_up_as_a_whole(self, graph: Graph) -> None:
        x = placeholder(graph, [2] + [1] * 29)
        turn = [*range(1, 30), 0]
        (result,) = v1_loop(graph, [x], lambda v: op(graph, "Transpose", v, turn))
        assert dims(graph, result) is None

    def test_what_lists_hold(self, graph: Graph) -> None:
        seen = []
        reserve = {"element_dtype": float32, "shape_type": int32}
        variables = [op(graph, "TensorListReserve", [4, 5], 3, **reserve)]

        def body(v: Tensor) -> Tensor:
            get = {"element_dtype": float32}
            unknown = constant(graph, -1)
            seen.append(op(graph, "TensorListGetItem", v, 0, unknown, **get))
            return op(graph, "TensorListSetItem", v, 0, np.zeros([4, 5], np.float32), **get)

        (result,) = v1_loop(graph, variables, body)
        assert dims(graph, seen[0]) == [4, 5]
        stack = op(graph, "TensorListStack", result, constant(graph, -1), element_dtype=float32)
        assert dims(graph, stack) == [None, 4, 5]

    def test_lists_that_change_places(self, graph: Graph) -> None:
        seen = []
        reserve = {"element_dtype": float32, "shape_type": int32}
        lists = [op(graph, "TensorListReserve", [rows, 5], 3, **reserve) for rows in (4, 6)]

        def body(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
            get = {"element_dtype": float32}
            seen.append(op(graph, "TensorListGetItem", a, 0, constant(graph, -1), **get))
            return b, a

        v1_loop(graph, lists, body)
        assert dims(graph, seen[0]) == [None, 5]

    def test_lists_of_other_types_are_forgotten(self, graph: Graph) -> None:
        """What holds at the first turn alone does not stay."""
        reserves = [
            op(graph, "TensorListReserve", [4], 3, element_dtype=dtype, shape_type=int32)
            for dtype in (float32, int32)
        ]
        seen = []

        def body(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
            seen.append(op(graph, "Identity", a))
            return b, a

        v1_loop(graph, reserves, body)
        refiner = graph.infer_shapes().refiner
        assert refiner.held_by((seen[0].op, 0)) is None

    def test_a_contradiction_in_the_body_names_the_node(self, graph: Graph) -> None:
        text = GraphDef()
        x = placeholder(graph, [2, 3])
        v1_loop(graph, [x], lambda v: op(graph, "MatMul", v, np.ones([4, 4], np.float32)))
        text.CopyFrom(graph.as_graph_def())
        imported = Graph()
        import_graph_def(text, graph=imported, name="")
        with pytest.raises(InvalidArgumentError, match=r"Dimensions must be equal.*f/MatMul") as e:
            imported.infer_shapes()
        assert e.value.node == "f/MatMul"

    def test_tensors_by_themselves_know_what_tensorflow_knows(self, graph: Graph) -> None:
        """TensorFlow 2.21 gives no shape to a loop that it imports."""
        (result,) = v1_loop(graph, [placeholder(graph, [2, 3])], lambda v: op(graph, "Relu", v))
        imported = Graph()
        import_graph_def(graph.as_graph_def(), graph=imported, name="")
        tensor = imported.get_tensor_by_name(result.name)
        assert tensor.shape.rank is None
        imported.infer_shapes()
        assert tensor.shape.rank is None
        imported.infer_shapes(update=True)
        assert tensor.shape.as_list() == [2, 3]

    def test_declared_shapes_of_the_head_are_merged(self, graph: Graph) -> None:
        x = placeholder(graph)
        (result,) = v1_loop(graph, [x], lambda v: op(graph, "Relu", v))
        text = graph.as_graph_def()
        merge = next(node for node in text.node if node.op == "Merge")
        shape = PartialTensorShape([None, 3]).to_proto()
        merge.attr["_output_shapes"].list.shape.extend([shape, PartialTensorShape([]).to_proto()])
        imported = Graph()
        import_graph_def(text, graph=imported, name="")
        assert dims(imported, imported.get_tensor_by_name(result.name)) == [None, 3]


class TestFunctionalLoops:
    def test_what_the_body_keeps_is_known(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3])
        (result,) = while_loop(graph, [x], lambda g, v: op(g, "Relu", v))
        assert dims(graph, result) == [None, 3]
        outer, inner = known_dims(graph, x, result)
        assert inner[0] is outer[0]
        assert dims(graph, result, {x: [5, 3]}) == [5, 3]

    def test_what_the_body_changes_is_given_up(self, graph: Graph) -> None:
        (result,) = while_loop(graph, [placeholder(graph, [2, 8])], doubled)
        assert dims(graph, result) == [None, 8]
        assert result.shape.as_list() == [2, 8], "as TensorFlow has it, which asks the inputs"

    def test_declared_shapes_count(self, graph: Graph) -> None:
        x = placeholder(graph)
        shapes = [PartialTensorShape([None, 8])]
        (result,) = while_loop(graph, [x], doubled, output_shapes=shapes)
        assert dims(graph, result) == [None, 8]

    def test_declared_shapes_that_contradict_count(self, graph: Graph) -> None:
        """The step that runs the loop tells the error."""
        shapes = [PartialTensorShape([3, None])]
        x = placeholder(graph, [2, 8])
        (result,) = while_loop(graph, [x], lambda g, v: op(g, "Relu", v), output_shapes=shapes)
        assert dims(graph, result) == [3, None]

    def test_a_long_chain_of_changes_is_given_up_as_a_whole(self, graph: Graph) -> None:
        variables = [placeholder(graph, [2, 8]) for _ in range(15)]
        results = while_loop(
            graph, variables, lambda g, a, *rest: [op(g, "ExpandDims", a, 0), a, *rest[:-1]]
        )
        assert [dims(graph, one) for one in results] == [None] * 15

    def test_declared_shapes_that_say_less(self, graph: Graph) -> None:
        x = placeholder(graph, [2, 8])
        shapes = [PartialTensorShape(None)]
        (result,) = while_loop(graph, [x], lambda g, v: op(g, "Relu", v), output_shapes=shapes)
        assert dims(graph, result) == [2, 8]

    def test_variables_that_change_places(self, graph: Graph) -> None:
        variables = [placeholder(graph, [2, 3]), placeholder(graph, [4, 3])]
        results = while_loop(graph, variables, lambda g, a, b: (b, a))
        assert [dims(graph, one) for one in results] == [[None, 3], [None, 3]]

    def test_a_size_that_the_loop_hands_on_is_known(self, graph: Graph) -> None:
        x = placeholder(graph, [6, 2])
        rows = element(graph, op(graph, "Shape", x), 0)
        _, kept, counter = while_loop(
            graph,
            [x, rows, constant(graph, 0)],
            lambda g, v, n, i: (op(g, "Relu", v), n, op(g, "AddV2", i, 1)),
        )
        assert dims(graph, op(graph, "Fill", op(graph, "Pack", [kept]), 1.0)) == [6]
        assert dims(graph, op(graph, "Fill", op(graph, "Pack", [counter]), 1.0)) == [None]

    def test_nested_loops(self, graph: Graph) -> None:
        def outer(g: Graph, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
            return while_loop(g, [a], lambda g, v: op(g, "Transpose", v, [1, 0]))[0], b

        results = while_loop(graph, [placeholder(graph, [2, 3]), placeholder(graph, [2, 3])], outer)
        assert [dims(graph, one) for one in results] == [[None, None], [2, 3]]

    def test_a_body_that_is_missing_leaves_the_ops_own_answer(self, graph: Graph) -> None:
        x = placeholder(graph, [2, 3])
        (result,) = while_loop(graph, [x], lambda g, v: op(g, "Relu", v))
        graph.function_library.remove_function(result.op.get_attr("body").name)
        assert dims(graph, result) == [2, 3]


class TestConditionals:
    def branches(self, graph: Graph) -> dict[str, NameAttrList]:
        then = function(graph, "then", [float32], lambda g, v: op(g, "Relu", v))
        otherwise = function(graph, "else", [float32], doubled)
        return {"then_branch": then, "else_branch": otherwise}

    def test_the_branches_agree_in_part(self, graph: Graph) -> None:
        x = placeholder(graph, [2, 8])
        condition = placeholder(graph, [], DataType.DT_BOOL)
        attrs = self.branches(graph) | {"Tout": [float32]}
        result = op(graph, "StatelessIf", condition, [x], **attrs)
        assert dims(graph, result) == [None, 8]
        assert result.shape.rank is None, "as TensorFlow has it"

    @pytest.mark.parametrize(("condition", "expected"), [(True, [2, 8]), (False, [4, 8])])
    def test_a_known_condition(self, graph: Graph, condition: bool, expected: list[int]) -> None:
        x = placeholder(graph, [2, 8])
        chosen = constant(graph, condition, DataType.DT_BOOL)
        attrs = self.branches(graph) | {"Tout": [float32]}
        result = op(graph, "StatelessIf", chosen, [x], **attrs)
        assert dims(graph, result) == expected
        assert Session(graph).run(result, {x: np.zeros([2, 8])}).shape == tuple(expected)

    @pytest.mark.parametrize(("index", "expected"), [(0, [2, 8]), (1, [4, 8]), (-1, [4, 8])])
    def test_a_case(self, graph: Graph, index: int, expected: list[int]) -> None:
        x = placeholder(graph, [2, 8])
        attrs = {"branches": list(self.branches(graph).values()), "Tout": [float32]}
        known = op(graph, "StatelessCase", constant(graph, index), [x], **attrs)
        assert dims(graph, known) == expected
        unknown = op(graph, "StatelessCase", placeholder(graph, [], int32), [x], **attrs)
        assert dims(graph, unknown) == [None, 8]
        no_index = op(graph, "StatelessCase", constant(graph, [index, 0]), [x], **attrs)
        assert dims(graph, no_index) == [None, 8]

    def test_a_branch_that_cannot_run_is_left_aside(self, graph: Graph) -> None:
        """It may stand behind a condition that never holds."""
        x = placeholder(graph)
        attrs = self.branches(graph) | {"Tout": [float32]}
        attrs["else_branch"] = function(
            graph, "bad", [float32], lambda g, v: op(g, "MatMul", v, np.ones([4, 4], np.float32))
        )
        result = op(graph, "StatelessIf", placeholder(graph, [], DataType.DT_BOOL), [x], **attrs)
        assert dims(graph, result, {x: [2, 8]}) is None

    def test_merged_branches_of_tensorflow_1(self, graph: Graph) -> None:
        x = placeholder(graph, [None, 3])
        condition = placeholder(graph, [], DataType.DT_BOOL)
        switch = graph.create_op("Switch", [x, condition])
        zeros = constant(graph, np.zeros([2, 3]), float32)
        merged = op(graph, "Merge", [op(graph, "Relu", switch.outputs[0]), zeros])
        same = op(graph, "Merge", [op(graph, "Relu", branch) for branch in switch.outputs])
        assert dims(graph, merged) == [None, 3]
        assert dims(graph, merged, {x: [2, 3]}) == [2, 3]
        before, with_zeros, after = known_dims(graph, x, merged, same)
        assert with_zeros[0] is not before[0]
        assert after[0] is before[0]
