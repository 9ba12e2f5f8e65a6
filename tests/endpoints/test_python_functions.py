"""numpy_function and py_function: results, errors, lifetimes, gradients. Expected values are TensorFlow's."""

import gc
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import (
    DataLossError,
    InternalError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from opkernel.types import DataType

PAIR = np.array([1, 2], np.float32)
FLOAT, INT32, INT64, STRING = opkernel.float32, opkernel.int32, opkernel.int64, opkernel.string


def numpy_results(func: Any, types: Any, inputs: Any = (PAIR,)) -> Any:
    """What a numpy_function gives in a traced function."""
    return opkernel.function(lambda: opkernel.numpy_function(func, list(inputs), types))()


def py_results(func: Any, types: Any, inputs: Any = (PAIR,)) -> Any:
    """What a py_function gives in a traced function."""
    return opkernel.function(lambda: opkernel.py_function(func, list(inputs), types))()


BOTH = pytest.mark.parametrize("call", [numpy_results, py_results])


@BOTH
def test_one_type_is_one_tensor_and_a_list_of_types_a_list(call: Any) -> None:
    assert call(lambda a: a + 1, FLOAT).tolist() == [2, 3]
    assert [one.tolist() for one in call(lambda a: a + 1, [FLOAT])] == [[2, 3]]
    assert [one.tolist() for one in call(lambda a: (a, a * 2), [FLOAT, FLOAT])] == [[1, 2], [2, 4]]
    assert call(lambda: np.float32(7), FLOAT, inputs=()) == 7
    assert call(lambda a: None, []) == []


@BOTH
@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ("hé", STRING, b"h\xc3\xa9"),
        (b"h\xff\0", STRING, b"h\xff\0"),
        ([["a", "bc"]], STRING, [b"a", b"bc"]),
        (np.array(["a", "bc"]), STRING, [b"a", b"bc"]),
        (np.array([b"a", "bc"], object), STRING, [b"a", b"bc"]),
        (np.zeros((0, 3), np.float32), FLOAT, []),
        (np.asfortranarray(np.arange(4, dtype=np.float32).reshape(2, 2)), FLOAT, [[0, 1], [2, 3]]),
        (np.arange(2, dtype=">f4"), FLOAT, [0, 1]),
        (range(3), INT64, [0, 1, 2]),
        (True, opkernel.bool, True),
        (3, INT64, 3),
    ],
)
def test_values_that_both_take(call: Any, value: Any, dtype: DataType, expected: Any) -> None:
    found = call(lambda a: value, dtype)
    assert (found if isinstance(found, bytes) else np.asarray(found).tolist()) == expected


@pytest.mark.parametrize(
    ("value", "dtype", "as_numpy", "as_python"),
    [
        (np.array([1.5, 2]), FLOAT, "is double, but expects float", [1.5, 2]),
        (np.array([1.5, 2]), INT32, "is double, but expects int32", [1, 2]),
        (np.array([1]), opkernel.bool, "is int64, but expects bool", [True]),
        (3, FLOAT, "is int64, but expects float", 3),
        (True, INT32, "is bool, but expects int32", 1),
        (1.5, INT32, "is double, but expects int32", InvalidArgumentError),
        (3, STRING, "is int64, but expects string", InvalidArgumentError),
        ("a", INT32, "is string, but expects int32", InvalidArgumentError),
        (1j, FLOAT, "is complex128, but expects float", InvalidArgumentError),
        ([1.0, 2.0], FLOAT, "returns 2 values, but expects to see 1", 1),
        (None, FLOAT, "returns 0 values, but expects to see 1", InvalidArgumentError),
        ({}, FLOAT, InternalError, InvalidArgumentError),
        ([None], FLOAT, InternalError, InvalidArgumentError),
        (np.array([1, 2], object), STRING, InternalError, InvalidArgumentError),
        (np.longdouble(1), opkernel.float64, InternalError, 1),
        (np.datetime64("2020-01-01"), INT64, InternalError, 18262),
    ],
)
def test_py_function_converts_and_numpy_function_does_not(
    value: Any, dtype: DataType, as_numpy: Any, as_python: Any
) -> None:
    error = InvalidArgumentError if isinstance(as_numpy, str) else as_numpy
    with pytest.raises(error, match=as_numpy if isinstance(as_numpy, str) else None):
        numpy_results(lambda a: value, dtype)
    if isinstance(as_python, type):
        with pytest.raises(as_python):
            py_results(lambda a: value, dtype)
    else:
        found = np.asarray(py_results(lambda a: value, dtype))
        assert (found.tolist(), found.dtype) == (as_python, dtype.numpy_dtype)


@BOTH
def test_functions_get_arrays_scalars_and_bytes_of_their_own(call: Any) -> None:
    seen: list[type] = []

    def func(*arguments: Any) -> Any:
        arguments[0][0] = 9
        seen.extend(type(one) for one in arguments)
        return arguments[0]

    given = PAIR.copy()
    inputs = (given, np.float32(1), np.bool_(True), np.array(b"a", object))
    assert call(func, FLOAT, inputs).tolist() == [9, 2]
    assert seen == [np.ndarray, np.float32, np.bool_, bytes]
    assert given.tolist() == [1, 2]


def test_what_a_function_gives_stays_its_own() -> None:
    kept = np.zeros(2, np.float32)
    found = numpy_results(lambda a: kept, FLOAT)
    kept[0] = 5
    assert found.tolist() == [0, 0]


@BOTH
@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (ValueError, InvalidArgumentError),
        (TypeError, InvalidArgumentError),
        (StopIteration, OutOfRangeError),
        (MemoryError, ResourceExhaustedError),
        (NotImplementedError, UnimplementedError),
        (KeyError, UnknownError),
        (OSError, UnknownError),
        (ZeroDivisionError, UnknownError),
        (DataLossError, DataLossError),  # TensorFlow: UNKNOWN
    ],
)
def test_errors_of_functions(call: Any, raised: type[Exception], code: type[OpError]) -> None:
    def func(a: Any) -> Any:
        raise raised("boo")

    with pytest.raises(code, match="boo") as found:
        call(func, FLOAT)
    assert type(found.value) is code


def test_a_function_runs_outside_of_graphs() -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        total = opkernel.py_function(lambda a: opkernel.reduce_sum(a) + 1, [PAIR], FLOAT)
        assert opkernel.Session(graph).run(total) == 4
    assert [op.type for op in graph.get_operations()].count("Sum") == 0


def test_calls_where_no_graph_is_built() -> None:
    assert opkernel.numpy_function(lambda a: 3, [PAIR], FLOAT).dtype == np.int32
    assert opkernel.py_function(lambda a: 3, [PAIR], FLOAT).dtype == np.float32
    assert opkernel.py_function(lambda a: [a], [PAIR], [FLOAT])[0].tolist() == [1, 2]
    with pytest.raises(IndexError):
        opkernel.numpy_function(lambda a: [][0], [PAIR], FLOAT)
    with pytest.raises(UnknownError, match="IndexError"):
        opkernel.py_function(lambda a: [][0], [PAIR], FLOAT)


@pytest.mark.parametrize("make", [opkernel.numpy_function, opkernel.py_function])
def test_wrong_arguments(make: Any) -> None:
    with pytest.raises(ValueError, match="must be callable"):
        make(3, [PAIR], FLOAT)
    with pytest.raises(TypeError, match="Tout"):
        make(np.sin, [PAIR])
    with pytest.raises(TypeError, match="list of inputs"):
        make(np.sin, PAIR, FLOAT)
    with pytest.raises(TypeError, match="takes no `inp`"):
        make(inp=[PAIR], Tout=FLOAT)
    assert make(Tout=FLOAT)(lambda a: a + 1)(PAIR).tolist() == [2, 3]


def test_a_function_lives_as_long_as_the_graphs_that_call_it() -> None:
    def build() -> tuple[Any, list[str]]:
        graph = opkernel.Graph()
        with graph.as_default():
            x = opkernel.placeholder(FLOAT, [None], name="x")
            once = opkernel.numpy_function(lambda a: a + 1, [x], FLOAT, name="once")
            in_branch = opkernel.cond(
                opkernel.reduce_sum(x) > 0,
                lambda: opkernel.py_function(lambda a: a * 5, [x], FLOAT),
                lambda: x,
            )
            called = opkernel.function(
                lambda u: opkernel.numpy_function(lambda a: a - 1, [u], FLOAT)
            )(x)
        return graph, [once.name, in_branch.name, called.name]

    graph, names = build()
    gc.collect()
    found = opkernel.Session(graph).run(names, {"x:0": PAIR})
    assert [one.tolist() for one in found] == [[2, 3], [5, 10], [0, 1]]
    copy = opkernel.Graph()
    with copy.as_default():
        opkernel.import_graph_def(graph.as_graph_def(), name="")
    assert opkernel.Session(copy).run("once:0", {"x:0": PAIR}).tolist() == [2, 3]
    del graph
    gc.collect()
    with pytest.raises(InvalidArgumentError, match="No function of this program"):
        opkernel.Session(copy).run("once:0", {"x:0": PAIR})


def test_datasets_keep_the_functions_that_they_call() -> None:
    def build() -> Any:
        numbers = opkernel.data.Dataset.range(3)
        doubled = numbers.map(lambda x: opkernel.py_function(lambda a: a * 2, [x], INT64))
        return doubled.map(lambda x: opkernel.numpy_function(lambda a: a + 1, [x], INT64))

    dataset = build()
    gc.collect()
    assert [int(one) for one in dataset] == [1, 3, 5]


def test_a_stateless_function_is_not_called_while_graphs_are_built() -> None:
    calls = []

    def func() -> Any:
        calls.append(1)
        return np.int32(2)

    graph = opkernel.Graph()
    with graph.as_default():
        size = opkernel.numpy_function(func, [], INT32, stateful=False)
        twice = opkernel.numpy_function(func, [], INT32, stateful=False)
        filled = opkernel.fill([size], 1.0)
    assert not calls
    assert opkernel.Session(graph).run([filled, twice])[0].tolist() == [1, 1]
    assert len(calls) == 2


def _slopes(func: Any, types: Any, *inputs: Any) -> Any:
    @opkernel.function
    def derive(*tensors: Any) -> Any:
        return opkernel.gradients(opkernel.py_function(func, list(tensors), types), list(tensors))

    return derive(*inputs)


def test_gradients_of_py_function() -> None:
    three = np.float32(3)
    assert _slopes(lambda a: a**3, FLOAT, three) == [27]
    assert _slopes(lambda a, b: (a * a * b, a), [FLOAT, FLOAT], three, np.float32(2)) == [13, 9]
    assert _slopes(lambda a, k: a * opkernel.cast(k, FLOAT), FLOAT, three, np.int32(2)) == [2, None]
    assert _slopes(lambda a, b: a * 2, FLOAT, three, three) == [2, 0]


def test_second_gradients_of_py_function() -> None:
    @opkernel.function
    def derive(x: Any) -> Any:
        (slope,) = opkernel.gradients(opkernel.py_function(lambda a: a**4, [x], FLOAT), x)
        return opkernel.gradients(slope, x)

    assert derive(np.float32(3)) == [108]


def test_gradients_with_respect_to_variables() -> None:
    variable = opkernel.Variable(np.float32(2))
    loss = opkernel.value_and_grad(
        lambda: opkernel.py_function(lambda a: a**3, [variable], FLOAT), [variable]
    )
    assert loss() == (8, [12])


def test_functions_without_gradients() -> None:
    with pytest.raises(UnimplementedError, match="does not work with tensors"):
        _slopes(lambda a: a * a if a > 0 else -a, FLOAT, np.float32(3))
    derive = opkernel.function(
        lambda x: opkernel.gradients(opkernel.numpy_function(np.sin, [x], FLOAT), x)
    )
    assert derive(np.float32(3)) == [None]
