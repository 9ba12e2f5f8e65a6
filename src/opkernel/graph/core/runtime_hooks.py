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

__all__ = ["DRAWING", "evaluate_constant", "evaluate_constants", "run_fetches"]

_MAX_NODES = 100  # that the shape function of one node is worth


class ConstantValues(Protocol):
    """Computes the values of tensors that depend on constants and `known` alone."""

    def __call__(
        self,
        tensors: Sequence[Tensor],
        known: Mapping[Tensor, np.ndarray[Any, Any]],
        max_nodes: int | None = None,
        device_of: Callable[[Operation], Device] | None = None,
    ) -> list[np.ndarray[Any, Any] | None]:
        """The values; None where none is found."""


class DefaultSession(Protocol):
    """Runs a part of a graph in the default session of the graph."""

    def __call__(self, graph: Graph, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
        """The values of the fetches."""


_DEFAULT_SESSION: Slot[DefaultSession] = Slot("run in the default session")
_CONSTANT_VALUES: Slot[ConstantValues] = Slot("values of constants")

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


def evaluate_constant(
    tensor: Tensor, known: Mapping[Tensor, np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any] | None:
    """The value of a tensor that a few nodes compute from constants and `known`; else None."""
    return evaluate_constants([tensor], known, _MAX_NODES)[0]


def evaluate_constants(
    tensors: Sequence[Tensor],
    known: Mapping[Tensor, np.ndarray[Any, Any]] | None = None,
    max_nodes: int | None = None,
    device_of: Callable[[Operation], Device] | None = None,
) -> list[np.ndarray[Any, Any] | None]:
    """The values of tensors that depend on constants and `known` alone; None where none is found.

    Operations are computed on a CPU of the process, or where `device_of` says.
    """
    return _CONSTANT_VALUES.get()(tensors, known or {}, max_nodes, device_of)
