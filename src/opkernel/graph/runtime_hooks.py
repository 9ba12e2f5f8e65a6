"""What the runtime gives to graphs, which stand below it: running, and folding of constants.

State: `_hooks`, set once by `install_runtime` when the runtime is imported.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opkernel.errors import FailedPreconditionError

if TYPE_CHECKING:
    import numpy as np

    from opkernel.graph.graph import Graph
    from opkernel.graph.tensor import Tensor

__all__ = ["evaluate_constant", "install_runtime", "run_fetches"]

Run = Callable[["Graph", Any, Mapping[Any, Any] | None], Any]
EvaluateConstant = Callable[
    ["Tensor", Mapping["Tensor", "np.ndarray[Any, Any]"]], "np.ndarray[Any, Any] | None"
]


@dataclass(slots=True)
class _Hooks:
    run: Run | None = None
    evaluate_constant: EvaluateConstant | None = None


_hooks = _Hooks()


def install_runtime(
    *, run: Run | None = None, evaluate_constant: EvaluateConstant | None = None
) -> None:
    """Set what the runtime provides; what is not given stays as it was.

    Args:
        run: `run(graph, fetches, feed_dict)` in the default session.
        evaluate_constant: the value of a tensor that depends on constants and the given values
            alone, or None where it cannot be computed; used by shape inference.
    """
    _hooks.run = run or _hooks.run
    _hooks.evaluate_constant = evaluate_constant or _hooks.evaluate_constant


def run_fetches(
    graph: "Graph", fetches: Any, feed_dict: Mapping[Any, Any] | None, session: Any | None
) -> Any:
    """The values of `fetches` from `session`, or from the default session.

    Raises:
        FailedPreconditionError: there is neither.
    """
    if session is not None:
        return session.run(fetches, feed_dict)
    if _hooks.run is None:
        raise FailedPreconditionError(
            "Cannot run: no default session is registered; import opkernel.runtime, or pass "
            "a session"
        )
    return _hooks.run(graph, fetches, feed_dict)


def evaluate_constant(
    tensor: "Tensor", known: Mapping["Tensor", "np.ndarray[Any, Any]"]
) -> "np.ndarray[Any, Any] | None":
    """The value of a tensor that depends on constants and `known` alone; None if none is found.

    Loads the runtime, which stands on a floor above and is known here by its name alone, so that
    shapes do not depend on what was imported before.
    """
    if _hooks.evaluate_constant is None:
        importlib.import_module("opkernel.runtime")
    return None if _hooks.evaluate_constant is None else _hooks.evaluate_constant(tensor, known)
