"""Sabotage: has the kernel of one node do something else than its work when it is run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

from opkernel.graph import Operation
from opkernel.kernel import AsyncOpKernel, FunctionKernel, OpKernel, forward_input
from opkernel.runtime.program import run_step as step_module
from opkernel.runtime.program.kernels import KernelCache


class Sabotage:
    """Knows which kernels are run, and steps in where it is told to.

    Attributes:
        ran: The nodes that have run since it was last told, each once, in order.
    """

    def __init__(self) -> None:
        self.ran: dict[OpKernel, None] = {}
        self._kernels: dict[int, OpKernel] = {}
        self._victim: OpKernel | None = None
        self._action: Callable[[], object] = lambda: None

    @contextmanager
    def at(self, victim: OpKernel | None, action: Callable[[], object]) -> Iterator[None]:
        """Have `action` called each time before the kernel is run."""
        self.ran.clear()
        self._victim, self._action = victim, action
        yield
        self._victim = None

    def hit(self, kernel: OpKernel) -> None:
        """The kernel is about to be run."""
        self.ran.setdefault(kernel)
        if kernel is self._victim:
            self._action()

    def reached(self, kernel: OpKernel) -> OpKernel:
        """The kernel, with this in front of it."""
        if id(kernel) not in self._kernels:
            self._kernels[id(kernel)] = kernel
            if isinstance(kernel, FunctionKernel):
                if kernel.function is not forward_input:
                    kernel.function = self._before(kernel, kernel.function)
            else:
                name = "compute_async" if isinstance(kernel, AsyncOpKernel) else "compute"
                setattr(kernel, name, self._before(kernel, getattr(kernel, name)))
        return kernel

    def _before(self, kernel: OpKernel, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function, assigned=())
        def run(*inputs: Any) -> Any:
            self.hit(kernel)
            return function(*inputs)

        run.__name__ = kernel.type_string
        return run


class Clock:
    """The clock of steps, which may be put forward."""

    time_ns = staticmethod(time.time_ns)

    def __init__(self) -> None:
        self.offset = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.offset


@pytest.fixture
def sabotage(monkeypatch: pytest.MonkeyPatch) -> Sabotage:
    """Sits before all kernels that are made from now on."""
    found, original = Sabotage(), KernelCache.kernel

    def kernel(self: KernelCache, op: Operation) -> OpKernel:
        return found.reached(original(self, op))

    monkeypatch.setattr(KernelCache, "kernel", kernel)
    return found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that all steps look at."""
    found = Clock()
    monkeypatch.setattr(step_module, "time", found)
    return found
