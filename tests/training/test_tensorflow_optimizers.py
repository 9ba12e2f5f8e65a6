"""Optimisers beside TensorFlow: its Apply ops with the same arguments, and the optimisers of Keras, over 20 steps."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.training.optimizer_formulas import CASES, FIRST, NAMES, RATE, gradients

from opkernel import Variable, optimizers

pytestmark = pytest.mark.tensorflow

_SLOTS = {
    "ResourceApplyGradientDescent": {},
    "ResourceApplyKerasMomentum": {"accum": "momentum"},
    "ResourceApplyAdam": {"m": "momentum", "v": "velocity"},
    "ResourceApplyAdamWithAmsgrad": {"m": "momentum", "v": "velocity", "vhat": "velocity_hat"},
    "ResourceApplyRMSProp": {"ms": "velocity", "mom": "momentum"},
    "ResourceApplyCenteredRMSProp": {"mg": "average_gradient", "ms": "velocity", "mom": "momentum"},
    "ResourceApplyAdagradV2": {"accum": "accumulator"},
    "ResourceApplyFtrlV2": {"accum": "accumulator", "linear": "linear"},
}
"""The slots that the ops of TensorFlow take, and what they are called here."""


def op_of(name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """TensorFlow's op for an optimiser, and its constant arguments."""
    adam = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7, "lr": RATE}
    rms = {"rho": 0.9, "momentum": arguments.get("momentum", 0), "epsilon": 1e-7, "lr": RATE}
    if name == "SGD":
        momentum = {"lr": RATE, "momentum": arguments.get("momentum")}
        nesterov = arguments.get("nesterov", False)
        if arguments:
            return "ResourceApplyKerasMomentum", {**momentum, "use_nesterov": nesterov}
        return "ResourceApplyGradientDescent", {"alpha": RATE}
    if name in ("Adam", "AdamW"):
        amsgrad = arguments.get("amsgrad")
        return "ResourceApplyAdamWithAmsgrad" if amsgrad else "ResourceApplyAdam", adam
    if name == "RMSprop":
        centered = arguments.get("centered")
        return "ResourceApplyCenteredRMSProp" if centered else "ResourceApplyRMSProp", rms
    if name == "Adagrad":
        return "ResourceApplyAdagradV2", {"lr": RATE, "epsilon": 1e-7}
    l2 = arguments.get("l2_regularization_strength", 0) + arguments.get("beta", 0) / 2 / RATE
    l1 = arguments.get("l1_regularization_strength", 0)
    return "ResourceApplyFtrlV2", {
        "lr": RATE,
        "l1": l1,
        "l2": l2,
        "l2_shrinkage": 0,
        "lr_power": -0.5,
    }


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("name", "arguments", "formula", "constants"), CASES, ids=NAMES)
def test_steps_are_those_of_tensorflows_op(
    tf: Any, name: str, arguments: Any, formula: Any, constants: Any, dtype: Any
) -> None:
    if dtype is ml_dtypes.bfloat16 and name.startswith("Adam"):
        arguments = {**arguments, "beta_2": 0.98}
    op, given = op_of(name, arguments)
    given |= {"beta2": 0.98} if "beta_2" in arguments else {}
    optimizer = getattr(optimizers, name)(RATE, **arguments)
    ours, theirs = Variable(FIRST.astype(dtype)), tf.Variable(FIRST.astype(dtype))
    optimizer.build([ours])
    slots = {
        argument: tf.Variable(optimizer.slot(ours, slot).numpy())
        for argument, slot in _SLOTS[op].items()
    }
    numbers = {
        key: value if isinstance(value, bool) else tf.constant(value, theirs.dtype)
        for key, value in given.items()
    }
    for step, grad in enumerate(gradients().astype(dtype), 1):
        optimizer.apply_gradients([(grad, ours)])
        if name == "AdamW":
            theirs.assign_sub(theirs * (numbers["lr"] * tf.constant(0.05, theirs.dtype)))
        for power in ("1", "2") if "beta1" in numbers else ():
            numbers[f"beta{power}_power"] = tf.pow(
                numbers[f"beta{power}"], tf.constant(step, theirs.dtype)
            )
        getattr(tf.raw_ops, op)(
            var=theirs.handle,
            **{key: slot.handle for key, slot in slots.items()},
            **numbers,
            **{"delta" if op.endswith("Descent") else "grad": tf.constant(grad)},
        )
    digits = np.finfo(dtype).eps if dtype is not ml_dtypes.bfloat16 else 2**-7
    for one, other in [(ours, theirs)] + [
        (optimizer.slot(ours, slot), slots[argument]) for argument, slot in _SLOTS[op].items()
    ]:
        np.testing.assert_allclose(
            one.numpy().astype(np.float64),
            other.numpy().astype(np.float64),
            rtol=16 * digits,
            atol=16 * digits,
        )


@pytest.mark.parametrize(("name", "arguments", "formula", "constants"), CASES, ids=NAMES)
def test_steps_are_those_of_keras(
    tf: Any, name: str, arguments: Any, formula: Any, constants: Any
) -> None:
    ours, theirs = Variable(FIRST.astype(np.float32)), tf.Variable(FIRST.astype(np.float32))
    optimizer = getattr(optimizers, name)(RATE, **arguments)
    of_keras = getattr(tf.keras.optimizers, name)(RATE, **arguments)
    for grad in gradients().astype(np.float32):
        optimizer.apply_gradients([(grad, ours)])
        of_keras.apply_gradients([(tf.constant(grad), theirs)])
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Ftrl"])
def test_defaults_are_those_of_keras(tf: Any, name: str) -> None:
    known = getattr(tf.keras.optimizers, name)().get_config()
    optimizer = getattr(optimizers, name)()
    for key, value in {**vars(optimizer), "learning_rate": optimizer.learning_rate}.items():
        if key in known and key != "iterations":
            assert value == pytest.approx(known[key], rel=1e-6), key
