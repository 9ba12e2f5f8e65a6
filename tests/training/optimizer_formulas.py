"""Steps of optimisers in NumPy's float64, as the papers have them and Keras 3 counts; and how optimisers are called.

Each formula takes a value, a gradient, the number of the step from 1 on and the state so far, which it changes.
"""

from typing import Any

import numpy as np

State = dict[str, Any]
RATE = 0.125  # which single precision has exactly, too


def sgd(w: Any, g: Any, t: int, state: State, momentum: float = 0.0, nesterov: bool = False) -> Any:
    v = state["v"] = momentum * state.get("v", 0) - RATE * g
    return w + (momentum * v - RATE * g if nesterov else v)


def adam(w: Any, g: Any, t: int, state: State, amsgrad: bool = False, decay: float = 0.0) -> Any:
    m = state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    v = state["v"] = 0.999 * state.get("v", 0) + 0.001 * g * g
    if amsgrad:
        v = state["largest"] = np.maximum(state.get("largest", 0), v)
    scale = np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return w - RATE * decay * w - RATE * scale * m / (np.sqrt(v) + 1e-7)


def rmsprop(
    w: Any, g: Any, t: int, state: State, momentum: float = 0.0, centered: bool = False
) -> Any:
    ms = state["ms"] = 0.9 * state.get("ms", 0) + 0.1 * g * g
    mg = state["mg"] = 0.9 * state.get("mg", 0) + 0.1 * g
    below = ms - mg * mg if centered else ms
    step = state["step"] = momentum * state.get("step", 0) + RATE * g / np.sqrt(below + 1e-7)
    return w - step


def adagrad(w: Any, g: Any, t: int, state: State) -> Any:
    accum = state["accum"] = state.get("accum", 0.1) + g * g
    return w - RATE * g / (np.sqrt(accum) + 1e-7)


def ftrl(
    w: Any, g: Any, t: int, state: State, l1: float = 0.0, l2: float = 0.0, beta: float = 0.0
) -> Any:
    before = state.get("accum", 0.1)
    accum = state["accum"] = before + g * g
    sigma = (np.sqrt(accum) - np.sqrt(before)) / RATE
    z = state["z"] = state.get("z", 0) + g - sigma * w
    far = np.abs(z) > l1
    return far * (np.sign(z) * l1 - z) / ((beta + np.sqrt(accum)) / RATE + 2 * l2)


CASES: list[tuple[str, dict[str, Any], Any, dict[str, Any]]] = [
    ("SGD", {}, sgd, {}),
    ("SGD", {"momentum": 0.9}, sgd, {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "nesterov": True}, sgd, {"momentum": 0.9, "nesterov": True}),
    ("Adam", {}, adam, {}),
    ("Adam", {"amsgrad": True}, adam, {"amsgrad": True}),
    ("AdamW", {"weight_decay": 0.05}, adam, {"decay": 0.05}),
    ("RMSprop", {}, rmsprop, {}),
    ("RMSprop", {"momentum": 0.5}, rmsprop, {"momentum": 0.5}),
    ("RMSprop", {"momentum": 0.5, "centered": True}, rmsprop, {"momentum": 0.5, "centered": True}),
    ("RMSprop", {"centered": True}, rmsprop, {"centered": True}),
    ("Adagrad", {}, adagrad, {}),
    ("Ftrl", {}, ftrl, {}),
    (
        "Ftrl",
        {
            "l1_regularization_strength": 0.3,
            "l2_regularization_strength": 0.02,
            "beta": 0.5,
        },
        ftrl,
        {"l1": 0.3, "l2": 0.02, "beta": 0.5},
    ),
]
"""The optimiser's name and arguments, its formula and arguments of that."""

NAMES = [" ".join([name, *arguments]) for name, arguments, _, _ in CASES]


def gradients(steps: int = 20) -> Any:
    """Gradients of a matrix with three rows, step by step."""
    return np.random.default_rng(7).normal(size=(steps, 3, 2))


FIRST = np.array([[1.0, -0.5], [0.25, 2.0], [-1.0, 0.125]])
