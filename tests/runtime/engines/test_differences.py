"""Values of an engine that differ from the kernels' by more than rounding."""

from typing import Any

import numpy as np
import pytest

from opkernel.runtime.engines.differences import difference, noise_of

X = 1000 + np.arange(8, dtype=np.float32) / 256


def variance(inputs: Any) -> Any:
    """The difference of two numbers of about 10^6, whose neighbours are 1/16 away: the variance is 8e-5."""
    (x,) = inputs
    return [np.mean(x * x, dtype=np.float32) - np.mean(x, dtype=np.float32) ** 2], []


def test_noise_of_large_numbers_is_no_difference() -> None:
    (found,), _ = variance([X])
    other = np.var(X.astype(np.float64)).astype(np.float32)
    assert difference([found], [other])
    assert not difference([found], [other], noise=noise_of(variance, [X], [found]))


def test_the_loss_of_a_sure_network_may_be_off_by_the_distance_of_numbers_near_1() -> None:
    def loss(inputs: Any) -> Any:
        return [np.log(1 + np.exp(-inputs[0]))], []

    logits = np.array([12.3, 14.0], np.float32)
    (found,), _ = loss([logits])
    other = np.log1p(np.exp(-logits))
    assert difference([found], [other])
    assert not difference([found], [other], noise=noise_of(loss, [logits], [found]))


@pytest.mark.parametrize("error", [10.0, -1e6, np.nan])
def test_more_than_noise_is_a_difference(error: float) -> None:
    (found,), _ = variance([X])
    noise = noise_of(variance, [X], [found])
    assert "result 0 is" in difference([found], [found + np.float32(error)], noise=noise)


def test_what_is_not_rounded_has_no_noise() -> None:
    def run(inputs: Any) -> Any:
        return [inputs[0].astype(np.int64), inputs[1] + 1], []

    inputs = [X, np.arange(3)]
    found = run(inputs)[0]
    assert noise_of(run, inputs, found) == [0, 0]
    assert "other elements" in difference(found, [found[0] + 1, found[1]], noise=[0, 0])
