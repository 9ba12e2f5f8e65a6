"""ParallelPartitions: the executors of a program's partitions, which wait for each other in the rendezvous.

Source: TensorFlow core/common_runtime/direct_session.cc (RunInternal, ExecutorBarrier).
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opkernel.errors import CancelledError, as_op_error
from opkernel.runtime.program.executors import Executor
from opkernel.runtime.step.run_step import RunStep


class ParallelPartitions:
    """Runs one executor on the thread that calls, and the others on a thread each.

    Each step has threads of its own: executors wait for each other, so none may wait for a thread.

    Args:
        executors: The executors by device; the first has the feeds and the fetches.
    """

    uses_step = True

    def __init__(self, executors: Mapping[str, Executor]) -> None:
        self._executors = executors
        self._first, *self._others = executors.values()
        self.run: Callable[..., Sequence[Any]] = self._run

    @property
    def source(self) -> str:
        """The text of the partitions, one after the other."""
        return "\n".join([f"# {name}\n{one.source}" for name, one in self._executors.items()])

    def _run(self, step: RunStep, *feeds: Any) -> Sequence[Any]:
        barrier = _Barrier(step)
        results: Sequence[Any] = ()
        try:
            for executor in self._others:
                barrier.start(executor)
            results = self._first.run(step, *feeds)
        except BaseException as error:
            barrier.fail(error)
        barrier.wait()
        return results


class _Barrier:
    """Waits for the executors of a step; the first that fails ends the others."""

    def __init__(self, step: RunStep) -> None:
        self._step = step
        self._failures: list[BaseException] = []
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self, executor: Executor) -> None:
        """Run an executor on a thread, with the limits of the one that calls."""

        def run() -> None:
            try:
                executor.run(self._step)
            except BaseException as error:
                self.fail(error)

        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(run,), name="opkernel partition")
        thread.daemon = True
        thread.start()
        self._threads.append(thread)

    def fail(self, error: BaseException) -> None:
        """Note an error, and end what waits for what will not come."""
        with self._lock:
            self._failures.append(error)
            is_first = len(self._failures) == 1
        if is_first:  # what fails later does so because this has
            if isinstance(error, Exception):
                self._step.rendezvous.start_abort(as_op_error(error))
            else:
                self._step.rendezvous.start_abort(CancelledError("Step was interrupted"))
            self._step.cancel()

    def wait(self) -> None:
        """Wait for all, and raise what the first that failed has raised; an interrupt before others."""
        for thread in self._threads:
            while thread.is_alive():
                try:
                    thread.join()
                except BaseException as error:
                    self.fail(error)
        interrupts = [one for one in self._failures if not isinstance(one, Exception)]
        for one in (interrupts or self._failures)[:1]:
            raise one
