"""Learning rates that are functions of the number of steps: the formulas of Keras, in all optimisers."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.training.optimizer_formulas import CASES, FIRST, NAMES, gradients

import opkernel
from opkernel import Variable, optimizers, raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.training import schedules

SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("ExponentialDecay", {"initial_learning_rate": 0.5, "decay_steps": 3, "decay_rate": 0.8}),
    (
        "ExponentialDecay",
        {"initial_learning_rate": 0.5, "decay_steps": 3, "decay_rate": 0.8, "staircase": True},
    ),
    ("InverseTimeDecay", {"initial_learning_rate": 0.5, "decay_steps": 3, "decay_rate": 0.8}),
    ("CosineDecay", {"initial_learning_rate": 0.5, "decay_steps": 5, "alpha": 0.1}),
    (
        "CosineDecay",
        {
            "initial_learning_rate": 0.1,
            "decay_steps": 5,
            "alpha": 0.1,
            "warmup_target": 0.5,
            "warmup_steps": 4,
        },
    ),
    ("PiecewiseConstantDecay", {"boundaries": [2, 5], "values": [1.0, 0.5, 0.25]}),
]


def cosine(step: float) -> float:
    done = min(step, 5) / 5
    return 0.5 * (0.9 * 0.5 * (1 + math.cos(math.pi * done)) + 0.1)


FORMULAS = [
    lambda step: 0.5 * 0.8 ** (step / 3),
    lambda step: 0.5 * 0.8 ** (step // 3),
    lambda step: 0.5 / (1 + 0.8 * step / 3),
    cosine,
    lambda step: 0.1 + 0.4 * step / 4 if step < 4 else cosine(step - 4),
    lambda step: 1 if step <= 2 else 0.5 if step <= 5 else 0.25,
]


@pytest.mark.parametrize("number", range(len(SCHEDULES)))
def test_rates_of_schedules(number: int) -> None:
    name, arguments = SCHEDULES[number]
    schedule = getattr(schedules, name)(**arguments)
    traced = opkernel.function(schedule, [opkernel.TensorSpec([], opkernel.float32)])
    for step in range(12):
        for one in (schedule, traced):
            np.testing.assert_allclose(
                one(np.float32(step)), FORMULAS[number](step), rtol=2e-6, atol=1e-7
            )


@pytest.mark.tensorflow
@pytest.mark.parametrize("number", range(len(SCHEDULES)))
def test_rates_are_those_of_keras(tf: Any, number: int) -> None:
    name, arguments = SCHEDULES[number]
    ours = getattr(schedules, name)(**arguments)
    theirs = getattr(tf.keras.optimizers.schedules, name)(**arguments)
    for step in range(12):
        np.testing.assert_allclose(ours(np.float32(step)), theirs(step), rtol=2e-6, atol=1e-7)
    optimizer = optimizers.SGD(ours)
    other = tf.keras.optimizers.SGD(theirs)
    variable, its = Variable(FIRST.astype(np.float32)), tf.Variable(FIRST.astype(np.float32))
    for grad in gradients().astype(np.float32):
        optimizer.apply_gradients([(grad, variable)])
        other.apply_gradients([(tf.constant(grad), its)])
        assert int(optimizer.iterations) == int(other.iterations)
        np.testing.assert_allclose(variable.numpy(), its.numpy(), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "arguments", "formula", "constants"), CASES, ids=NAMES)
def test_all_optimizers_take_a_function_of_steps(
    name: str, arguments: Any, formula: Any, constants: Any
) -> None:
    scheduled = getattr(optimizers, name)(lambda step: 0.1 / (step + 1), **arguments)
    plain = getattr(optimizers, name)(0.1, **arguments)
    values = [Variable(FIRST), Variable(FIRST)]
    for number, grad in enumerate(gradients(5)):
        plain.learning_rate = 0.1 / (number + 1)
        assert scheduled.learning_rate == pytest.approx(plain.learning_rate)
        for optimizer, variable in zip((scheduled, plain), values, strict=True):
            optimizer.apply_gradients([(grad, variable)])
    np.testing.assert_allclose(values[0].numpy(), values[1].numpy(), rtol=1e-6)


def test_a_traced_step_follows_the_schedule() -> None:
    w = Variable(np.float32(10))
    optimizer = optimizers.SGD(learning_rate=lambda step: 1 / (step + 1))
    for _ in range(3):
        optimizer.minimize(lambda x: w * x, [w], np.float32(1))
    assert float(w) == pytest.approx(10 - 1 - 1 / 2 - 1 / 3)


def test_checkpoints_have_no_rate_where_a_function_gives_it(tmp_path: Path) -> None:
    w = Variable(np.ones(2, np.float32))
    optimizer = optimizers.Adam(schedules.ExponentialDecay(0.1, 2, 0.5))
    optimizer.apply_gradients([(np.ones(2, np.float32), w)])
    path = opkernel.Checkpoint(w=w, optimizer=optimizer).save(tmp_path / "ckpt")
    assert not [key for key in opkernel.load_checkpoint(path) if "learning_rate" in key]
    fresh = optimizers.Adam(schedules.ExponentialDecay(0.1, 2, 0.5))
    assert opkernel.Checkpoint(w=Variable(w.numpy()), optimizer=fresh).restore(path) == []
    assert fresh.learning_rate == pytest.approx(0.1 * 0.5**0.5)


def test_wrong_schedules() -> None:
    w = Variable(np.float32(1))
    for wrong in (lambda step: "x", lambda step: [0.1, 0.2], lambda step: None):
        with pytest.raises(InvalidArgumentError, match="learning_rate must be a number"):
            optimizers.SGD(wrong).apply_gradients([(np.float32(1), w)])
    assert float(w) == 1
    with pytest.raises(FailedPreconditionError, match="cannot be set"):
        optimizers.SGD(lambda step: 0.1).learning_rate = 1.0
    with pytest.raises(InvalidArgumentError, match="2 boundaries have 3 values"):
        schedules.PiecewiseConstantDecay([1, 2], [0.1, 0.2])
    with pytest.raises(InvalidArgumentError, match="decay_steps must be more than 0"):
        schedules.CosineDecay(0.1, 0)


def test_a_schedule_in_a_function_of_the_user() -> None:
    w = Variable(np.float32(10))
    optimizer = optimizers.SGD(schedules.PiecewiseConstantDecay([0], [1.0, 0.5]))

    @opkernel.function
    def step(x: Any) -> Any:
        return optimizer.minimize(lambda: raw_ops.Mul(x=w.value, y=x), [w])

    for _ in range(3):
        step(np.float32(1))
    assert float(w) == 8
