"""Threads of pipelines: the elements, their order and the errors are those of one thread, and no thread stays."""

import gc
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.pipelines import AT_ONCE, threads_after

import opkernel
from opkernel import errors, raw_ops
from opkernel.data import AUTOTUNE, Dataset, make_initializable_iterator
from opkernel.ops.data.iterator_state import IteratorState

NUMBER: dict[str, Any] = {"output_types": [opkernel.int64], "output_shapes": [[]]}


@pytest.fixture(autouse=True)
def eager_threads() -> Iterator[None]:
    """Threads start with the third element, however fast the first two are; none stays."""
    with threads_after(AT_ONCE):
        yield
    gc.collect()
    assert not threads()


def threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("opkernel data")]


def outcomes(dataset: Dataset, most: int = 60) -> list[Any]:
    """The elements, with the codes of errors in their places."""
    elements, found = iter(dataset), list[Any]()
    while len(found) < most:
        try:
            found.append(np.asarray(next(elements)).tolist())
        except StopIteration:
            break
        except errors.OpError as error:
            found.append(error.code.name)
    return found


def failing(at: int) -> Any:
    """The square, unless the number is `at`."""

    def function(x: Any) -> Any:
        quotient = 1.0 / opkernel.cast(x - at, opkernel.float32)
        checked = raw_ops.CheckNumerics(tensor=quotient, message="at")
        return x * x + opkernel.cast(0 * checked, opkernel.int64)

    return function


@given(
    count=st.integers(0, 20),
    at=st.integers(-1, 20),
    calls=st.sampled_from([1, 2, 3, AUTOTUNE]),
    size=st.integers(0, 5),
    deterministic=st.sampled_from([None, True]),
)
@settings(max_examples=30, deadline=None)
def test_maps_and_prefetches_give_the_elements_in_order(
    count: int, at: int, calls: int, size: int, deterministic: bool | None
) -> None:
    numbers = Dataset.range(count)
    mapped = numbers.map(failing(at), calls, deterministic).prefetch(size)
    assert outcomes(mapped) == ["INVALID_ARGUMENT" if x == at else x * x for x in range(count)]


@given(st.data())
@settings(max_examples=20, deadline=None)
def test_a_pass_is_saved_in_the_middle(data: st.DataObject) -> None:
    at, taken = data.draw(st.integers(0, 12)), data.draw(st.integers(0, 12))
    dataset = Dataset.range(12).map(failing(at), 3).prefetch(data.draw(st.integers(1, 4)))
    expected = ["INVALID_ARGUMENT" if x == at else x * x for x in range(12)]
    elements = iter(dataset)
    for wanted in expected[:taken]:
        if wanted == "INVALID_ARGUMENT":
            with pytest.raises(errors.InvalidArgumentError):
                next(elements)
        else:
            assert next(elements) == wanted
    state = IteratorState.from_proto(elements.save().to_proto())
    other = iter(dataset)
    other.restore(state)
    for one in (elements, other):
        rest = list[Any]()
        while len(rest) < 13:
            try:
                rest.append(int(next(one)))
            except StopIteration:
                break
            except errors.InvalidArgumentError:
                rest.append("INVALID_ARGUMENT")
        assert rest == expected[taken:]


def test_interleaved_datasets_are_read_by_threads() -> None:
    def numbers(x: Any) -> Dataset:
        return Dataset.range(x, x + 4)

    plain = Dataset.range(0, 50, 10).interleave(numbers, 3, 2)
    assert outcomes(Dataset.range(0, 50, 10).interleave(numbers, 3, 2, AUTOTUNE)) == outcomes(plain)
    found = iter(Dataset.range(0, 50, 10).interleave(numbers, 3, 2, 3))
    head = [int(next(found)) for _ in range(9)]
    state = found.save()
    rest = [int(one) for one in found]
    assert head + rest == outcomes(plain)
    found.restore(state)
    assert [int(one) for one in found] == rest


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_batches_of_results(calls: int) -> None:
    with opkernel.Graph().as_default() as graph:
        made = Dataset.range(7).map(failing(3), calls)
        (node,) = (op for op in graph.get_operations() if op.type == "ParallelMapDatasetV2")
        batches = raw_ops.MapAndBatchDataset(
            input_dataset=Dataset.range(7).variant_tensor,
            other_arguments=[],
            batch_size=3,
            num_parallel_calls=np.int64(calls),
            drop_remainder=False,
            f=node.get_attr("f"),
            output_types=[opkernel.int64],
            output_shapes=[[None]],
        )
        iterator = make_initializable_iterator(
            Dataset(batches, opkernel.TensorSpec([None], opkernel.int64))
        )
        batch = iterator.get_next()
    assert made.element_spec.dtype is opkernel.int64
    with opkernel.Session(graph) as session:
        session.run(iterator.initializer)
        assert session.run(batch).tolist() == [0, 1, 4]
        with pytest.raises(errors.InvalidArgumentError, match="at"):
            session.run(batch)
        assert session.run(batch).tolist() == [36]
        with pytest.raises(errors.OutOfRangeError):
            session.run(batch)


def test_an_element_comes_although_the_next_one_does_not() -> None:
    """As from a stream: threads do not wait for the elements that follow."""
    may_go_on = threading.Event()

    def stream() -> Iterator[int]:
        yield from range(4)
        may_go_on.wait(60)
        yield 4

    source = Dataset.from_generator(stream, output_signature=opkernel.TensorSpec([], "int64"))
    elements = iter(source.map(lambda x: x + 1, AUTOTUNE).prefetch(8))
    assert [int(next(elements)) for _ in range(4)] == [1, 2, 3, 4]
    may_go_on.set()
    assert [int(one) for one in elements] == [5]


@pytest.mark.parametrize("end", ["close", "delete", "drain"])
def test_no_thread_stays(end: str) -> None:
    elements = iter(Dataset.range(10**9 if end != "drain" else 9).map(lambda x: x, 3).prefetch(2))
    for _ in range(5):
        next(elements)
    if end == "close":
        elements.close()
        assert [*elements] == []
    elif end == "drain":
        assert len([*elements]) == 4
        elements.close()
    else:
        del elements
        gc.collect()
    assert not threads()


def test_an_endless_element_ends_with_the_pass() -> None:
    endless = Dataset.range(2**62).filter(lambda x: opkernel.less(x, np.int64(3)))
    elements = iter(endless.prefetch(1))
    for wanted in range(3):
        assert next(elements) == wanted
    elements.close()
    assert not threads()


def test_a_buffer_is_bounded() -> None:
    read: list[int] = []

    def source() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    dataset = Dataset.from_generator(source, output_signature=opkernel.TensorSpec([], "int64"))
    elements = iter(dataset.prefetch(3))
    for _ in range(3):
        next(elements)
    deadline = time.monotonic() + 30
    while len(read) < 6 and time.monotonic() < deadline:
        time.sleep(0.001)
    elements.close()
    assert len(read) in (
        6,
        7,
    )  # three given, three that wait, and perhaps one in the place of the last given


def test_a_step_that_is_late_loses_no_element() -> None:
    with opkernel.Graph().as_default() as graph:
        slow = raw_ops.SleepDataset(
            input_dataset=Dataset.range(5).variant_tensor,
            sleep_microseconds=np.int64(200_000),
            **NUMBER,
        )
        dataset = Dataset(slow, opkernel.TensorSpec([], opkernel.int64)).prefetch(1)
        iterator = make_initializable_iterator(dataset)
        element = iterator.get_next()
    late = opkernel.RunOptions(timeout_in_ms=20)
    with opkernel.Session(graph) as session:
        session.run(iterator.initializer)
        found = [int(session.run(element)) for _ in range(2)]
        while len(found) < 5:
            try:
                found.append(int(session.run(element, {}, late)))
            except errors.DeadlineExceededError:
                continue
        assert found == [*range(5)]


def test_functions_with_state_are_called_in_order() -> None:
    """So random numbers stay the same."""

    def drawn(**arguments: Any) -> list[float]:
        numbers = Dataset.range(20).map(
            lambda _: raw_ops.RandomUniform(
                shape=np.zeros(0, np.int32), dtype=opkernel.float32, seed=1, seed2=2
            ),
            **arguments,
        )
        return [float(one) for one in numbers]

    assert drawn() == drawn(num_parallel_calls=4)
    assert sorted(drawn()) == sorted(drawn(num_parallel_calls=4, deterministic=False))
