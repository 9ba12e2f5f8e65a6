"""Interrupts from the keyboard in the middle of a step leave the session usable."""

from __future__ import annotations

import gc
import os
import signal
import threading
import traceback
import weakref
from collections.abc import Collection
from types import FrameType

import numpy as np
import pytest
from tests.runtime.dataflow.kernels import WaitsForCancellation, register
from tests.runtime.dataflow.loop_builders import INT32, Builder
from tests.runtime.dataflow.test_loops import counted

import opkernel
from opkernel.graph import graph_to_function_def
from opkernel.kernel import OpKernel, ResourceBase

WAITS, INTERRUPTS, DEFERS = "InterruptWaits", "InterruptInterrupts", "InterruptDefers"
WAITING = {"wait", "_next_report"}
"""The functions in which plans and the dataflow executor wait for kernels."""
EXECUTORS = ["", "COMPILED_PLAN", "DATAFLOW"]


class Note(ResourceBase):
    """A resource of a step."""


class Interrupts(OpKernel):
    """Is interrupted, the first time; leaves a resource to its step."""

    is_armed = True
    note: weakref.ref[Note] | None = None

    def compute(self, ctx):
        if Interrupts.is_armed:
            Interrupts.is_armed = False
            note = Note()
            Interrupts.note = weakref.ref(note)
            ctx.step_container.create(ctx.resource_manager, "note", note)
            raise KeyboardInterrupt
        ctx.set_output(0, np.float32(ctx.input(0) + 1))


class Defers(OpKernel):
    """Has work that is never done."""

    def __init__(self, construction):
        super().__init__(construction, is_deferred=True)

    def compute(self, ctx):
        ctx.inc_num_deferred_ops_function()()
        ctx.set_output(0, ctx.input(0))


@pytest.fixture(scope="module", autouse=True)
def ops():
    register(WAITS, WaitsForCancellation)
    register(INTERRUPTS, Interrupts)
    register(DEFERS, Defers)


@pytest.fixture
def keyboard():
    """Interrupts the main thread, soon, once one of some functions is at work in it.

    An interrupt that comes earlier, at a place where Python drops exceptions (a `__del__`, say), would be lost.
    """

    def interrupt(signum: int, frame: FrameType | None) -> None:
        if any(one.f_code.co_name in awaited for one, _ in traceback.walk_stack(frame)):
            raise KeyboardInterrupt
        start_timer()

    def start_timer() -> None:
        timers.append(threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]))
        timers[-1].start()

    def interrupt_soon(functions: Collection[str] = WAITING) -> None:
        awaited.update(functions)
        start_timer()

    awaited: set[str] = set()
    timers: list[threading.Timer] = []
    before = signal.signal(signal.SIGINT, interrupt)
    yield interrupt_soon
    for timer in timers:
        timer.join()
    signal.signal(signal.SIGINT, before)


def in_function(b: Builder, op: str) -> opkernel.Tensor:
    """A call of a function around an op of x."""
    body = Builder()
    x = body.placeholder("x")
    y = body.op(op, x, name="inner")
    b.graph.function_library.add_function(graph_to_function_def(body.graph, "around", [x], [y]))
    return b.graph.create_op("around", [b.placeholder("x")]).outputs[0]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("is_function", [False, True])
def test_an_interrupt_in_a_kernel(executor, is_function):
    Interrupts.is_armed = True
    b = Builder()
    y = in_function(b, INTERRUPTS) if is_function else b.op(INTERRUPTS, b.placeholder("x"))
    with opkernel.Session(b.graph, executor_type=executor) as session:
        with pytest.raises(KeyboardInterrupt):
            session.run(y, {"x:0": 1.0})
        gc.collect()
        assert Interrupts.note is not None
        assert Interrupts.note() is None  # it went with the step
        assert session.run(y, {"x:0": 1.0}) == 2
        assert session.make_callable(y, ["x:0"])(2.0) == 3


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("is_function", [False, True])
def test_an_interrupt_while_a_kernel_waits(keyboard, executor, is_function):
    b = Builder()
    waits = in_function(b, WAITS) if is_function else b.op(WAITS, b.placeholder("x"))
    other = b.op("Neg", b.placeholder("z"))
    before = set(threading.enumerate())
    with opkernel.Session(b.graph, executor_type=executor) as session:
        keyboard()
        with pytest.raises(KeyboardInterrupt):
            session.run(waits, {"x:0": 1.0})
        assert session.run(other, {"z:0": 1.0}) == -1
    assert {t for t in threading.enumerate() if not isinstance(t, threading.Timer)} <= before


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_interrupt_in_a_loop(keyboard, executor):
    b = Builder()
    (y,) = counted(
        b, b.placeholder("n", INT32), lambda i, x: [b.op("AddV2", x, x)], [b.placeholder("x")]
    )
    with opkernel.Session(b.graph, executor_type=executor) as session:
        assert session.run(y, {"n:0": 3, "x:0": 1.0}) == 8
        keyboard({"run"})
        with pytest.raises(KeyboardInterrupt):
            session.run(y, {"n:0": 2**31 - 1, "x:0": 0.0})
        assert session.run(y, {"n:0": 3, "x:0": 1.0}) == 8


def test_an_interrupt_while_deferred_work_is_waited_for(keyboard):
    b = Builder()
    y = b.op(DEFERS, b.placeholder("x"))
    other = b.op("Neg", b.placeholder("z"))
    with opkernel.Session(b.graph) as session:
        keyboard()
        with pytest.raises(KeyboardInterrupt):
            session.run(y, {"x:0": 1.0})
        assert session.run(other, {"z:0": 1.0}) == -1


def test_an_interrupt_in_a_partial_run(keyboard):
    b = Builder()
    waits = b.op(WAITS, b.placeholder("x"))
    other = b.op("Neg", b.placeholder("z"))
    with opkernel.Session(b.graph) as session:
        handle = session.partial_run_setup([waits, other], ["x:0", "z:0"])
        keyboard()
        with pytest.raises(KeyboardInterrupt):
            session.partial_run(handle, waits, {"x:0": 1.0})
        assert session.run(other, {"z:0": 1.0}) == -1
