"""Conditionals, loops and calls as parts of a program; expected values are formulas."""

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.graph import cond, switch_case, while_loop
from opkernel.types import DataType
from opkernel.xla import XlaArgument, XlaCompiler

pytestmark = pytest.mark.jax

ONES = np.ones(3, np.float32)


def test_a_loop():
    @opkernel.function(jit_compile=True)
    def power(x, n):
        def more(i, y):
            return raw_ops.Less(x=i, y=n)

        def turn(i, y):
            return i + np.int32(1), y * x

        return while_loop(more, turn, [np.int32(0), raw_ops.OnesLike(x=x)])[1]

    x = np.array([2.0, 0.5, -1.0], np.float32)
    np.testing.assert_array_equal(power(x, np.int32(5)), x**5)
    np.testing.assert_array_equal(power(x, np.int32(0)), ONES)


def test_a_loop_whose_variable_changes_its_shape():
    @opkernel.function(jit_compile=True)
    def grown(x):
        def more(y):
            return raw_ops.Less(x=raw_ops.Sum(input=y, axis=[0]), y=np.float32(9))

        return while_loop(
            more,
            lambda y: raw_ops.ConcatV2(values=[y, y], axis=0),
            [x],
            shape_invariants=[opkernel.TensorSpec((None,), opkernel.float32)],
        )

    with pytest.raises(
        InvalidArgumentError, match=r"\[3\] before a turn and float32\[6\] after it"
    ):
        grown(ONES)


@pytest.mark.parametrize(("value", "expected"), [(1.0, 2.0), (-1.0, 1.0)])
def test_a_conditional(value, expected):
    @opkernel.function(jit_compile=True)
    def chosen(x):
        positive = raw_ops.Greater(x=x, y=np.float32(0))
        return cond(positive, lambda: x * np.float32(2), lambda: raw_ops.Neg(x=x))

    assert chosen(np.float32(value)) == expected


@pytest.mark.parametrize(
    ("branch", "expected"), [(0, 1.0), (1, 10.0), (2, 100.0), (7, 100.0), (-1, 100.0)]
)
def test_one_of_several_branches(branch, expected):
    @opkernel.function(jit_compile=True)
    def chosen(index, x):
        makers = [lambda factor=factor: x * np.float32(factor) for factor in (1, 10, 100)]
        return switch_case(index, makers)

    assert chosen(np.int32(branch), np.float32(1)) == expected


def test_variables_in_branches_and_loops():
    variable = opkernel.Variable(np.float32(1))

    @opkernel.function(jit_compile=True)
    def step(x):
        def turn(i):
            variable.assign(variable * x)
            return i + np.int32(1)

        while_loop(lambda i: raw_ops.Less(x=i, y=np.int32(4)), turn, [np.int32(0)])
        large = raw_ops.Greater(x=variable + np.float32(0), y=np.float32(10))

        def reset():
            variable.assign(np.float32(0))
            return np.float32(-1)

        return cond(large, reset, lambda: variable + np.float32(0))

    assert step(np.float32(1.5)) == np.float32(1.5) ** 4
    assert variable.numpy() == np.float32(1.5) ** 4
    assert step(np.float32(2)) == -1
    assert variable.numpy() == 0


def test_variables_that_are_only_read_are_no_results():
    read, written = opkernel.Variable(np.float32(3)), opkernel.Variable(np.float32(0))

    @opkernel.function
    def step(x):
        def turn(i):
            written.assign_add(read * x)
            return i + np.int32(1)

        while_loop(lambda i: raw_ops.Less(x=i, y=np.int32(2)), turn, [np.int32(0)])
        positive = raw_ops.Greater(x=x, y=np.float32(0))
        return cond(positive, lambda: read + x, lambda: read - x)

    concrete = step.get_concrete_function(opkernel.TensorSpec((), opkernel.float32))
    handles = [tensor.op.name for tensor in concrete.inputs[1:]]
    arguments = [XlaArgument.parameter(DataType.DT_FLOAT, ())]
    arguments += [XlaArgument.variable(DataType.DT_FLOAT, (), name) for name in handles]
    result = XlaCompiler().compile_graph(
        concrete.graph, concrete.inputs, concrete.outputs, arguments, concrete.graph.control_outputs
    )
    assert len(result.resource_updates) == 1
    inputs = [np.float32(2)] + [
        np.float32(3) if one is read else np.float32(0) for one in concrete.graph.captured_values
    ]
    (found,), (total,) = result.run(inputs)
    assert found == 5
    assert total == 12


def test_functions_call_functions():
    @opkernel.function
    def twice(x):
        return x + x

    @opkernel.function(jit_compile=True)
    def outer(x):
        return twice(twice(x))

    np.testing.assert_array_equal(outer(ONES), 4 * ONES)


class TestTensorLists:
    def test_a_list_filled_in_a_loop(self):
        @opkernel.function(jit_compile=True)
        def powers(x):
            items = raw_ops.TensorListReserve(
                element_shape=np.int32(-1), num_elements=np.int32(4), element_dtype=opkernel.float32
            )

            def turn(i, y, made):
                made = raw_ops.TensorListSetItem(input_handle=made, index=i, item=y)
                return i + np.int32(1), y * np.float32(2), made

            _, _, items = while_loop(
                lambda i, y, made: raw_ops.Less(x=i, y=np.int32(4)), turn, [np.int32(0), x, items]
            )
            return raw_ops.TensorListStack(
                input_handle=items,
                element_shape=np.array([3], np.int32),
                element_dtype=opkernel.float32,
            )

        np.testing.assert_array_equal(powers(ONES), np.outer([1, 2, 4, 8], ONES))

    def test_a_stack_of_elements(self):
        @opkernel.function(jit_compile=True)
        def last(x):
            items = raw_ops.EmptyTensorList(
                element_shape=np.array([3], np.int32),
                max_num_elements=np.int32(2),
                element_dtype=opkernel.float32,
            )
            items = raw_ops.TensorListPushBack(input_handle=items, tensor=x)
            items = raw_ops.TensorListPushBack(input_handle=items, tensor=x * np.float32(2))
            items, top = raw_ops.TensorListPopBack(
                input_handle=items,
                element_shape=np.array([3], np.int32),
                element_dtype=opkernel.float32,
            )
            return top, raw_ops.TensorListLength(input_handle=items)

        top, length = last(ONES)
        np.testing.assert_array_equal(top, 2 * ONES)
        assert length == 1

    def test_a_list_without_a_largest_size(self):
        @opkernel.function(jit_compile=True)
        def grown(x):
            items = raw_ops.EmptyTensorList(
                element_shape=np.array([3], np.int32),
                max_num_elements=np.int32(-1),
                element_dtype=opkernel.float32,
            )
            items = raw_ops.TensorListPushBack(input_handle=items, tensor=x)
            return raw_ops.TensorListLength(input_handle=items)

        with pytest.raises(InvalidArgumentError, match="requires a fixed tensor list size"):
            grown(ONES)
