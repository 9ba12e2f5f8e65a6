"""OptimizationPassRegistry: the passes by grouping and phase.

State: `_registry` holds those of `built_in` once it was first asked for.

Source: TensorFlow core/common_runtime/optimization_registry.cc.
"""

import enum
import importlib
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from opkernel.device.budget import check_time
from opkernel.errors import NotFoundError
from opkernel.graph.edit.graph_editor import GraphEditor
from opkernel.messages import did_you_mean
from opkernel.opdef import OpTraits
from opkernel.registrations import DeclaringSite, Registrations, declaring_site
from opkernel.slots import Slot

__all__ = [
    "Grouping",
    "OptimizationPass",
    "OptimizationPassRegistry",
    "optimization_passes",
    "register_optimization",
]


Where: TypeAlias = Callable[[OpTraits], bool]
"""Says of an op, by what may be assumed of it, whether a pass looks for it."""

Pattern: TypeAlias = frozenset[str]
"""The ops that a rewrite is written for. All else that passes know of ops, the ops' traits say."""


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
        on_request: whether it runs only where it is asked for by name.
        ops, where: it runs only where one of these ops is needed, or one of which `where` holds;
            everywhere if nothing is said.
        for_functions: it runs only where the graph has functions.
        for_engines: it runs only where an engine compiles clusters (`GraphEditor.jit`).
    """

    grouping: Grouping
    phase: int
    name: str
    run: Callable[[GraphEditor], None]
    on_request: bool = False
    ops: frozenset[str] = frozenset()
    where: Where | None = None
    for_functions: bool = False
    for_engines: bool = False

    @property
    def doc(self) -> str:
        """The purpose of the pass, in a sentence."""
        function = self.run.function if isinstance(self.run, PassOfModule) else self.run
        return (function.__doc__ or "").strip().partition("\n")[0]

    def is_needed(self, editor: GraphEditor) -> bool:
        """Whether it may find something to do."""
        if self.for_engines and editor.jit is None:
            return False
        if self.for_functions and not editor.graph.function_library:
            return False
        if not self.ops and self.where is None:
            return True
        types = editor.op_types()
        return not self.ops.isdisjoint(types) or any(map(self.where or _never, types.values()))


def _never(traits: OpTraits) -> bool:
    return False


class PassOfModule:
    """The pass of that name in a module, which is imported when the pass first runs."""

    def __init__(self, module: str, name: str) -> None:
        self.__module__ = module
        self.__name__ = name

    @property
    def function(self) -> Callable[[GraphEditor], None]:
        """The function that edits a graph."""
        module = importlib.import_module(self.__module__)
        found: Callable[[GraphEditor], None] = getattr(module, self.__name__)
        return found

    def __call__(self, editor: GraphEditor) -> None:
        """Run it."""
        self.function(editor)


class OptimizationPassRegistry:
    """Passes in the order in which they run."""

    def __init__(self) -> None:
        self._passes = Registrations[OptimizationPass]("An optimization pass")

    def register(
        self,
        grouping: Grouping,
        phase: int,
        run: Callable[[GraphEditor], None],
        on_request: bool = False,
        ops: Iterable[str] = (),
        where: Where | None = None,
        *,
        for_functions: bool = False,
        for_engines: bool = False,
        site: DeclaringSite | None = None,
    ) -> None:
        """Add a pass, named after its function, whose docstring's first line says what it does.

        The place that registered a pass, which is `site` or else the caller's, may register it again in another run.

        Raises:
            AlreadyExistsError: there is a pass of this name.
        """
        name = getattr(run, "__name__", type(run).__name__)
        one = OptimizationPass(
            grouping,
            phase,
            name,
            run,
            on_request=on_request,
            ops=frozenset(ops),
            where=where,
            for_functions=for_functions,
            for_engines=for_engines,
        )
        self._passes.add(name, one, site or declaring_site(sys._getframe(1)))

    def __iter__(self) -> Iterator[OptimizationPass]:
        return iter(sorted(self._passes.things(), key=lambda known: known[:3]))

    def unregister(self, name: str) -> None:
        """Take a pass out.

        Raises:
            NotFoundError: there is none of this name.
        """
        self.check_names([name])
        self._passes.remove(name)

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
        for one in self.of_grouping(grouping, enabled):
            if one.is_needed(editor):
                check_time("optimizing by", one.name)
                editor.begin(one.name)
                one.run(editor)
                editor.end()

    def of_grouping(
        self, grouping: Grouping, enabled: Collection[str] | None = None
    ) -> list[OptimizationPass]:
        """The passes of a grouping that are to be run: all but those on request if `enabled` is None."""
        return [
            one
            for one in self
            if one.grouping == grouping
            and (not one.on_request if enabled is None else one.name in enabled)
        ]

    def check_names(self, names: Collection[str]) -> None:
        """Raise NotFoundError for a name that no pass has."""
        known = self._passes.names()
        for name in names:
            if name not in known:
                raise NotFoundError(
                    f"There is no optimization pass {name!r}{did_you_mean(name, known)}; "
                    f"there are {', '.join(known)}"
                )


_registry = OptimizationPassRegistry()
_BUILT_IN: Slot[object] = Slot("optimization passes")
"""Registers the passes that come with opkernel, when it is imported."""


def optimization_passes() -> OptimizationPassRegistry:
    """The registry that sessions use."""
    _BUILT_IN.get()
    return _registry


def register_built_in(
    grouping: Grouping,
    phase: int,
    place: str,
    *,
    on_request: bool = False,
    ops: Iterable[str] = (),
    where: Where | None = None,
    for_functions: bool = False,
    for_engines: bool = False,
) -> None:
    """Register a pass of this room by its place: `algebra.layout.layout`."""
    module, _, name = f"{__package__}.{place}".rpartition(".")
    site = declaring_site(sys._getframe(1))
    run = PassOfModule(module, name)
    _registry.register(
        grouping,
        phase,
        run,
        on_request=on_request,
        ops=ops,
        where=where,
        for_functions=for_functions,
        for_engines=for_engines,
        site=site,
    )


def register_optimization(
    grouping: Grouping,
    phase: int,
    *,
    on_request: bool = False,
    ops: Iterable[str] = (),
    where: Where | None = None,
) -> Callable[[Callable[[GraphEditor], None]], Callable[[GraphEditor], None]]:
    """Register the decorated function as a pass, which runs by itself unless it is `on_request`.

    With `ops` or `where` it runs only where the graph needs one of these ops, or one of such traits.

    Raises:
        AlreadyExistsError: there is a pass of this name, which another place has registered.
    """
    site = declaring_site(sys._getframe(1))

    def register(run: Callable[[GraphEditor], None]) -> Callable[[GraphEditor], None]:
        _registry.register(grouping, phase, run, on_request, ops, where, site=site)
        return run

    return register
