"""Shapes that are only stated: who asks is told them, and no pass relies on them.

TensorFlow's shape functions contradict its kernels in the cases below. The stated shapes are those of
TensorFlow 2.21; each value has the shape that TensorFlow's kernel gives.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.graph import node_def
from opkernel.opdef import InferenceContext, OpRegistry, register_op, run_shape_fn
from opkernel.opdef.common_shapes import scalar_shape
from opkernel.proto import GraphDef

IMAGES = np.ones((1, 6, 6, 1), np.float32)
MATRIX = np.ones((3, 4), np.float32)


def sequence(x: Any, _: Any) -> Any:
    return raw_ops.FractionalMaxPool(value=x, pooling_ratio=[1.0, 1.5, 1.5, 1.0])[1]


def gathered(x: Any, axis: Any) -> Any:
    return raw_ops.GatherV2(params=x, indices=np.zeros((3, 2), np.int32), axis=axis, batch_dims=-1)


def counted(x: Any, size: Any) -> Any:
    return raw_ops.DenseBincount(input=x, size=size, weights=np.zeros(0, np.float32))


def range_of_the_only_slice(x: Any, _: Any) -> Any:
    low, high = np.zeros(1, np.float32), np.ones(1, np.float32)
    quantized = raw_ops.QuantizeV2(
        input=x, min_range=low, max_range=high, T=opkernel.quint8, mode="SCALED", axis=0
    )
    return quantized[1]


def image_gradient(x: Any, grads: Any) -> Any:
    return raw_ops.ResizeBilinearGrad(grads=grads, original_image=x)


def candidates(x: Any, _: Any) -> Any:
    return raw_ops.ApproxTopK(input=x, k=0, aggregate_to_topk=False)[0]


def backprop(x: Any, labels: Any) -> Any:
    return raw_ops.SoftmaxCrossEntropyWithLogits(features=x, labels=labels)[1]


def matrices(x: Any, rows: Any) -> Any:
    return raw_ops.MatrixDiagV3(
        diagonal=x, k=0, num_rows=rows, num_cols=-1, padding_value=np.float32(0)
    )


def patches(x: Any, _: Any) -> Any:
    ones = [1] * 5
    return raw_ops.ExtractVolumePatches(input=x, ksizes=ones, strides=ones, padding="VALID")


CASES: list[tuple[Callable[[Any, Any], Any], Any, Any, Any, Any]] = [
    # op, first input, its known shape, second input, the stated shape
    (sequence, IMAGES, [1, 6, 6, 1], np.int32(0), "[4]"),
    (gathered, MATRIX, [3, 4], np.int32(1), "[?,?,?,?]"),
    (counted, np.int32(2), [], np.int32(5), "[]"),
    (range_of_the_only_slice, MATRIX[:1], [1, 4], 0, "[1]"),
    (image_gradient, IMAGES, [1, 6, 6, 1], np.ones((1, 2, 2, 3), np.float32), "[1,6,6,1]"),
    (candidates, np.ones(7, np.float32), [7], 0, "[7]"),
    (backprop, np.ones((3, 1), np.float32), [3, 1], MATRIX, "[3,1]"),
    (matrices, np.ones(2, np.float32), [2], np.int32(4), "[2,2]"),
    (patches, np.ones((1, 2, 2, 2, 1), np.float32), None, 0, "[?,?,?,?]"),
]


@pytest.mark.parametrize(
    ("op", "value", "shape", "other", "stated"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_shape_and_rank_are_those_of_the_value(
    op: Callable[[Any, Any], Any], value: Any, shape: Any, other: Any, stated: str
) -> None:
    other = np.asarray(other)
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(np.asarray(value).dtype, shape)
        y = opkernel.placeholder(other.dtype, [] if other.ndim == 0 else None)
        tensor = op(x, y)
        asked = [raw_ops.Shape(input=tensor), raw_ops.Rank(input=tensor), tensor]
    assert str(tensor.shape) == stated
    feeds = {x: value, y: other}
    found = opkernel.Session(graph).run(asked, feeds)
    assert found[0].tolist() == list(np.shape(found[2]))
    assert found[1] == np.ndim(found[2])
    made = opkernel.optimize_graph(graph, asked, [x, y])
    again = opkernel.Session(made.graph).run(
        made.fetches, {made.feeds[0]: value, made.feeds[1]: other}
    )
    assert again[0].tolist() == found[0].tolist()


def shape_of_a_call(stated_sizes: list[int]) -> tuple[opkernel.Graph, Any, Any]:
    """A graph, its placeholder, and what a function returns that states `_output_shapes` in its body."""

    @opkernel.function
    def same(x: Any) -> Any:
        return raw_ops.Identity(input=x)

    with opkernel.Graph().as_default() as graph:
        same(opkernel.placeholder(np.float32, name="x"))
    graph_def: GraphDef = graph.as_graph_def()
    (body,) = graph_def.library.function
    body.attr["_noinline"].b = True
    for node in body.node_def:
        if node.op == "Identity":
            shape = node.attr["_output_shapes"].list.shape.add()
            for size in stated_sizes:
                shape.dim.add().size = size
    with opkernel.Graph().as_default() as imported:
        opkernel.import_graph_def(graph_def, name="")
    (call,) = (op for op in imported.get_operations() if "Call" in op.type)
    return imported, imported.get_tensor_by_name("x:0"), call.outputs[0]


@pytest.mark.parametrize(
    "ask", [lambda graph, result: result.shape, lambda graph, _: graph.infer_shapes()]
)
def test_what_a_body_states_holds_for_who_asks_alone(ask: Callable[[Any, Any], Any]) -> None:
    graph, x, result = shape_of_a_call([4])
    with graph.as_default():
        shape = raw_ops.Shape(input=result)
    ask(graph, result)
    assert str(result.shape) == "[4]"
    made = opkernel.optimize_graph(graph, [shape], [x])
    value = np.ones(7, np.float32)
    assert opkernel.Session(graph).run(shape, {x: value}).tolist() == [7]
    assert opkernel.Session(made.graph).run(made.fetches[0], {made.feeds[0]: value}).tolist() == [7]


def test_a_doubt_ends_when_the_shape_function_learns_more() -> None:
    """The function is run again once the constants are known that it asked for."""
    registry = OpRegistry()

    def of_size(c: InferenceContext) -> None:
        size = c.input_tensor(0)
        c.set_output(0, c.vector(9 if size is None else int(size)))
        if size is None:
            c.doubt_output(0)

    register_op(
        "OfSize", inputs=["n: int32"], outputs=["y: float"], shape_fn=of_size, registry=registry
    )
    registration = registry.look_up("OfSize")
    context = InferenceContext(registration.op_def, node_def("node", "OfSize", ["n"]), [[]])
    run_shape_fn(registration, context)
    assert (str(context.output(0)), context.reliable_outputs()) == ("[9]", [None])
    context.set_input_tensors([np.int32(3)])
    run_shape_fn(registration, context)
    assert [str(shape) for shape in context.reliable_outputs()] == ["[3]"]


def test_only_outputs_that_exist_are_doubted() -> None:
    registry = OpRegistry()
    register_op("One", outputs=["y: float"], shape_fn=scalar_shape, registry=registry)
    context = InferenceContext(registry.look_up_op_def("One"), node_def("node", "One"), [])
    with pytest.raises(InvalidArgumentError, match="One has no output 1"):
        context.doubt_output(1)
