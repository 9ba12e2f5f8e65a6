"""Datasets in Python: elements, their order, specs and errors. Orders of shuffles are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors
from opkernel.data import Dataset, DatasetSpec
from opkernel.device.budget import Budget, spending

INT64 = opkernel.TensorSpec([], opkernel.int64)


def values(dataset):
    return [np.asarray(one).tolist() for one in dataset]


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        (Dataset.range(2, 7, 2), [2, 4, 6]),
        (Dataset.range(5, 0, -2), [5, 3, 1]),
        (Dataset.from_tensors([1, 2]).repeat(2), [[1, 2], [1, 2]]),
        (Dataset.from_tensor_slices([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (Dataset.range(4).map(lambda x: x * x), [0, 1, 4, 9]),
        (Dataset.range(4).map(lambda x: x * x, num_parallel_calls=2), [0, 1, 4, 9]),
        (Dataset.range(6).filter(lambda x: x % 3 > 0), [1, 2, 4, 5]),
        (Dataset.range(3).flat_map(lambda x: Dataset.range(x + 1)), [0, 0, 1, 0, 1, 2]),
        (
            Dataset.range(3).interleave(lambda x: Dataset.from_tensors(x).repeat(3), 2, 2),
            [0, 0, 1, 1, 0, 1, 2, 2, 2],
        ),
        (Dataset.range(5).batch(2), [[0, 1], [2, 3], [4]]),
        (Dataset.range(5).batch(2, drop_remainder=True), [[0, 1], [2, 3]]),
        (Dataset.range(5).batch(2).unbatch(), [0, 1, 2, 3, 4]),
        (
            Dataset.range(1, 4).map(lambda x: opkernel.fill([x], x)).padded_batch(2),
            [[[1, 0], [2, 2]], [[3, 3, 3]]],
        ),
        (
            Dataset.range(1, 3)
            .map(lambda x: opkernel.fill([x], x))
            .padded_batch(2, [3], np.int64(-1)),
            [[[1, -1, -1], [2, 2, -1]]],
        ),
        (Dataset.range(5).take(2).concatenate(Dataset.range(1)), [0, 1, 0]),
        (Dataset.range(5).skip(3), [3, 4]),
        (Dataset.range(5).skip(-1), []),
        (Dataset.range(7).shard(3, 1), [1, 4]),
        (Dataset.range(2).repeat(2), [0, 1, 0, 1]),
        (Dataset.range(2).repeat().take(3), [0, 1, 0]),
        (Dataset.range(0).repeat(), []),
        (Dataset.range(9).take_while(lambda x: x < 3), [0, 1, 2]),
        (Dataset.from_tensor_slices([1, 2, 1, 3]).unique(), [1, 2, 3]),
        (
            Dataset.range(5).scan(np.int64(1), lambda s, x: (s + x, s * 10 + x)),
            [10, 11, 22, 43, 74],
        ),
        (
            Dataset.range(7).window(3, shift=2, stride=2).flat_map(lambda w: w.batch(3)),
            [[0, 2, 4], [2, 4, 6], [4, 6], [6]],
        ),
        (
            Dataset.range(7).group_by_window(lambda x: x % 2, lambda _, d: d.batch(2), 2),
            [[0, 2], [1, 3], [4, 6], [5]],
        ),
        (Dataset.range(3).prefetch(2), [0, 1, 2]),
        (Dataset.range(10).shuffle(4, seed=3), [0, 3, 2, 1, 4, 7, 6, 5, 8, 9]),
    ],
)
def test_elements(dataset, expected):
    assert values(dataset) == expected


def test_structures():
    dataset = Dataset.from_tensor_slices(({"b": [1, 2], "a": [b"x", b"y"]}, [0.5, 1.5]))
    assert dataset.element_spec == (
        {
            "b": opkernel.TensorSpec([], opkernel.int32),
            "a": opkernel.TensorSpec([], opkernel.string),
        },
        opkernel.TensorSpec([], opkernel.float32),
    )
    assert [*dataset] == [({"b": 1, "a": b"x"}, 0.5), ({"b": 2, "a": b"y"}, 1.5)]
    swapped = dataset.map(lambda named, number: [number, named["a"]])
    assert [*swapped] == [(0.5, b"x"), (1.5, b"y")]
    pairs = Dataset.zip((Dataset.range(2), {"c": Dataset.range(5, 9)})).enumerate(3)
    assert [*pairs] == [(3, (0, {"c": 5})), (4, (1, {"c": 6}))]


def test_windows_are_datasets():
    windows = Dataset.range(4).window(2)
    assert windows.element_spec == DatasetSpec(INT64)
    assert [values(window) for window in windows] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("dataset", "count"),
    [
        (Dataset.range(7).batch(2), 4),
        (Dataset.range(7).batch(2, drop_remainder=True).repeat(3), 9),
        (Dataset.range(7).repeat(), -1),
        (Dataset.range(7).repeat().take(5), 5),
        (Dataset.range(7).filter(lambda x: x > 1), -2),
        (Dataset.zip((Dataset.range(7), Dataset.range(3).repeat())).skip(2), 5),
        (Dataset.range(7).window(3, shift=2, drop_remainder=True), 3),
    ],
)
def test_cardinality(dataset, count):
    assert dataset.cardinality() == count
    if count >= 0:
        assert len(dataset) == count == sum(1 for _ in dataset)
    else:
        with pytest.raises(TypeError, match=r"infinite|unknown"):
            len(dataset)


def test_each_pass_has_an_order_of_its_own_unless_that_is_not_wanted():
    dataset = Dataset.range(10).shuffle(10, seed=1)
    assert values(dataset) != values(dataset)
    fixed = Dataset.range(10).shuffle(10, seed=1, reshuffle_each_iteration=False)
    assert values(fixed) == values(fixed)
    assert sorted(values(fixed)) == [*range(10)]


def test_functions_see_variables_as_they_are():
    variable = opkernel.training.Variable(np.int64(5))
    dataset = Dataset.range(2).map(lambda x: x + variable)
    assert values(dataset) == [5, 6]
    variable.assign(np.int64(7))
    assert values(dataset) == [7, 8]


def test_a_pass_is_taken_up_where_it_was_saved():
    dataset = (
        Dataset.range(12)
        .shuffle(5, seed=1)
        .flat_map(lambda x: Dataset.range(x).map(lambda y: y + x))
        .batch(3)
        .repeat(2)
    )
    elements = iter(dataset)
    for _ in range(7):
        next(elements)
    state = elements.save()
    rest = values(elements)
    assert len(rest) > 30
    elements.restore(state)
    assert values(elements) == rest


def test_an_error_belongs_to_its_element():
    def checked(x):
        float_x = opkernel.cast(x, opkernel.float32)
        return opkernel.raw_ops.CheckNumerics(tensor=1.0 / (float_x - 1.0), message="no number")

    elements = iter(Dataset.range(3).map(checked))
    assert next(elements) == -1
    with pytest.raises(
        errors.InvalidArgumentError, match=r"no number : Tensor had Inf .*CheckNumerics"
    ):
        next(elements)
    assert next(elements) == 1
    assert values(Dataset.range(3).map(checked).ignore_errors()) == [-1, 1]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Dataset.range(1, 2, 0), errors.InvalidArgumentError, "step must be a non-zero"),
        (lambda: Dataset.range(3).batch(0), errors.InvalidArgumentError, "greater than zero"),
        (lambda: Dataset.range(3).shard(2, 2), errors.InvalidArgumentError, "between 0 and 1"),
        (lambda: Dataset.range(3).shuffle(0), errors.InvalidArgumentError, "buffer_size must be"),
        (lambda: Dataset.range(3).window(2, 0), errors.InvalidArgumentError, "Window shift must"),
        (lambda: Dataset.from_tensor_slices(1), ValueError, "rank of at least 1"),
        (
            lambda: Dataset.from_tensor_slices(([1], [1, 2])),
            errors.InvalidArgumentError,
            "same size in the 0th dimension",
        ),
        (lambda: Dataset.range(3).flat_map(lambda x: x), TypeError, "must return a `Dataset`"),
        (
            lambda: [*Dataset.range(3).map(lambda x: opkernel.fill([x], x)).batch(2)],
            errors.InvalidArgumentError,
            r"Cannot batch .* First element had shape \[0\] and element 1 had shape \[1\]",
        ),
        (
            lambda: [*Dataset.from_tensors([1, 2, 3]).padded_batch(1, [2])],
            errors.DataLossError,
            "Attempted to pad to a smaller size",
        ),
        (
            lambda: Dataset.range(3).get_single_element(),
            errors.InvalidArgumentError,
            "more than one",
        ),
    ],
)
def test_what_is_wrong_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_elements_are_the_callers_own():
    dataset = Dataset.from_tensors(np.arange(3))
    (element,) = dataset
    element[:] = 7
    assert values(dataset) == [[0, 1, 2]]


def test_iterators_of_graphs_run_functions():
    with opkernel.Graph().as_default() as graph:
        limit = opkernel.placeholder(opkernel.int64, [])
        dataset = Dataset.range(limit).map(lambda x: x * 2 + limit).batch(2)
        iterator = opkernel.data.make_initializable_iterator(dataset)
        following = iterator.get_next()
    with opkernel.Session(graph) as session:
        session.run(iterator.initializer, {limit: 3})
        assert session.run(following).tolist() == [3, 5]
        assert session.run(following).tolist() == [7]
        with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
            session.run(following)


def test_sums():
    assert Dataset.range(5).reduce(np.int64(0), lambda total, x: total + x) == 10
    with pytest.raises(TypeError, match="The new state is"):
        Dataset.range(5).reduce(np.int32(0), lambda total, x: x)


def test_traced_functions_take_datasets_from_outside():
    inner = Dataset.range(3)
    sums = Dataset.range(2).flat_map(lambda x: inner.map(lambda y: y + 10 * x))
    assert values(sums) == [0, 1, 2, 10, 11, 12]

    @opkernel.function
    def total(count):
        return inner.repeat().take(count).reduce(np.int64(0), lambda s, x: s + x)

    assert [total(np.int64(2)), total(np.int64(5))] == [1, 4]
    with (
        opkernel.Graph().as_default(),
        pytest.raises(errors.FailedPreconditionError, match="make it inside of"),
    ):
        inner.batch(2)


def test_zipped_elements_stay_side_by_side_where_one_fails():
    def checked(x):
        quotient = 1.0 / opkernel.cast(x - 1, opkernel.float32)
        number = opkernel.raw_ops.CheckNumerics(tensor=quotient, message="no number")
        return x + opkernel.cast(number, opkernel.int64) * 0

    elements = iter(Dataset.zip((Dataset.range(3).map(checked), Dataset.range(3))))
    assert next(elements) == (0, 0)
    with pytest.raises(errors.InvalidArgumentError, match="no number"):
        next(elements)
    assert next(elements) == (2, 2)


KEEPING = {
    "shuffle": lambda d: d.shuffle(10_000),
    "window": lambda d: d.window(10_000).flat_map(lambda part: part),
    "cache": lambda d: d.cache(),
    "group": lambda d: d.group_by_window(lambda x: np.int64(0), lambda key, part: part, 10_000),
}


@pytest.mark.parametrize("how", KEEPING)
def test_what_a_dataset_keeps_counts_for_the_memory_limit(how: str) -> None:
    with opkernel.Graph().as_default() as graph:
        filled = Dataset.range(10_000).map(lambda x: opkernel.fill([10_000], x))
        iterator = opkernel.data.make_initializable_iterator(KEEPING[how](filled))
        element = iterator.get_next()
    with opkernel.Session(graph, memory_limit_bytes=4 << 20) as session:
        session.run(iterator.initializer)

        def run() -> None:
            for _ in range(200):
                session.run(element)

        with pytest.raises(errors.ResourceExhaustedError, match="OOM"):
            run()


KEEPING_KEYS = {
    "unique": lambda d: d.unique().skip(20_000),
    "unique words": lambda d: d.map(opkernel.strings.as_string).unique().skip(20_000),
    "group": lambda d: d.group_by_window(lambda x: x, lambda key, part: part, 1).skip(20_000),
}


@pytest.mark.parametrize("how", KEEPING_KEYS)
def test_the_keys_that_a_dataset_remembers_count_for_the_memory_limit(how: str) -> None:
    def first(limit: int) -> Any:
        with opkernel.Graph().as_default() as graph:
            dataset = KEEPING_KEYS[how](Dataset.range(10**7))
            iterator = opkernel.data.make_initializable_iterator(dataset)
            element = iterator.get_next()
        with opkernel.Session(graph, memory_limit_bytes=limit) as session:
            session.run(iterator.initializer)
            return session.run(element)

    with pytest.raises(errors.ResourceExhaustedError, match="OOM when allocating keys"):
        first(1_000_000)
    assert int(first(20_000_000)) == 20_000


def test_the_keys_of_a_restored_pass_count_for_the_memory_limit() -> None:
    elements = iter(Dataset.range(20_000).unique())
    for _ in range(10_000):
        next(elements)
    again = iter(Dataset.range(20_000).unique())
    with spending(Budget(1_000_000)), pytest.raises(errors.ResourceExhaustedError, match="keys"):
        again.restore(elements.save())
    with spending(Budget(10_000_000)):
        again.restore(elements.save())
        assert next(again) == 10_000


def test_a_state_may_change_its_shape() -> None:
    """As in TensorFlow: the function is traced for all the shapes that it gives."""
    none = np.zeros([0], np.int64)

    def longer(state, x):
        return opkernel.concat([state, [x]], 0)

    assert Dataset.range(4).reduce(none, longer).tolist() == [0, 1, 2, 3]
    lengths = Dataset.range(3).scan(none, lambda s, x: (longer(s, x), opkernel.shape(s)[0]))
    assert values(lengths) == [0, 1, 2]


@pytest.mark.parametrize("drop_remainder", [True, False, np.True_])
@pytest.mark.parametrize("is_padded", [True, False])
def test_the_size_of_batches_may_be_a_tensor(drop_remainder: Any, is_padded: bool) -> None:
    specs = []

    @opkernel.function
    def sums(size: Any) -> Any:
        numbers = Dataset.range(5)
        made = (
            numbers.padded_batch(size, [], drop_remainder=drop_remainder)
            if is_padded
            else numbers.batch(size, drop_remainder)
        )
        specs.append(made.element_spec)
        return made.reduce(np.int64(0), lambda count, batch: count + batch[-1])

    assert sums(np.int64(2)) == (4 if drop_remainder else 8)
    assert specs[0].shape.as_list() == [None]


def test_a_traced_function_takes_an_iterator() -> None:
    pairs = Dataset.range(6).map(lambda x: {"x": x, "twice": x * 2})

    @opkernel.function
    def two(elements: Any) -> Any:
        return next(elements)["x"] + elements.get_next()["twice"]

    elements = iter(pairs)
    assert [two(elements), two(elements)] == [0 + 2, 2 + 6]
    assert next(elements) == {"x": 4, "twice": 8}
    with pytest.raises(errors.OutOfRangeError, match="End of sequence"):
        two(elements)
    assert two(iter(pairs)) == 2
    assert two.experimental_get_tracing_count() == 1
    other = iter(Dataset.range(3).map(lambda x: {"x": x, "twice": [x]}))
    assert two(other) == [1]
    assert two.experimental_get_tracing_count() == 2


def test_a_traced_function_uses_an_iterator_from_outside() -> None:
    elements = iter(Dataset.range(3))

    @opkernel.function
    def following() -> Any:
        found = elements.get_next_as_optional()
        return found.has_value()

    assert [bool(following()) for _ in range(4)] == [True, True, True, False]
    assert not elements.get_next_as_optional().has_value()
    with pytest.raises(errors.InvalidArgumentError):
        elements.get_next_as_optional().get_value()
    elements = iter(Dataset.range(3))
    assert elements.get_next_as_optional().get_value() == 0


def test_a_loop_asks_an_iterator() -> None:
    @opkernel.function
    def total(elements: Any) -> Any:
        def body(count: Any, state: Any) -> Any:
            return count + 1, state + next(elements)

        start = [np.int64(0), np.int64(0)]
        return opkernel.while_loop(lambda n, _: opkernel.less(n, np.int64(4)), body, start)[1]

    elements = iter(Dataset.range(10))
    assert [total(elements), total(elements)] == [0 + 1 + 2 + 3, 4 + 5 + 6 + 7]


def test_a_dataset_begins_at_each_call_of_a_traced_function() -> None:
    numbers = Dataset.range(4)

    @opkernel.function
    def total(count: Any) -> Any:
        elements = iter(Dataset.range(count))
        return sum(numbers, np.int64(0)) + next(elements) + next(elements)

    assert [total(np.int64(5)), total(np.int64(7))] == [7, 7]
    with pytest.raises(errors.OutOfRangeError):
        total(np.int64(1))


def test_a_loop_without_end_is_not_unrolled() -> None:
    @opkernel.function
    def endless() -> Any:
        return list(Dataset.range(3).repeat())

    with pytest.raises(errors.FailedPreconditionError, match=r"Use `dataset\.reduce`"):
        endless()
