"""Kernels that end after their call has returned: by callback, and as coroutines."""

import asyncio
import gc
import threading
import time
from typing import Any

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    OpError,
)
from opkernel.kernel import (
    AsyncOpKernel,
    CancellationManager,
    CoroutineKernel,
    OpKernel,
    OpKernelContext,
    Step,
)

FLOATS = {"inputs": ["x: float"], "outputs": ["y: float"]}


def context(kernel, step=None):
    return OpKernelContext(make_kernel(kernel, **FLOATS), [np.float32(3)], step or Step())


class Twice(AsyncOpKernel):
    """Computes on a thread of its own."""

    def compute_async(self, ctx, done):
        def work():
            ctx.set_output(0, np.float32(2 * ctx.input(0)))
            done()

        threading.Thread(target=work).start()


class TestCallbacks:
    def test_compute_waits_for_the_end(self):
        assert context(Twice).run() == [6]

    def test_start_returns_at_once(self):
        class Waits(AsyncOpKernel):
            def compute_async(self, ctx, done):
                waiting.append((ctx, done))

        waiting: list[Any] = []
        ended = []
        ctx = context(Waits)
        assert ctx.kernel.as_async() is ctx.kernel
        ctx.kernel.start(ctx, lambda: ended.append(True))
        assert not ended
        waiting[0][0].set_output(0, np.float32(1))
        waiting.pop()[1]()
        assert ended
        assert ctx.finish() == [1]

    def test_what_is_raised_ends_the_computation(self):
        class Raises(AsyncOpKernel):
            def compute_async(self, ctx, done):
                raise KeyError("lost")

        with pytest.raises(InternalError, match="KeyError: 'lost'") as caught:
            context(Raises).run()
        assert isinstance(caught.value.__cause__, KeyError)

    def test_done_twice_is_an_error(self):
        class Done(AsyncOpKernel):
            def compute_async(self, ctx, done):
                ctx.set_output(0, np.float32(1))
                done()
                with pytest.raises(InternalError, match=r"Test \(node 'n'\) called done twice"):
                    done()

        assert context(Done).run() == [1]

    def test_what_is_raised_after_done_is_not_lost(self, caplog):
        class Done(AsyncOpKernel):
            def compute_async(self, ctx, done):
                ctx.set_output(0, np.float32(1))
                done()
                raise KeyError("late")

        class DoneTwice(AsyncOpKernel):
            def compute_async(self, ctx, done):
                done()
                done()

        with pytest.raises(KeyError, match="late"):
            context(Done).run()
        with pytest.raises(InternalError, match="called done twice"):
            context(DoneTwice).run()
        assert len(caplog.records) == 1

    def test_a_callback_that_is_lost_is_an_error(self):
        class Forgets(AsyncOpKernel):
            def compute_async(self, ctx, done):
                """Let go of the callback."""

        ctx = context(Forgets)
        ended = threading.Event()
        ctx.kernel.start(ctx, ended.set)
        gc.collect()
        assert ended.wait(300)
        with pytest.raises(InternalError, match="will never call done"):
            ctx.finish()

    def test_errors_go_through_the_callback(self):
        class Checks(AsyncOpKernel):
            def compute_async(self, ctx, done):
                if not ctx.requires_async(ctx.input(0) < 0, "x must be negative", done):
                    return
                raise AssertionError("not reached")

        with pytest.raises(InvalidArgumentError, match="x must be negative") as caught:
            context(Checks).run()
        assert __file__ in caught.value.__notes__[0]

    def test_a_status_goes_through_the_callback(self):
        class Checks(AsyncOpKernel):
            def compute_async(self, ctx, done):
                assert ctx.requires_ok_async(None, done)
                if not ctx.requires_ok_async(InvalidArgumentError("wrong"), done):
                    return
                raise AssertionError("not reached")

        with pytest.raises(InvalidArgumentError, match="wrong") as caught:
            context(Checks).run()
        assert __file__ in caught.value.__notes__[0]

    def test_the_synchronous_form_is_refused(self):
        class Checks(AsyncOpKernel):
            def compute_async(self, ctx, done):
                ctx.requires(False, "x must be negative")

        with pytest.raises(InternalError, match="Use requires_async in AsyncOpKernel"):
            context(Checks).run()

    def test_a_deadline_ends_the_waiting(self):
        class Hangs(AsyncOpKernel):
            def compute_async(self, ctx, done):
                kept.append(done)

        class Over(Step):
            deadline = 0.0

        kept: list[Any] = []
        with pytest.raises(DeadlineExceededError, match="Test"):
            context(Hangs, Over()).run()
        kept.pop()()


class TestTime:
    def step(self, deadline):
        step = Step()
        step.deadline = deadline
        step.cancellation_manager = CancellationManager()
        return step

    def test_a_late_step_is_cancelled(self):
        """So that whoever computes it still learns of it."""

        class Hangs(AsyncOpKernel):
            def compute_async(self, ctx, done):
                kept.append(done)

        kept: list[Any] = []
        step = self.step(0.0)
        with pytest.raises(DeadlineExceededError, match="Timed out while Test was waiting"):
            context(Hangs, step).run()
        assert step.cancellation_manager.is_cancelled
        kept.pop()()

    def test_what_ends_in_time_is_the_result(self):
        step = self.step(time.monotonic() + 1e6)
        assert context(Twice, step).run() == [6]
        assert not step.cancellation_manager.is_cancelled

    @pytest.mark.parametrize(
        ("deadline", "status", "raised"),
        [
            (0.0, CancelledError("by the step"), DeadlineExceededError),
            (0.0, InternalError("of its own"), InternalError),
            (1e12, CancelledError("by somebody"), CancelledError),
        ],
    )
    def test_a_cancellation_of_a_late_step_is_its_deadline(self, deadline, status, raised):
        class Ends(AsyncOpKernel):
            def compute_async(self, ctx, done):
                ctx.set_status(status)
                done()

        with pytest.raises(raised):
            context(Ends, self.step(deadline)).run()


class TestNothingOverridden:
    @pytest.mark.parametrize(
        ("kind", "method"),
        [(AsyncOpKernel, "compute_async"), (CoroutineKernel, "compute_coroutine")],
    )
    def test_the_class_is_told_which_method_it_lacks(self, kind, method):
        class Lacks(kind):  # type: ignore[misc, valid-type]  # a parameter
            pass

        with pytest.raises(
            (NotImplementedError, OpError), match=f"Lacks does not override {method}"
        ):
            context(Lacks).run()


class TestCoroutines:
    def test_a_class(self):
        class Sleeps(OpKernel):
            async def compute(self, ctx):
                await asyncio.sleep(0.001)
                ctx.set_output(0, np.float32(2 * ctx.input(0)))

        assert context(Sleeps).run() == [6]
        assert context(Sleeps).kernel.as_async() is not None

    def test_a_function(self):
        async def sleeps(x):
            await asyncio.sleep(0.001)
            return np.float32(x + 1)

        assert context(sleeps).run() == [4]

    def test_many_wait_at_once(self):
        class Meet(OpKernel):
            async def compute(self, ctx):
                arrived.append(self)
                while len(arrived) < 20:
                    await asyncio.sleep(0.001)
                ctx.set_output(0, ctx.input(0))

        arrived = []
        contexts = [context(Meet) for _ in range(20)]
        ended = [threading.Event() for _ in contexts]
        for ctx, event in zip(contexts, ended, strict=True):
            ctx.kernel.start(ctx, event.set)
        assert all(event.wait(300) for event in ended)
        assert [ctx.finish() for ctx in contexts] == [[3]] * 20

    def test_what_is_raised_is_the_status(self):
        class Raises(OpKernel):
            async def compute(self, ctx):
                ctx.requires(False, "x must be negative")

        with pytest.raises(InvalidArgumentError, match="x must be negative"):
            context(Raises).run()

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
    def test_nothing_that_is_raised_ends_the_loop(self, error):
        async def raises(x):
            raise error

        async def sleeps(x):
            await asyncio.sleep(0.001)
            return x

        code = CancelledError if error is asyncio.CancelledError else InternalError
        with pytest.raises(code):
            context(raises).run()
        assert context(sleeps).run() == [3]

    def test_is_cancelled_with_the_step(self):
        async def waits(x):
            begun.set()
            try:
                await asyncio.sleep(1000)
            finally:
                ended.set()

        begun, ended, over = threading.Event(), threading.Event(), threading.Event()
        step = Step()
        step.cancellation_manager = CancellationManager()
        ctx = context(waits, step)
        ctx.kernel.start(ctx, over.set)
        assert begun.wait(300)
        assert not over.is_set()
        step.cancellation_manager.start_cancel()
        assert over.wait(300)
        assert ended.is_set()
        with pytest.raises(CancelledError, match="was cancelled"):
            ctx.finish()

    def test_does_not_begin_in_a_step_that_was_cancelled(self):
        async def runs(x):
            raise AssertionError("not reached")

        step = Step()
        step.cancellation_manager = CancellationManager()
        step.cancellation_manager.start_cancel()
        with pytest.raises(CancelledError, match="was cancelled"):
            context(runs, step).run()

    def test_leaves_nothing_with_the_manager(self):
        async def runs(x):
            return x

        step = Step()
        step.cancellation_manager = CancellationManager()
        assert context(runs, step).run() == [3]
        assert not step.cancellation_manager._callbacks


class TestConstruction:
    def test_an_error_that_is_recorded_refuses_the_kernel(self):
        class Refuses(OpKernel):
            def __init__(self, construction):
                super().__init__(construction)
                construction.ctx_failure("no such thing")

        with pytest.raises(InvalidArgumentError, match=r"no such thing.*'n'"):
            make_kernel(Refuses, **FLOATS)

    def test_what_a_kernel_tells(self):
        kernel = make_kernel(Twice, **FLOATS)
        ctx = OpKernelContext(kernel, [np.ones((2, 3), np.float32)], Step())
        assert kernel.is_expensive
        assert kernel.trace_string(ctx) == "n:Test"
        assert kernel.trace_string(ctx, verbose=True) == "n:Test#shape=(float[2,3])#"
        assert list(kernel.make_shape(np.array([2, 3]))) == [2, 3]
        with pytest.raises(InvalidArgumentError, match="must be a vector"):
            kernel.make_shape(np.int32(3))
        with pytest.raises(InvalidArgumentError, match="-1"):
            kernel.make_shape(np.array([2, -1]))

    def test_a_kernel_may_go_by_a_node_of_its_own(self):
        class Renamed(OpKernel):
            def __init__(self, construction):
                node = type(construction.node_def)()
                node.CopyFrom(construction.node_def)
                node.name = "mine"
                super().__init__(construction, custom_def=node)

        assert make_kernel(Renamed, **FLOATS).name == "mine"
