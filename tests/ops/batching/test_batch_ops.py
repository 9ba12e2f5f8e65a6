"""Steps that run at once are batched together; each gets its own rows, its own error and its own time limit.

Expected values and codes are TensorFlow's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Session, placeholder, raw_ops
from opkernel.errors import (
    AlreadyExistsError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    UnavailableError,
)
from opkernel.graph import graph_to_function_def
from opkernel.ops.batching.batch_ops import BatchResource
from opkernel.ops.batching.batch_scheduler import QueueOptions
from opkernel.ops.batching.batched_calls import BatchedCall, Part
from opkernel.proto import NameAttrList, RunOptions

LONG, SHORT = 60_000_000, 0
"""Microseconds: longer than any test, and no time."""


def outcomes(*calls: Callable[[], Any], limit_s: float = 20) -> list[Any]:
    """What each call gives or raises, all at once."""
    found: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        try:
            found[index] = calls[index]()
        except OpError as error:
            found[index] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(limit_s)
    assert not any(thread.is_alive() for thread in threads)
    return found


def batched(
    body: Callable[..., Any] = lambda x: raw_ops.Mul(x=x, y=2.0),
    name: str = "body",
    **attrs: Any,
) -> tuple[Session, Any, list[Any]]:
    """A session with a BatchFunction of a placeholder, and of 10 as a captured argument."""
    inner, graph = Graph(), Graph()
    with inner.as_default():
        arguments = [placeholder("float32", None, name=one) for one in ("x", "c")]
        result = body(*arguments[: body.__code__.co_argcount])
    graph.function_library.add_function(graph_to_function_def(inner, "body", arguments, [result]))
    with graph.as_default():
        x = placeholder("float32", None, name="x")
        made = raw_ops.BatchFunction(
            in_tensors=[x],
            captured_tensors=[np.float32(10)],
            f=NameAttrList(name=name),
            Tout=["float32"],
            **{
                "num_batch_threads": 1,
                "max_batch_size": 4,
                "batch_timeout_micros": SHORT,
                **attrs,
            },
        )
    return Session(graph), x, made


def run(made: tuple[Session, Any, list[Any]], value: Any) -> Any:
    session, x, outputs = made
    return session.run(outputs[0], {x: np.asarray(value, np.float32)})


def run_all(made: tuple[Session, Any, list[Any]], *values: Any) -> list[Any]:
    return outcomes(*[lambda value=value: run(made, value) for value in values])


def test_steps_at_once_share_a_call_and_get_their_rows() -> None:
    def body(x: Any, c: Any) -> Any:
        return raw_ops.AddV2(
            x=raw_ops.Mul(x=x, y=c), y=raw_ops.Cast(x=raw_ops.Size(input=x), DstT="float32")
        )

    found = run_all(batched(body, batch_timeout_micros=LONG), [1, 2], [3], [4])
    assert [one.tolist() for one in found] == [[14, 24], [34], [44]]


@pytest.mark.parametrize(
    ("attrs", "rows", "size"),
    [
        ({}, 3, 3),
        ({"allowed_batch_sizes": [1, 2, 4]}, 2, 2),
        ({"allowed_batch_sizes": [1, 2, 4]}, 3, 4),
        ({"num_batch_threads": 0}, 3, 3),
        ({"num_batch_threads": -1, "allowed_batch_sizes": [2, 4]}, 3, 4),
        ({"max_batch_size": -1}, 9, 9),
        ({"max_enqueued_batches": -1}, 3, 3),
        ({"max_enqueued_batches": 0}, 3, 3),
        ({"batch_padding_policy": "BATCH_DOWN", "low_priority_max_batch_size": 2}, 3, 3),
    ],
)
def test_batches_are_padded_to_an_allowed_size(attrs: dict[str, Any], rows: int, size: int) -> None:
    def body(x: Any) -> Any:
        return raw_ops.Mul(x=x, y=raw_ops.Cast(x=raw_ops.Size(input=x), DstT="float32"))

    made = batched(body, **attrs)
    for _ in range(2):
        assert run(made, np.arange(rows)).tolist() == [i * size for i in range(rows)]


def test_a_large_call_is_spread_over_batches() -> None:
    attrs = {"enable_large_batch_splitting": True, "max_batch_size": 8, "allowed_batch_sizes": [2]}
    made = batched(**attrs, num_batch_threads=3)
    for count in range(1, 9):
        assert run(made, np.arange(count)).tolist() == [2 * i for i in range(count)]
    with pytest.raises(InvalidArgumentError, match="Task size 9 is larger than"):
        run(made, np.arange(9))
    found = run_all(made, *[np.arange(i, i + 1 + i % 5) for i in range(20)])
    for i, one in enumerate(found):
        assert isinstance(one, UnavailableError) or one.tolist() == [
            2 * j for j in range(i, i + 1 + i % 5)
        ]


def test_calls_without_rows_end_at_once() -> None:
    assert run(batched(batch_timeout_micros=LONG), np.zeros((0, 3))).shape == (0,)


@pytest.mark.parametrize(
    ("attrs", "value", "error", "message"),
    [
        ({}, 1, InvalidArgumentError, "at least one dimension"),
        ({}, [1] * 5, InvalidArgumentError, "Task size 5 is larger"),
        ({"allowed_batch_sizes": [4, 2]}, [1], InvalidArgumentError, "monotonically"),
        ({"allowed_batch_sizes": [1, 2]}, [1], InvalidArgumentError, "must equal max_batch_size"),
        ({"max_batch_size": 0}, [1], InvalidArgumentError, "must be positive; was 0"),
        ({"max_batch_size": 1 << 40}, [1], InvalidArgumentError, "out of range for an int32"),
        ({"batch_timeout_micros": -1}, [1], InvalidArgumentError, "must be non-negative; was -1"),
        ({"name": "nowhere"}, [1], NotFoundError, "nowhere"),
        (
            {"body": lambda x: raw_ops.Sum(input=x, axis=0)},
            [1],
            FailedPreconditionError,
            "has 0 dim",
        ),
        (
            {"body": lambda x: raw_ops.ConcatV2(values=[x, x], axis=0)},
            [1],
            FailedPreconditionError,
            "does not equal the sum",
        ),
        (
            {"body": lambda x: raw_ops.CheckNumerics(tensor=x, message="no")},
            [np.nan],
            InvalidArgumentError,
            "no : Tensor had NaN",
        ),
    ],
)
def test_bad_calls_are_refused(
    attrs: dict[str, Any], value: Any, error: type[OpError], message: str
) -> None:
    made = batched(**attrs)
    for _ in range(2):
        with pytest.raises(error, match=message):
            run(made, value)


def test_an_error_of_a_batch_is_that_of_each_step() -> None:
    made = batched(batch_timeout_micros=LONG)
    found = run_all(made, [1, 2], [[1, 2], [3, 4]])
    assert [type(one) for one in found] == [InvalidArgumentError] * 2
    assert all("Ranks of all input tensors" in str(one) for one in found)


def test_a_full_queue_refuses_calls() -> None:
    made = batched(batch_timeout_micros=1_000_000, max_enqueued_batches=1)
    found = run_all(made, [1, 2, 3], [1, 2, 3], [1, 2, 3])
    assert sum(isinstance(one, UnavailableError) for one in found) == 2
    assert sum(np.array_equal(one, [2, 4, 6]) for one in found if not isinstance(one, OpError)) == 1


def test_a_step_that_is_late_leaves_its_batch() -> None:
    session, x, (y,) = batched(batch_timeout_micros=LONG)
    late = RunOptions(timeout_in_ms=100)

    def refused() -> None:
        with pytest.raises(DeadlineExceededError):
            session.run(y, {x: np.float32([1, 2, 3])}, options=late)

    for _ in range(3):
        assert outcomes(refused) == [None]
    found = outcomes(*[lambda: session.run(y, {x: np.float32([5])})] * 4)
    assert [one.tolist() for one in found] == [[10]] * 4


class Context:
    """Stands for a computation that nobody cancels."""

    cancellation_manager = None

    def __init__(self, deadline: float | None = None) -> None:
        self.deadline = deadline
        self.status: Any = None

    def set_status(self, error: OpError) -> None:
        self.status = error


@pytest.mark.parametrize("is_late", [False, True])
def test_the_rest_of_a_batch_runs_again_if_the_last_step_ends(is_late: bool) -> None:
    seen = []

    class Resource(BatchResource):
        def run(self, parts: list[Part]) -> None:
            seen.append([one.call for one in parts])
            if len(seen) == 1:
                if not is_late:
                    parts[-1].call.finish([])
                raise DeadlineExceededError("the step of the last call ended")
            parts[0].call.finish([])

    ended: list[int] = []
    contexts: list[Any] = [Context(), Context(0.0 if is_late else None)]
    made = [BatchedCall(ctx, lambda i=i: ended.append(i)) for i, ctx in enumerate(contexts)]  # type: ignore[misc]  # i is bound
    resource = Resource(1, QueueOptions(4, 4, 0, 1, False), [])
    resource.process([Part(one, [np.zeros(1)]) for one in made])
    assert (seen, ended) == ([made, made[:1]], [1, 0])
    assert [type(one.status) for one in contexts] == [
        type(None),
        DeadlineExceededError if is_late else type(None),
    ]


def joined(
    rows: int, timeout_micros: int = LONG, **attrs: Any
) -> tuple[Session, Any, Any, list[Any]]:
    """A session that joins rows, computes their squares, and gives each step its own, with the gradients."""
    graph = Graph()
    with graph.as_default():
        x = placeholder("float32", None, name="x")
        batch = raw_ops.Batch(
            in_tensors=[x],
            num_batch_threads=1,
            max_batch_size=rows,
            grad_timeout_micros=LONG,
            **{"batch_timeout_micros": LONG, **attrs},
        )
        (whole,), index, key = batch
        y = raw_ops.Unbatch(
            batched_tensor=raw_ops.Square(x=whole),
            batch_index=index,
            id=key,
            timeout_micros=timeout_micros,
        )
        grad = raw_ops.UnbatchGrad(
            original_input=whole, batch_index=index, grad=raw_ops.Mul(x=y, y=3.0), id=key
        )
    return Session(graph), x, y, [whole, index, key, grad]


def test_rows_of_a_batch_return_to_their_steps_and_gradients_to_the_batch() -> None:
    session, x, y, fetched = joined(6)
    feeds = [np.arange(i, 2 * i, dtype=np.float32) for i in (1, 2, 3)]
    found = outcomes(
        *[lambda value=value: session.run([y, *fetched], {x: value}) for value in feeds]
    )
    for value, (rows, *_) in zip(feeds, found, strict=True):
        np.testing.assert_array_equal(rows, value**2)
    keys = [int(one[3]) for one in found]
    (whole, index, _, grad) = next(one[1:] for one in found if len(one[1]))
    assert len({*keys}) == 3
    assert sorted(index[:, 0].tolist()) == sorted(keys)
    for key, start, end in index.tolist():
        np.testing.assert_array_equal(whole[start:end], feeds[keys.index(key)])
    np.testing.assert_array_equal(grad, 3 * whole**2)
    others = [one for one in found if not len(one[1])]
    assert [(len(one[1]), one[2].shape, one[4].shape) for one in others] == [(0, (0, 3), (0,))] * 2


def test_a_padded_batch_gives_no_step_its_padding() -> None:
    session, x, y, (whole, *_) = joined(8, allowed_batch_sizes=[4, 8], batch_timeout_micros=100_000)
    calls = [lambda value=value: session.run([y, whole], {x: value}) for value in ([1], [3, 4])]
    found = outcomes(*calls)
    assert [rows.tolist() for rows, _ in found] == [[1], [9, 16]]
    assert max(len(padded) for _, padded in found) == 4


def unbatched(data: Any, index: Any, key: Any, timeout_micros: int = 10_000) -> Any:
    return raw_ops.Unbatch(
        batched_tensor=np.asarray(data, np.float32),
        batch_index=np.array(index, np.int64),
        id=np.int64(key) if np.isscalar(key) else key,
        timeout_micros=timeout_micros,
        shared_name=threading.current_thread().name + str(time.monotonic_ns()),
    )


NONE = np.zeros((0, 3), np.int64)


def test_rows_that_do_not_come_are_waited_for_until_the_time_limit() -> None:
    with pytest.raises(DeadlineExceededError, match="did not arrive within timeout"):
        unbatched(np.zeros((0,)), NONE, 1)
    with pytest.raises(DeadlineExceededError):
        unbatched([1, 2], [[7, 0, 2]], 1)
    with pytest.raises(DeadlineExceededError):
        unbatched([1, 2], [[7, 0, 2]], 1, -5)
    assert unbatched([1, 2, 3], [[7, 0, 2], [8, 2, 3]], 8).tolist() == [3]


@pytest.mark.parametrize(
    ("data", "index", "key", "message"),
    [
        ([1], [[1, 0, 1], [2, 1, 1]], 1, "no greater than 1; Got: 2"),
        ([1], [[1, 0]], 1, "1st dimension size to be 3 ; Got: 2"),
        ([1], [1, 0, 1], 1, "no greater|rank"),
        (1, [[1, 0, 1]], 1, "at least one dimension"),
        ([1, 2], [[1, 0, 5]], 1, "do not fit"),
        ([1, 2], [[1, 1, 0]], 1, "do not fit"),
        ([1], [[1, 0, 1]], np.zeros(1, np.int64), "scalar"),
    ],
)
def test_bad_batches_are_refused(data: Any, index: Any, key: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        unbatched(data, index, key)


def test_two_steps_of_one_key_are_refused() -> None:
    graph = Graph()
    with graph.as_default():
        data, index = placeholder("float32", None), placeholder("int64", None)
        y = raw_ops.Unbatch(
            batched_tensor=data, batch_index=index, id=np.int64(5), timeout_micros=500_000
        )
    session = Session(graph)
    empty = {data: np.zeros(0), index: NONE}
    found = outcomes(lambda: session.run(y, empty), lambda: session.run(y, empty))
    assert {type(one) for one in found} == {AlreadyExistsError, DeadlineExceededError}


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (NONE, "batch_index is empty"),
        ([[1, 0]], "3 elements"),
        ([[1, 0, 1], [1, 1, 2]], "a key twice"),
    ],
)
def test_bad_gradients_are_refused(index: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.UnbatchGrad(
            original_input=np.ones(2, np.float32),
            batch_index=np.array(index, np.int64),
            grad=np.ones(1, np.float32),
            id=np.int64(1),
            shared_name=message,
        )
