"""Variables: their values, what they refuse, threads, copies, memory."""

import copy
import gc
import pickle
import threading
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opkernel
from opkernel import TensorSpec, Variable, raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError


def floats(*values: Any) -> Any:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (1.5, opkernel.float32, []),
        ([1, 2], opkernel.int32, [2]),
        (True, opkernel.bool, []),
        (np.zeros((2, 0, 3), np.float64), opkernel.float64, [2, 0, 3]),
        (np.ones(2, ml_dtypes.bfloat16), opkernel.bfloat16, [2]),
        (np.float16(2), opkernel.float16, []),
        (["a", "bc"], opkernel.string, [2]),
        (1j, opkernel.complex128, []),
    ],
)
def test_a_variable_has_the_type_and_shape_of_its_first_value(
    value: Any, dtype: Any, shape: Any
) -> None:
    variable = Variable(value)
    assert (variable.dtype, variable.shape.as_list()) == (dtype, shape)
    expected = [text.encode() for text in value] if dtype == opkernel.string else value
    assert variable.numpy().tolist() == np.asarray(expected).tolist()


def test_assignments_change_the_value() -> None:
    variable = Variable(floats(1, 2))
    variable.assign([3, 4])
    variable.assign_add(floats(1, 1))
    variable.assign_sub([2, 0])
    assert variable.numpy().tolist() == [2, 5]


def test_values_that_were_read_or_given_stay_as_they_are() -> None:
    given = floats(1, 2)
    variable = Variable(given)
    given[0] = 9
    read, through = variable.numpy(), variable.value
    variable.assign_add(floats(1, 1))
    read[1] = 7
    assert through.tolist() == [1, 2]
    assert variable.numpy().tolist() == [2, 3]


def test_a_variable_stands_for_its_value() -> None:
    variable = Variable(floats(1, 4))
    assert (2 * variable - 1).tolist() == [1, 7]
    assert (floats(1, 1) + variable).tolist() == [2, 5]
    assert (variable**2 / variable).tolist() == [1, 4]
    assert (variable > 2).tolist() == [False, True]
    assert (-variable)[1] == -4
    assert np.sqrt(variable).tolist() == [1, 2]
    assert raw_ops.Sum(input=variable, axis=0) == 5
    assert (len(variable), variable.ndim, int(Variable(7)), float(Variable(0.5))) == (2, 1, 7, 0.5)


def test_equality_is_that_of_objects_so_that_variables_are_keys() -> None:
    one, other = Variable(1.0), Variable(1.0)
    assert {one: 1, other: 2}[one] == 1
    assert one != other


def test_an_unknown_part_of_the_shape_may_change() -> None:
    variable = Variable(floats(1, 2), shape=[None])
    variable.assign([1, 2, 3])
    assert variable.numpy().shape == (3,)
    with pytest.raises(InvalidArgumentError, match=r"has the shape \[\?\], and the value \[1,1\]"):
        variable.assign([[1]])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (floats(1, 2, 3), r"Variable 'w' has the shape \[2\], and the value \[3\]"),
        (1.0, r"and the value \[\]"),
        (np.ones(2), "The variable is of type float32, and the value of float64"),
        ([[1], [2, 3]], "makes no float32 tensor"),
        ("text", "makes no float32 tensor"),
        (None, "makes no float32 tensor"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(value: Any, message: str) -> None:
    variable = Variable(floats(1, 2), name="w")
    with pytest.raises(InvalidArgumentError, match=message):
        variable.assign(value)
    for change in (variable.assign_add, variable.assign_sub):
        with pytest.raises(InvalidArgumentError):
            change(value)
    assert variable.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("arguments", [{"shape": [3]}, {"dtype": opkernel.int32}])
def test_a_first_value_that_does_not_fit_is_refused(arguments: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        Variable(floats(1, 2), **arguments)


def test_functions_read_and_change_a_variable() -> None:
    variable = Variable(floats(1, 2))

    @opkernel.function
    def add_and_double(x: Any) -> Any:
        variable.assign_add(x)
        return variable * 2

    assert add_and_double(floats(1, 1)).tolist() == [4, 6]
    variable.assign([0, 0])
    assert add_and_double(floats(1, 1)).tolist() == [2, 2]


def test_a_function_makes_no_variables_and_has_no_values_of_them() -> None:
    outside = Variable(floats(1, 2), name="outside")

    @opkernel.function
    def makes() -> Any:
        return Variable(1.0).value

    @opkernel.function
    def reads() -> Any:
        return opkernel.constant(np.asarray(outside))

    with pytest.raises(FailedPreconditionError, match="outside of functions"):
        makes()
    with pytest.raises(TypeError, match="cannot be used as a NumPy array"):
        reads()


def test_a_product_with_a_variable_is_a_product_of_matrices() -> None:
    weights = Variable(np.ones((2, 2), np.float32))
    function = opkernel.function(lambda x: x @ weights)
    traced = function.get_concrete_function(TensorSpec([None, 2], opkernel.float32))
    assert "MatMul" in [op.type for op in traced.graph.get_operations()]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_a_copy_shares_nothing(copied: Any) -> None:
    variable = Variable(floats(1, 2), trainable=False, name="w", shape=[None])
    other = copied(variable)
    other.assign([5])
    assert (other.name, other.trainable, other.dtype) == ("w", False, opkernel.float32)
    assert (variable.numpy().tolist(), other.numpy().tolist()) == ([1, 2], [5])


def test_nobody_reads_half_of_an_assignment() -> None:
    size = 50_000
    variable = Variable(np.zeros(size, np.float32))
    ones, stop, torn = np.ones(size, np.float32), threading.Event(), list[Any]()
    read = opkernel.function(lambda: variable.value)
    add = opkernel.function(lambda x: variable.assign_add(x))

    def look(how: Any) -> None:
        while not stop.is_set():
            value = how()
            if (value != value[0]).any():
                torn.append(value)

    readers = [threading.Thread(target=look, args=[how]) for how in (variable.numpy, read)]
    for reader in readers:
        reader.start()
    for turn in range(100):
        variable.assign(np.full(size, turn, np.float32))
        variable.assign_add(ones)
        add(ones)
        raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=np.float32(1), delta=ones)
    stop.set()
    for reader in readers:
        reader.join()
    assert not torn
    assert variable.numpy()[0] == 100


def test_additions_of_several_threads_all_count() -> None:
    variable = Variable(np.int64(0))

    def add() -> None:
        for _ in range(200):
            variable.assign_add(np.int64(1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(variable) == 800


def test_memory_goes_with_the_last_reference() -> None:
    held = [Variable(np.zeros(1000, np.float32))]
    function = opkernel.function(lambda x, variable=held[0]: x + variable)
    traced = function.get_concrete_function(TensorSpec([], opkernel.float32))
    gone = weakref.ref(held.pop())
    del function
    gc.collect()
    assert traced(np.float32(1))[0] == 1  # which refers to it
    del traced
    gc.collect()
    assert gone() is None
