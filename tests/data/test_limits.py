"""Iterators that threads share, that need themselves, or whose state is damaged: nothing hangs, and nothing is lost."""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors, raw_ops
from opkernel.data import Dataset, TextLineDataset, make_initializable_iterator
from opkernel.kernel import OpKernel
from opkernel.ops.data.iterator_state import IteratorState, SavedIterator

NUMBER: dict[str, Any] = {"output_types": [opkernel.int64], "output_shapes": [[]]}


def any_value(value: Any) -> Any:
    """The value, whose type is not checked."""
    return value


def test_an_iterator_that_needs_itself_is_refused() -> None:
    with opkernel.Graph().as_default() as graph:
        handle = raw_ops.IteratorV2(shared_name="own", container="", **NUMBER)
        own = Dataset.range(5).map(lambda x: raw_ops.IteratorGetNext(iterator=handle, **NUMBER)[0])
        begin = raw_ops.MakeIterator(dataset=own.variant_tensor, iterator=handle)
        (element,) = raw_ops.IteratorGetNext(iterator=handle, **NUMBER)
    with opkernel.Session(graph) as session:
        session.run(begin)
        with pytest.raises(errors.FailedPreconditionError, match="its own next element"):
            session.run(element)


def test_who_waits_for_an_iterator_keeps_to_the_limit_of_the_step() -> None:
    with opkernel.Graph().as_default() as graph:
        endless = Dataset.range(2**62).filter(lambda x: opkernel.less(x, np.int64(0)))
        iterator = make_initializable_iterator(endless)
        element = iterator.get_next()
    with opkernel.Session(graph) as session:
        session.run(iterator.initializer)
        ended: list[str] = []

        def run(name: str, seconds: float) -> None:
            options = opkernel.RunOptions(timeout_in_ms=int(seconds * 1000))
            with pytest.raises(errors.DeadlineExceededError):
                session.run(element, {}, options)
            ended.append(name)

        first = threading.Thread(target=run, args=("first", 3))
        first.start()
        run("second", 0.1)
        first.join()
    assert ended == ["second", "first"]


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
@pytest.mark.parametrize(
    "dataset",
    [
        Dataset.range(2000),
        Dataset.range(2000).map(lambda x: x + 0),
        Dataset.range(2000).shuffle(100),
        Dataset.zip((Dataset.range(2000), Dataset.range(2000))).map(lambda x, y: x + (y - x)),
    ],
)
def test_threads_share_an_iterator(dataset: Dataset) -> None:
    elements, found = iter(dataset), []

    def pull() -> None:
        found.extend([int(one) for one in elements])

    threads = [threading.Thread(target=pull) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [*range(2000)]


def test_take_leaves_out_elements_that_fail() -> None:
    """As TensorFlow does."""
    failing = Dataset.range(9).map(
        lambda x: raw_ops.CheckNumerics(
            tensor=1.0 / raw_ops.Cast(x=x - 1, DstT=opkernel.float32), message="one"
        )
    )
    elements, found = iter(failing.take(4)), list[Any]()
    while len(found) < 9:
        try:
            found.append(round(1 / next(elements)) + 1)
        except errors.InvalidArgumentError:
            found.append("error")
        except StopIteration:
            break
    assert found == [0, "error", 2, 3, 4]


def test_a_closed_pass_gives_nothing() -> None:
    elements = iter(Dataset.range(3))
    next(elements)
    elements.close()
    assert [*elements] == []


@pytest.mark.parametrize("wrong", [[], {"a": 1}, 1.5, b"x", -1])
def test_a_damaged_state_is_refused_and_leaves_the_dataset_as_it_is(wrong: Any) -> None:
    dataset = Dataset.range(9).shuffle(3, seed=1)
    elements = iter(dataset)
    next(elements)
    damaged = SavedIterator(elements.save().saved)
    damaged["seeds_used"] = wrong
    with pytest.raises(errors.InvalidArgumentError):
        elements.restore(IteratorState(damaged))
    assert sorted(map(int, dataset)) == [*range(9)]


def test_restore_takes_what_save_gives() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="takes what save gives, not 5"):
        iter(Dataset.range(3)).restore(any_value(5))


def test_a_chain_that_is_too_long() -> None:
    dataset = Dataset.range(5)
    for _ in range(1500):
        dataset = dataset.take(4)
    with pytest.raises(errors.ResourceExhaustedError):
        list(dataset)


def test_kernels_of_traced_functions_do_not_stay() -> None:
    def kernels() -> int:
        gc.collect()
        return sum(isinstance(one, OpKernel) for one in gc.get_objects())

    for _ in range(2):
        Dataset.range(3).reduce(np.int64(0), lambda total, x: total + x)
    before = kernels()
    for _ in range(20):
        Dataset.range(3).reduce(np.int64(0), lambda total, x: total + x)
    assert kernels() < before + 20


_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "range": Dataset.range,
    "take": Dataset.range(3).take,
    "skip": Dataset.range(3).skip,
    "repeat": lambda number: Dataset.range(3).repeat(number),
    "shard": lambda number: Dataset.range(3).shard(2, number),
    "shuffle": Dataset.range(3).shuffle,
    "batch": Dataset.range(3).batch,
    "padded_batch": lambda number: Dataset.range(3).padded_batch(number, []),
    "rebatch": Dataset.range(3).batch(2).rebatch,
    "window": Dataset.range(3).window,
    "prefetch": Dataset.range(3).prefetch,
}


@pytest.mark.parametrize("method", _NUMBERS)
@pytest.mark.parametrize("number", [1.7, "two", np.float32(2), [1, 2.5], object()])
def test_a_number_of_elements_is_an_integer(method: str, number: Any) -> None:
    with pytest.raises(TypeError, match="An integer is needed, not "):
        _NUMBERS[method](number)


@pytest.mark.parametrize("number", [2, np.int32(2), np.array(2, np.uint8)])
def test_any_integer_is_a_number_of_elements(number: Any) -> None:
    batches = Dataset.range(5).batch(number).rebatch(number).take(number)
    assert [batch.tolist() for batch in batches] == [[0, 1], [2, 3]]


def test_the_sizes_of_batches_are_a_list() -> None:
    for sizes in ([1, 2], (1, 2), np.array([1, 2], np.int32)):
        batches = Dataset.range(6).batch(4).rebatch(sizes)
        assert [batch.tolist() for batch in batches] == [[0], [1, 2], [3], [4, 5]]
    with pytest.raises(errors.InvalidArgumentError, match="too large for int64"):
        Dataset.range(6).batch(4).rebatch([2**70])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Dataset.range(1.5), TypeError, "An integer is needed, not 1.5"),
        (lambda: Dataset.range(2**63), errors.InvalidArgumentError, "too large for int64"),
        (lambda: Dataset.range(3).batch(2**63), errors.InvalidArgumentError, "too large"),
        (lambda: Dataset.zip((Dataset.range(3), 5)), TypeError, "zip takes Datasets, not 5"),
        (lambda: Dataset.range(3).concatenate(any_value(5)), TypeError, "takes a Dataset, not 5"),
        (
            lambda: Dataset.range(3).concatenate(Dataset.from_tensors({"a": np.int64(1)})),
            TypeError,
            "Incompatible types of datasets",
        ),
        (
            lambda: Dataset.choose_from_datasets([], Dataset.range(3)),
            ValueError,
            "needs at least one dataset",
        ),
        (
            lambda: Dataset.range(3).scan(np.int64(0), lambda state, x: state + x),
            TypeError,
            "scan_func gives the next state and a result",
        ),
        (lambda: Dataset.range(3).map(lambda x: None), TypeError, "None is given"),
        (lambda: Dataset.range(3).window(2).padded_batch(2), TypeError, "pads tensors"),
        (
            lambda: Dataset.from_generator(list, output_signature=5),
            TypeError,
            "has specs of tensors, not 5",
        ),
        (
            lambda: Dataset.from_generator(list, ("int32", "int32"), ([],)),
            ValueError,
            "2 types, and 1 shapes",
        ),
        (
            lambda: Dataset.from_generator(list, "int32", args=any_value(5)),
            TypeError,
            "a tuple of arguments, not 5",
        ),
    ],
)
def test_wrong_arguments(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_no_files_have_no_lines() -> None:
    assert [*TextLineDataset([])] == []


def test_the_number_of_elements_is_at_most_the_largest_int64() -> None:
    assert int(Dataset.range(10).repeat(2**62).cardinality()) == 2**63 - 1
