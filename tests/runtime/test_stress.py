"""Many threads register, look up, create, run, cancel and close, all at once.

Afterwards no update is lost, nobody waits, and what was made is gone. `OPKERNEL_STRESS_SECONDS`
sets how long it takes, which is 2 seconds otherwise.
"""

import faulthandler
import gc
import itertools
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    NotFoundError,
)
from opkernel.kernel import (
    AsyncOpKernel,
    OpKernel,
    OpKernelContext,
    ResourceBase,
    create_op_kernel,
    find_kernel_def,
    get_registered_kernels_for_op,
    global_kernel_registry,
    kernel_def_available,
    register_kernel,
)
from opkernel.opdef import register_op, unchanged_shape
from opkernel.opdef.common_shapes import scalar_shape
from opkernel.proto import NodeDef
from opkernel.runtime import CPU
from opkernel.runtime.program.run_step import RunStep

SECONDS = float(os.environ.get("OPKERNEL_STRESS_SECONDS", "2"))
THREADS = 16
ROUNDS = 4  # what leaks does so in each of them; a cache that was not yet full does not
FLOAT: dict[str, Any] = {
    "inputs": ["x: float"],
    "outputs": ["y: float"],
    "shape_fn": unchanged_shape,
}
EDITED = [register_op(f"StressEdited{number}", **FLOAT) for number in range(THREADS)]
WAITS = register_op("StressWaits", **FLOAT)
COUNTS = register_op(
    "StressCounts", outputs=["count: int64"], shape_fn=scalar_shape, is_stateful=True
)


class Total(ResourceBase):
    """What all steps of a session count together."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0


class Counts(OpKernel):
    """Adds one to the total of its session."""

    def compute(self, ctx: OpKernelContext) -> None:
        manager = ctx.resource_manager
        assert manager is not None
        with manager.lookup_or_create("stress", "total", Total, Total) as total, total.lock:
            total.count += 1
            ctx.set_output(0, np.int64(total.count))


class Waits(AsyncOpKernel):
    """Waits until it is cancelled."""

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        manager = ctx.cancellation_manager
        assert manager is not None

        def cancelled() -> None:
            ctx.set_status(manager.status or CancelledError("cancelled"))
            done()

        if not manager.register_callback(manager.get_cancellation_token(), cancelled):
            cancelled()


class Stress:
    """What the threads do; each method is one thing that one of them does."""

    def __init__(self) -> None:
        self.graph = opkernel.Graph()
        x = self.graph.create_op("Placeholder", name="x", attrs={"dtype": opkernel.float32})
        for op in (*EDITED, WAITS):
            self.graph.create_op(op.name, [x.outputs[0]], name=op.name)
        self.graph.create_op(COUNTS.name, name="count")
        self.session = opkernel.Session(self.graph)
        self.counted = itertools.count()
        self.did: list[Counter[str]] = [Counter() for _ in range(THREADS)]

    def register(self, thread: int, number: int) -> None:
        """Edit the thread's own kernel; the next step of any session has it."""
        register_kernel(EDITED[thread], device="CPU")(lambda x: x + np.float32(number))
        answer = self.session.run(f"StressEdited{thread}:0", {"x:0": 0})
        assert answer == number, f"ran version {answer} after {number} was registered"

    def register_label(self, thread: int, number: int) -> None:
        """A kernel that comes and goes."""
        registry, name = global_kernel_registry(), EDITED[thread].name
        node = NodeDef(name="n", op=name, input=["x"])
        node.attr["_kernel"].s = b"passing"
        register_kernel(EDITED[thread], device="CPU", label="passing")(lambda x: x)
        assert kernel_def_available("CPU", node)
        registry.unregister(registry.candidates(name, "CPU", "passing")[0])
        with pytest.raises(NotFoundError):
            find_kernel_def("CPU", node)

    def look_up(self, thread: int, number: int) -> None:
        """Find kernels that other threads replace meanwhile."""
        op = EDITED[number % THREADS].name
        assert find_kernel_def("CPU", NodeDef(name="n", op=op, input=["x"])).op == op
        assert get_registered_kernels_for_op(op).kernel

    def create(self, thread: int, number: int) -> None:
        """Make a kernel and compute it without a session."""
        op = EDITED[number % THREADS].name
        kernel = create_op_kernel(CPU, NodeDef(name="n", op=op, input=["x"]))
        (answer,) = OpKernelContext(kernel, [np.float32(0)], RunStep()).run()
        assert answer == int(answer)

    def run(self, thread: int, number: int) -> None:
        """Steps of one session that share a resource."""
        self.session.run([f"StressEdited{number % THREADS}:0", "count:0"], {"x:0": 1})
        next(self.counted)

    def cancel(self, thread: int, number: int) -> None:
        """Cancel a step that waits, before it does, at its start, or later."""
        kernel = create_op_kernel(CPU, NodeDef(name="n", op=WAITS.name, input=["x"]))
        step, is_over = RunStep(), threading.Event()
        ctx = OpKernelContext(kernel, [np.float32(0)], step)
        canceller = threading.Thread(target=step.cancel)
        canceller.start()
        asynchronous = kernel.as_async()
        assert asynchronous is not None
        asynchronous.start(ctx, is_over.set)
        assert is_over.wait(300)
        canceller.join()
        step.end()
        with pytest.raises(CancelledError):
            ctx.finish()

    def time_out(self, thread: int, number: int) -> None:
        """A step that waits for longer than it may."""
        with pytest.raises(DeadlineExceededError):
            self.session.run("StressWaits:0", {"x:0": 0}, opkernel.RunOptions(timeout_in_ms=1))

    def close(self, thread: int, number: int) -> None:
        """A session of its own, which ends."""
        with opkernel.Session(self.graph) as session:
            assert session.run("count:0") == 1
            assert session.run("count:0") == 2
        with pytest.raises(FailedPreconditionError):
            session.run("count:0")

    def work(self, thread: int, until: float, failures: list[BaseException]) -> None:
        """One thread."""
        chance = random.Random(thread)
        kinds = ["register", "register_label", "look_up", "create", "run", "cancel", "time_out"]
        try:
            for number in itertools.count(1):
                if time.monotonic() > until or failures:
                    return
                kind = chance.choice([*kinds, "run", "look_up", "close"])
                getattr(self, kind)(thread, number)
                self.did[thread][kind] += 1
        except BaseException as error:
            failures.append(error)


@pytest.fixture
def _kernels() -> Iterator[None]:
    for op in EDITED:
        register_kernel(op, device="CPU")(lambda x: x)
    register_kernel(COUNTS, device="CPU")(Counts)
    register_kernel(WAITS, device="CPU")(Waits)
    yield
    registry = global_kernel_registry()
    for op in (*EDITED, COUNTS, WAITS):
        for one in registry.registrations_for(op.name):
            registry.unregister(one)


def stress(seconds: float) -> Counter[str]:
    """Have all threads work for a while; what they did, by kind."""
    it = Stress()
    failures: list[BaseException] = []
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=it.work, args=(number, until, failures), daemon=True)
        for number in range(THREADS)
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
    assert it.session.run("count:0") == next(it.counted) + 1, "an update was lost"
    it.session.close()
    return sum(it.did, Counter())


def objects() -> Counter[str]:
    """How many objects of each type of opkernel there are, and of some that it keeps them in."""
    gc.collect()
    gc.collect()
    kept = (dict, list, set, tuple, type(lambda: None))
    found: Counter[str] = Counter()
    for one in gc.get_objects():
        kind: Any = type(one)
        module = str(kind.__module__)  # some classes have a descriptor there
        if kind in kept or module.startswith(("opkernel", "threading", __name__)):
            found[f"{module}.{kind.__qualname__}"] += 1
    return found


def stress_and_count(seconds: float) -> tuple[Counter[str], int, Counter[str]]:
    """What was done, how many blocks of memory it left, and how many objects of each type."""
    before, blocks_before = objects(), sys.getallocatedblocks()
    done = stress(seconds)
    after, blocks_after = objects(), sys.getallocatedblocks()
    return done, blocks_after - blocks_before, after - before


@pytest.mark.usefixtures("_kernels")
def test_no_update_is_lost_nobody_waits_and_nothing_is_left() -> None:
    stress(1)  # what is loaded and kept once is there from now on, or after the next rounds
    for _ in range(ROUNDS):
        done, blocks, grown = stress_and_count(SECONDS)
        print(f"{sum(done.values())} actions: {dict(done)}")
        print(f"{blocks:+d} blocks of memory; grown: {dict(grown) or 'nothing'}")
        assert len(done) == 8, done
        if blocks < 500 and all(more < 50 for more in grown.values()):
            return
    raise AssertionError(f"each of {ROUNDS} rounds left something: {blocks} blocks, {grown}")
