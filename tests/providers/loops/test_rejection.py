"""Loops draw the numbers of Poisson, binomial and gamma distributions that the functions of NumPy draw.

Logarithms of the two may differ in the last bit.
"""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.providers.loops import loops_run

pytest.importorskip("numba")

FORMS = ["plain", "compiled"]
SEED = np.array([7, -8])
COUNT = np.array([150], np.int32)


def draws(op: str, *parameters: Any) -> Any:
    shape = np.concatenate([COUNT, parameters[0].shape]).astype(np.int32)
    if op == "gamma":
        return raw_ops.StatelessRandomGammaV2(shape=shape, seed=SEED, alpha=parameters[0])
    dtype = opkernel.float64
    if op == "poisson":
        return raw_ops.StatelessRandomPoisson(
            shape=shape, seed=SEED, lam=parameters[0], dtype=dtype
        )
    counts, probs = parameters
    return raw_ops.StatelessRandomBinomial(
        shape=shape, seed=SEED, counts=counts, probs=probs, dtype=dtype
    )


PROBS = np.array([0, 1e-9, 0.001, 0.1, 0.3, 0.5, 0.7, 0.999, 1, 1.5, -1, np.nan])
CALLS = {
    "gamma": [np.array([0.01, 0.5, 0.99, 1, 1.5, 50, 1e5, -0.5, -1, np.nan])],
    "poisson": [np.array([0, -1, 0.1, 3, 9.99, 10, 100, 1e5, np.inf, np.nan])],
    "binomial": [np.repeat([[0.0, 1, 30, 1000, 1e6]], len(PROBS), 0), np.tile(PROBS[:, None], 5)],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", CALLS)
def test_the_forms_give_the_same(op: str, form: Any) -> None:
    with np.errstate(all="ignore"):
        with loops_run("numpy"):
            expected = np.asarray(draws(op, *CALLS[op]))
        with loops_run(form):
            found = np.asarray(draws(op, *CALLS[op]))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("form", ["numpy", *FORMS])
def test_places_whose_lower_half_runs_over(form: Any) -> None:
    """A counter is an integer of 128 bits: the stream of the third number begins where its lower half is 0."""

    def drawn(counter: int, shape: list[int]) -> Any:
        with loops_run(form):
            return raw_ops.StatelessRandomGammaV3(
                shape=np.array(shape, np.int32),
                key=np.array([3], np.uint64),
                counter=np.array([counter % (1 << 64), counter >> 64], np.uint64),
                alg=np.int32(1),
                alpha=np.float64(2.5),
            )

    np.testing.assert_array_equal(drawn((1 << 64) - 512, [4])[2:], drawn(1 << 64, [2]))
