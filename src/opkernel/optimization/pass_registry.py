"""OptimizationPassRegistry: the passes by grouping and phase.

State: `_registry` holds those of `_BUILT_IN` once it was first asked for.

Source: TensorFlow core/common_runtime/optimization_registry.cc.
"""

import enum
import importlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from opkernel.errors import AlreadyExistsError, NotFoundError
from opkernel.optimization.graph_editor import GraphEditor

__all__ = [
    "Grouping",
    "OptimizationPass",
    "OptimizationPassRegistry",
    "optimization_passes",
    "register_optimization",
]


class Grouping(enum.IntEnum):
    """Where on a graph's way to its kernels a pass runs."""

    PRE_PLACEMENT = 0
    """After the cost model is known, before nodes are put on devices."""
    POST_PLACEMENT = 1
    """Once each node has its device."""
    POST_REWRITE_FOR_EXEC = 2
    """Once the graph was rewritten for its feeds and fetches."""
    POST_PARTITIONING = 3
    """On the part of each device."""


class OptimizationPass(NamedTuple):
    """A pass.

    Attributes:
        grouping, phase: when it runs: groupings in their order, phases ascending within one.
        name: what its switch is called; passes of the same phase run in the order of their names.
        run: edits a graph.
        doc: what it does, in a sentence.
        on_request: whether it runs only where it is asked for by name.
        ops: it runs only where one of these is needed; empty for wherever it is.
    """

    grouping: Grouping
    phase: int
    name: str
    run: Callable[[GraphEditor], None]
    doc: str
    on_request: bool = False
    ops: frozenset[str] = frozenset()


class OptimizationPassRegistry:
    """Passes in the order in which they run."""

    def __init__(self) -> None:
        self._passes: list[OptimizationPass] = []
        self._lock = threading.Lock()

    def register(
        self,
        grouping: Grouping,
        phase: int,
        run: Callable[[GraphEditor], None],
        on_request: bool = False,
        ops: Iterable[str] = (),
    ) -> None:
        """Add a pass, named after its function, whose docstring's first line says what it does.

        Raises:
            AlreadyExistsError: there is a pass of this name.
        """
        name = getattr(run, "__name__", type(run).__name__)
        doc = (run.__doc__ or "").strip().partition("\n")[0]
        with self._lock:
            if any(known.name == name for known in self._passes):
                raise AlreadyExistsError(f"An optimization pass {name!r} is registered already")
            one = OptimizationPass(grouping, phase, name, run, doc, on_request, frozenset(ops))
            self._passes = sorted([*self._passes, one], key=lambda known: known[:3])

    def __iter__(self) -> Iterator[OptimizationPass]:
        return iter(list(self._passes))

    def unregister(self, name: str) -> None:
        """Take a pass out.

        Raises:
            NotFoundError: there is none of this name.
        """
        self.check_names([name])
        with self._lock:
            self._passes = [known for known in self._passes if known.name != name]

    def run_grouping(
        self, grouping: Grouping, editor: GraphEditor, enabled: Collection[str] | None = None
    ) -> None:
        """Run the passes of a grouping, phase by phase.

        Args:
            grouping: which.
            editor: the graph.
            enabled: the names of the passes to be run; all but those on request if None.

        Raises:
            OpError: a pass failed.
        """
        for one in self:
            runs = not one.on_request if enabled is None else one.name in enabled
            if not runs or one.grouping != grouping:
                continue
            if not one.ops or not one.ops.isdisjoint(editor.op_types()):
                editor.begin(one.name)
                one.run(editor)
                editor.end()

    def check_names(self, names: Collection[str]) -> None:
        """Raise NotFoundError for a name that no pass has."""
        known = {one.name for one in self}
        for name in names:
            if name not in known:
                raise NotFoundError(
                    f"There is no optimization pass {name!r}; there are {', '.join(sorted(known))}"
                )


_BUILT_IN = (
    "arithmetic",
    "batch_norm_folding",
    "common_subexpressions",
    "constant_folding",
    "control_edges",
    "dead_branches",
    "debug_stripper",
    "entered_constants",
    "function_inlining",
    "functions_of_parts",
    "fusion",
    "identities",
    "input_folding",
    "layout",
    "loop_invariants",
    "shape_materialization",
    "shape_specialization",
    "transposes",
    "while_invariants",
)
"""The modules of this room that hold passes."""

_registry = OptimizationPassRegistry()


def optimization_passes() -> OptimizationPassRegistry:
    """The registry that sessions use."""
    for module in _BUILT_IN:
        importlib.import_module(f"opkernel.optimization.{module}")
    return _registry


def register_optimization(
    grouping: Grouping, phase: int, *, on_request: bool = False, ops: Iterable[str] = ()
) -> Callable[[Callable[[GraphEditor], None]], Callable[[GraphEditor], None]]:
    """Register the decorated function as a pass, which runs by itself unless it is `on_request`.

    With `ops` it runs only where the graph needs one of these.

    Raises:
        AlreadyExistsError: there is a pass of this name.
    """

    def register(run: Callable[[GraphEditor], None]) -> Callable[[GraphEditor], None]:
        _registry.register(grouping, phase, run, on_request, ops)
        return run

    return register
