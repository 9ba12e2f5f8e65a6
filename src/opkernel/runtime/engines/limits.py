"""Limits of time and memory while a cluster is compiled: those of the kernels that would compute it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from opkernel.device.budget import current_budget


class CompileLimits:
    """Keeps the compilation of one cluster to the budget of the thread.

    Args:
        of_each: Each tensor may take what the budget has left; otherwise all of the cluster together may.
    """

    def __init__(self, *, of_each: bool = False) -> None:
        self._of_each, self._taken = of_each, 0

    def check_node(self, name: str, outputs: Iterable[Any]) -> None:
        """Check the time, and the memory for the outputs of a node that was added to a program.

        Args:
            name: The node.
            outputs: Values with a shape and a type, which need no memory yet; others are not counted.

        Raises:
            DeadlineExceededError: time is up.
            ResourceExhaustedError: there is not so much memory.
        """
        budget = current_budget()
        if budget is None:
            return
        budget.check_time("compiling", name)
        if budget.memory_limit_bytes is None:
            return
        for one in outputs:
            if hasattr(one, "shape") and hasattr(one, "dtype"):
                size = math.prod(one.shape) * one.dtype.itemsize
                self._taken = size + (0 if self._of_each else self._taken)
                what = f"a tensor with shape{list(one.shape)} and type {one.dtype}"
                budget.check_memory(self._taken, what)
