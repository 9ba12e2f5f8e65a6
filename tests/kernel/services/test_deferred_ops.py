"""Kernels whose work goes on after `compute`: the step waits until all of it is done."""

import threading

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.errors import DeadlineExceededError, FailedPreconditionError, InternalError
from opkernel.kernel import ContextParams, DeferredOps, OpKernel, OpKernelContext, Step


def test_who_waits_goes_on_when_all_work_is_done() -> None:
    ops, is_over = DeferredOps(), threading.Event()

    def wait() -> None:
        ops.wait()
        is_over.set()

    ops.inc()
    ops.inc()
    waiting = threading.Thread(target=wait)
    waiting.start()
    ops.dec()
    assert not is_over.is_set()
    ops.dec()
    assert is_over.wait(300)
    waiting.join()


def test_without_work_nobody_waits() -> None:
    ops = DeferredOps()
    ops.wait()
    ops.wait(0)
    ops.inc()
    ops.dec()
    ops.wait(0)


def test_waiting_ends_with_the_time() -> None:
    ops = DeferredOps()
    for number in (1, 2):
        ops.inc()
        with pytest.raises(
            DeadlineExceededError, match=f"Timed out: the work of {number} deferred kernels"
        ):
            ops.wait(0)


def test_work_that_did_not_begin_does_not_end() -> None:
    ops = DeferredOps()
    with pytest.raises(InternalError, match="ended work that had not begun"):
        ops.dec()
    ops.inc()
    ops.dec()
    with pytest.raises(InternalError, match="ended work that had not begun"):
        ops.dec()
    ops.wait(0)


class Deferred(OpKernel):
    def __init__(self, construction):
        super().__init__(construction, is_deferred=True)

    def compute(self, ctx):
        self.begin, self.end = (
            ctx.inc_num_deferred_ops_function(),
            ctx.dec_num_deferred_ops_function(),
        )


def computed(kernel: OpKernel, step: Step, params: ContextParams | None = None) -> OpKernel:
    OpKernelContext(kernel, [], step, params or ContextParams()).run()
    return kernel


def test_a_kernel_counts_its_work_with_its_step() -> None:
    step = Step()
    step.deferred_ops = DeferredOps()
    kernel = computed(make_kernel(Deferred), step)
    assert isinstance(kernel, Deferred)
    kernel.begin()
    with pytest.raises(DeadlineExceededError, match="of 1 deferred"):
        step.deferred_ops.wait(0)
    kernel.end()
    step.deferred_ops.wait(0)


def test_an_executor_may_count_itself() -> None:
    step, counted = Step(), []
    step.deferred_ops = DeferredOps()
    params = ContextParams(
        inc_num_deferred_ops_function=lambda: counted.append(1),
        dec_num_deferred_ops_function=lambda: counted.append(-1),
    )
    kernel = computed(make_kernel(Deferred), step, params)
    assert isinstance(kernel, Deferred)
    kernel.begin()
    kernel.end()
    assert counted == [1, -1]
    step.deferred_ops.wait(0)


def test_where_nobody_counts_a_kernel_works_all_the_same() -> None:
    kernel = computed(make_kernel(Deferred), Step())
    assert isinstance(kernel, Deferred)
    assert (kernel.begin(), kernel.end()) == (None, None)


@pytest.mark.parametrize("which", ["inc", "dec"])
def test_a_kernel_says_that_it_is_deferred(which: str) -> None:
    def compute(self, ctx):
        getattr(ctx, f"{which}_num_deferred_ops_function")()

    kernel = make_kernel(type("Plain", (OpKernel,), {"compute": compute}))
    with pytest.raises(FailedPreconditionError, match="Test is not a deferred kernel"):
        OpKernelContext(kernel, [np.float32(1)], Step()).run()
