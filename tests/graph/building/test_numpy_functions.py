"""NumPy's functions and the methods of arrays, on tensors of a graph: the same values and types as for arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import InvalidArgumentError

Call = Callable[[Any], Any]

X = np.array([[0.5, -0.25, 2.0], [1.5, 0.75, -3.0]], np.float32)
POSITIVE = np.abs(X) / 4
COUNTS = np.array([[3, 1, 2], [5, 0, 4]], np.int32)
SQUARE = np.array([[4.0, 1.0], [1.0, 3.0]], np.float64)

ANYWHERE: dict[str, Call] = {
    "exp": np.exp, "expm1": np.expm1, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
    "sinh": np.sinh, "cosh": np.cosh, "arctan": np.arctan, "arcsinh": np.arcsinh, "sign": np.sign,
    "square": np.square, "absolute": np.abs, "negative": np.negative, "floor": np.floor,
    "ceil": np.ceil, "rint": np.rint, "round": np.round, "isnan": np.isnan, "isinf": np.isinf,
    "isfinite": np.isfinite, "real": np.real, "imag": np.imag, "conj": np.conj, "copy": np.copy,
    "logical_not": np.logical_not, "ones_like": np.ones_like, "zeros_like": np.zeros_like,
    "full_like": lambda x: np.full_like(x, 3), "clip": lambda x: np.clip(x, 0, 1),
    "maximum": lambda x: np.maximum(x, 1), "minimum": lambda x: np.minimum(1, x),
    "where": lambda x: np.where(x > 1, x, 0), "where array": lambda x: np.where(COUNTS > 2, x, x + x),
    "logical_and": lambda x: np.logical_and(x, COUNTS > 2), "equal": lambda x: np.equal(x, 2),
    "sum": np.sum, "sum of rows": lambda x: np.sum(x, axis=0), "sum kept": lambda x: np.sum(x, axis=(0, 1), keepdims=True),
    "sum as double": lambda x: np.sum(x, axis=-1, dtype=np.float64), "reduce": lambda x: np.add.reduce(x),
    "mean": np.mean, "mean of rows": lambda x: np.mean(x, axis=0), "prod": lambda x: np.prod(x, 1),
    "max": np.max, "min": lambda x: np.min(x, axis=1, keepdims=True), "any": lambda x: np.any(x, axis=1), "all": np.all,
    "var": np.var, "std": lambda x: np.std(x, axis=0, keepdims=True),
    "argmax": np.argmax, "argmin": lambda x: np.argmin(x, axis=1),
    "cumsum": np.cumsum, "cumsum of rows": lambda x: np.cumsum(x, axis=0), "cumprod": lambda x: np.cumprod(x, axis=1),
    "reshape": lambda x: np.reshape(x, (3, -1)), "ravel": np.ravel, "transpose": np.transpose,
    "transpose by": lambda x: np.transpose(x, (1, 0)), "swapaxes": lambda x: np.swapaxes(x, 0, -1),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1), "expand_dims": lambda x: np.expand_dims(x, -1),
    "squeeze": lambda x: np.squeeze(x[:1]), "concatenate": lambda x: np.concatenate([x, x], axis=1),
    "concatenate arrays": lambda x: np.concatenate([np.zeros_like(x[:1]), x, COUNTS.astype(np.int8)]),
    "stack": lambda x: np.stack([x, x], axis=1), "split": lambda x: np.split(x, 3, axis=1)[1],
    "tile": lambda x: np.tile(x, (2, 1)), "broadcast_to": lambda x: np.broadcast_to(x, (2, 2, 3)),
    "flip": np.flip, "flip rows": lambda x: np.flip(x, 0), "roll": lambda x: np.roll(x, 2),
    "roll columns": lambda x: np.roll(x, 1, axis=1), "pad": lambda x: np.pad(x, 1),
    "pad reflect": lambda x: np.pad(x, ((1, 1), (0, 2)), "reflect"),
    "pad with": lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=7),
    "take": lambda x: np.take(x, [2, 0], axis=1), "take any": lambda x: np.take(x, [5, 0]),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x), "matmul": lambda x: np.matmul(x, np.transpose(x)),
    "matmul vector": lambda x: np.matmul(x, x[0]), "dot": lambda x: np.dot(x[0], x[1]),
    "dot scalar": lambda x: np.dot(x[0, 0], x), "shape": lambda x: np.array(np.shape(x)),
    "size": lambda x: np.array(np.size(x)), "ndim": lambda x: np.array(np.ndim(x)),
    "method sum": lambda x: x.sum(), "method mean": lambda x: x.mean(axis=1, keepdims=True),
    "method max": lambda x: x.max(0), "method reshape": lambda x: x.reshape(3, 2),
    "method reshape list": lambda x: x.reshape([-1]), "T": lambda x: x.T, "method transpose": lambda x: x.transpose(1, 0),
    "method astype": lambda x: x.astype(np.float64), "method argmax": lambda x: x.argmax(-1),
    "method std": lambda x: x.std(), "method ndim": lambda x: np.array(x.ndim), "method dot": lambda x: x.dot(x[0]),
}  # fmt: skip
FLOATS: dict[str, Call] = {
    "sqrt": np.sqrt, "log": np.log, "log1p": np.log1p, "arcsin": np.arcsin, "arccos": np.arccos,
    "arctanh": np.arctanh, "reciprocal": np.reciprocal, "arccosh": lambda x: np.arccosh(x + 2),
    "arctan2": lambda x: np.arctan2(x, x + 1), "norm": lambda x: np.linalg.norm(x),
    "norm of rows": lambda x: np.linalg.norm(x, axis=1), "divide": lambda x: np.divide(1, x),
    "add": lambda x: np.add(X, x), "scalar": lambda x: np.float32(2) * x, "power": lambda x: np.power(x, 2),
}  # fmt: skip
LINALG: dict[str, Call] = {
    "inv": np.linalg.inv, "det": np.linalg.det, "cholesky": np.linalg.cholesky,
    "solve": lambda x: np.linalg.solve(x, np.ones((2, 1))),
}  # fmt: skip
CASES = [
    *[(name, call, value) for name, call in ANYWHERE.items() for value in (X, COUNTS)],
    *[(name, call, POSITIVE) for name, call in FLOATS.items()],
    *[(name, call, SQUARE) for name, call in LINALG.items()],
    *[(name, ANYWHERE[name], COUNTS > 2) for name in ("sum", "any", "all", "mean", "exp")],
]


@pytest.mark.parametrize(
    ("name", "call", "value"), CASES, ids=[f"{name} {value.dtype}" for name, _, value in CASES]
)
def test_tensors_give_what_arrays_give(name: str, call: Call, value: Any) -> None:
    expected = np.asarray(call(value))
    found = np.asarray(opkernel.function(lambda x: call(x))(value))
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "call", [np.mean, np.sum, lambda x: x.max(axis=-1), lambda x: np.flip(x, 0)]
)
def test_ranks_may_be_unknown(call: Call) -> None:
    traced = opkernel.function(lambda x: call(x), [opkernel.TensorSpec(None, opkernel.float32)])
    np.testing.assert_allclose(traced(X), call(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (np.linalg.svd, TypeError, r"numpy.linalg.svd does not take tensors .* mean .*Svd"),
        (lambda x: np.cross(x, x), TypeError, "numpy.cross does not take tensors .* mean Cross"),
        (lambda x: np.hypot(x, x), TypeError, "numpy.hypot does not take tensors"),
        (lambda x: np.sum(x, where=[True]), TypeError, "numpy.sum of a tensor: .*'where'"),
        (lambda x: np.add(X, x, out=np.zeros_like(X)), TypeError, "numpy.add cannot write a tensor"),
        (lambda x: np.add.accumulate(x), TypeError, "numpy.add.accumulate does not take"),
        (np.asarray, TypeError, "is a symbolic tensor and cannot be used as a NumPy array"),
        (lambda x: x.numpy(), AttributeError, "it has no value until its graph runs"),
        (lambda x: np.reshape(x, 5), InvalidArgumentError, "reshape a tensor"),
    ],
)  # fmt: skip
def test_other_functions_say_so(call: Call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        opkernel.function(lambda x: call(x))(X)


def test_tensors_have_no_value_to_ask_for() -> None:
    with opkernel.Graph().as_default():
        x = opkernel.placeholder(opkernel.float32, [2])
    assert not hasattr(x, "numpy")


def test_operators_of_arrays_make_the_same_nodes() -> None:
    with opkernel.Graph().as_default():
        x = opkernel.placeholder(opkernel.float32, [3])
        total = np.ones(3, np.float32)
        total += x
        made: list[Any] = [X * x, total, np.less(X, x), X @ x.reshape(3, 1)]
        types = [one.op.type for one in made]
    assert types == ["Mul", "AddV2", "Less", "MatMul"]
    assert x not in [1, None, "x"]
    assert (x == x, x == X, len({x, x})) == (True, False, 1)


def test_variables_take_part() -> None:
    weights = opkernel.Variable(X)
    np.testing.assert_array_equal(np.mean(weights, axis=0), np.mean(X, axis=0))
    np.testing.assert_array_equal(np.concatenate([weights, X]), np.concatenate([X, X]))
    traced = opkernel.function(lambda x: np.maximum(np.exp(weights), x) + x * weights)
    np.testing.assert_allclose(traced(X), np.maximum(np.exp(X), X) + X * X, rtol=1e-6)


def test_gradients_pass_through() -> None:
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [2, 3])
        (gradient,) = opkernel.gradients(np.sum(np.square(x)).mean(), [x])
    np.testing.assert_allclose(opkernel.Session(graph).run(gradient, {x: X}), 2 * X, rtol=1e-6)
