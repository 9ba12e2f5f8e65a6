"""KernelWatcher: stands between an executor and the kernels of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol

from opkernel.graph import Operation
from opkernel.kernel import AsyncOpKernel, ContextParams, OpKernel, OpKernelContext

Runner = Callable[..., Sequence[Any]]
"""A kernel, or function, of the step and the inputs, which gives the outputs."""


Computer = Callable[[OpKernelContext], object]
"""Computes a kernel, as `OpKernel.compute` does."""


Starter = Callable[[OpKernelContext, Callable[[], None]], None]
"""Starts an asynchronous kernel, as `AsyncOpKernel.start` does."""


Requests = Callable[[Sequence[Any]], Generator[Any, Any, Sequence[Any]]]
"""The calls that a node makes, given its inputs (`dataflow.node_item`)."""


class CallWatcher(Protocol):
    """Watches a node that calls functions."""

    def call(self, function: Runner, *arguments: Any) -> Sequence[Any]:
        """Compute the node: `function(*arguments)`, of which the step is the first."""

    def requests(self, requests: Requests) -> Requests:
        """The requests of the node, under watch while they are answered."""


class KernelWatcher:
    """Watches kernels; asked once for each node, when a graph is made ready to be run.

    Attributes:
        may_branch: Whether the kernels of one step may run side by side under its watch.
        reads_arrays: Whether it looks into tensors, so that it watches only where they are arrays.
    """

    may_branch: bool = False
    reads_arrays: bool = False

    def runner(self, op: Operation, kernel: OpKernel, params: ContextParams) -> Runner | None:
        """The function that runs the kernel of a node under watch; None: it runs unwatched.

        `params` is what its contexts tell.
        """
        return None

    def computer(self, op: Operation, kernel: OpKernel) -> Computer | None:
        """A function that computes a kernel, under watch, in a given context.

        Executors ask for it where the kernel must know its place in loops; None: where it has a
        runner, that is used nevertheless, in a context that does not tell.
        """
        return None

    def starter(self, op: Operation, kernel: AsyncOpKernel) -> Starter | None:
        """A function that starts an asynchronous kernel under watch; None: a thread calls it."""
        return None

    def call_watcher(self, op: Operation) -> CallWatcher | None:
        """The watcher of a node that calls functions; None: nothing watches it."""
        return None
