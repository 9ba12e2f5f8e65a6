"""Passes leave operations in the loops that they are in: TensorFlow's loops, and random ones that compute with sizes.

`frames_are_checked` looks after each pass, here and in all tests of this folder. `tools/record_loops.py` has recorded
the loops of TensorFlow.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimization.frame_check import frames_are_checked
from tests.optimization.optimizing import check_same, optimized
from tests.optimization.random_graph import RandomGraph
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, Builder

import opkernel
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.types import PartialTensorShape

RECORDED = Path(__file__).with_name("tensorflow_loops.npz")
MODELS = [
    "conditional",
    "conditional_1",
    "gradient_1",
    "lstm",
    "lstm_1",
    "lstm_of_any_time",
    "nested",
    "nested_1",
]


@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
@pytest.mark.parametrize("model", MODELS)
def test_loops_of_tensorflow_are_optimized_and_give_its_results(model, executor):
    with np.load(RECORDED) as recorded:
        arrays = {
            name.removeprefix(f"{model}/"): recorded[name]
            for name in recorded
            if name.startswith(f"{model}/")
        }
    graph_def = opkernel.proto.GraphDef.FromString(arrays.pop("graph").tobytes())
    feeds = {"x:0": arrays.pop("x:0")}
    ((fetch, expected),) = arrays.items()
    graph = opkernel.Graph()
    with graph.as_default():
        opkernel.import_graph_def(graph_def, name="")
    with frames_are_checked() as passes, opkernel.Session(graph, executor_type=executor) as session:
        for _ in range(4):
            np.testing.assert_allclose(session.run(fetch, feeds), expected, rtol=1e-4)
    assert {"shape_materialization", "common_subexpressions"} <= set(passes)


@given(st.data())
@settings(max_examples=40)
def test_random_loops_that_carry_sizes_give_the_same_with_all_passes(data):
    random = RandomGraph(data)
    for _ in range(data.draw(st.integers(1, 3))):
        random.made.append(random._sized())
    x = np.random.default_rng(0).normal(size=(2, 3, 3)).astype("f4")
    check_same(random.b, random.made[-1], {random.x: x, random.p: True}, rtol=1e-4)


def test_a_known_size_is_a_constant_in_the_loop_and_an_enter_stays():
    b = Builder()
    x = b.op("Placeholder", name="x", dtype=FLOAT, shape=PartialTensorShape([None, 3]))
    bounds = [b.constant([at], "i4") for at in (1, 2, 1)]
    size = b.op("StridedSlice", b.op("Shape", x), *bounds, shrink_axis_mask=1)

    def body(i, y, n):
        twice = b.op("Mul", n, b.constant(2), name="twice")
        grown = b.op("AddV2", y, b.op("Cast", twice, SrcT=twice.dtype, DstT=FLOAT))
        return [b.op("AddV2", i, b.constant(1)), grown]

    y = b.while_loop(lambda i, y, n: b.op("Less", i, n), body, [b.constant(0), x], [size])[1]
    graph = optimized(b, y, "shape_materialization")
    twice = next(op for op in graph.operations if op.name == "twice")
    assert twice.type == "Const"
    assert "Enter" in {op.type for op in twice.control_inputs}
    assert sum(op.type == "Enter" for op in graph.operations) == 3
    assert b.run(y, {x: np.zeros((1, 3), "f4")}).tolist() == [[18, 18, 18]]


def test_a_constant_in_the_place_of_what_a_switch_gives_waits_for_its_side():
    b = Builder()
    x = b.op("Placeholder", name="x", dtype=FLOAT, shape=PartialTensorShape([2, 3]))
    y = b.cond(
        b.placeholder("p", BOOL),
        lambda x: [b.op("Rank", x)],
        lambda x: [b.op("Size", x)],
        [x],
    )[0]
    assert not {"Rank", "Size"} & {op.type for op in optimized(b, y).operations}
    for chosen, value in ((True, 2), (False, 6)):
        assert b.run(y, {"p:0": chosen, x: np.zeros((2, 3), "f4")}) == value


def test_what_a_pass_adds_in_a_loop_is_known_to_be_in_it():
    b = Builder()
    b.while_loop(
        lambda i: b.op("Less", i, b.constant(3)),
        lambda i: [b.op("AddV2", i, b.constant(1))],
        [b.constant(0)],
    )
    editor = GraphEditor(b.graph, b.graph.get_operations())
    head = next(op for op in b.graph.get_operations() if op.type == "Merge")
    assert not editor.is_conditional(editor.constant(1).op)
    inside = editor.constant(1, control_inputs=[head])
    assert editor.is_conditional(inside.op)
    assert editor.is_conditional(editor.add("Neg", [inside]))
