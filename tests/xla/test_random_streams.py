"""Random numbers of seeds and keys that are values of a program: literals from TensorFlow's CPU."""

import numpy as np
import pytest
from tests.xla.single_ops import compiled

from opkernel.errors import InvalidArgumentError

pytestmark = pytest.mark.jax

SEED = np.array([7, -3], np.int64)
KEY, COUNTER = np.array([12345], np.uint64), np.array([2**64 - 1, 5], np.uint64)


def shape(*sizes):
    return np.array(sizes, np.int32)


def test_uniform_numbers_have_the_same_bits():
    found = compiled("StatelessRandomUniform", SEED, shape=shape(5))
    expected = [0.4346421957015991, 0.06527590751647949, 0.7476129531860352, 0.14876413345336914]
    assert found.tolist() == [*expected, 0.5897864103317261]


def test_a_counter_is_carried_over():
    found = compiled(
        "StatelessRandomUniformFullIntV2",
        KEY,
        COUNTER,
        shape=shape(5),
        alg=np.int32(1),
        dtype="uint32",
    )
    assert found.tolist() == [364495362, 1360852231, 2806861940, 2269841079, 987475388]


def test_integers_between_bounds():
    bounds = np.int32(-10), np.int32(10)
    found = compiled("StatelessRandomUniformInt", SEED, *bounds, shape=shape(6))
    assert found.tolist() == [-3, -8, -2, -2, -3, -1]


def test_normal_numbers():
    found = compiled("StatelessRandomNormal", SEED, shape=shape(3), dtype="double")
    expected = [-0.1456107780640622, 1.2077654819729078, 0.36099545311012377]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    found = compiled("StatelessTruncatedNormal", np.array([8, 1]), shape=shape(6))
    expected = [0.47912898659706116, -1.2310006618499756, 0.15855516493320465]
    expected += [-0.4266349971294403, 0.8867244720458984, -1.1672571897506714]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_many_truncated_numbers_are_within_the_bound():
    found = compiled("StatelessTruncatedNormal", SEED, shape=shape(10_001), dtype="half")
    assert found.shape == (10_001,)
    assert np.abs(found).max() <= 2
    assert 0.84 < found.astype(np.float64).std() < 0.92  # 0.880 in theory


def test_classes_by_logits():
    logits = np.array([[0, 1, 2], [2, 0, 0]], np.float32)
    found = compiled("StatelessMultinomial", logits, SEED, num_samples=np.int32(6))
    assert found.tolist() == [[2, 2, 2, 2, 1, 2], [0, 0, 0, 0, 2, 0]]


def test_the_key_of_a_seed():
    key, counter = compiled("StatelessRandomGetKeyCounter", SEED)
    assert key.tolist() == [13399541416664089238]
    assert counter.tolist() == [0, 2845039061138926877]


def test_the_algorithm_is_known_at_compile_time():
    key, _, alg = compiled("StatelessRandomGetKeyCounterAlg", SEED)
    assert key.tolist() == [13399541416664089238]
    assert int(alg) == 1
    assert int(compiled("StatelessRandomGetAlg")) == 1


@pytest.mark.parametrize(
    ("sizes", "alg", "is_refused"), [((2,), 2, True), ((2,), 3, False), ((0, 3), 2, False)]
)
def test_other_algorithms(sizes, alg, is_refused):
    def draw():
        fixed = {"shape": shape(*sizes), "alg": np.int32(alg)}
        return compiled("StatelessRandomUniformV2", KEY, COUNTER, **fixed)

    if is_refused:
        with pytest.raises(InvalidArgumentError, match="Unsupported algorithm id: 2"):
            draw()
    else:
        assert draw().shape == sizes


def test_a_seed_of_another_shape():
    with pytest.raises(InvalidArgumentError):
        compiled("StatelessRandomUniform", np.zeros(3, np.int64), shape=shape(2))


BITS = {
    (1, (7, 1), "uint32"): ([3480380019, 1020443737, 2909336298, 3043922639, 3234712592], [7, 3]),
    (2, (7, 1), "uint32"): ([2964889903, 1334547408, 407867057, 314635895, 730828980], [7, 4]),
    (1, (7, 1, 2), "uint32"): (
        [3993829521, 955157873, 3973482437, 2687253789, 2669553013],
        [7, 3, 2],
    ),
    (1, (7, 1, 2), "uint8"): ([145, 113, 197, 29, 117], [7, 3, 2]),
    (1, (7, 1, 2), "uint64"): (
        [
            *(4102371831045750929, 11541667143780566981, 13504922317253125493),
            *(11166958630420714679, 1301179919894244081),
        ],
        [7, 4, 2],
    ),
}


@pytest.mark.parametrize(("alg", "state", "dtype"), BITS)
def test_bits_of_xla(alg, state, dtype):
    after, bits = compiled(
        "XlaRngBitGenerator",
        np.array(state, np.uint64),
        algorithm=np.int32(alg),
        shape=shape(5),
        dtype=dtype,
    )
    expected, expected_after = BITS[alg, state, dtype]
    assert bits.tolist() == expected
    assert after.tolist() == expected_after


@pytest.mark.parametrize(("low", "high"), [(-1, 0.5), (4, np.inf), (-np.inf, -5), (-2, 2)])
def test_numbers_between_bounds(low, high):
    """They follow the distribution that the bounds leave of a normal one, here of deviation 2."""
    stats = pytest.importorskip("scipy.stats")
    bounds = (np.float64(one) for one in (1, 2, 1 + 2 * low, 1 + 2 * high))
    found = compiled("StatelessParameterizedTruncatedNormal", SEED, *bounds, shape=shape(20_000))
    assert stats.kstest((found - 1) / 2, stats.truncnorm(low, high).cdf).pvalue > 1e-3
