"""Queues: what leaves when, checks and closing; the values and errors are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Session, raw_ops
from opkernel.errors import (
    CancelledError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
)
from opkernel.types import DataType, PartialTensorShape, float32, int32, int64, string

SCALAR = PartialTensorShape([])


class Queue:
    """A queue in a graph, with nodes for all that one can do; `run` steps of a session.

    Elements are given and got as lists of components.
    """

    def __init__(self, op: str, *dtypes: DataType, version: str = "V2", **attrs: Any) -> None:
        self.version, self.dtypes = version, list(dtypes)
        if op != "PriorityQueue":
            attrs["component_types"] = self.dtypes
        else:
            attrs["component_types"] = self.dtypes[1:]
        self.graph = Graph()
        with self.graph.as_default():
            self.handle = getattr(raw_ops, op + version)(**attrs)
            self.components = [raw_ops.Placeholder(dtype=dtype) for dtype in dtypes]
            self.n = raw_ops.Placeholder(dtype=int32)
            self._enqueue = self._op("Enqueue", components=self.components)
            self._enqueue_many = self._op("EnqueueMany", components=self.components)
            self._dequeue = self._op("Dequeue", component_types=self.dtypes)
            self._many = self._op("DequeueMany", n=self.n, component_types=self.dtypes)
            self._up_to = self._op("DequeueUpTo", n=self.n, component_types=self.dtypes)
            self._size, self._is_closed = self._op("Size"), self._op("IsClosed")
            self._close = [self._op("Close", cancel_pending_enqueues=c) for c in (False, True)]
        self.session = Session(self.graph)

    def _op(self, name: str, **args: Any) -> Any:
        return getattr(raw_ops, f"Queue{name}{self.version}")(handle=self.handle, **args)

    def _fed(self, values: tuple[Any, ...]) -> dict[Any, Any]:
        return dict(zip(self.components, values, strict=True))

    def enqueue(self, *values: Any, **kwargs: Any) -> None:
        self.session.run(self._enqueue, self._fed(values), **kwargs)

    def enqueue_many(self, *values: Any, **kwargs: Any) -> None:
        self.session.run(self._enqueue_many, self._fed(values), **kwargs)

    def dequeue(self, **kwargs: Any) -> list[Any]:
        return [np.asarray(v).tolist() for v in self.session.run(list(self._dequeue), **kwargs)]

    def many(self, n: int, **kwargs: Any) -> list[Any]:
        return [v.tolist() for v in self.session.run(list(self._many), {self.n: n}, **kwargs)]

    def up_to(self, n: int, **kwargs: Any) -> list[Any]:
        return [v.tolist() for v in self.session.run(list(self._up_to), {self.n: n}, **kwargs)]

    def close(self, *, cancel: bool = False) -> None:
        self.session.run(self._close[cancel])

    @property
    def size(self) -> int:
        return int(self.session.run(self._size))

    @property
    def is_closed(self) -> bool:
        return bool(self.session.run(self._is_closed))


@pytest.mark.parametrize("version", ["", "V2"])
def test_first_in_first_out(version: str) -> None:
    queue = Queue("FIFOQueue", float32, version=version, capacity=3, shapes=[SCALAR])
    assert queue.size == 0
    queue.enqueue(1)
    queue.enqueue_many([2, 3])
    assert queue.size == 3
    assert queue.dequeue() == [1]
    assert queue.many(2) == [[2, 3]]
    assert queue.many(0) == [[]]


@pytest.mark.parametrize("version", ["", "V2"])
def test_a_closed_queue_gives_what_it_has(version: str) -> None:
    queue = Queue("FIFOQueue", float32, version=version, shapes=[SCALAR], shared_name="q")
    queue.enqueue_many([1, 2, 3])
    before = queue.is_closed
    queue.close()
    assert [before, queue.is_closed] == [False, True]
    with pytest.raises(CancelledError, match=r"FIFOQueue 'q' is closed\."):
        queue.enqueue(9)
    with pytest.raises(OutOfRangeError, match=r"\(requested 4, current size 3\)"):
        queue.many(4)
    assert queue.dequeue() == [1]
    assert queue.up_to(5) == [[2, 3]]
    for get, requested in ((queue.dequeue, 1), (lambda: queue.up_to(5), 5)):
        with pytest.raises(
            OutOfRangeError,
            match="FIFOQueue 'q' is closed and has insufficient elements "
            rf"\(requested {requested}, current size 0\)",
        ):
            get()
    with pytest.raises(CancelledError, match=r"Queue 'q' is already closed\."):
        queue.close()
    queue.close(cancel=True)


def test_elements_have_several_components_of_declared_shapes() -> None:
    shapes = [PartialTensorShape([2]), SCALAR]
    queue = Queue("FIFOQueue", float32, int32, shapes=shapes)
    queue.enqueue([1, 2], 3)
    queue.enqueue_many([[3, 4], [5, 6]], [7, 8])
    with pytest.raises(InvalidArgumentError, match=r"component 0\. Expected \[2\], got \[3\]"):
        queue.enqueue([1, 2, 3], 3)
    with pytest.raises(InvalidArgumentError, match=r"component 1\. Expected \[2\], got \[1\]"):
        queue.enqueue_many([[3, 4], [5, 6]], [7])
    with pytest.raises(InvalidArgumentError, match="must not be a scalar"):
        queue.enqueue_many(1, 2)
    with pytest.raises(InvalidArgumentError, match="-1 < 0 elements"):
        queue.many(-1)
    assert queue.many(3) == [[[1, 2], [3, 4], [5, 6]], [3, 7, 8]]


def test_elements_without_declared_shapes_make_no_batches() -> None:
    queue = Queue("FIFOQueue", float32, string)
    queue.enqueue([1, 2], b"a")
    queue.enqueue([[1]], [b"b", b"c"])
    queue.enqueue_many([1, 2], [[b"d"], [b"e"]])
    with pytest.raises(InvalidArgumentError, match="Component 1 has 1, and should have 2"):
        queue.enqueue_many([1, 2], [b"d"])
    with pytest.raises(InvalidArgumentError, match="components to have specified shapes"):
        queue.many(1)
    found = [queue.dequeue() for _ in range(4)]
    assert found == [[[1, 2], b"a"], [[[1]], [b"b", b"c"]], [1, [b"d"]], [2, [b"e"]]]


def test_batches_are_padded() -> None:
    shapes = [PartialTensorShape([None, 2]), PartialTensorShape([None])]
    queue = Queue("PaddingFIFOQueue", float32, string, shapes=shapes)
    queue.enqueue([[1, 2]], [b"a"])
    queue.enqueue([[1, 2], [3, 4]], np.zeros(0, object))
    with pytest.raises(InvalidArgumentError, match=r"Expected \[\?,2\], got \[1,3\]"):
        queue.enqueue([[1, 2, 3]], [b"a"])
    assert queue.many(2) == [[[[1, 2], [0, 0]], [[1, 2], [3, 4]]], [[b"a"], [b""]]]
    assert queue.session.run(list(queue._many), {queue.n: 0})[0].shape == (0, 0, 2)


def test_the_smallest_priority_leaves_first() -> None:
    queue = Queue("PriorityQueue", int64, string, shapes=[SCALAR])
    queue.enqueue_many([3, 1, 2, 1, 3, 1], [b"a", b"b", b"c", b"d", b"e", b"f"])
    assert queue.many(3) == [
        [1, 1, 1],
        [b"b", b"f", b"d"],
    ]  # the order that std::priority_queue has
    assert queue.dequeue() == [2, b"c"]
    with pytest.raises(InvalidArgumentError, match=r"Expected \[\], got \[1\]"):
        queue.enqueue([1], b"a")
    queue.close()
    with pytest.raises(OutOfRangeError, match=r"\(requested 3, current size 2\)"):
        queue.many(3)
    assert queue.up_to(3) == [[3, 3], [b"a", b"e"]]


def test_the_order_of_a_shuffled_queue_follows_from_its_seeds() -> None:
    attrs = {"shapes": [SCALAR], "min_after_dequeue": 2}
    queue = Queue("RandomShuffleQueue", int32, seed=5, seed2=7, **attrs)
    queue.enqueue_many(np.arange(12))
    assert queue.many(10) == [[10, 2, 9, 8, 7, 4, 11, 3, 5, 1]]
    queue.close()
    assert queue.up_to(5) == [[6, 0]]
    queue = Queue("RandomShuffleQueue", int32, seed=-5, seed2=7000000000, **attrs)
    queue.enqueue_many(np.arange(22))
    first = [15, 13, 0, 12, 17, 9, 16, 2, 6, 4, 14, 11, 21, 5, 7, 1, 8, 19, 3, 10]
    assert queue.many(20) == [first]


def test_without_seeds_the_order_is_random() -> None:
    orders = []
    for _ in range(5):
        queue = Queue("RandomShuffleQueue", int32, shapes=[SCALAR])
        queue.enqueue_many(np.arange(30))
        orders += queue.many(30)
    assert any(order != orders[0] for order in orders)
    assert all(sorted(order) == list(range(30)) for order in orders)


def test_what_the_caller_writes_later_does_not_reach_the_queue() -> None:
    queue = Queue("FIFOQueue", float32)
    given = np.ones(2, np.float32)
    queue.enqueue(given)
    given[:] = 7
    got = queue.session.run(list(queue._dequeue))[0]
    got[:] = 5  # it is the caller's alone
    queue.enqueue_many(np.ones((2, 2), np.float32))
    assert queue.dequeue() == [[1, 1]]


@pytest.mark.parametrize(
    ("op", "attrs", "message"),
    [
        ("FIFOQueue", {"shapes": [SCALAR]}, "Different number of component types"),
        ("FIFOQueue", {"shapes": [[None], SCALAR]}, r"\[\?\] is not fully defined"),
        ("PaddingFIFOQueue", {}, "Shapes must be provided for all components"),
        ("PaddingFIFOQueue", {"shapes": [None, SCALAR]}, "must have known rank"),
        ("PriorityQueue", {"shapes": []}, "needs the shapes"),
        ("RandomShuffleQueue", {"min_after_dequeue": -2}, "-2 must be >= 0"),
        ("RandomShuffleQueue", {"min_after_dequeue": 5, "capacity": 5}, "5 must be < capacity 5"),
        ("FIFOQueue", {"capacity": 2**31}, "out of range for an int32"),
        ("FIFOQueue", {"shared_name": "_q"}, "cannot start with '_'"),
    ],
)
def test_queues_that_cannot_be(op: str, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        _ = Queue(op, float32, int32, **attrs).size


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({}, {"component_types": [int32]}, r"component types \[float\] but .* \[int32\]"),
        ({"capacity": 3}, {"capacity": 4}, "capacity 3 but requested capacity was 4"),
        ({}, {"shapes": [SCALAR]}, r"component shapes \[\] but .* were \[\[\]\]"),
        ({}, {"op": "RandomShuffleQueue"}, "Expected FIFOQueue, found RandomShuffleQueue"),
        (
            {"op": "RandomShuffleQueue", "min_after_dequeue": 1},
            {"op": "RandomShuffleQueue", "min_after_dequeue": 2},
            "min_after_dequeue 1 but requested min_after_dequeue was 2",
        ),
        (
            {"op": "RandomShuffleQueue", "seed": 1},
            {"op": "RandomShuffleQueue", "seed": 2},
            r"random seeds \(1, 0\) but requested seeds are \(2, 0\)",
        ),
        (
            {"op": "PaddingFIFOQueue", "shapes": [PartialTensorShape([2])]},
            {"op": "PaddingFIFOQueue", "shapes": [PartialTensorShape([3])]},
            r"component shapes \[\[2\]\] but",
        ),
    ],
)
def test_nodes_of_one_shared_name_want_one_queue(
    first: dict[str, Any], second: dict[str, Any], message: str
) -> None:
    def size(op: str = "FIFOQueue", **attrs: Any) -> Any:
        attrs = {"component_types": [float32], "shared_name": "s", **attrs}
        return raw_ops.QueueSizeV2(handle=getattr(raw_ops, f"{op}V2")(**attrs))

    with Graph().as_default() as graph:
        sizes = size(**first), size(**second)
    with Session(graph) as session:
        session.run(sizes[0])
        with pytest.raises(InvalidArgumentError, match=message):
            session.run(sizes[1])


def test_a_shared_name_is_one_queue_and_no_name_a_queue_of_the_node() -> None:
    with Graph().as_default() as graph:
        shared = [raw_ops.FIFOQueueV2(component_types=[int32], shared_name="s") for _ in "ab"]
        own = [raw_ops.FIFOQueueV2(component_types=[int32]) for _ in "ab"]
        put = [raw_ops.QueueEnqueueV2(handle=q[0], components=[np.int32(1)]) for q in (shared, own)]
        sizes = [raw_ops.QueueSizeV2(handle=q) for q in (*shared, *own)]
        fake = raw_ops.QueueSize(handle=raw_ops.FakeQueue(resource=shared[1]))
        name = raw_ops.FIFOQueue(component_types=[int32], shared_name="s")
    with Session(graph) as session, Session(graph) as other:
        session.run(put)
        assert session.run([*sizes, fake]) == [1, 1, 1, 0, 1]
        assert session.run(name).tolist() == [b"localhost", b"s"]
        assert other.run(sizes) == [0, 0, 0, 0]


def test_the_types_of_nodes_are_those_of_the_queue() -> None:
    with Graph().as_default() as graph:
        queue = raw_ops.FIFOQueueV2(component_types=[float32])
        wrong = [
            raw_ops.QueueDequeueV2(handle=queue, component_types=[int32])[0],
            raw_ops.QueueDequeueV2(handle=queue, component_types=[float32] * 2)[0],
            raw_ops.QueueEnqueueV2(handle=queue, components=[np.int32(1)]),
        ]
        late = raw_ops.QueueDequeueV2(handle=queue, component_types=[float32], timeout_ms=5)
        of_table = raw_ops.QueueSizeV2(
            handle=raw_ops.HashTableV2(key_dtype=int64, value_dtype=int64)
        )
    with Session(graph) as session:
        for fetch in wrong:
            with pytest.raises(InvalidArgumentError, match="Signature mismatch, have: resource"):
                session.run(fetch)
        with pytest.raises(InvalidArgumentError, match="Timeout not supported yet"):
            session.run(late)
        with pytest.raises(InvalidArgumentError, match="wrong type"):
            session.run(of_table)


def test_a_queue_of_a_node_ends_with_its_session() -> None:
    queue = Queue("FIFOQueue", float32)
    queue.enqueue(1)
    resources = queue.session._devices.client_device.resource_manager
    assert "QueueBase" in resources.debug_string()
    queue.session.close()
    assert resources.debug_string() == ""
    with pytest.raises(OpError):
        queue.dequeue()


def test_eager_calls_share_a_queue() -> None:
    queue = raw_ops.FIFOQueueV2(component_types=[float32], shapes=[[2]], shared_name="eager")
    raw_ops.QueueEnqueueV2(handle=queue, components=[np.float32([1, 2])])
    same = raw_ops.FIFOQueueV2(component_types=[float32], shapes=[[2]], shared_name="eager")
    assert raw_ops.QueueSizeV2(handle=same) == 1
    (batch,) = raw_ops.QueueDequeueManyV2(handle=queue, n=1, component_types=[float32])
    assert batch.tolist() == [[1, 2]]
    raw_ops.DestroyResourceOp(resource=queue)
    with pytest.raises(NotFoundError, match="does not exist"):
        raw_ops.QueueSizeV2(handle=queue)
