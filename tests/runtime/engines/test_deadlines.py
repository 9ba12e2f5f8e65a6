"""Steps with a deadline whose engine does not come back: an engine of the test that waits until it is let go."""

import gc
import logging
import threading
import time

import numpy as np
import pytest
from tests.runtime.engines.own_engine import OwnEngine, registered

import opkernel
from opkernel import raw_ops
from opkernel.device.ownership import recycled
from opkernel.errors import CancelledError, DeadlineExceededError, InternalError
from opkernel.graph import Graph
from opkernel.kernel import CancellationManager
from opkernel.runtime.engines import late_work

X = np.array([0.5, -1.0, 2.0], np.float32)
PATIENCE_S = 60


class WaitingEngine(OwnEngine):
    """Compiles and runs programs; once it is held, the next one waits until it is let go."""

    def __init__(self):
        super().__init__()
        self.may_compile, self.may_run = threading.Event(), threading.Event()
        self.let_go()
        self.threads = []
        self.look = lambda inputs: None

    def compile(self, body, arguments):
        self.may_compile.wait(60)
        program = super().compile(body, arguments)
        compute = program.run

        def run(inputs):
            self.threads.append(threading.current_thread())
            self.may_run.wait(60)
            self.look(inputs)
            return compute(inputs)

        program.run = run
        return program

    def hold(self, *, compiling=False):
        """Have what begins wait."""
        (self.may_compile if compiling else self.may_run).clear()

    def let_go(self):
        """Have what waits go on, and what comes later not wait."""
        self.may_compile.set()
        self.may_run.set()


@pytest.fixture
def waiting():
    """Registers engines, and lets them go in the end, so that no test leaves work behind."""
    made = []

    def register():
        made.append(WaitingEngine())
        return registered(made[-1])

    yield register
    for engine in made:
        engine.let_go()
    until(lambda: not late_work._under_way)


def until(holds):
    """Wait for something that other threads bring about."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "it never holds"
        time.sleep(0.01)


def graph_of_exp(*, doubled=False):
    """exp(-x); doubled, of what the kernels of the CPU give the engine."""
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=None, name="x")
        x = raw_ops.AddV2(x=x, y=x) if doubled else x
        raw_ops.Exp(x=raw_ops.Neg(x=x), name="y")
    return graph


def session_with(graph=None, **options):
    config = opkernel.SessionConfig(jit="own!", **options)
    return opkernel.Session(graph or graph_of_exp(), config=config)


def run(session, fetch="y:0", x=X, *, within_ms=60_000, manager=None):
    options = opkernel.RunOptions(timeout_in_ms=within_ms, cancellation_manager=manager)
    return session.run(fetch, {} if x is None else {"x:0": x}, options)


def check(session, x=X, **options):
    np.testing.assert_allclose(run(session, x=x, **options), np.exp(-x), rtol=1e-6)


@pytest.mark.parametrize("has_compile_nodes", [False, True])
def test_a_program_that_does_not_end_is_abandoned(waiting, has_compile_nodes):
    with waiting() as engine, session_with(lazy_compilation=has_compile_nodes) as session:
        check(session)
        engine.hold()
        with pytest.raises(DeadlineExceededError, match="own ran the program of cluster_"):
            check(session, within_ms=200)
        check(session)  # by kernels, while the program is still running
        assert engine.runs == 1
        engine.let_go()
        until(lambda: not late_work._under_way)
        runs = engine.runs
        check(session)
        assert engine.runs == runs + 1


@pytest.mark.parametrize("has_compile_nodes", [False, True])
def test_kernels_compute_what_is_not_compiled_in_time(waiting, has_compile_nodes, caplog):
    caplog.set_level(logging.WARNING, "opkernel.engines")
    with waiting() as engine, session_with(lazy_compilation=has_compile_nodes) as session:
        check(session, np.ones((2, 2), np.float32))
        engine.hold(compiling=True)
        check(session, within_ms=2000)
        check(session)
        assert "Timed out while compiling cluster_" in caplog.text
        assert engine.runs == 1
        engine.let_go()
        until(lambda: not late_work._under_way)
        check(session)
        assert engine.runs == 2
        assert len(engine.compiled) == 2  # what was begun serves later steps


def test_what_is_never_compiled_in_time_is_not_tried_for_ever():
    class Slow(OwnEngine):
        def compile(self, body, arguments):
            super().compile(body, arguments)
            raise DeadlineExceededError("Timed out while compiling")

    with registered(Slow()) as engine, session_with() as session:
        for _ in range(6):
            check(session)
    assert len(engine.compiled) == 3


def test_a_step_without_a_deadline_waits_on_its_own_thread(waiting):
    with waiting() as engine, session_with() as session:
        session.run("y:0", {"x:0": X})
    assert engine.threads == [threading.current_thread()]


def test_a_step_that_waits_for_an_engine_can_be_cancelled(waiting):
    manager = CancellationManager()
    with waiting() as engine, session_with() as session:
        check(session)
        engine.hold()
        threading.Timer(0.2, manager.start_cancel).start()
        with pytest.raises(CancelledError):
            run(session, manager=manager)


def test_an_abandoned_program_keeps_its_inputs(waiting):
    """Their memory is not given to other results, however often these are made."""
    shape = (1 << 10, 8 << 10)  # so large that dead arrays are given out again
    seen = []

    def look(inputs):
        if inputs[0].shape == shape:
            seen.append(inputs[0].max())

    with waiting() as engine, session_with(graph_of_exp(doubled=True)) as session:
        run(session)
        engine.hold()
        engine.look = look
        with pytest.raises(DeadlineExceededError):
            run(session, x=np.ones(shape, np.float32), within_ms=2000)
        gc.collect()
        for one in [recycled(shape, np.dtype(np.float32)) for _ in range(4)]:
            one[...] = 7
        engine.let_go()
        until(lambda: not late_work._under_way)
    assert seen == [2]


def test_only_so_much_work_is_abandoned(waiting, monkeypatch, caplog):
    monkeypatch.setattr(late_work, "_MOST_ABANDONED", 2)
    caplog.set_level(logging.WARNING, "opkernel.engines")
    with waiting() as engine, session_with() as one, session_with() as two, session_with() as third:
        for session in (one, two, third):
            check(session)
        engine.hold()
        for session in (one, two):
            with pytest.raises(DeadlineExceededError):
                check(session, within_ms=200)
        check(third)
    assert "2 programs of engines that were too slow" in caplog.text


@pytest.mark.parametrize("has_deadline", [False, True])
@pytest.mark.parametrize("has_compile_nodes", [False, True])
def test_kernels_compute_what_an_engine_fails_to_run(has_deadline, has_compile_nodes, caplog):
    class Failing(OwnEngine):
        def compile(self, body, arguments):
            program = super().compile(body, arguments)

            def run(inputs):
                self.runs += 1
                raise InternalError("own has no more memory")

            program.run = run
            return program

    caplog.set_level(logging.WARNING, "opkernel.engines")
    with (
        registered(Failing()) as engine,
        session_with(lazy_compilation=has_compile_nodes) as session,
    ):
        for _ in range(3):
            check(session, within_ms=60_000 if has_deadline else 0)
    assert engine.runs == 1
    (message,) = caplog.messages
    assert "own fails to run cluster_" in message
    assert "own has no more memory" in message
