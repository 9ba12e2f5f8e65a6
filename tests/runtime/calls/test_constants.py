"""Values of tensors that depend on constants only."""

import numpy as np

import opkernel


def test_the_value_of_one_tensor() -> None:
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [])
        two = opkernel.constant(2.0)
        product, drawn = two * x, opkernel.random.uniform([2])
    assert opkernel.runtime.evaluate_constant_tensor(two + two) == 4
    assert opkernel.runtime.evaluate_constant_tensor(product) is None
    assert opkernel.runtime.evaluate_constant_tensor(product, {x: np.array(3, np.float32)}) == 6
    assert opkernel.runtime.evaluate_constant_tensor(drawn) is None
