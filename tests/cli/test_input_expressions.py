"""`--input_exprs` and its kin: literals and NumPy's constructors, and nothing else."""

from typing import Any

import numpy as np
import pytest

from opkernel.cli.output import WrongUse
from opkernel.cli.saved_model_inputs import (
    examples_given,
    expression_value,
    expressions_given,
    files_given,
)
from opkernel.errors import ResourceExhaustedError
from opkernel.proto import Example

VALUES: dict[str, Any] = {
    "1": 1,
    "-1.5": -1.5,
    "[[1, 2], [3, 4]]": [[1, 2], [3, 4]],
    "('a', b'b')": ("a", b"b"),
    "True": True,
    "2**10 + 1": 1025,
    "7 // 2 - 7 % 4": 0,
    "np.ones((2, 3))": np.ones((2, 3)),
    "numpy.zeros(3, np.int64)": np.zeros(3, np.int64),
    "np.full((2,), 7, dtype=np.float16)": np.full(2, 7, np.float16),
    "np.arange(1, 7, 2)": np.array([1, 3, 5]),
    "np.arange(3) / 2": np.array([0, 0.5, 1]),
    "np.linspace(0, 1, 3)": np.array([0, 0.5, 1]),
    "np.eye(2)": np.array([[1.0, 0], [0, 1]]),
    "np.array([1, 2], dtype=np.uint8)": np.array([1, 2], np.uint8),
    "np.reshape(np.arange(4), (2, 2))": np.array([[0, 1], [2, 3]]),
    "np.expand_dims([1, 2], 0)": np.array([[1, 2]]),
    "np.float32(2) * np.pi": np.float32(2) * np.float32(np.pi),
    "np.inf": np.inf,
    "np.array(['x', 'y'])": np.array(["x", "y"]),
}
REFUSED = [
    "__import__('os').system('true')",
    "open('/etc/passwd')",
    "np.load('x.npy')",
    "np.fromfile('x')",
    "np.ones.__globals__",
    "np.lib.npyio.NpzFile",
    "().__class__.__bases__",
    "[x for x in (1, 2)]",
    "(lambda: 1)()",
    "f'{1}'",
    "1 if True else 2",
    "'a' * 10",
    "[1] * 10",
    "9**9**9",
    "(2**1000) * (2**1000)",
    "(2**1000)**1000",
    "np.ones(*[(2, 3)])",
    "np.ones(**{'shape': 3})",
    "x",
    "1 +",
    "",
    "1/0",
    "np.ones(-1)",
    "np.ones('x')",
    "np.arange(0, 1, 0)",
    "np.arange()",
    "np.array(1, copy=False)",
    "(x := 1)",
    "{1: 2}",
    "...[0]",
    "not np.ones(2)",
    "-" * 100_000 + "1",
    "(" * 100_000 + "1" + ")" * 100_000,
    "\0",
]


@pytest.mark.parametrize("text", VALUES)
def test_values(text: str) -> None:
    value = expression_value(text)
    np.testing.assert_array_equal(value, VALUES[text])
    assert np.asarray(value).dtype == np.asarray(VALUES[text]).dtype


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:30])
def test_all_else_is_wrong_use(text: str) -> None:
    with pytest.raises(WrongUse, match="--input_exprs"):
        expression_value(text)


@pytest.mark.parametrize(
    "text",
    [
        "np.ones((10**6, 10**6))",
        "np.linspace(0, 1, 10**12)",
        "np.arange(10**13)",
        "np.eye(10**7)",
        "np.random.rand(10**13)",
        "np.reshape(np.arange(10**6), (-1, 1)) * np.arange(10**6)",
    ],
)
def test_what_is_too_large_is_refused_before_it_is_made(text: str) -> None:
    with pytest.raises(ResourceExhaustedError):
        expression_value(text)


def test_inputs_of_files() -> None:
    assert files_given("x=a.npz[k]; y=/b/c.npy;") == [("x", "@a.npz:k"), ("y", "@/b/c.npy")]
    for wrong in ("x", "=a", "x=a[k", "x=a[k]b"):
        with pytest.raises(WrongUse, match="expected NAME=FILE"):
            files_given(wrong)


def test_semicolons_part_expressions_but_not_strings() -> None:
    assert expressions_given("x = [1, 2]; s=['a;b', \"c;=d\"]") == {
        "x": [1, 2],
        "s": ["a;b", "c;=d"],
    }
    with pytest.raises(WrongUse, match="expected NAME=EXPRESSION"):
        expressions_given("[1, 2]")


def test_examples() -> None:
    given = "rows=[{'age': [22, 24], 'name': ['a', b'b'], 'score': [1, 0.5]}, {}]"
    serialized = examples_given(given)["rows"]
    first, second = map(Example.FromString, serialized)
    features = first.features.feature
    assert list(features["age"].int64_list.value) == [22, 24]
    assert list(features["name"].bytes_list.value) == [b"a", b"b"]
    assert list(features["score"].float_list.value) == [1, 0.5]
    assert not second.features.feature


@pytest.mark.parametrize(
    "text",
    ["x", "x=1", "x=[1]", "x=[{'a': 1}]", "x=[{'a': []}]", "x=[{1: [1]}]", "x=[{'a': [None]}]",
     "x=[{'a': [2**70]}]", "x=[{'a': ['b', 1]}]", "x=__import__('os')", "x=[{'a': [1"],
)  # fmt: skip
def test_wrong_examples(text: str) -> None:
    with pytest.raises(WrongUse, match="--input_examples"):
        examples_given(text)
