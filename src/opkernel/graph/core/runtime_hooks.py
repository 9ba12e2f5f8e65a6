"""Services of the floors above for graphs: running, tracing, folding constants, drawing.

This module knows the rooms above by their names alone, and loads a room when a graph needs its service.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from opkernel.device.device import Device
    from opkernel.graph.core.graph import Graph
    from opkernel.graph.core.operation import Operation
    from opkernel.graph.core.tensor import Tensor

__all__ = [
    "evaluate_constant",
    "evaluate_constants",
    "notebook_html",
    "run_fetches",
    "runner_of",
]

_MAX_NODES = 100  # that the shape function of one node is worth


def run_fetches(
    graph: "Graph", fetches: Any, feed_dict: Mapping[Any, Any] | None, session: Any | None
) -> Any:
    """The values of `fetches` from `session`, or from the default session.

    Raises:
        FailedPreconditionError: there is neither.
    """
    if session is not None:
        return session.run(fetches, feed_dict)
    return _of_runtime("session.session").run_in_default_session(graph, fetches, feed_dict)


def evaluate_constant(
    tensor: "Tensor", known: Mapping["Tensor", "np.ndarray[Any, Any]"]
) -> "np.ndarray[Any, Any] | None":
    """The value of a tensor that a few nodes compute from constants and `known`; else None."""
    return evaluate_constants([tensor], known, _MAX_NODES)[0]


def evaluate_constants(
    tensors: "Sequence[Tensor]",
    known: "Mapping[Tensor, np.ndarray[Any, Any]] | None" = None,
    max_nodes: int | None = None,
    device_of: "Callable[[Operation], Device] | None" = None,
) -> "list[np.ndarray[Any, Any] | None]":
    """The values of tensors that depend on constants and `known` alone; None where none is found.

    Operations are computed on a CPU of the process, or where `device_of` says.
    """
    values: list[np.ndarray[Any, Any] | None] = _of_runtime("calls.constants").constant_values(
        tensors, known or {}, max_nodes, device_of
    )
    return values


def runner_of(function: object) -> Callable[[Sequence[Any]], Any]:
    """The function that runs a ConcreteFunction on the values of its tensors."""
    runner: Callable[[Sequence[Any]], Any] = _of_runtime("calls.traced_calls").make_runner(function)
    return runner


def notebook_html(graph: "Graph") -> str:
    """The drawing of a graph, as HTML for notebooks."""
    html: str = importlib.import_module("opkernel.drawing").notebook_html(graph)
    return html


def _of_runtime(module: str) -> Any:
    return importlib.import_module(f"opkernel.runtime.{module}")
