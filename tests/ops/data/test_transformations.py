"""Transformations that `Dataset` has no method for. Expected elements are TensorFlow's."""

import numpy as np
import pytest

import opkernel
from opkernel import errors, raw_ops
from opkernel.data import Dataset
from opkernel.data.structured_function import StructuredFunction, call_op

INT64 = opkernel.TensorSpec([], opkernel.int64)
SEEDS = {"seed": np.int64(1), "seed2": np.int64(2)}


def made(op, dataset, spec=INT64, functions=None, **arguments):
    """The dataset that an op makes of another; numbers are int64 inputs."""
    traced = {
        name: StructuredFunction(function, (INT64,) * function.__code__.co_argcount, None, Dataset)
        for name, function in (functions or {}).items()
    }
    tensors = {
        name: np.int64(value) if type(value) is int else value for name, value in arguments.items()
    }
    variant = call_op(op, traced, spec=spec, input_dataset=dataset.variant_tensor, **tensors)
    return Dataset(variant, spec)


def values(dataset, most=20):
    return [np.asarray(one).tolist() for one in dataset.take(most)]


def test_groups_are_reduced():
    functions = {
        "key_func": lambda x: x % 3,
        "init_func": lambda key: key * 100,
        "reduce_func": lambda state, x: state + x,
        "finalize_func": lambda state: state * 2,
    }
    captured: dict[str, list[object]] = {f"{name}_other_arguments": [] for name in functions}
    reduced = made("GroupByReducerDataset", Dataset.range(10), functions=functions, **captured)
    assert values(reduced) == [36, 224, 430]


@pytest.mark.parametrize(
    ("window", "count", "expected"),
    [
        ((3, 2, 2), 3, [[0, 2, 4], [2, 4, 6]]),
        ((2, 5, 1), 1, [[0, 1], [5, 6]]),
    ],
)
def test_sliding_windows(window, count, expected):
    names = ("window_size", "window_shift", "window_stride")
    sizes = dict(zip(names, window, strict=True))
    spec = opkernel.TensorSpec([None], opkernel.int64)
    windows = made("SlidingWindowDataset", Dataset.range(7), spec, **sizes)
    assert windows.cardinality() == count
    assert values(windows) == expected


def test_batches_are_split():
    spec = opkernel.TensorSpec([None], opkernel.int64)
    parts = made("RebatchDataset", Dataset.range(10).batch(5), spec, num_replicas=3)
    assert values(parts) == [[0, 1], [2, 3], [4], [5, 6], [7, 8], [9]]


def test_a_shuffle_that_repeats_draws_anew_in_each_pass():
    arguments = {"buffer_size": 3, "count": 2, **SEEDS}
    shuffled = made("ShuffleAndRepeatDataset", Dataset.range(5), **arguments)
    assert values(shuffled) == [1, 3, 2, 0, 4, 1, 3, 4, 0, 2]
    arguments = {"buffer_size": 50, "count": -1, **SEEDS}
    shuffled = made("ShuffleAndRepeatDataset", Dataset.range(2), **arguments)
    assert values(shuffled, 10) == [0, 1, 1, 0, 0, 1, 0, 1, 0, 1]


def test_map_and_batch_computes_the_rest_of_a_batch_that_fails():
    def checked(x):
        quotient = 1.0 / opkernel.cast(x - 4, opkernel.float32)
        number = opkernel.raw_ops.CheckNumerics(tensor=quotient, message="no number")
        return x + opkernel.cast(number, opkernel.int64) * 0

    spec = opkernel.TensorSpec([None], opkernel.int64)
    batches = made(
        "MapAndBatchDataset",
        Dataset.range(8),
        spec,
        {"f": checked},
        other_arguments=[],
        batch_size=3,
        num_parallel_calls=2,
        drop_remainder=False,
    )
    elements = iter(batches)
    assert next(elements).tolist() == [0, 1, 2]
    with pytest.raises(errors.InvalidArgumentError, match="no number"):
        next(elements)
    assert next(elements).tolist() == [6, 7]


def test_a_selector_chooses():
    numbers = Dataset.from_tensor_slices(np.array([0, 1, 1, 0, 0, 0, 1]))
    sources = [Dataset.range(3), Dataset.range(10, 20)]
    assert values(Dataset.choose_from_datasets(sources, numbers)) == [0, 10, 11, 1, 2]
    all_of_them = Dataset.choose_from_datasets(sources, numbers, stop_on_empty_dataset=False)
    assert values(all_of_them) == [0, 10, 11, 1, 2, 12]
    wrong = Dataset.choose_from_datasets(sources, Dataset.range(2, 3))
    with pytest.raises(errors.InvalidArgumentError, match="Selector index out of range: 2 >= 2"):
        values(wrong)


def test_rows_of_a_sparse_tensor():
    variant = raw_ops.SparseTensorSliceDataset(
        indices=np.array([[0, 1], [0, 2], [2, 0]]),
        values=np.array([1.0, 2.0, 3.0]),
        dense_shape=np.array([3, 3]),
    )
    specs = (
        opkernel.TensorSpec([None, 1], opkernel.int64),
        opkernel.TensorSpec([None], opkernel.float64),
        opkernel.TensorSpec([1], opkernel.int64),
    )
    rows = [[part.tolist() for part in row] for row in Dataset(variant, specs)]
    assert rows == [[[[1], [2]], [1, 2], [3]], [[], [], [3]], [[[0]], [3], [3]]]


def test_elements_are_counted():
    counted = made("AssertCardinalityDataset", Dataset.range(3), cardinality=4)
    assert counted.cardinality() == 4
    with pytest.raises(
        errors.FailedPreconditionError, match=r"contain 4 elements but .* 3 elements"
    ):
        values(counted)


def test_random_numbers_are_those_of_the_seeds():
    seeds = {"seed": np.int64(3), "seed2": np.int64(5)}
    sampled = made("SamplingDataset", Dataset.range(30), rate=np.float32(0.4), **seeds)
    assert values(sampled) == [0, 2, 9, 13, 15, 17, 18, 23, 24, 25, 28]
    numbers = raw_ops.RandomDataset(**seeds, output_types=[opkernel.int64], output_shapes=[[]])
    assert values(Dataset(numbers, INT64), 3) == [2058544851, 32233798, 302027796]
    anew = raw_ops.RandomDatasetV2(
        **seeds,
        seed_generator=raw_ops.DummySeedGenerator(),
        rerandomize_each_iteration=True,
        output_types=[opkernel.int64],
        output_shapes=[[]],
    )
    twice = Dataset(anew, INT64).take(2).repeat(2)
    assert values(twice) == [3339243300, 931263166, 3899243381, 3505289254]


def batches_of(shapes, rank=None):
    """Batches of zeros of some shapes."""
    spec = opkernel.TensorSpec(rank and [None] * rank, opkernel.int64)
    zeros = [np.zeros(shape, np.int64) for shape in shapes]
    return Dataset.from_generator(lambda: iter(zeros), output_signature=spec)


def shapes_of(elements, most=20):
    """The shapes of the elements, the names of errors, and END."""
    found: list[object] = []
    while len(found) < most and "END" not in found:
        try:
            found.append(np.shape(next(elements)))
        except StopIteration:
            found.append("END")
        except errors.OpError as error:
            found.append(type(error).__name__)
    return found


@pytest.mark.parametrize(
    ("shapes", "rank", "sizes", "expected"),
    [
        ([(3,), (0,)], 1, [3, 0, 1], [(3,), (0,), "END"]),
        ([(1, 2)], 2, [0, 1], [(0, 0), (1, 2), (0, 0), "END"]),
        ([(4, 3)], None, [2, 0], [(2, 3), (0,), (2, 3), (0,), "END"]),
        ([], None, [0, 1], [(0,), "END"]),
        ([(3, 2)], None, [2, 0], [(2, 2), (0,), (1, 2), "END"]),
        ([(0, 2), (0, 3)], None, 1, ["END"]),
        ([(1, 2), (0, 3), (2, 2)], None, 1, [(1, 2), "FailedPreconditionError", (1, 2), "END"]),
    ],
)
def test_batches_without_rows_are_rebatched(shapes, rank, sizes, expected):
    assert shapes_of(iter(batches_of(shapes, rank).rebatch(sizes))) == expected


@pytest.mark.parametrize("drop_remainder", [True, False])
@pytest.mark.parametrize("sizes", [0, [0], [0, 0]])
@pytest.mark.parametrize("count", [0, 6])
def test_batches_of_no_rows_never_end(count, sizes, drop_remainder):
    batches = Dataset.range(count).batch(2).rebatch(sizes, drop_remainder)
    assert values(batches, 5) == [[]] * 5


@pytest.mark.parametrize("sizes", [-1, [2, -1], []])
def test_sizes_of_batches_are_no_negative_numbers(sizes):
    with pytest.raises(errors.InvalidArgumentError, match="`batch_sizes` must be"):
        Dataset.range(6).batch(2).rebatch(sizes)


@pytest.mark.parametrize(
    ("calls", "expected"), [(None, ["END"]), (2, ["InvalidArgumentError", "END"])]
)
def test_a_parallel_batch_that_is_left_out_is_made_first(calls, expected):
    batches = batches_of([(2,), (1,)], 1).batch(3, drop_remainder=True, num_parallel_calls=calls)
    assert shapes_of(iter(batches)) == expected


def test_a_shard_forgets_the_elements_before_one_that_fails():
    def failing(x):
        quotient = 1.0 / opkernel.cast(x - 2, opkernel.float32)
        return x + opkernel.cast(raw_ops.CheckNumerics(tensor=quotient, message=""), x.dtype) * 0

    elements = iter(Dataset.range(1, 10).map(failing).shard(3, 2))
    with pytest.raises(errors.InvalidArgumentError):
        next(elements)
    assert [int(one) for one in elements] == [5, 8]
