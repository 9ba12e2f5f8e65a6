"""Synchronous kernels that wait are named; those that work, and asynchronous ones, are not."""

import threading
import time

import numpy as np
import pytest

import opkernel
from opkernel.kernel import AsyncOpKernel, OpKernel
from opkernel.opdef import register_op, scalar_shape
from opkernel.runtime import BlockedKernel, BlockedKernelWatchdog, Session


def graph_of(op):
    graph = opkernel.Graph()
    with graph.as_default():
        return graph.create_op(op, [], name=f"the_{op}").outputs[0]


@pytest.fixture(scope="module", autouse=True)
def ops():
    for name, kernel in (("Waits", Waits), ("Works", Works), ("WaitsRightly", WaitsRightly)):
        register_op(name, outputs=["y: float"], shape_fn=scalar_shape)
        opkernel.register_kernel(name, device="CPU")(kernel)


class Waits(OpKernel):
    """Waits until it is reported."""

    is_reported = threading.Event()

    def compute(self, ctx):
        self.is_reported.wait()
        ctx.set_output(0, np.float32(1))


class Works(OpKernel):
    """Works for longer than a kernel may wait, of the time of the processor."""

    def compute(self, ctx):
        begin = time.thread_time()
        while time.thread_time() - begin < 3 * AFTER_S:
            pass
        ctx.set_output(0, np.float32(1))


class WaitsRightly(AsyncOpKernel):
    """Waits until the watchdog has looked so often that it would have reported it."""

    looks = threading.Semaphore(0)

    def compute_async(self, ctx, done):
        ctx.set_output(0, np.float32(1))
        threading.Thread(target=self._end, args=(done,)).start()

    def _end(self, done):
        for _ in range(40):
            self.looks.acquire()
        done()


AFTER_S = 0.2


@pytest.fixture
def counted_looks(monkeypatch):
    """Has WaitsRightly know of each look at the main thread."""
    sample, main = BlockedKernelWatchdog._sample, threading.get_ident()

    def counted(self, thread, frame):
        if thread == main:
            WaitsRightly.looks.release()
        return sample(self, thread, frame)

    monkeypatch.setattr(BlockedKernelWatchdog, "_sample", counted)


@pytest.mark.usefixtures("counted_looks")
@pytest.mark.parametrize("options", [{}, {"executor_type": "DATAFLOW"}, {"inter_op_threads": 1}])
@pytest.mark.parametrize(
    ("op", "reported"), [("Waits", ["the_Waits"]), ("Works", []), ("WaitsRightly", [])]
)
def test_who_is_reported(op, reported, options, monkeypatch):
    if op == "Works":  # other processes may leave it little of the time that passes
        monkeypatch.setattr("opkernel.runtime.watch.watchdog.time.monotonic", time.process_time)
    Waits.is_reported.clear()
    found: list[BlockedKernel] = []

    def report(blocked: BlockedKernel) -> None:
        found.append(blocked)
        Waits.is_reported.set()

    tensor = graph_of(op)
    with BlockedKernelWatchdog(after_s=AFTER_S, report=report):
        assert Session(tensor.graph, **options).run(tensor) == 1
    assert [blocked.node for blocked in found] == reported
    for blocked in found:
        assert "self.is_reported.wait()" in blocked.stack
        assert "must be an AsyncOpKernel" in str(blocked)
