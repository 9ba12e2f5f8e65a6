"""AnyShapes: steps may be fed arrays of other shapes than the graph says, as TensorFlow's C++ Session allows.

Passes and kernels rely on the shapes that a graph says of its feeds. So steps with others run by another program, in which
nothing is known of feeds; it is made for the first of these steps. TensorFlow's Session checks the types of feeds; the shapes
are checked above it, by its Python.

Source: DirectSession::Run in TensorFlow core/common_runtime/direct_session.cc; python/client/session.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from opkernel.graph import Tensor
from opkernel.runtime.program.executable import Run


class AnyShapes:
    """Chooses between programs that compute the same, by the shapes of what is fed.

    Args:
        feeds: The tensors that are fed.
        make_other: Makes the function of a program that knows nothing of its feeds.
    """

    def __init__(self, feeds: Sequence[Tensor], make_other: Callable[[], Run]) -> None:
        known = [tensor.shape for tensor in feeds]
        self._shapes = [None if one.rank is None else tuple(one.as_list()) for one in known]
        self._make_other = make_other
        self._other: Run | None = None
        self._lock = threading.Lock()

    def applied(self, run: Run) -> Run:
        """The function of a program for the shapes of the graph, as a function for all shapes."""
        shapes = self._shapes
        if all(shape is None for shape in shapes):
            return run

        def run_any(step: Any, *values: Any) -> Sequence[Any]:
            if all(map(_fits, shapes, values)):
                return run(step, *values)
            return self._run_of_others()(step, *values)

        return run_any

    def _run_of_others(self) -> Run:
        with self._lock:  # few steps come here
            if self._other is None:
                self._other = self._make_other()
            return self._other


def _fits(shape: tuple[int | None, ...] | None, value: Any) -> bool:
    """Whether an array has a shape that may be known in parts."""
    if shape is None or shape == value.shape:
        return True
    return len(shape) == value.ndim and all(
        want in (None, size) for want, size in zip(shape, value.shape, strict=True)
    )
