"""Optimisers step as their formulas say, over 20 steps; what they refuse; their state."""

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.training.optimizer_formulas import CASES, FIRST, NAMES, RATE, gradients

import opkernel
from opkernel import IndexedSlicesValue, Variable, optimizers, raw_ops, value_and_grad
from opkernel.errors import FailedPreconditionError, InvalidArgumentError

WRONG: Any = "x"
SEVERAL: Any = [1, 2]
TOLERANCES = {np.float64: 1e-9, np.float32: 2e-5}


def total(x: Any) -> Any:
    return raw_ops.Sum(input=x, axis=np.arange(x.shape.rank, dtype=np.int32))


def expected(formula: Any, arguments: Any, steps: Any) -> Any:
    value, state = FIRST, dict[str, Any]()
    for number, grad in enumerate(steps, 1):
        value = formula(value, grad, number, state, **arguments)
    return value


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(("name", "arguments", "formula", "constants"), CASES, ids=NAMES)
def test_twenty_steps_are_those_of_the_formula(
    name: str, arguments: Any, formula: Any, constants: Any, dtype: Any
) -> None:
    steps = gradients()
    optimizer = getattr(optimizers, name)(RATE, **arguments)
    variable = Variable(FIRST.astype(dtype))
    for grad in steps:
        optimizer.apply_gradients([(grad.astype(dtype), variable)])
    np.testing.assert_allclose(
        variable.numpy(),
        expected(formula, constants, steps),
        rtol=TOLERANCES[dtype],
        atol=TOLERANCES[dtype],
    )
    assert int(optimizer.iterations) == len(steps)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_has_its_own_steps(dtype: Any) -> None:
    w = Variable(np.array([1, 2], dtype))
    optimizer = optimizers.SGD(0.25, momentum=0.5)
    for _ in range(2):
        optimizer.minimize(lambda: total(w * w), [w])
    assert w.numpy().astype(float).tolist() == [0, 0]
    assert optimizer.slot(w, "momentum").dtype == w.dtype


@pytest.mark.parametrize(("name", "arguments", "formula", "constants"), CASES, ids=NAMES)
def test_minimize_takes_the_steps_of_the_gradient(
    name: str, arguments: Any, formula: Any, constants: Any
) -> None:
    optimizer = getattr(optimizers, name)(RATE, **arguments)
    variable = Variable(FIRST.astype(np.float32))
    steps = gradients()

    def loss(x: Any) -> Any:
        return total(variable * x)

    losses = [optimizer.minimize(loss, [variable], grad.astype(np.float32)) for grad in steps]
    assert losses[0] == pytest.approx((FIRST * steps[0]).sum(), abs=1e-5)
    np.testing.assert_allclose(
        variable.numpy(), expected(formula, constants, steps), rtol=1e-4, atol=2e-5
    )


@pytest.mark.parametrize(("name", "arguments", "formula", "constants"), CASES, ids=NAMES)
def test_gradients_of_rows_count_as_those_of_the_whole(
    name: str, arguments: Any, formula: Any, constants: Any
) -> None:
    """Rows of equal index add up; for Adagrad and Ftrl a row without a gradient stays out of the step."""
    optimizer = getattr(optimizers, name)(RATE, **arguments)
    variable = Variable(FIRST.astype(np.float32))
    steps = gradients()
    steps[:, 1] = 0
    for grad in steps:
        halves = np.stack([grad[0] / 2, grad[2], grad[0] / 2]).astype(np.float32)
        slices = IndexedSlicesValue(halves, np.array([0, 2, 0]), None)
        if name in ("Adagrad", "Ftrl"):  # whose ops take rows one by one
            slices = IndexedSlicesValue(grad[[0, 2]].astype(np.float32), np.array([0, 2]), None)
        optimizer.apply_gradients([(slices, variable)])
    wanted = expected(formula, constants, steps)
    if name == "Ftrl":
        wanted[1] = FIRST[1]
    np.testing.assert_allclose(variable.numpy(), wanted, rtol=1e-4, atol=2e-5)


def test_an_embedding_is_trained() -> None:
    table, rows = Variable(np.ones((4, 2), np.float32)), np.array([1, 1, 3])

    def loss(rows: Any) -> Any:
        found = raw_ops.ResourceGather(resource=table.handle, indices=rows, dtype=opkernel.float32)
        return total(found * found)

    assert optimizers.SGD(0.25).minimize(loss, [table], rows) == 6
    assert table.numpy().tolist() == [[1, 1], [0, 0], [1, 1], [0.5, 0.5]]


def test_a_regression_finds_its_line() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 2)).astype(np.float32)
    y = (x @ [[2], [-1]] + 3).astype(np.float32)
    model: Any = opkernel.Module()
    model.w, model.b = Variable(np.zeros((2, 1), np.float32)), Variable(np.float32(0))

    def loss(x: Any, y: Any) -> Any:
        error = x @ model.w + model.b - y
        return raw_ops.Mean(input=error * error, axis=[0, 1])

    optimizer = optimizers.Adam(0.1)
    for _ in range(200):
        value = optimizer.minimize(loss, model, x, y=y)
    assert value < 1e-4
    np.testing.assert_allclose(model.w.numpy(), [[2], [-1]], atol=1e-2)


def test_the_learning_rate_may_change_between_steps() -> None:
    w, optimizer = Variable(np.float32(0)), optimizers.SGD(1.0)
    loss = opkernel.function(lambda x: w * x)
    for rate in (1.0, 0.5, 0.25):
        optimizer.learning_rate = rate
        optimizer.minimize(loss, [w], np.float32(1))
    assert (float(w), optimizer.learning_rate) == (-1.75, 0.25)


def test_what_a_loss_takes_from_around_it_may_change_if_it_has_no_arguments() -> None:
    w, optimizer = Variable(np.float32(0)), optimizers.SGD(1.0)
    for factor in (1.0, 2.0, 3.0):
        optimizer.minimize(lambda factor=factor: w * factor, [w])
    assert float(w) == -6


def test_a_loss_with_arguments_is_traced_once() -> None:
    traces = []

    class Model(opkernel.Module):
        def __init__(self) -> None:
            self.w = Variable(np.float32(0))

        @opkernel.function
        def loss(self, x: Any) -> Any:
            traces.append(x)
            return self.w * x

    model, optimizer = Model(), optimizers.SGD(1.0)
    for _ in range(3):
        optimizer.minimize(model.loss, model, np.float32(1))
    assert (len(traces), float(model.w)) == (1, -3)


def test_variables_without_a_gradient_stay() -> None:
    w, unused = Variable(np.float32(1)), Variable(np.float32(1))
    optimizers.AdamW(0.1).minimize(lambda: w * w, [w, unused])
    assert (float(w) < 1, float(unused)) == (True, 1)


def test_strings_and_integers_stay() -> None:
    model: Any = opkernel.Module()
    model.w, model.words, model.count = Variable(np.float32(1)), Variable(["a"]), Variable(3)
    optimizer = optimizers.Adam(0.1)
    optimizer.minimize(lambda: model.w * model.w, model)
    assert (model.words.numpy().tolist(), int(model.count)) == ([b"a"], 3)
    assert len(optimizer.variables) == 4


def test_steps_may_be_taken_in_a_function() -> None:
    w, optimizer = Variable(np.float32(1)), optimizers.SGD(0.25, momentum=0.5)
    with_grad = value_and_grad(lambda: w * w, [w])

    @opkernel.function
    def step() -> Any:
        loss, grads = with_grad()
        optimizer.apply_gradients(zip(grads, [w], strict=True))
        return loss

    with pytest.raises(FailedPreconditionError, match="call optimizer"):
        step()
    optimizer.build([w])
    assert [step(), step()] == [1, 0.25]
    assert (float(w), int(optimizer.iterations)) == (0, 2)


@pytest.mark.parametrize(
    ("grad", "message"),
    [
        (np.ones(3, np.float32), r"'w' is float32\[2\], and its gradient float32\[3\]"),
        (np.ones(2), r"'w' is float32\[2\], and its gradient float64\[2\]"),
        (
            IndexedSlicesValue(np.ones((1, 2), np.float32), np.array([0]), None),
            r"has rows of float32\[2\]",
        ),
    ],
)
def test_a_gradient_that_does_not_fit_changes_no_variable(grad: Any, message: str) -> None:
    first, w = Variable(np.float32(1)), Variable(np.ones(2, np.float32), name="w")
    optimizer = optimizers.SGD(0.1)
    with pytest.raises(InvalidArgumentError, match=message):
        optimizer.apply_gradients([(np.float32(1), first), (grad, w)])
    assert (float(first), int(optimizer.iterations)) == (1, 0)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "No variable has a gradient"),
        ([(None, Variable(1.0))], "No variable has a gradient"),
        ([(Variable(1.0), np.float32(1))], "takes pairs of a gradient and its Variable"),
        ([Variable(1.0)], "takes pairs of a gradient and its Variable"),
    ],
)
def test_what_are_no_gradients_is_refused(pairs: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        optimizers.SGD().apply_gradients(pairs)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optimizers.SGD(WRONG), "learning_rate must be a number, not 'x'"),
        (lambda: optimizers.SGD(SEVERAL), "learning_rate must be a number"),
        (lambda: optimizers.SGD(0.1, momentum=2), "momentum must be between 0 and 1, not 2"),
        (lambda: optimizers.Adam(beta_2=-1), "beta_2 must be between 0 and 1"),
        (lambda: optimizers.RMSprop(epsilon=-1), "epsilon must be at least 0"),
        (lambda: optimizers.Ftrl(learning_rate_power=1), "learning_rate_power must be at most 0"),
        (lambda: optimizers.Ftrl(beta=-1), "beta must be at least 0"),
        (lambda: optimizers.Adagrad(initial_accumulator_value=-1), "must be at least 0"),
    ],
)
def test_arguments_out_of_range_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_adam_refuses_a_variable_that_it_could_not_change() -> None:
    w = Variable(np.ones(2, ml_dtypes.bfloat16), name="w")
    with pytest.raises(InvalidArgumentError, match=r"'w' would never change: beta_2=0.999 is 1"):
        optimizers.Adam().minimize(lambda: total(w * w), [w])
    assert optimizers.Adam(0.1, beta_2=0.98).minimize(lambda: total(w * w), [w]) == 2
    assert w.numpy().astype(float).max() < 1


def test_the_state_can_be_read() -> None:
    w, optimizer = Variable(np.float32(1), name="w"), optimizers.Adam(0.1, amsgrad=True)
    optimizer.minimize(lambda: w * w, [w])
    assert optimizer.slot_names == ["momentum", "velocity", "velocity_hat"]
    assert optimizer.slot(w, "momentum").numpy() == pytest.approx(0.2, rel=1e-5)
    assert optimizer.slot(w, "velocity").numpy() == pytest.approx(0.004, rel=1e-4)
    assert [one.name for one in optimizer.variables][:3] == [
        "iteration",
        "learning_rate",
        "w_momentum",
    ]
    with pytest.raises(InvalidArgumentError, match="Adam has no slot 'm' of 'w'"):
        optimizer.slot(w, "m")


def addresses(variables: list[Variable]) -> list[int]:
    """Where the arrays of the variables are."""
    resources: list[Any] = [one.resource_handle.resource for one in variables]
    return [one.tensor_ref.tensor.ctypes.data for one in resources]


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize(("name", "arguments", "formula", "constants"), CASES, ids=NAMES)
def test_steps_change_variables_and_slots_in_place(
    name: str, arguments: Any, formula: Any, constants: Any, rows: bool
) -> None:
    optimizer = getattr(optimizers, name)(RATE, **arguments)
    weights, index = Variable(np.ones((50, 4), np.float32)), np.array([1, 3, 1])

    def loss(x: Any) -> Any:
        used = weights
        if rows:
            used = raw_ops.GatherV2(params=weights, indices=index, axis=0)
        return total(used * used * x)

    def minimize() -> list[int]:
        optimizer.minimize(loss, [weights], np.float32(2))
        return addresses([weights, *optimizer.variables])

    first = [minimize() for _ in range(2)][-1]
    assert [minimize() for _ in range(3)] == [first] * 3


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_model_and_its_optimizer_are_copied_together(copied: Any) -> None:
    w, optimizer = Variable(np.float32(1)), optimizers.SGD(0.25, momentum=0.5)
    optimizer.apply_gradients([(np.float32(2), w)])
    other_w, other = copied((w, optimizer))
    for one, grad in ((w, 1), (other_w, 3)):
        (optimizer if one is w else other).apply_gradients([(np.float32(grad), one)])
    assert (float(w), float(other_w)) == (0, -0.5)
    assert other.slot(other_w, "momentum") is not optimizer.slot(w, "momentum")
