"""Loops sum the series of incomplete gamma functions to the bits of the functions of NumPy."""

from typing import Any

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.providers.loops import loops_run

pytest.importorskip("numba")

FORMS = ["numpy", "plain", "compiled"]
SPECIAL = [0, -0.0, 1, 0.5, 2, 3, 100, 1e3, 1e-30, 1e30, -0.5, np.inf, -np.inf, np.nan]
OPS = ["Igamma", "Igammac", "IgammaGradA", "RandomGammaGrad"]


def computed(form: Any, op: str, a: Any, x: Any) -> Any:
    first, second = ("alpha", "sample") if op == "RandomGammaGrad" else ("a", "x")
    with loops_run(form):
        return np.asarray(getattr(raw_ops, op)(**{first: a, second: x}))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", OPS)
def test_the_forms_give_the_same(op: str, dtype: Any) -> None:
    random = np.random.default_rng(1)
    shapes = np.exp(random.uniform(-6, 7, 6000))
    special = np.array(SPECIAL)
    a = np.concatenate([shapes, np.repeat(special, special.size)]).astype(dtype)
    x = np.concatenate([random.gamma(shapes), np.tile(special, special.size)]).astype(dtype)
    first, *others = (computed(form, op, a, x) for form in FORMS)
    for other in others:
        np.testing.assert_array_equal(other, first)
    alone = computed("numpy", op, a[77:78], x[77:78])
    np.testing.assert_array_equal(alone, first[77:78])


@pytest.mark.parametrize("form", FORMS)
def test_limits_where_both_arguments_are_infinite(form: Any) -> None:
    """As TensorFlow's."""
    infinity = np.full(1, np.inf)
    assert [computed(form, op, infinity, infinity).item() for op in OPS] == [0, 0, 0, 0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", OPS)
def test_broadcast_and_empty_arguments(form: Any, op: str) -> None:
    a, x = np.array([[0.5], [30]]), np.array([0.25, 2, 40])
    found = computed(form, op, a, x)
    each = [[computed(form, op, [one], [two]).item() for two in x] for one in a[:, 0]]
    np.testing.assert_array_equal(found, each)
    assert computed(form, op, np.ones((0, 1)), x).shape == (0, 3)
