"""Streams of random numbers: tiles and threads change nothing; seeds, sessions, generators, refusals."""

import sys

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.kernel import intra_op_parallelism
from opkernel.ops.random.philox import Philox, words_one_by_one

KEY = {"key": np.array([5], np.uint64), "alg": np.int32(1)}


def test_the_blocks_of_philox_are_those_of_its_authors():
    # the known answers of Random123 for Philox4x32-10: a counter and a key of zeros, and of ones
    zeros = Philox(0, 0).blocks(1)[0].tolist()
    assert zeros == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = Philox((1 << 64) - 1, (1 << 128) - 1).blocks(1)[0].tolist()
    assert ones == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("counter", [0, (1 << 32) - 2, (1 << 64) - 2, (1 << 128) - 2])
def test_counters_carry_into_their_next_word(counter):
    random = Philox(7, counter)
    one_by_one = [random.skip(i).blocks(1)[0].tolist() for i in range(5)]
    assert random.blocks(5).tolist() == one_by_one
    assert random.blocks_at(np.arange(5, dtype=np.uint64)).tolist() == one_by_one


def test_words_one_by_one_are_those_of_the_blocks():
    words = words_one_by_one(Philox(1, 2))
    assert [next(words) for _ in range(5000)] == Philox(1, 2).blocks(1250).reshape(-1).tolist()


@pytest.mark.parametrize("op", ["Uniform", "Normal"])
def test_a_large_tensor_begins_like_a_small_one_on_any_number_of_threads(op):
    name = f"StatelessRandom{op}"
    with intra_op_parallelism(1):
        small = getattr(raw_ops, name)(shape=[1003], seed=[3, 4])
    with intra_op_parallelism(4):
        large = getattr(raw_ops, name)(shape=[300_007], seed=[3, 4])
    np.testing.assert_array_equal(large[:1003], small)
    np.testing.assert_allclose([large.mean(), large.std()], MOMENTS[op], atol=0.01)


MOMENTS = {"Uniform": [0.5, 1 / 12**0.5], "Normal": [0.0, 1.0]}


def test_a_node_goes_on_in_its_session_and_begins_anew_in_another():
    with opkernel.Graph().as_default() as graph:
        numbers = raw_ops.RandomUniform(shape=[3], dtype=opkernel.float32, seed=1)
    with opkernel.Session(graph) as first, opkernel.Session(graph) as second:
        steps = [first.run(numbers).tolist() for _ in range(2)]
        assert steps[0] != steps[1]
        assert [second.run(numbers).tolist() for _ in range(2)] == steps


def test_equal_nodes_without_seeds_differ_and_are_not_merged():
    with opkernel.Graph().as_default() as graph:
        pair = [raw_ops.RandomUniform(shape=[4], dtype=opkernel.float32) for _ in range(2)]
    with opkernel.Session(graph) as session:
        first, second = session.run(pair)
    assert (first != second).any()


def test_nodes_of_equal_seeds_draw_equal_numbers():
    with opkernel.Graph().as_default() as graph:
        pair = [raw_ops.RandomUniform(shape=[4], dtype=opkernel.float32, seed=3) for _ in range(2)]
    with opkernel.Session(graph) as session:
        for _ in range(2):
            np.testing.assert_array_equal(*session.run(pair))


@pytest.mark.parametrize(
    ("op", "arguments", "message"),
    [
        ("StatelessRandomUniform", {"shape": [[2]], "seed": [1, 2]}, "must be a vector"),
        ("StatelessRandomUniform", {"shape": [-2], "seed": [1, 2]}, ">= 0"),
        ("StatelessRandomUniform", {"shape": [2], "seed": [1]}, r"seed must have shape \[2\]"),
        (
            "StatelessRandomUniformInt",
            {"shape": [2], "seed": [1, 2], "minval": np.int32(3), "maxval": np.int32(3)},
            "minval < maxval",
        ),
        (
            "StatelessRandomGammaV2",
            {"shape": [3], "seed": [1, 2], "alpha": np.ones(2, np.float32)},
            "must end with",
        ),
        (
            "StatelessParameterizedTruncatedNormal",
            {"shape": [3], "seed": [1, 2], "means": 0.0, "stddevs": 1.0}
            | {"minvals": 2.0, "maxvals": 1.0},
            "Invalid parameters",
        ),
        (
            "RandomIndexShuffle",
            {"index": np.int32(5), "seed": [1, 2, 3], "max_index": np.int32(4)},
            "4 < 5",
        ),
        ("SobolSample", {"dim": 0, "num_results": 1, "skip": 0}, "at least one"),
    ],
)
def test_what_cannot_be_drawn_is_refused(op, arguments, message):
    with pytest.raises(opkernel.errors.InvalidArgumentError, match=message):
        getattr(raw_ops, op)(**arguments)


def test_other_algorithms_are_refused():
    counter = np.array([1, 2], np.uint64)
    with pytest.raises(opkernel.errors.InvalidArgumentError, match="algorithm id: 2"):
        raw_ops.StatelessRandomUniformV2(
            shape=[2], key=KEY["key"], counter=counter, alg=np.int32(2)
        )


def test_a_shape_that_is_too_large_is_refused_before_memory_is_taken():
    with pytest.raises(opkernel.errors.ResourceExhaustedError):
        raw_ops.StatelessRandomUniform(shape=[1 << 50], seed=[1, 2])


@pytest.mark.parametrize("alpha", [np.nan, -1.0])
def test_a_gamma_distribution_that_there_is_not_gives_nan(alpha):
    alphas = np.array([alpha], np.float64)
    assert np.isnan(raw_ops.StatelessRandomGammaV2(shape=[3, 1], seed=[1, 2], alpha=alphas)).all()


def test_many_coordinates_need_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(opkernel.errors.UnimplementedError, match=r"opkernel\[scipy\]"):
        raw_ops.SobolSample(dim=9, num_results=2, skip=0)


@pytest.mark.tensorflow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ["RandomUniform", "RandomNormal", "TruncatedNormal"])
def test_large_tensors_are_tensorflows_where_the_counter_carries(tf, name, dtype):
    counter = np.array([(1 << 64) - 9, 5], np.uint64)
    given = {"shape": [100_003], "counter": counter, **KEY}
    op = f"Stateless{name}V2"
    found = getattr(raw_ops, op)(**given, dtype=getattr(opkernel, dtype))
    wanted = getattr(tf.raw_ops, op)(**given, dtype=dtype).numpy()
    np.testing.assert_array_equal(np.asarray(found).view(np.uint8), wanted.view(np.uint8))


def test_a_shuffle_keeps_the_rows():
    rows = np.arange(2000).reshape(1000, 2)
    shuffled = raw_ops.RandomShuffle(value=rows, seed=1)
    assert (shuffled != rows).any()
    np.testing.assert_array_equal(shuffled[np.argsort(shuffled[:, 0])], rows)


@pytest.mark.parametrize("largest", [1, 5, 255, 256, 1000, 65535])
def test_shuffled_indices_are_a_permutation(largest):
    index = np.arange(largest + 1)
    found = raw_ops.RandomIndexShuffle(index=index, seed=[1, 2, 3], max_index=np.int64(largest))
    np.testing.assert_array_equal(np.sort(found), index)


def test_indices_of_a_small_range_walk_long_and_arrive():
    """TensorFlow's answers, of seeds and ranges that differ in a batch, too."""
    found = raw_ops.RandomIndexShuffle(
        index=np.arange(10, dtype=np.int32), seed=[1, 2, 3], max_index=np.int32(9)
    )
    assert found.tolist() == [2, 0, 6, 4, 8, 1, 7, 9, 5, 3]
    found = raw_ops.RandomIndexShuffle(
        index=np.array([0, 1, 2, 0], np.int32),
        seed=np.array([[1, 2, 3], [4, 5, 6], [1, 2, 3], [-7, 8, 9]], np.int32),
        max_index=np.array([2, 1, 9, 30000], np.int32),
    )
    assert found.tolist() == [2, 1, 6, 29124]


@pytest.mark.parametrize(
    ("op", "parameters", "mean", "variance"),
    [
        ("StatelessRandomPoisson", {"lam": np.array([4.0, 400.0])}, [4, 400], [4, 400]),
        ("StatelessRandomGammaV2", {"alpha": np.array([0.5, 30.0])}, [0.5, 30], [0.5, 30]),
        (
            "StatelessRandomBinomial",
            {"counts": np.array([20.0, 1000.0]), "probs": np.array([0.2, 0.7])},
            [4, 700],
            [3.2, 210],
        ),
    ],
)
def test_numbers_have_the_moments_of_their_distribution(op, parameters, mean, variance):
    dtype = {} if "Gamma" in op else {"dtype": opkernel.float64}
    drawn = getattr(raw_ops, op)(shape=[40_000, 2], seed=[5, 6], **parameters, **dtype)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, rtol=0.03)
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.05)


def test_bounded_normal_numbers_stay_within_their_bounds():
    given = {"means": 1.0, "stddevs": 2.0, "minvals": 2.0, "maxvals": np.float32(np.inf)}
    drawn = raw_ops.StatelessParameterizedTruncatedNormal(shape=[5000], seed=[1, 2], **given)
    assert drawn.min() >= 2


def test_the_gradient_of_gamma_numbers_keeps_their_quantile():
    # of alpha 1 the quantile is 1 - exp(-x); d x / d alpha by TensorFlow's RandomGammaGrad
    found = raw_ops.RandomGammaGrad(alpha=np.float64([1, 0.5, 3]), sample=np.float64([1, 0.5, 4]))
    np.testing.assert_allclose(found, GAMMA_SLOPES, rtol=1e-10)


GAMMA_SLOPES = [1.1735630272247275, 1.3373525943353344, 1.2164969985224419]
