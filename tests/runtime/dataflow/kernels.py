"""Kernels that tests of executors need: of ops of floats that are registered for a test."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from opkernel.errors import CancelledError
from opkernel.kernel import AsyncOpKernel, OpKernel, OpKernelContext, register_kernel
from opkernel.opdef import register_op, scalar_shape


def register(name: str, kernel: Any, inputs: int = 1, shape_fn: Any = scalar_shape) -> None:
    """Register an op of that many floats with one float output, and its kernel."""
    register_op(
        name,
        inputs=[f"x{index}: float" for index in range(inputs)],
        outputs=["y: float"],
        shape_fn=shape_fn,
        is_stateful=True,
    )
    register_kernel(name, device="CPU")(kernel)


class WaitsForCancellation(AsyncOpKernel):
    """Is done when it is cancelled."""

    begun = threading.Event()

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        manager = ctx.cancellation_manager
        assert manager is not None

        def give_up() -> None:
            ctx.set_status(CancelledError("told to"))
            done()

        if not manager.register_callback(manager.get_cancellation_token(), give_up):
            give_up()
        type(self).begun.set()


class Later(AsyncOpKernel):
    """Passes its input on from another thread, a little later."""

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        def finish() -> None:
            ctx.set_output(0, np.float32(ctx.input(0)))
            done()

        threading.Timer(0.02, finish).start()


class Together(AsyncOpKernel):
    """Passes its input on once twenty of its kind wait: for ever, if they do not wait side by side."""

    waiting: ClassVar[list[Callable[[], None]]] = []

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        def finish() -> None:
            ctx.set_output(0, np.float32(ctx.input(0)))
            done()

        self.waiting.append(finish)
        if len(self.waiting) == 20:
            all_of_them = [self.waiting.pop() for _ in range(20)]
            threading.Thread(target=lambda: [one() for one in all_of_them]).start()


class Fails(OpKernel):
    """Raises what no kernel should."""

    def compute(self, ctx: OpKernelContext) -> None:
        raise ZeroDivisionError("by zero")
