"""Sixteen threads run one session: each step gives what it gives alone, and nobody waits for ever.

`OPKERNEL_STRESS_SECONDS` sets how long it takes, which is 2 seconds otherwise.
"""

import faulthandler
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.kernels import Later, WaitsForCancellation, register
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, INT32, Builder
from tests.runtime.dataflow.test_functions import call, define

import opkernel
from opkernel.errors import CancelledError, DeadlineExceededError, InvalidArgumentError
from opkernel.kernel import CancellationManager
from opkernel.runtime import RunOptions

SECONDS = float(os.environ.get("OPKERNEL_STRESS_SECONDS", "2"))
THREADS = 16


class Mix:
    """A graph, and all that the threads do with it; each method is one thing."""

    def __init__(self, options: dict[str, Any]) -> None:
        register("MixLater", Later)
        register("MixWaits", WaitsForCancellation)
        self.builder = b = Builder()
        self.x, self.n = b.placeholder("x"), b.placeholder("n", INT32)
        self.p = b.placeholder("p", BOOL)
        self.matrix = b.placeholder("m")
        self._straight(b)
        self._loops(b)
        self._functions(b)
        self._variables(b)
        self._queues(b)
        self.waits = b.op("MixWaits", b.op("MixLater", self.x))
        self.session = opkernel.Session(b.graph, **options)
        self.session.run(self.zero)
        self.lock = threading.Lock()
        self.added = 0

    def _straight(self, b: Builder) -> None:
        self.product = b.op("MatMul", self.matrix, self.matrix)
        self.sum = b.op("Sum", self.product, b.constant(np.array([0, 1], np.int32)))

    def _loops(self, b: Builder) -> None:
        def body(i: Any, x: Any, n: Any) -> list[Any]:
            odd = b.op("Equal", b.op("FloorMod", i, b.constant(2)), b.constant(1))
            (x,) = b.cond(
                odd,
                lambda x: [b.op("Mul", x, b.constant(2.0))],
                lambda x: [b.op("AddV2", x, b.constant(1.0))],
                [x],
            )
            return [b.op("AddV2", i, b.constant(1)), x]

        _, self.looped = b.while_loop(
            lambda i, x, n: b.op("Less", i, n), body, [b.constant(0), self.x], [self.n]
        )

    def _functions(self, b: Builder) -> None:
        double = define(b, "double", [FLOAT], lambda g, x: [g.op("AddV2", x, x)])
        waits = define(b, "waits", [FLOAT], lambda g, x: [g.op("Neg", g.op("MixLater", x))])
        small = define(b, "small", [FLOAT], lambda g, x: [g.op("Less", x, g.constant(1000.0))])
        self.doubled = b.op("While", [self.x], cond=small, body=double, T=[FLOAT])
        self.waited = b.op(
            "If", self.p, [self.x], then_branch=waits, else_branch=double, Tout=[FLOAT]
        )
        self.called = call(b, waits, call(b, double, self.x))

    def _variables(self, b: Builder) -> None:
        handle = b.op("VarHandleOp", dtype=FLOAT, shape=[], shared_name="mix")
        zero = b.constant(0.0)
        self.zero = b.operation("AssignVariableOp", handle, zero, dtype=FLOAT)
        self.add = b.operation("AssignAddVariableOp", handle, self.x, dtype=FLOAT)
        self.read = b.op("ReadVariableOp", handle, dtype=FLOAT)

    def _queues(self, b: Builder) -> None:
        queue = b.op("FIFOQueueV2", component_types=[FLOAT], capacity=4, shared_name="mix")
        self.enqueue = b.operation("QueueEnqueueV2", queue, [self.x], Tcomponents=[FLOAT])
        (self.dequeue,) = b.operation("QueueDequeueV2", queue, component_types=[FLOAT]).outputs

    def straight(self, chance: random.Random) -> None:
        value = np.full((4, 4), chance.randint(-9, 9), np.float32)
        product, total = self.session.run([self.product, self.sum], {"m:0": value})
        np.testing.assert_array_equal(product, value @ value)
        assert total == (value @ value).sum()

    def bad_feed(self, chance: random.Random) -> None:
        with pytest.raises(InvalidArgumentError):
            self.session.run(self.product, {"m:0": np.zeros((2, 3), np.float32)})

    def loop(self, chance: random.Random) -> None:
        n, x = chance.randint(0, 12), float(chance.randint(-9, 9))
        expected = x
        for i in range(n):
            expected = expected * 2 if i % 2 else expected + 1
        assert self.session.run(self.looped, {"n:0": n, "x:0": x}) == expected

    def functions(self, chance: random.Random) -> None:
        x, p = float(chance.randint(1, 9)), chance.random() < 0.5
        found = self.session.run([self.waited, self.called, self.doubled], {"x:0": x, "p:0": p})
        doubled = x
        while doubled < 1000:
            doubled *= 2
        assert found == [-x if p else 2 * x, -2 * x, doubled]

    def variable(self, chance: random.Random) -> None:
        x = chance.randint(0, 3)
        self.session.run(self.add, {"x:0": float(x)})
        with self.lock:
            self.added += x
        assert self.session.run(self.read) >= 0

    def queue(self, chance: random.Random) -> None:
        """One step that gives to the queue and takes from it: what another thread gave, it may be."""
        _, taken = self.session.run([self.enqueue, self.dequeue], {"x:0": 7.0})
        assert taken == 7

    def time_out(self, chance: random.Random) -> None:
        with pytest.raises(DeadlineExceededError):
            self.session.run(self.waits, {"x:0": 1.0}, RunOptions(timeout_in_ms=30))

    def cancel(self, chance: random.Random) -> None:
        manager = CancellationManager()
        timer = threading.Timer(chance.random() * 0.03, manager.start_cancel)
        timer.start()
        with pytest.raises(CancelledError):
            self.session.run(self.waits, {"x:0": 1.0}, RunOptions(cancellation_manager=manager))
        timer.join()

    def work(self, thread: int, until: float, failures: list[BaseException]) -> Counter[str]:
        """One thread; how often it did what."""
        chance, did = random.Random(thread), Counter[str]()
        actions: list[Callable[[random.Random], None]] = [
            self.straight, self.bad_feed, self.loop, self.functions, self.variable, self.queue,
            self.time_out, self.cancel,
        ]  # fmt: skip
        while time.monotonic() < until and not failures:
            action = chance.choice(actions)
            try:
                action(chance)
            except BaseException as error:
                failures.append(error)
            did[action.__name__] += 1
        return did


@pytest.mark.parametrize(
    "options", [{}, {"executor_type": "DATAFLOW"}, {"inter_op_threads": 3}], ids=str
)
def test_sixteen_threads_get_the_same_answers_and_nobody_waits_for_ever(
    options: dict[str, Any],
) -> None:
    mix, failures, did = Mix(options), list[BaseException](), list[Counter[str]]()
    before = set(threading.enumerate())
    until = time.monotonic() + SECONDS / 3
    threads = [
        threading.Thread(target=lambda n=n: did.append(mix.work(n, until, failures)), daemon=True)
        for n in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0) + 60)
    if any(thread.is_alive() for thread in threads):
        faulthandler.dump_traceback()
        raise AssertionError("threads wait for one another")
    if failures:
        raise failures[0]
    print(dict(sum(did, Counter())))
    assert mix.session.run(mix.read) == mix.added, "an update was lost"
    mix.session.close()
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(300)
    assert not any(thread.is_alive() for thread in left)
