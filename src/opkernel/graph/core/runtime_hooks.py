"""What graphs ask of the rooms above: running, computing constants, drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from opkernel.slots import Slot

if TYPE_CHECKING:
    import numpy as np

    from opkernel.device.device import Device
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.core.operation import Operation
    from opkernel.graph.core.tensor import Tensor

__all__ = ["CONSTANT_VALUES", "DRAWING", "run_fetches"]


class ConstantEvaluator(Protocol):
    """Computes the values of tensors that depend on constants and `known` alone.

    Operations are computed on a CPU of the process, or where `device_of` says.
    """

    def __call__(
        self,
        tensors: Sequence[Tensor],
        known: Mapping[Tensor, np.ndarray[Any, Any]],
        max_nodes: int | None = None,
        device_of: Callable[[Operation], Device] | None = None,
    ) -> list[np.ndarray[Any, Any] | None]:
        """The values; None where none is found, or not with `max_nodes` nodes."""


class DefaultSession(Protocol):
    """Runs a part of a graph in the default session of the graph."""

    def __call__(self, graph: Graph, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
        """The values of the fetches."""


_DEFAULT_SESSION: Slot[DefaultSession] = Slot("run in the default session")
CONSTANT_VALUES: Slot[ConstantEvaluator] = Slot("values of constants")
DRAWING: Slot[Callable[[Graph], str]] = Slot("drawing of a graph")
"""Draws a graph, as HTML for notebooks."""


def run_fetches(
    graph: Graph, fetches: Any, feed_dict: Mapping[Any, Any] | None, session: Any | None
) -> Any:
    """The values of `fetches` from `session`, or from the default session.

    Raises:
        FailedPreconditionError: there is neither.
    """
    if session is not None:
        return session.run(fetches, feed_dict)
    return _DEFAULT_SESSION.get()(graph, fetches, feed_dict)
