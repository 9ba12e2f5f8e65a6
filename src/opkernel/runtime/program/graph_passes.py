"""GraphPasses: the passes that edit the graph of a program while it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from opkernel.device.local_device import LocalDevice
from opkernel.errors import DeadlineExceededError, OpError
from opkernel.graph import Operation
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.kernel import supported_device_types_for_node
from opkernel.runtime.placement.placer import Assignment
from opkernel.runtime.plan.functional_ops import RUN_BY_EXECUTORS, FunctionLibrary
from opkernel.runtime.program.request import Passes, Subgraph

if TYPE_CHECKING:
    from opkernel.graph.edit.jit_options import JitOptions
    from opkernel.kernel import Device
    from opkernel.optimization import OptimizedGraph


_Grouping = Literal["PRE_PLACEMENT", "POST_PLACEMENT", "POST_REWRITE_FOR_EXEC", "POST_PARTITIONING"]


class PassFailedError(Exception):
    """A pass failed. Building the program without passes will tell what is wrong with the graph."""


class GraphPasses:
    """Runs passes on a copy of the needed part. The first pass that runs makes the copy.

    Args:
        part: The needed part of a graph that stays as it is.
        passes: The passes that run.
        library: Takes the functions that passes add.
        feed_facts: The known facts of the feeds; the shapes that the graph knows if None.
        placed: The devices of nodes that are placed already, by name.
        jit: How clusters are formed, where they are.
        keeps_bits: Whether passes that round otherwise do not run.

    Attributes:
        part: The part that is needed by now.
    """

    def __init__(
        self,
        part: Subgraph,
        passes: Passes,
        library: FunctionLibrary,
        feed_facts: Sequence[TensorFacts] | None = None,
        placed: Mapping[str, LocalDevice] = MappingProxyType({}),
        jit: JitOptions | None = None,
        *,
        keeps_bits: bool = False,
    ) -> None:
        self.part = part
        self._placed = placed
        self._passes = _with_clustering(passes) if jit is not None else passes
        self._jit, self._keeps_bits = jit, keeps_bits
        self._library = library
        self._feed_facts = feed_facts
        self._copied: OptimizedGraph | None = None
        self._assignment: Assignment | None = None

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations that are needed by now."""
        return (self._copied or self.part).operations

    def run(self, *groupings: _Grouping) -> None:
        """Run the passes of some groupings.

        Raises:
            NotFoundError: there is no pass of a name given.
            PassFailedError: a pass failed.
            DeadlineExceededError: there is no time left.
        """
        if self._passes is False or not self.operations:
            return
        from opkernel.optimization import Grouping, copy_to_optimize, optimization_passes

        registry, names = optimization_passes(), None if self._passes is True else self._passes
        registry.check_names(names or ())
        wanted = [Grouping[name] for name in groupings]
        if not any(registry.of_grouping(grouping, names) for grouping in wanted):
            return
        part, graph, facts = self.part, self.operations[0].graph, self._feed_facts
        functions = len(graph.function_library)
        try:
            copied = self._copied or copy_to_optimize(
                graph,
                part.fetches,
                part.feeds,
                part.targets,
                operations=part.operations,
                feed_facts=facts,
            )
            if self._copied is None and self._placed:
                self._tell_places(copied)
            copied.editor.device_of, copied.editor.jit = self._device_of(), self._jit
            copied.editor.keeps_bits = self._keeps_bits
            copied.run_passes(wanted, names)
            self._check_kernels(copied)
        except DeadlineExceededError:  # without passes it would take no less
            raise
        except OpError as error:
            raise PassFailedError(str(error)) from error
        if len(copied.graph.function_library) > functions:
            self._library.add_functions(copied.graph.function_library)
        self._copied = copied
        self.part = Subgraph(copied.feeds, copied.fetches, copied.targets)

    def _tell_places(self, copied: OptimizedGraph) -> None:
        """Have passes know where nodes are, and leave those alone whose devices are strange to them."""
        there = [(op, self._placed[op.name]) for op in copied.operations if op.name in self._placed]
        copied.graph.assigned_devices.update({op: device.name for op, device in there})
        copied.editor.leave([op for op, device in there if device.has_own_memory])

    def _check_kernels(self, copied: OptimizedGraph) -> None:
        """Refuse what passes did where devices with memory of their own have no kernels for it."""
        types = {d.name: d.device_type for d in self._placed.values() if d.has_own_memory}
        for op in copied.operations if types else ():
            device_type = types.get(op.device)
            if device_type is None or op.type in RUN_BY_EXECUTORS:
                continue
            registry = op.graph.op_registry
            if not supported_device_types_for_node(
                [device_type], op.node_def, op_registry=registry
            ):
                raise PassFailedError(f"{device_type} has no kernel for {op.type} (node {op.name})")

    def _device_of(self) -> Callable[[Operation], Device] | None:
        """Where operations are, if passes must compute them there."""
        there = self._assignment
        if there is None or not any(one.overrides_compute for one in there.devices):
            return None
        return there.device_of

    def assign(self, assignment: Assignment) -> None:
        """Have the passes that follow know the devices of operations."""
        self._assignment = assignment
        if self._copied is not None:
            names = {op: device.name for op, device in assignment.elsewhere.items()}
            self._copied.graph.assigned_devices.update(names)


def _with_clustering(passes: Passes) -> Passes:
    """The passes, with those that form clusters."""
    if passes is True:
        return True
    from opkernel.optimization.built_in import CLUSTERING  # where a session asks for it

    return CLUSTERING if passes is False else CLUSTERING.union(passes)
