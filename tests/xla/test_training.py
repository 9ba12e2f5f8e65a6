"""Steps of optimisers in programs; the kernels of the CPU, which TensorFlow's tests check, are the reference."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.ops.optimizers import OPTIMIZERS

pytestmark = pytest.mark.jax

GRADIENTS = ("grad", "delta")


def stepped(name: str, jit_compile: bool, flag: bool) -> list[Any]:
    """What variables hold after a step of an optimiser."""
    optimizer, rng = OPTIMIZERS[name], np.random.default_rng(3)
    names = optimizer.inputs(sparse=False)
    kept = optimizer.variables
    values: dict[str, Any] = {
        one: rng.uniform(0.5, 2, (3, 4)).astype(np.float32)
        if one in kept or one in GRADIENTS
        else np.asarray(0.25, np.float32)
        for one in names
    }
    values |= (
        {"mg": values["mg"] / 10} if "mg" in values else {}
    )  # no larger than a mean of squares
    values |= {"lr_power": np.asarray(-0.5, np.float32)} if "lr_power" in values else {}
    values |= {"global_step": np.asarray(3)} if "global_step" in values else {}
    attrs = dict.fromkeys(optimizer.attrs, flag)
    variables = {one: opkernel.Variable(values.pop(one)) for one in kept}

    @opkernel.function(jit_compile=jit_compile)
    def step(given: dict[str, Any]) -> None:
        handles = {one: variable.handle for one, variable in variables.items()}
        getattr(raw_ops, f"ResourceApply{name}")(**handles, **given, **attrs)

    step(values)
    return [variable.numpy() for variable in variables.values()]


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step(name, flag):
    for found, expected in zip(stepped(name, True, flag), stepped(name, False, flag), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-7)


def test_a_gradient_of_another_shape():
    variable = opkernel.Variable(np.zeros(3, np.float32))

    @opkernel.function(jit_compile=True)
    def step(gradient):
        raw_ops.ResourceApplyGradientDescent(
            var=variable.handle, alpha=np.float32(1), delta=gradient
        )

    step_of = opkernel.TensorSpec((None,), opkernel.float32)
    step.get_concrete_function(step_of)
    with pytest.raises(InvalidArgumentError, match=r"var and delta do not have the same shape"):
        step(np.zeros(2, np.float32))
