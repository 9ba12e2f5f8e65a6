"""Partitions that run side by side end together, whatever ends one of them."""

import itertools
import threading

import numpy as np
import pytest
from tests.runtime.dataflow.kernels import WaitsForCancellation, register
from tests.runtime.dataflow.loop_builders import Builder

import opkernel
from opkernel.errors import CancelledError, DeadlineExceededError, InvalidArgumentError
from opkernel.kernel import CancellationManager, OpKernel

TWO = opkernel.SessionConfig(device_count={"CPU": 2})
WAITS, REFUSES, INTERRUPTED = "SideWaits", "SideRefuses", "SideInterrupted"


class Refuses(OpKernel):
    """Refuses its input."""

    def compute(self, ctx):
        raise InvalidArgumentError("this one is to blame")


class Interrupted(OpKernel):
    """Is interrupted."""

    def compute(self, ctx):
        raise KeyboardInterrupt


@pytest.fixture(scope="module", autouse=True)
def ops():
    register(WAITS, WaitsForCancellation)
    register(REFUSES, Refuses)
    register(INTERRUPTED, Interrupted)


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    for thread in threading.enumerate():
        if thread.name == "opkernel partition":
            thread.join(300)
            assert not thread.is_alive()


def there_and_back(op, device, waits=""):
    """A graph with an op on a device, whose result both devices use; `waits` waits beside it."""
    b = Builder()
    x = b.op(op, b.placeholder("x"), name="middle")
    x.op.set_device(f"/cpu:{device}")
    far = b.op("Neg", x, name="far")
    far.op.set_device("/cpu:1")
    y = b.op("Exp", far, name="y")
    if not waits:
        return b.graph, y
    waiting = b.op(WAITS, b.placeholder("z"), name="waiting")
    waiting.op.set_device(waits)
    return b.graph, [y, b.op("Neg", waiting)]


@pytest.mark.parametrize("waits", ["", "/cpu:0", "/cpu:1"])
@pytest.mark.parametrize("device", [0, 1])
def test_the_error_told_is_that_of_the_node_that_failed(device, waits):
    graph, fetches = there_and_back(REFUSES, device, waits)
    with opkernel.Session(graph, config=TWO) as session:
        for _ in range(5):
            feeds = {"x:0": 1.0, "z:0": 1.0} if waits else {"x:0": 1.0}
            with pytest.raises(InvalidArgumentError, match=r"to blame.*'middle'"):
                session.run(fetches, feeds)


@pytest.mark.parametrize("device", [0, 1])
def test_a_deadline_ends_all(device):
    graph, y = there_and_back(WAITS, device)
    with opkernel.Session(graph, config=TWO) as session:
        options = opkernel.RunOptions(timeout_in_ms=50)
        with pytest.raises(DeadlineExceededError):
            session.run(y, {"x:0": 1.0}, options)


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("end", ["cancel", "close"])
def test_whoever_cancels_ends_all(device, end):
    graph, y = there_and_back(WAITS, device)
    manager = CancellationManager()
    session = opkernel.Session(graph, config=TWO)
    WaitsForCancellation.begun.clear()

    def cancel():
        WaitsForCancellation.begun.wait()
        manager.start_cancel() if end == "cancel" else session.close()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(CancelledError):
        session.run(y, {"x:0": 1.0}, opkernel.RunOptions(cancellation_manager=manager))
    thread.join()
    session.close()


@pytest.mark.parametrize("device", [0, 1])
def test_an_interrupt_ends_all(device):
    graph, y = there_and_back(INTERRUPTED, device, "/cpu:0")
    with opkernel.Session(graph, config=TWO) as session, pytest.raises(KeyboardInterrupt):
        session.run(y, {"x:0": 1.0, "z:0": 1.0})


@pytest.mark.parametrize("device", [0, 1])
def test_an_error_ends_a_partial_run_on_all_devices(device):
    graph, fetches = there_and_back(REFUSES, device, f"/cpu:{1 - device}")
    with opkernel.Session(graph, config=TWO) as session:
        handle = session.partial_run_setup(fetches, ["x:0", "z:0"])
        session.partial_run(handle, [], {"z:0": 1.0})
        with pytest.raises(InvalidArgumentError, match=r"to blame.*'middle'"):
            session.partial_run(handle, fetches[0], {"x:0": 1.0})
        with pytest.raises(InvalidArgumentError, match="Must run 'setup'"):
            session.partial_run(handle, fetches[1])


@pytest.mark.parametrize("device", [0, 1])
def test_close_ends_a_partial_run_on_all_devices(device):
    graph, y = there_and_back(WAITS, device)
    session = opkernel.Session(graph, config=TWO)
    handle = session.partial_run_setup(y, ["x:0"])
    WaitsForCancellation.begun.clear()

    def close():
        WaitsForCancellation.begun.wait()
        session.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(CancelledError):
        session.partial_run(handle, y, {"x:0": 1.0})
    thread.join()


@pytest.mark.parametrize("sanitize", [False, True])
def test_a_callable_keeps_its_partitions(sanitize):
    graph, y = there_and_back("Neg", 1)
    with opkernel.Session(graph, config=TWO, sanitize=sanitize) as session:
        call = session.make_callable(y, ["x:0"])
        np.testing.assert_allclose([call(x) for x in (0.0, 1.0, 2.0)], np.exp([0, 1, 2]), 1e-6)


def test_traces_tell_the_device_of_each_node():
    graph, y = there_and_back("Exp", 1)
    metadata = opkernel.proto.RunMetadata()
    with opkernel.Session(graph, config=TWO) as session:
        session.run(y, {"x:0": 1.0}, opkernel.RunOptions(trace_level=3), metadata)
    found = {
        node.node_name: stats.device[-1]
        for stats in metadata.step_stats.dev_stats
        for node in stats.node_stats
    }
    assert (found["far"], found["y"]) == ("1", "0")


def test_many_steps_at_once_each_have_their_own_values():
    b = Builder()
    values = [b.placeholder("x")]
    for index in range(12):
        values.append(b.op("AddV2", values[-1], values[-1]))
        values[-1].op.set_device(f"/cpu:{index % 3}")
    config = opkernel.SessionConfig(device_count={"CPU": 3})
    wrong, numbers = [], itertools.count()
    with opkernel.Session(b.graph, config=config) as session:

        def work():
            for _ in range(30):
                x = float(next(numbers))
                if session.run(values[-1], {values[0]: x}) != x * 2**12:
                    wrong.append(x)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert next(numbers) == 6 * 30
    assert not wrong
