"""`constant` and `placeholder`: types and shapes are those that TensorFlow's tf.constant gives."""

from typing import Any

import numpy as np
import pytest

from opkernel import complex64, float32, float64, int8, int32, int64, string
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph, GraphEdit, constant, placeholder


def in_graph(*arguments: Any, **options: Any) -> np.ndarray[Any, Any]:
    """The value that the Const of a graph holds."""
    with Graph().as_default() as graph:
        tensor = constant(*arguments, **options)
    assert tensor.op.type == "Const"
    (node,) = graph.as_graph_def().node
    assert node.attr["dtype"].type == node.attr["value"].tensor.dtype == tensor.dtype
    return np.asarray(GraphEdit(graph).extract(tensor).refiner.values.value_of((tensor.op, 0)))


def as_array(*arguments: Any, **options: Any) -> np.ndarray[Any, Any]:
    value: np.ndarray[Any, Any] = constant(*arguments, **options)
    assert isinstance(value, np.ndarray)
    return value


@pytest.mark.parametrize("made", [in_graph, as_array])
@pytest.mark.parametrize(
    ("value", "dtype", "shape", "expected"),
    [
        (1.5, None, None, np.float32(1.5)),
        (2, None, None, np.int32(2)),
        (True, None, None, np.bool_(True)),
        ([1, 2.5], None, None, np.array([1, 2.5], np.float32)),
        (np.array([1.5]), None, None, np.array([1.5])),
        (2, float64, None, np.float64(2)),
        (np.array([1, 2]), int8, None, np.array([1, 2], np.int8)),
        (np.array([1, 2]), float32, None, np.array([1, 2], np.float32)),
        (np.array([1.25]), complex64, None, np.array([1.25], np.complex64)),
        (np.array([1 + 2j]), complex64, None, np.array([1 + 2j], np.complex64)),
        (3, None, [2, 2], np.full((2, 2), 3, np.int32)),
        ([3], None, [2, 2], np.full((2, 2), 3, np.int32)),
        ([[1, 2, 3], [4, 5, 6]], int64, (3, 2), np.array([[1, 2], [3, 4], [5, 6]])),
        (7.0, None, [], np.float32(7)),
        ([], None, [0, 3], np.zeros((0, 3), np.float32)),
    ],
)
def test_values(made: Any, value: Any, dtype: Any, shape: Any, expected: Any) -> None:
    got = made(value, dtype, shape)
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    np.testing.assert_array_equal(got, expected)


def test_text_is_a_string_tensor() -> None:
    assert as_array("a").item() == b"a"
    assert as_array(np.array(["a"]), string).tolist() == [b"a"]
    assert as_array(["a", b"b"], string, [2, 1]).tolist() == [[b"a"], [b"b"]]


@pytest.mark.parametrize("made", [in_graph, as_array])
@pytest.mark.parametrize(
    ("value", "dtype", "shape", "message"),
    [
        ([1, 2, 3], None, [2, 2], r"3 elements cannot have the shape \[2, 2\]"),
        ([1, 2, 3, 4], None, [2], r"4 elements cannot have the shape \[2\]"),
        ([], None, [2], r"0 elements cannot have the shape \[2\]"),
        (np.array([1.5]), int32, None, "float64 cannot take the place of a tensor of int32"),
        (np.array([300]), int8, None, "does not fit int8"),
        (np.array([True]), int32, None, "bool cannot take the place"),
        (np.array([1]), "bool", None, "a tensor of bool"),
        (np.array([1]), "quint8", None, "int64 cannot be written as quint8"),
        (np.array([1]), string, None, "int64 cannot be written as string"),
        (np.array(["a"]), int32, None, "string cannot be written as int32"),
        (np.array([1j]), float32, None, "complex128 cannot take the place of a tensor of float"),
    ],
)
def test_what_makes_no_such_tensor(
    made: Any, value: Any, dtype: Any, shape: Any, message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        made(value, dtype, shape)


def test_an_array_is_the_callers() -> None:
    given = np.array([1, 2])
    value = as_array(given)
    value[0] = 5
    assert given.tolist() == [1, 2]
    filled = as_array(1, shape=[2])
    filled[0] = 5
    assert filled.tolist() == [5, 1]


def test_nodes_have_the_names_asked_for() -> None:
    with Graph().as_default():
        assert constant(1, name="one").name == "one:0"
        assert placeholder(float32, [None, 2], name="x").name == "x:0"
        assert [constant(1).name, placeholder(int32).name] == ["Const:0", "Placeholder:0"]


def test_placeholders_have_the_shapes_asked_for() -> None:
    with Graph().as_default():
        assert placeholder("int64", [None, 2]).shape.as_list() == [None, 2]
        assert placeholder(int64, []).shape.rank == 0
        assert placeholder(int64).shape.rank is None
        assert placeholder("int64", []).dtype is int64
