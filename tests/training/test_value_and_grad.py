"""value_and_grad: gradients with respect to variables. Expected values are derivatives done by hand."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import IndexedSlicesValue, Variable, raw_ops, value_and_grad
from opkernel.errors import InvalidArgumentError


def floats(*values: Any) -> Any:
    return np.array(values, np.float32)


def total(x: Any) -> Any:
    return raw_ops.Sum(input=x, axis=np.arange(x.shape.rank, dtype=np.int32))


def test_value_and_gradients() -> None:
    w, b = Variable(floats(1, 2)), Variable(np.float32(3))
    value, (dw, db) = value_and_grad(lambda x: total(w * w * x + b), [w, b])(floats(10, 1))
    assert value == 20
    assert dw.tolist() == [20, 4]
    assert db == 2


def test_values_of_now_count() -> None:
    w = Variable(np.float32(1))
    square = value_and_grad(lambda: w * w, w)
    first = square()
    w.assign(3)
    assert (first, square()) == ((1, [2]), (9, [6]))


def test_a_variable_without_influence_has_no_gradient() -> None:
    w, unused, whole = Variable(floats(1)), Variable(floats(1)), Variable([1])
    assert value_and_grad(lambda: total(w * w), [w, unused, whole])()[1] == [floats(2), None, None]


def test_what_the_function_gives_besides_the_loss_is_passed_on() -> None:
    w = Variable(np.float32(2))
    (loss, more), grads = value_and_grad(lambda: (w * w, {"twice": w * 2}), [w])()
    assert (loss, more, grads) == (4, {"twice": 4}, [4])


def test_the_gradient_of_several_elements_is_that_of_their_sum() -> None:
    w = Variable(floats(1, 2))
    assert value_and_grad(lambda x: w * x, [w])(floats(3, 4))[1][0].tolist() == [3, 4]


def test_trainable_variables_of_an_object_are_taken() -> None:
    module: Any = opkernel.Module()
    module.w, module.step = Variable(np.float32(2)), Variable(np.float32(1), trainable=False)
    assert value_and_grad(lambda: module.w * module.step, module)() == (2, [1])


@pytest.mark.parametrize("gather", ["of the resource", "of the value"])
def test_the_gradient_of_looked_up_rows_are_these_rows(gather: str) -> None:
    table = Variable(np.ones((4, 2), np.float32))

    def loss(rows: Any) -> Any:
        if gather == "of the value":
            found = raw_ops.GatherV2(params=table.value, indices=rows, axis=0)
        else:
            found = raw_ops.ResourceGather(
                resource=table.handle, indices=rows, dtype=opkernel.float32
            )
        return total(found * found)

    grad = value_and_grad(loss, [table])(np.array([1, 3, 1]))[1][0]
    assert isinstance(grad, IndexedSlicesValue)
    assert grad.indices.tolist() == [1, 3, 1]
    assert grad.values.tolist() == [[2, 2]] * 3
    assert grad.dense_shape.tolist() == [4, 2]


def test_gradients_go_through_functions_branches_and_loops() -> None:
    w = Variable(np.float32(3))
    square = opkernel.function(lambda x: x * w)

    def loss(x: Any) -> Any:
        x = opkernel.cond(x > 0, lambda: square(x), lambda: x)
        return opkernel.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * w), [0, x])[1]

    with_grad = value_and_grad(loss, [w])
    assert with_grad(np.float32(2)) == (54, [54])  # 2 w^3
    assert with_grad(np.float32(-2)) == (-18, [-12])  # -2 w^2


def test_it_can_be_called_by_a_function() -> None:
    w = Variable(np.float32(3))
    with_grad = value_and_grad(lambda: w * w, [w])

    @opkernel.function
    def step() -> Any:
        value, (grad,) = with_grad()
        w.assign_sub(grad)
        return value

    assert (step(), float(w)) == (9, -3)


@pytest.mark.parametrize("wrong", [3.0, None, "text"])
def test_a_loss_that_is_no_tensor_is_refused(wrong: Any) -> None:
    def constant_loss() -> Any:
        return wrong

    with pytest.raises(TypeError, match="as its loss, and not a tensor"):
        value_and_grad(constant_loss, [Variable(1.0)])()


@pytest.mark.parametrize(
    ("variables", "message"),
    [([], "no variables to train"), ([np.ones(2)], "not of ndarray")],
)
def test_variables_are_asked_for(variables: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        value_and_grad(lambda: 1, variables)
