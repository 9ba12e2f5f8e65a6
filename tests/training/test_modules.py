"""Modules: which variables they hold, and that two share nothing."""

import copy
from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import numpy as np

import opkernel
from opkernel import Module, Variable


class Pair(NamedTuple):
    first: Any
    second: Any


class Dense(Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        self.kernel = Variable(np.ones((inputs, outputs), np.float32), name="kernel")
        self.bias = Variable(np.zeros(outputs, np.float32), name="bias")

    @opkernel.function
    def __call__(self, x: Any) -> Any:
        return x @ self.kernel + self.bias


def test_variables_are_found_however_deep() -> None:
    module: Any = Module()
    module.layers = [Dense(2, 2), (Dense(2, 1),)]
    module.named = OrderedDict(step=Variable(1, trainable=False))
    module.by_name = defaultdict(list, head=[Variable(2.0)])
    module.pair = Pair(Variable(3.0), 4)
    module.other = {"text": "none", "number": 3, "array": np.ones(2)}
    assert sorted(module.named_variables) == [
        "by_name/head/0",
        "layers/0/bias",
        "layers/0/kernel",
        "layers/1/0/bias",
        "layers/1/0/kernel",
        "named/step",
        "pair/first",
    ]
    assert len(module.variables) == 7
    assert module.named["step"] not in module.trainable_variables
    assert len(module.trainable_variables) == 6


def test_shared_variables_count_once_under_the_shortest_path() -> None:
    module: Any = Module()
    module.deep = [[Dense(1, 1)]]
    module.tied = module.deep[0][0].kernel
    module.itself = module
    assert list(module.named_variables) == ["tied", "deep/0/0/bias"]


def test_all_variables_of_many_short_lived_containers_are_found() -> None:
    optimizers = [opkernel.optimizers.Adam() for _ in range(50)]
    for optimizer in optimizers:
        optimizer.build([Variable(1.0)])
    module: Any = Module()
    module.optimizers = optimizers
    assert len(module.variables) == 50 * 5  # the variable, its two slots, two numbers


def test_two_models_share_nothing() -> None:
    one, other = Dense(2, 1), Dense(2, 1)
    x = np.ones((1, 2), np.float32)
    assert one(x) == other(x) == 2
    one.kernel.assign([[5], [5]])
    assert (one(x), other(x)) == (10, 2)


def test_a_deep_copy_keeps_what_is_shared_within() -> None:
    module: Any = Dense(2, 1)
    module.tied = [module.kernel]
    other = copy.deepcopy(module)
    other.kernel.assign([[3], [3]])
    x = np.ones((1, 2), np.float32)
    assert other.tied[0] is other.kernel
    assert (other(x), module(x)) == (6, 2)
