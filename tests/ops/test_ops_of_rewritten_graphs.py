"""Ops with an underscore that TensorFlow's passes and older programs put into graphs; values are TensorFlow 2.21's."""

import numpy as np
import pytest

import opkernel
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, func, function_def, graph_def, import_graph_def, node_def
from opkernel.testing import run_op

FLOAT = opkernel.float32


def outputs_of(op, inputs, **attrs):
    (output,) = run_op(op, inputs, attrs=attrs).outputs
    return output


def test_those_that_are_other_ops_by_another_name():
    x = np.array([1.7, -2.5], np.float32)
    assert outputs_of("_HostCast", [x], DstT=opkernel.int32).tolist() == [1, -2]
    assert outputs_of("_EagerConst", [x]) is x


@pytest.mark.parametrize(
    ("dtype", "expected", "tolerance"),
    [
        (np.float32, [1.7293102, 4.860488], 1e-6),
        (np.float16, [1.7295, 4.86], 1e-3),
        (np.float64, [1.729310137, 4.860487943], 1e-8),
    ],
)
def test_functions_one_after_another(dtype, expected, tolerance):
    found = outputs_of(
        "_UnaryOpsComposition", [dtype([0.3, -2.5])], op_names=["Abs", "Sqrt", "Exp"]
    )
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=tolerance)


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        ([], "Unary op composition must have at least one op"),
        (["Tanh", "Softplus"], "Do not have a compute function registered for op: Softplus"),
    ],
)
def test_functions_that_are_refused(ops, message):
    with pytest.raises(InvalidArgumentError, match=message):
        outputs_of("_UnaryOpsComposition", [np.float32([1])], op_names=ops)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_buckets_of_numbers(dtype):
    found = outputs_of("_TensorToHashBucketFast", [dtype([0, 1, 127, 100])], num_buckets=1000)
    assert found.tolist() == [735, 849, 220, 355]


def test_buckets_of_negative_and_of_many_numbers():
    numbers = np.array([[-5, -(2**63)]] * 30)
    found = outputs_of("_TensorToHashBucketFast", [numbers], num_buckets=10**9)
    assert found.tolist() == [[903905816, 208774112]] * 30


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64])
def test_buckets_of_unsigned_numbers_are_refused(dtype):
    with pytest.raises(InvalidArgumentError, match="Type not supported"):
        outputs_of("_TensorToHashBucketFast", [dtype([1])], num_buckets=10)


def test_rows_that_are_set_one_by_one():
    start = outputs_of("_ParallelConcatStart", [], shape=[2, 3], dtype=FLOAT)
    assert (start.shape, start.dtype) == ((2, 3), np.float32)
    zeros, row = np.zeros((2, 3), np.float32), np.float32([[1, 2, 3]])
    for loc in (1, -1):
        found = outputs_of("_ParallelConcatUpdate", [zeros, row], loc=loc)
        assert found.tolist() == [[0, 0, 0], [1, 2, 3]]
    assert not zeros.any()


@pytest.mark.parametrize(
    ("value", "update", "loc", "message"),
    [
        ((2, 3), (1, 3), 2, "0th dimension of value = 2 must be greater than loc_ = 2"),
        ((2, 3), (2, 3), 0, "update shape doesn't match"),
        ((2, 3), (1, 2), 0, "value and update shape doesn't match"),
        ((2, 3), (3,), 0, "value and update shape doesn't match"),
        ((), (), 0, "value should be at least rank 1"),
        ((0, 3), (1, 3), -1, "update shape doesn't match|beyond"),
    ],
)
def test_rows_that_are_refused(value, update, loc, message):
    tensors = [np.zeros(value, np.float32), np.ones(update, np.float32)]
    if value == (0, 3):  # there is no row to set
        assert outputs_of("_ParallelConcatUpdate", tensors, loc=loc).shape == (0, 3)
        return
    with pytest.raises(InvalidArgumentError, match=message):
        outputs_of("_ParallelConcatUpdate", tensors, loc=loc)


def scalar_function(name, op, number, result="float"):
    nodes = [
        node_def("k", "Const", value=np.float32(number), dtype=FLOAT),
        node_def("n", op, ["x", "k:output:0"], T=FLOAT),
    ]
    return function_def(name, ["x: float"], [f"y: {result}"], nodes, ret={"y": "n:z:0"})


FUNCTIONS = [
    scalar_function("Twice", "Mul", 2),
    scalar_function("Less1", "Sub", 1),
    scalar_function("Small", "Less", 10, "bool"),
]


@pytest.mark.parametrize("executor", ["", "DATAFLOW", "SINGLE_THREADED_EXECUTOR"])
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(
    ("condition", "dtype", "expected"),
    [
        (True, opkernel.bool, 3),
        (False, opkernel.bool, 0.5),
        (3, opkernel.int32, 3),
        (b"", opkernel.string, 0.5),
        ([1.0], FLOAT, 3),
    ],
)
def test_control_flow_of_older_programs(condition, dtype, expected, optimize, executor):
    branches = {"then_branch": func("Twice"), "else_branch": func("Less1")}
    nodes = [
        node_def("c", "Placeholder", dtype=dtype),
        node_def("x", "Placeholder", dtype=FLOAT),
        node_def("if", "_If", ["c", "x"], Tcond=dtype, Tin=[FLOAT], Tout=[FLOAT], **branches),
        node_def("while", "_While", ["x"], T=[FLOAT], cond=func("Small"), body=func("Twice")),
    ]
    graph = Graph()
    with graph.as_default():
        import_graph_def(graph_def(nodes, FUNCTIONS), name="")
    config = opkernel.SessionConfig(executor_type=executor)
    with opkernel.Session(graph, config=config, optimize=optimize) as session:
        found = session.run(["if:0", "while:0"], {"c:0": condition, "x:0": 1.5})
    assert found == [expected, 12]
