"""opkernel.gradients: what it gives for whole graphs."""

import importlib

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError

FLOAT = opkernel.float32


@pytest.fixture
def graph():
    graph = Graph()
    with graph.as_default():
        yield graph


def run(fetches, feeds=None):
    return Session(opkernel.graph.get_default_graph()).run(fetches, feeds)


def test_the_sum_of_results_is_differentiated(graph):
    x = opkernel.constant([1.0, 2, 3])
    (dx,) = opkernel.gradients([x * x, 5 * x], x)
    np.testing.assert_array_equal(run(dx), [7, 9, 11])
    assert dx.name == "gradients/AddN:0"
    assert dx.shape.as_list() == [3]


def test_results_are_weighted_by_grad_ys(graph):
    x = opkernel.constant([1.0, 2])
    y, z = x * x, x + 1
    (dx,) = opkernel.gradients([y, z], [x], grad_ys=[[10.0, 100], None])
    np.testing.assert_array_equal(run(dx), [21, 401])


def test_a_result_by_itself_has_the_gradient_one(graph):
    x = opkernel.constant([3.0, 4])
    np.testing.assert_array_equal(run(opkernel.gradients(x, x)[0]), [1, 1])


def test_gradients_by_tensors_that_depend_on_each_other(graph):
    x = opkernel.constant(3.0)
    y = x * x
    dx, dy = opkernel.gradients(y * y, [x, y])
    assert run([dx, dy]) == [108, 18]


def test_stops_count_as_constant(graph):
    a = opkernel.constant(0.0)
    b = 2 * a
    assert run(opkernel.gradients(a + b, [a, b])) == [3, 1]
    assert run(opkernel.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1, 1]
    stopped = raw_ops.StopGradient(input=b)
    assert run(opkernel.gradients(a + stopped, a)) == [1]


def test_what_is_not_connected_has_no_gradient(graph):
    x, other = opkernel.constant([1.0]), opkernel.constant([[2.0, 3]])
    assert opkernel.gradients(x * 2, [other]) == [None]
    (zeros,) = opkernel.gradients(x * 2, [other], unconnected_gradients="zero")
    np.testing.assert_array_equal(run(zeros), [[0, 0]])
    with pytest.raises(ValueError, match="unconnected_gradients"):
        opkernel.gradients(x, x, unconnected_gradients="some")


def test_integers_have_no_gradient(graph):
    x = opkernel.constant([1.5, 2.5])
    y = raw_ops.Cast(x=raw_ops.Cast(x=x, DstT=opkernel.int32), DstT=FLOAT)
    assert opkernel.gradients(y, x) == [None]


def test_gradients_are_added_one_by_one_if_asked_for(graph):
    x = opkernel.constant(2.0)
    y = x + x * x + 3 * x
    (dx,) = opkernel.gradients(y, x, aggregation_method="experimental_tree")
    assert run(dx) == 8
    assert [len(op.inputs) for op in graph.get_operations() if op.type == "AddN"] == [2, 2, 2]
    with pytest.raises(ValueError, match=r"aggregation_method must be one of .*, not 'sorted'"):
        opkernel.gradients(y, x, aggregation_method="sorted")


def test_complex_results_need_grad_ys(graph):
    x = opkernel.constant([1 + 2j], opkernel.complex64)
    with pytest.raises(InvalidArgumentError, match="must set grad_ys"):
        opkernel.gradients(x * x, x)
    (dx,) = opkernel.gradients(x * x, x, grad_ys=[opkernel.constant([1j], opkernel.complex64)])
    np.testing.assert_array_equal(run(dx), [4 + 2j])  # 1j * conj(2 * x)


def test_grad_ys_have_to_fit(graph):
    x = opkernel.constant([1.0])
    with pytest.raises(InvalidArgumentError, match="grad_ys has 2 gradients for 1 ys"):
        opkernel.gradients(x, x, grad_ys=[x, x])
    weight = opkernel.constant([1j], opkernel.complex64)
    with pytest.raises(InvalidArgumentError, match=r"complex64 .* float"):
        opkernel.gradients(x * 2, x, grad_ys=weight)


def test_an_op_without_gradient_is_named(graph):
    x = opkernel.constant([1.0])
    y = raw_ops.Bitcast(input=x, type=FLOAT, name="same")
    with pytest.raises(NotFoundError, match=r"'same' \(op type: Bitcast\)"):
        opkernel.gradients(y, x)
    assert opkernel.gradients(raw_ops.OnesLike(x=x), x) == [None]


def test_tensors_are_of_one_graph(graph):
    x = opkernel.constant([1.0])
    with Graph().as_default():
        y = opkernel.constant([1.0])
    with pytest.raises(InvalidArgumentError, match="not an element of this graph"):
        opkernel.gradients(y, x)
    with pytest.raises(TypeError, match="xs must be tensors of a graph, not 1"):
        opkernel.gradients(x, 1)


def test_finalized_graphs_get_no_gradients(graph):
    x = opkernel.constant([1.0])
    graph.finalize()
    with pytest.raises(FailedPreconditionError):
        opkernel.gradients(x, x)


def test_rows_that_were_used_are_all_of_the_gradient(graph):
    table = opkernel.constant(np.arange(8, dtype=np.float32).reshape(4, 2))
    rows = raw_ops.GatherV2(params=table, indices=[3, 1, 3], axis=0)
    (slices,) = opkernel.gradients(rows * rows, table)
    assert isinstance(slices, opkernel.IndexedSlices)
    values, indices, shape = run(slices)
    np.testing.assert_array_equal(values, [[12, 14], [4, 6], [12, 14]])
    assert (indices.tolist(), shape.tolist()) == ([3, 1, 3], [4, 2])
    dense = slices.to_tensor()
    np.testing.assert_array_equal(run(dense), [[0, 0], [4, 6], [0, 0], [24, 28]])
    assert slices.to_tensor() is dense


def test_slices_are_fetched_as_their_parts(graph):
    table = opkernel.constant(np.zeros((3, 1)))
    rows = raw_ops.GatherV2(params=table, indices=[2], axis=0)
    (slices,) = opkernel.gradients(rows, table)
    found = run({"slices": slices, "rows": rows})["slices"]
    assert isinstance(found, opkernel.IndexedSlicesValue)
    assert (found.values.tolist(), found.indices.tolist()) == ([[1]], [2])
    without_shape = opkernel.IndexedSlices(slices.values, slices.indices)
    assert run([without_shape])[0].dense_shape is None


def test_rows_that_were_used_twice_are_put_together(graph):
    table = opkernel.constant(np.ones((3, 2), np.float32))
    few = raw_ops.GatherV2(params=table, indices=[2], axis=0)
    others = raw_ops.GatherV2(params=table, indices=np.array([0, 2]), axis=0)
    (slices,) = opkernel.gradients([few, others * 3], table)
    assert run([slices.values, slices.indices])[1].tolist() == [2, 0, 2]
    (dense,) = opkernel.gradients([few, others * 3, table], table)
    np.testing.assert_array_equal(run(dense), [[4, 4], [1, 1], [5, 5]])


def test_rows_of_values_that_were_put_together(graph):
    first, second = opkernel.constant(np.ones((2, 2))), opkernel.constant(np.ones((3, 2)))
    both = raw_ops.ConcatV2(values=[first, second], axis=0)
    rows = raw_ops.GatherV2(params=both, indices=[4, 0, 2], axis=0)
    for_first, for_second = opkernel.gradients(rows, [first, second])
    assert run([for_first.indices, for_second.indices])[1].tolist() == [2, 0]
    np.testing.assert_array_equal(run(for_first.to_tensor()), [[1, 1], [0, 0]])
    np.testing.assert_array_equal(run(for_second.to_tensor()), [[1, 1], [0, 0], [1, 1]])


def test_the_gradient_of_a_resource_variable_is_that_of_its_handle(graph):
    handle = raw_ops.VarHandleOp(dtype=FLOAT, shape=[2])
    assign = raw_ops.AssignVariableOp(resource=handle, value=[1.0, 2])
    value = raw_ops.ReadVariableOp(resource=handle, dtype=FLOAT)
    unused = raw_ops.VarHandleOp(dtype=FLOAT, shape=[3], shared_name="unused")
    gradient, zeros = opkernel.gradients(
        value * value, [handle, unused], unconnected_gradients="zero"
    )
    with Session(graph) as session:
        session.run(assign)
        session.run(raw_ops.AssignVariableOp(resource=unused, value=[1.0, 1, 1]))
        np.testing.assert_array_equal(session.run(gradient), [2, 4])
        np.testing.assert_array_equal(session.run(zeros), [0, 0, 0])


def test_the_gradient_of_rows_of_a_variable(graph):
    handle = raw_ops.VarHandleOp(dtype=FLOAT, shape=[3, 2])
    assign = raw_ops.AssignVariableOp(resource=handle, value=np.ones((3, 2), np.float32))
    rows = raw_ops.ResourceGather(resource=handle, indices=[2, 2], dtype=FLOAT)
    (slices,) = opkernel.gradients(rows * 5, handle)
    with Session(graph) as session:
        session.run(assign)
        np.testing.assert_array_equal(session.run(slices.to_tensor()), [[0, 0], [0, 0], [10, 10]])


def test_the_gradient_of_a_reference_variable(graph):
    variable = raw_ops.VariableV2(shape=[2], dtype=FLOAT)
    assign = raw_ops.Assign(ref=variable, value=[1.0, 2])
    read = raw_ops.Identity(input=variable)
    (gradient,) = opkernel.gradients(read * read, variable)
    with Session(graph) as session:
        session.run(assign)
        np.testing.assert_array_equal(session.run(gradient), [2, 4])


@pytest.mark.parametrize(("taken", "expected"), [(True, 6.0), (False, 2.0)])
def test_conditionals_of_tensorflow_1(graph, taken, expected):
    x, predicate = opkernel.constant(3.0), opkernel.placeholder("bool", [])
    when_false, when_true = raw_ops.Switch(data=x, pred=predicate)
    merged = raw_ops.Merge(inputs=[when_false * 2, when_true * when_true])
    (dx,) = opkernel.gradients(merged.output, x)
    assert run(dx, {predicate: taken}) == expected


def test_gradients_of_gradients(graph):
    x = opkernel.constant(2.0)
    (first,) = opkernel.gradients(x * x * x, x)
    (second,) = opkernel.gradients(first, x)
    assert run([first, second]) == [12, 12]
    assert second.name.startswith("gradients_1/")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("version", "producer"), [("V3", 1900), ("V2", 25), ("", 15)])
def test_the_rows_of_a_tensor_array(graph, version, producer):
    """As TensorFlow's loops use them: written one by one, read one by one."""

    def apply(method, **inputs):
        return getattr(raw_ops, f"TensorArray{method}{version}")(**inputs)

    graph.graph_def_versions.producer = producer  # the old ones are for old graphs alone
    x = opkernel.constant([[1.0, 2], [3, 4]])
    array = apply("", size=2, dtype=FLOAT, clear_after_read=False)
    handle = array.handle if version == "V3" else array
    with graph.control_dependencies([handle]):
        first = opkernel.constant(0.0)
    flow = apply("Scatter", handle=handle, indices=[0, 1], value=x, flow_in=first)
    rows = [apply("Read", handle=handle, index=i, flow_in=flow, dtype=FLOAT) for i in (1, 1, 0)]
    (dx,) = opkernel.gradients([rows[0] * 2, rows[1] * rows[1], rows[2]], x)
    np.testing.assert_array_equal(run(dx), [[1, 1], [8, 10]])


def test_the_module_is_the_room_and_is_called(graph):
    room = importlib.import_module("opkernel.gradients")
    x = opkernel.constant(2.0)
    assert vars(opkernel)["gradients"] is room
    assert run(opkernel.gradients(x * x, x)) == [4]
