"""The passes between MarkForCompilation and EncapsulateSubgraphs.

The cases are those of TensorFlow's increase_dynamism_for_auto_jit_pass_test.cc and partially_decluster_pass_test.cc. What
is in clusters afterwards is what TensorFlow 2.21 dumps before EncapsulateSubgraphs, but for constants and what needs them.
"""

import numpy as np
import pytest
from tests.optimization.clusters.marking import passed

import opkernel
from opkernel import raw_ops
from opkernel.graph import Graph
from opkernel.optimization.clusters.marks import (
    CLUSTER,
    COMPILE_TIME_CONSTANT_INPUTS,
    cluster_of,
)
from opkernel.proto import AttrValue
from opkernel.types import DataType

FLOAT, INT32, INT64 = DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_INT64
SLICES, DECLUSTER = "increase_dynamism_for_auto_jit", "partially_decluster"


def placeholder(name="x", dtype=FLOAT, shape=None):
    return raw_ops.Placeholder(dtype=dtype, shape=shape, name=name)


def marked(graph, **clusters):
    """The graph with nodes in clusters."""
    for cluster, names in clusters.items():
        for name in names.split():
            value = AttrValue(s=cluster.encode())
            graph.get_operation_by_name(name).set_attr(CLUSTER, value)
    return graph


def inside(ops):
    """The names of the operations that are in clusters."""
    return {name for name, op in ops.items() if cluster_of(op)}


# IncreaseDynamismForAutoJit


def slices(size, begin_type=INT32, shape=None, clusters="slice size"):
    with Graph().as_default() as graph:
        begin = placeholder("begin", begin_type, [len(np.atleast_1d(size))])
        sizes = opkernel.constant(size, begin_type, name="size")
        raw_ops.Slice(input=placeholder("x", shape=shape), begin=begin, size=sizes, name="slice")
    return marked(graph, c=clusters)


def the_slice(graph):
    return passed(graph, SLICES)["slice"]


def test_sizes_that_say_all_are_what_the_compiler_must_know():
    op = the_slice(slices([2, 500]))
    assert op.attr[COMPILE_TIME_CONSTANT_INPUTS].list.s == [b"size"]
    _, begin, size = op.inputs
    assert begin.dtype is INT64
    assert begin.op.type == "Cast"
    assert size.op.type == "Const"
    assert cluster_of(begin.op) == cluster_of(op) == "c"


def sizes_of(graph, **feeds):
    """The sizes that the Slice takes after the pass."""
    ops = passed(graph, SLICES)
    size = ops["slice"].inputs[2]
    with opkernel.Session(size.op.graph, jit="off") as session:
        given = {ops[name].outputs[0]: value for name, value in feeds.items()}
        return session.run(size, given).tolist()


def test_a_size_of_what_is_left_is_computed():
    assert sizes_of(slices([-1, 500]), x=np.zeros((7, 900)), begin=[2, 3]) == [5, 500]


def test_the_shape_is_no_input_where_the_size_that_matters_is_known():
    assert sizes_of(slices([-1, 2], shape=[7, None]), begin=[4, 1]) == [3, 2]


def test_indices_of_64_bits_are_taken_as_they_are():
    graph = slices([-1, 500], INT64)
    assert the_slice(graph).inputs[1].op.name == "begin"


def test_control_edges_of_a_slice_stay():
    graph = slices([-1, 500])
    with graph.as_default():
        waited_for = placeholder("flag", DataType.DT_BOOL)
    graph.get_operation_by_name("slice").add_control_inputs([waited_for.op])
    assert [op.name for op in the_slice(graph).control_inputs] == ["flag"]


def test_a_slice_of_a_slice():
    graph = slices([-1, 500])
    with graph.as_default():
        first = graph.get_tensor_by_name("slice:0")
        begin = graph.get_tensor_by_name("begin:0")
        raw_ops.Slice(input=first, begin=begin, size=[-1, 200], name="second")
    ops = passed(marked(graph, c="second"), SLICES)
    for name in ("slice", "second"):
        assert COMPILE_TIME_CONSTANT_INPUTS in ops[name].attr
    assert ops["second"].inputs[0].op is ops["slice"]


@pytest.mark.parametrize("clusters", ["", "size"])
def test_a_slice_outside_of_clusters_stays(clusters):
    assert COMPILE_TIME_CONSTANT_INPUTS not in the_slice(slices([-1, 5], clusters=clusters)).attr


def test_a_slice_of_sizes_that_are_no_constants_stays():
    with Graph().as_default() as graph:
        begin, size = placeholder("begin", INT64), placeholder("size", INT64)
        raw_ops.Slice(input=placeholder(), begin=begin, size=size, name="slice")
    assert COMPILE_TIME_CONSTANT_INPUTS not in the_slice(marked(graph, c="slice")).attr


def test_a_slice_that_always_begins_at_one_place_stays():
    with Graph().as_default() as graph:
        raw_ops.Slice(input=placeholder(), begin=[1, 0], size=[-1, 2], name="slice")
    assert COMPILE_TIME_CONSTANT_INPUTS not in the_slice(marked(graph, c="slice")).attr


# PartiallyDecluster


def reshaped(shape_of):
    """A Reshape, in the cluster c, by what `shape_of` computes."""
    with Graph().as_default() as graph:
        shape = shape_of()
        result = raw_ops.Reshape(tensor=placeholder("input"), shape=shape, name="reshape")
        raw_ops.Tanh(x=result, name="tanh")
    return marked(graph, c="reshape tanh")


def sum_of_two():
    a, b = (placeholder(name, INT32, [1]) for name in "ab")
    return raw_ops.Mul(x=raw_ops.Sub(x=a, y=b, name="difference"), y=b, name="shape")


def test_what_a_shape_is_computed_from_leaves_its_cluster():
    ops = passed(marked(reshaped(sum_of_two), c="difference shape"), DECLUSTER)
    assert inside(ops) == {"reshape", "tanh"}


def test_what_others_compute_is_not_looked_at():
    ops = passed(marked(reshaped(sum_of_two), d="difference shape"), DECLUSTER)
    assert inside(ops) == {"difference", "shape", "reshape", "tanh"}


def test_an_operation_on_the_shape_of_what_the_cluster_computes_stays():
    def shape_of():
        product = raw_ops.Mul(x=placeholder(), y=placeholder("y"), name="product")
        own = raw_ops.Shape(input=product, name="shape_of")
        return raw_ops.AddV2(x=own, y=placeholder("a", INT32, [1]), name="shape")

    names = "product shape_of shape"
    ops = passed(marked(reshaped(shape_of), c=names), DECLUSTER)
    assert inside(ops) == {*names.split(), "reshape", "tanh"}


@pytest.mark.parametrize("op", ["Shape", "Size", "Rank"])
def test_the_shape_of_an_input_is_taken_outside(op):
    def shape_of():
        found = getattr(raw_ops, op)(input=placeholder(), name="found")
        return found if op == "Shape" else raw_ops.ExpandDims(input=found, axis=[0], name="more")

    names = "found" if op == "Shape" else "found more"
    ops = passed(marked(reshaped(shape_of), c=names), DECLUSTER)
    assert inside(ops) == {"reshape", "tanh", *names.split()} - {"found"}


def test_a_constant_holds_nothing_in_a_cluster():
    """In TensorFlow the constant stays in the cluster, and so does the sum."""

    def shape_of():
        a = placeholder("a", INT32, [1])
        one = raw_ops.Const(value=[1], dtype=INT32, name="one")
        return raw_ops.AddV2(x=a, y=one, name="shape")

    ops = passed(marked(reshaped(shape_of), c="one shape"), DECLUSTER)
    assert inside(ops) == {"reshape", "tanh"}


def host_graph():
    """Shapes of x, in host memory: one for a Reshape in the cluster, all for one of strings."""
    with Graph().as_default() as graph:
        (shape,) = raw_ops.ShapeN(input=[placeholder()], name="shapes")
        raw_ops.Reshape(tensor=placeholder("y"), shape=shape, name="inside")
        text = placeholder("text", DataType.DT_STRING)
        raw_ops.Reshape(tensor=text, shape=shape, name="outside")
    return graph


def test_what_is_needed_in_host_memory_is_computed_outside_too():
    ops = passed(marked(host_graph(), c="shapes inside"), DECLUSTER)
    assert ops["outside"].inputs[1].op.name == "shapes/declustered"
    assert not cluster_of(ops["shapes/declustered"])
    assert ops["inside"].inputs[1].op.name == "shapes"


def test_other_clusters_take_the_clone_as_well():
    ops = passed(marked(host_graph(), c="shapes inside", d="outside"), DECLUSTER)
    assert ops["outside"].inputs[1].op.name == "shapes/declustered"


def test_what_is_not_needed_in_host_memory_is_not_cloned():
    with Graph().as_default() as graph:
        (shape,) = raw_ops.ShapeN(input=[placeholder()], name="shapes")
        raw_ops.Reshape(tensor=placeholder("y"), shape=shape, name="inside")
        raw_ops.Neg(x=shape, name="outside")
    ops = passed(marked(graph, c="shapes inside"), DECLUSTER)
    assert ops["outside"].inputs[0].op.name == "shapes"
