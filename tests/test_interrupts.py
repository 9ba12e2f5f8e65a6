"""Blocks that an interrupt ends: whatever moment it comes at, nothing that a block has set is left."""

import contextlib
import gc
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest
from tools.campaigns.interruption import HOOKS, each_interrupted

import opkernel
from opkernel.cli.limits import time_limit
from opkernel.device.allocation import allocating_from, allocation_policy, under_budget
from opkernel.device.budget import Budget, current_budget
from opkernel.device.intra_op import (
    intra_op_parallelism,
    intra_op_threads,
    one_blas_thread,
    openblas_functions,
)
from opkernel.gradients.gradient_nodes import as_source, gradient_source
from opkernel.graph.core.default_graph import innermost_default
from opkernel.graph.core.garbage_collection import paused_garbage_collection
from opkernel.interrupts import contextmanager, holding, setting, trying
from opkernel.kernel import CancellationManager, KernelRegistry, TensorRef
from opkernel.opdef import OpDefBuilder, OpRegistry
from opkernel.ops.variables.var import change_all, writing
from opkernel.plugins import loading
from opkernel.runtime.program.run_step import RunStep
from opkernel.runtime.session.session import _default_sessions
from opkernel.runtime.traces.step_stats_collector import Place, current_place, in_place
from opkernel.state.keyed_lock import KeyedLock
from opkernel.training.resource import Resource
from opkernel.types import decoded_charge

VARIABLE: ContextVar[int] = ContextVar("variable", default=0)
ANOTHER: ContextVar[int] = ContextVar("another", default=0)
GRAPH = opkernel.Graph()
with GRAPH.as_default():
    OP = opkernel.constant(1.0, name="op").op
SESSION = opkernel.Session(GRAPH)
LOCKS: list[Any] = [threading.Lock(), threading.RLock()]
KEYED = KeyedLock()
MANAGER = CancellationManager()
STEP = RunStep()


def new_ref() -> TensorRef:
    array = np.zeros(3)
    array.setflags(write=False)
    return TensorRef(array)


REFS = [new_ref(), new_ref()]


def are_free(*locks: Any) -> bool:
    """Whether another thread can have all of some locks."""

    def take(lock: Any) -> bool:
        taken: bool = lock.acquire(timeout=10)
        if taken:
            lock.release()
        return taken

    with ThreadPoolExecutor(1) as threads:
        return all(threads.map(take, locks))


def state_of_scopes() -> Any:
    return dict(vars(GRAPH.scopes))


def state_of_blas() -> Any:
    functions = openblas_functions("get_num_threads")
    return set(one_blas_thread.blocks), functions and functions[0]()


def is_key_free() -> bool:
    def hold() -> bool:
        with KEYED.hold("key"):
            return True

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(hold).result(10)


def state_of_refs() -> Any:
    return are_free(*[ref.mutex for ref in REFS]), [ref.tensor.flags.writeable for ref in REFS]


class Changing:
    """Changes variables at the end of a block."""

    def close(self) -> None:
        change_all(REFS, len)


Block = Callable[[], contextlib.AbstractContextManager[Any]]

BLOCKS: dict[str, tuple[Block, Callable[[], Any]]] = {
    "setting": (
        lambda: setting({VARIABLE: 1, ANOTHER: 2}),
        lambda: (VARIABLE.get(), ANOTHER.get()),
    ),
    "trying": (lambda: trying(LOCKS[0]), lambda: are_free(*LOCKS)),
    "holding": (lambda: holding(LOCKS), lambda: are_free(*LOCKS)),
    "a budget": (
        lambda: under_budget(Budget(1 << 20)),
        lambda: (current_budget(), allocation_policy(), decoded_charge.get()),
    ),
    "an allocator": (lambda: allocating_from(SESSION), allocation_policy),  # type: ignore[arg-type]  # any will do
    "threads": (lambda: intra_op_parallelism(7), intra_op_threads),
    "one BLAS thread": (one_blas_thread, state_of_blas),
    "no collector": (paused_garbage_collection, gc.isenabled),
    "a default graph": (GRAPH.as_default, innermost_default),
    "a default session": (SESSION.as_default, _default_sessions.get),
    "a name scope": (lambda: GRAPH.name_scope("scope"), state_of_scopes),
    "a device": (lambda: GRAPH.device("/cpu:0"), state_of_scopes),
    "control inputs": (lambda: GRAPH.control_dependencies([OP]), state_of_scopes),
    "no control inputs": (lambda: GRAPH.control_dependencies(None), state_of_scopes),
    "colocation": (lambda: GRAPH.colocate_with(OP), state_of_scopes),
    "gradients": (lambda: GRAPH.gradient_override_map({"Relu": "Tanh"}), state_of_scopes),
    "an edit": (
        GRAPH.edit,
        lambda: (are_free(GRAPH.lock), GRAPH.before_change, innermost_default()),
    ),
    "a source of gradients": (lambda: as_source("call"), gradient_source),
    "a place": (lambda: in_place(Place("call/")), current_place),
    "a key": (lambda: KEYED.hold("key"), is_key_free),
    "a variable": (lambda: writing(REFS[0]), state_of_refs),
    "variables": (lambda: contextlib.closing(Changing()), state_of_refs),
    "a turn": (loading._turn, lambda: are_free(loading._lock)),
    "a cancellation": (
        lambda: STEP.cancelled_by(MANAGER),
        lambda: (list(MANAGER._callbacks.values()), are_free(MANAGER._lock, MANAGER._running)),
    ),
    "a time limit": (
        lambda: time_limit(60),
        lambda: (signal.getitimer(signal.ITIMER_REAL), signal.getsignal(signal.SIGALRM)),
    ),
}


@pytest.fixture(autouse=True)
def _as_in_a_program() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", [*BLOCKS])
def test_an_interrupt_at_any_moment_leaves_the_block(name: str) -> None:
    make, state = BLOCKS[name]

    def use() -> None:
        with make():
            sorted([2, 1])

    use()
    before, kept = state(), []
    for error in each_interrupted(HOOKS["calls"], use):
        kept.append(error)  # as a prompt keeps the traceback
        assert state() == before, f"interrupted at event {len(kept)}"
    assert len(kept) - kept.count(None) > 5


class Cancelled:
    """A manager that is cancelled."""

    def prepare(self) -> None:
        self.manager = CancellationManager()
        self.manager.register_callback(self.manager.get_cancellation_token(), int)

    def use(self) -> None:
        self.manager.start_cancel()

    def check(self) -> None:
        self.manager.close()  # it waits for nobody
        assert are_free(self.manager._lock, self.manager._running)


class Filled:
    """A table that is filled when it is first used."""

    def prepare(self) -> None:
        self.filled: list[int] = []
        self.table = Resource("table", object, lambda: self.filled.append(1))

    def use(self) -> None:
        assert self.table.captured_value

    def check(self) -> None:
        self.use()
        assert self.filled
        assert self.table.is_ready


class Registered:
    """Kernels that are registered."""

    def prepare(self) -> None:
        self.registry, scratch = KernelRegistry(), KernelRegistry()
        names = {"__name__": "registers", "register_kernel": opkernel.register_kernel}
        exec(REGISTERS, {**names, "registry": scratch})
        self.registrations = scratch.registered_for("Relu")[::-1]

    def use(self) -> None:
        for one in self.registrations:
            self.registry.register(one)

    def check(self) -> None:
        self.use()
        assert {*self.registry.registered_for("Relu")} == {*self.registrations}
        assert {*self.registry.candidates("Relu", "CPU", "")} == {*self.registrations}


REGISTERS = """
for dtype in ("float", "double"):
    @register_kernel("Relu", device="CPU", types={"T": dtype}, registry=registry)
    def relu(features): return features
"""


class LookedUp:
    """A registry of ops at its first look-up."""

    def prepare(self) -> None:
        self.registry = OpRegistry()
        for name in ("One", "Two"):
            self.registry.register(OpDefBuilder(name))

    def use(self) -> None:
        self.registry.look_up("One")

    def check(self) -> None:
        self.use()
        assert self.registry.has("Two")


class Built:
    """A graph that gets a node."""

    def prepare(self) -> None:
        self.graph = opkernel.Graph()
        with self.graph.as_default():
            self.x = opkernel.constant([1.0, 2.0])

    def use(self) -> None:
        op = self.graph.create_op("AddV2", [self.x, self.x], name="y")
        assert op.outputs[0].shape.as_list() == [2]

    def check(self) -> None:
        self.use()
        assert self.graph.by_name == {op.name: op for op in self.graph.get_operations()}


@pytest.mark.parametrize("kind", [Cancelled, Filled, Registered, LookedUp, Built])
def test_an_interrupt_at_any_moment_leaves_objects_that_work(kind: type[Any]) -> None:
    objects, step = kind(), 17 if kind is Built else 1  # that has many events
    for _ in each_interrupted(HOOKS["calls"], objects.use, objects.prepare, step):
        objects.check()


class TestContextManager:
    """It does what contextlib's does."""

    @pytest.fixture(params=[contextlib.contextmanager, contextmanager])
    def make(self, request: pytest.FixtureRequest) -> Any:
        return request.param

    def test_the_block_has_the_value_and_the_generator_goes_on(self, make):
        steps = []

        @make
        def block(value):
            steps.append("before")
            yield value
            steps.append("after")

        with block(3) as value:
            steps.append(value)
        assert steps == ["before", 3, "after"]

    @pytest.mark.parametrize("kind", [ValueError, StopIteration, KeyboardInterrupt, GeneratorExit])
    def test_errors_come_through(self, make, kind):
        seen = []

        @make
        def block():
            try:
                yield
            except BaseException as error:
                seen.append(error)
                raise

        error = kind("told")
        with pytest.raises(kind) as caught, block():
            raise error
        assert caught.value is error
        assert seen == [error]
        assert len(caught.traceback) == 1

    def test_a_block_that_is_collected_with_others_is_left(self, make):
        """The cycle holds what is in the block, and what ends it."""
        seen = []

        @make
        def block():
            try:
                yield
            finally:
                seen.append("left")

        def within(others):
            with block():
                yield others

        others: list[Any] = []
        others.append(within(others))
        next(others[0])
        del others
        gc.collect()
        assert seen == ["left"]

    def test_the_generator_may_deal_with_an_error(self, make):
        @make
        def block():
            with contextlib.suppress(ValueError):
                yield

        with block():
            raise ValueError
        with contextlib.ExitStack() as stack:  # type: ignore[unreachable]  # mypy takes no error to be dealt with
            stack.enter_context(block())
            raise ValueError

    def test_it_may_raise_another_error(self, make):
        @make
        def block():
            try:
                yield
            except ValueError as error:
                raise KeyError from error

        with pytest.raises(KeyError) as caught, block():
            raise ValueError
        assert isinstance(caught.value.__cause__, ValueError)

    def test_a_generator_that_goes_on_is_wrong(self, make):
        @make
        def block():
            for _ in range(2):
                with contextlib.suppress(ValueError):
                    yield

        with pytest.raises(RuntimeError), block():
            pass
        with pytest.raises(RuntimeError), block():
            raise ValueError

    def test_a_generator_that_gives_nothing_is_wrong(self, make):
        @make
        def block():
            yield from ()

        with pytest.raises(RuntimeError), block():
            pass


def test_trying_says_whether_the_lock_is_held() -> None:
    lock = threading.Lock()
    with trying(lock) as outer, trying(lock) as inner:
        assert (outer, inner, lock.locked()) == (True, False, True)
    assert not lock.locked()


def test_holding_takes_all_locks_in_their_order() -> None:
    locks = [threading.Lock() for _ in range(3)]
    with holding(locks):
        assert all(lock.locked() for lock in locks)
    assert not any(lock.locked() for lock in locks)
    with holding([]):
        pass
