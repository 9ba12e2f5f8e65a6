"""Kernels written against the array namespace serve another one: here jax.numpy, traced by jit."""

import importlib
from typing import Any

import numpy as np
import pytest

from opkernel.kernel import FunctionKernel, create_op_kernel
from opkernel.opdef import NodeDefBuilder
from opkernel.runtime import CPU, LocalDevice
from opkernel.types import DataType

pytestmark = pytest.mark.jax

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
Y = np.linspace(0.5, 3, 12, dtype=np.float32).reshape(3, 4)

CASES: list[tuple[str, list[np.ndarray[Any, Any]], dict[str, Any]]] = [
    ("AddV2", [X, Y], {}),
    ("Mul", [X, Y], {}),
    ("Maximum", [X, Y], {}),
    ("MatMul", [X, Y], {"transpose_b": True}),
    ("Relu", [X], {}),
    ("Relu6", [X], {}),
    ("LeakyRelu", [X], {"alpha": 0.1}),
    ("Elu", [X], {}),
    ("Selu", [X], {}),
    ("Softplus", [X], {}),
    ("Softsign", [X], {}),
    ("SquaredDifference", [X, Y], {}),
    ("Rsqrt", [Y], {}),
    ("Sigmoid", [X], {}),
    ("DivNoNan", [X, Y], {}),
    ("Xlogy", [X, Y], {}),
    ("Softmax", [X], {}),
    ("LogSoftmax", [X], {}),
    ("BiasAdd", [X, Y[0]], {}),
]


def kernel_on(device: LocalDevice, op: str, count: int, attrs: dict[str, Any]) -> FunctionKernel:
    builder = NodeDefBuilder("n", op)
    for index in range(count):
        builder.input(f"i{index}", 0, DataType.DT_FLOAT)
    for name, value in attrs.items():
        builder.attr(name, value)
    kernel = create_op_kernel(device, builder.finalize())
    assert isinstance(kernel, FunctionKernel)
    return kernel


@pytest.mark.parametrize(("op", "inputs", "attrs"), CASES, ids=[case[0] for case in CASES])
def test_the_same_body_serves_jax(
    op: str, inputs: list[np.ndarray[Any, Any]], attrs: dict[str, Any]
) -> None:
    jax = importlib.import_module("jax")
    device = LocalDevice("CPU", importlib.import_module("jax.numpy"))
    traced = jax.jit(kernel_on(device, op, len(inputs), attrs).function)
    want = kernel_on(CPU, op, len(inputs), attrs).function(*inputs)
    np.testing.assert_allclose(np.asarray(traced(*inputs)), want, rtol=2e-5, atol=1e-6)
