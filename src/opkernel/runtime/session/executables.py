"""Executables: what a session has compiled, one for each combination of feeds and fetches."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from opkernel.device.budget import Budget, current_budget
from opkernel.device.local_device import LocalDevice
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.graph import Graph, Tensor
from opkernel.graph.edit.prune import Needs
from opkernel.kernel import KernelProvider, choose_providers, global_kernel_registry
from opkernel.messages import short_repr
from opkernel.records import dataclass, replace
from opkernel.runtime.calls.function_library_runtime import FunctionLibraryRuntime
from opkernel.runtime.placement.placer import place
from opkernel.runtime.program.builder import Program
from opkernel.runtime.program.executable import Executable, LimitedExecutable
from opkernel.runtime.program.feeds import converters
from opkernel.runtime.program.fetches import FetchPlan
from opkernel.runtime.program.limits import Limits
from opkernel.runtime.program.request import NO_JIT, Jit, Passes, Variant
from opkernel.runtime.program.subgraph import Subgraph
from opkernel.runtime.session.lru_cache import LruCache
from opkernel.runtime.session.target import TargetOptions, TargetSession
from opkernel.runtime.step.session_state import LocalSessionState

if TYPE_CHECKING:
    from opkernel.runtime.adaptive.findings import Finding
    from opkernel.runtime.step.inter_op_pool import InterOpPool
    from opkernel.runtime.watch.sanitizer import Sanitizer

_MOST_FINDINGS = 1000


@dataclass(frozen=True)
class ExecutableParams:
    """The parameters of executables, and the objects that their steps share.

    Attributes:
        target: Where programs run.
        state: The tensors that the session keeps.
        limits: What the kernels may take.
        executor_type: The registered name of the executor; empty for the default one.
        sanitizer: Checks the kernels, where given.
        pool: The threads that steps have for expensive kernels, if they have any.
        logs_placement: Whether it is logged where each node is placed.
        optimize: The optimisation passes that run; none where kernels are checked.
        providers: Who is asked for kernels; `default_providers` if None.
        max_executables: How many are kept.
        jit: The engines that compile parts of programs.
        lowers: Whether If, Case and While are lowered before it is looked what is needed.
    """

    target: TargetSession
    state: LocalSessionState
    limits: Limits
    executor_type: str = ""
    sanitizer: Sanitizer | None = None
    pool: InterOpPool | None = None
    logs_placement: bool = False
    optimize: Passes = False
    providers: Sequence[KernelProvider] | None = None
    max_executables: int = 1000
    lowers: bool = True
    jit: Jit = NO_JIT

    @classmethod
    def of(
        cls,
        options: TargetOptions,
        target: TargetSession,
        state: LocalSessionState,
        pool: InterOpPool | None,
    ) -> Self:
        """The parameters for a session; where others run programs, they have the limits, watchers and engines."""
        config, is_here, budget, sanitizer = options.config, not target.is_remote, None, None
        if options.memory_limit_bytes is not None and is_here:
            budget = Budget(options.memory_limit_bytes, outer=current_budget())
        if options.sanitize and is_here:
            from opkernel.runtime.watch.sanitizer import Sanitizer  # rarely needed

            sanitizer = Sanitizer()
        return cls(
            target=target,
            state=state,
            limits=Limits(budget, target.devices.client_device.intra_op_threads),
            executor_type=config.executor_type,
            sanitizer=sanitizer,
            pool=pool,
            logs_placement=config.log_device_placement,
            optimize=config.optimize,
            providers=None if config.providers is None else choose_providers(config.providers),
            max_executables=config.max_executables,
            lowers=not config.place_pruned_graph,
            jit=config.new_jit() if is_here else NO_JIT,
        )


class Executables:
    """The executables of one graph; used from any thread.

    They are dropped once the graph was edited or a kernel registered anew, and the longest unused where
    they become too many. Steps under way finish with theirs; kernels, and their state, stay.

    Args:
        graph: The graph, which may grow.
        params: What they are made with.

    Attributes:
        library: The functions of the graph.
        findings: What programs have found out about their steps, the last thousand.
    """

    def __init__(self, graph: Graph, params: ExecutableParams) -> None:
        self.findings = deque["Finding"](maxlen=_MOST_FINDINGS)
        self._graph = graph
        self._params = params
        self._lock = threading.RLock()
        self._registry = global_kernel_registry()
        self._made = LruCache[Hashable, Executable](params.max_executables)
        self._made_at = self._versions()
        self._is_finalized = False
        self.library = FunctionLibraryRuntime(
            graph.function_library,
            lambda: graph.graph_def_versions.producer,  # an import may lower it
            device=params.target.devices.client_device,
            watcher=params.sanitizer,
            executor_type=params.executor_type,
            inter_op_pool=params.pool,
            devices=params.target.devices.mgr.all,
            optimize=params.optimize if params.sanitizer is None else False,
            providers=params.providers,
            jit=params.jit if params.sanitizer is None else NO_JIT,
        )
        self._kernels = self.library.kernels_of(graph, params.target.op_segment)
        self._placed: tuple[tuple[int, int], Mapping[str, LocalDevice]] = (-1, 0), {}

    def find(self, fetches: Any, feeds: tuple[Any, ...], variant: Variant = "") -> Executable:
        """The executable for fetches and feeds; compiled where it is not there.

        Args:
            fetches: what is asked for.
            feeds: the tensors that are fed.
            variant: "stoppable": each node checks the step; "traced": it does, and tells the step's
                `stats_collector` what it took; "partial": it is run by the dataflow executor.

        Raises:
            InvalidArgumentError, NotFoundError: a feed or fetch does not fit the graph, or a node
                cannot be run.
            FailedPreconditionError: the session was finalized, and did not have it.
            TypeError: a feed or fetch is no tensor, operation, name or structure of them.
        """
        key = _key(fetches), feeds, self._graph.edits, self._registry.version, variant
        try:
            executable = self._made.get(key)
        except TypeError:
            _refuse_unhashable("Fetch", _leaves(fetches))
            _refuse_unhashable("Feed", feeds)
            raise
        return self._make_once(key, fetches, feeds, variant) if executable is None else executable

    def for_graph(self, graph: Graph) -> Executables:
        """Executables of another graph, made in the same way."""
        other = Executables(graph, self._params)
        other._is_finalized = self._is_finalized
        return other

    def finalize(self) -> None:
        """Keep what there is, and refuse to make more."""
        with self._lock:
            if self._is_finalized:
                raise FailedPreconditionError("Session already finalized.")
            self._is_finalized = True
            self._made.stop_dropping()

    def clear(self) -> None:
        """Drop them all."""
        with self._lock:
            self._made.clear()

    def _versions(self) -> tuple[int, int]:
        """A value that changes when executables become stale: by an edit, or a new kernel."""
        return self._graph.edits, self._registry.version

    def _make_once(
        self, key: tuple[Hashable, ...], fetches: Any, feeds: tuple[Any, ...], variant: Variant
    ) -> Executable:
        """Make an executable that no other thread has made meanwhile; drop stale ones."""
        with self._lock:
            versions = self._versions()
            if self._made_at != versions:
                self._made_at = versions
                self._made.clear()
            executable = self._made.find(key)
            if executable is None:
                if self._is_finalized:
                    plain = self._made.find((*key[:-1], ""))
                    if variant == "stoppable" and plain is not None:
                        return plain
                    raise FailedPreconditionError("Session has been finalized.")
                with self._params.limits.working():
                    executable = self._made.keep(key, self._make(fetches, feeds, variant))
        return executable

    def _devices_of_nodes(self) -> Mapping[str, LocalDevice]:
        """Where the nodes of the whole graph are, so that a resource is in one place for all steps."""
        devices, edits = self._params.target.devices, self._graph.edits
        if self._placed[0] != (edits, len(devices.mgr.all)):
            operations, found = self._graph.get_operations(), {}
            devices.include(operations)
            if not devices.is_one:
                assignment = place(operations, devices, is_logged=self._params.logs_placement)
                found = {op.name: assignment.device_of(op) for op in operations}
            self._placed = (edits, len(devices.mgr.all)), found
        return self._placed[1]

    def _make(self, fetches: Any, feeds: Sequence[Any], variant: Variant) -> Executable:
        params, versions = self._params, self._versions()
        fetch_plan = FetchPlan(self._graph, fetches, params.state)
        tensors = [as_tensor(self._graph, feed) for feed in feeds]
        part = Subgraph(tensors, fetch_plan.tensors, fetch_plan.targets)
        _check_feeds(part)
        request = replace(
            self.library.for_steps(variant).request(part, self._kernels, lowers=params.lowers),
            devices=params.target.devices,
            placed=self._devices_of_nodes(),
            logs_placement=params.logs_placement,
            is_current=lambda: not self._is_finalized and self._versions() == versions,
            findings=self.findings,
        )
        if variant == "partial":
            request = replace(request, passes=False, executor_type="DATAFLOW", jit=NO_JIT)
        program = params.target.build_program(request)
        run = program.run if params.sanitizer is None else params.sanitizer.watched(program.run)
        feeds, limits = converters(tensors, params.state), params.limits
        new = partial(LimitedExecutable, limits=limits) if limits.budget else Executable
        executable = new(program, feeds, limits.applied(run), fetch_plan.answer(), fetch_plan.kept)
        is_plain = bool(variant) or params.target.is_remote or not request.follows_variables
        if is_plain or limits.budget or not part.has_variables or part.acts:
            return executable
        from opkernel.runtime.adaptive.variables import (  # for some graphs
            VariableSpecializer,
            with_selected_values,
        )

        def finish(special: Program, taken: Sequence[int]) -> Executable:
            run = limits.applied(with_selected_values(special.run, taken, len(tensors)))
            return replace(executable, program=special, run=run)

        variables = VariableSpecializer(program, self.library, finish)
        return replace(executable, variables=variables)


def as_tensor(graph: Graph, feed: Any) -> Tensor:
    """The tensor that a feed is or names."""
    tensor = graph.as_graph_element(feed, allow_operation=False)
    assert isinstance(tensor, Tensor)
    return tensor


def _check_feeds(part: Subgraph) -> None:
    """Refuse to feed a tensor twice, or a value to an op that wants the reference itself."""
    if len({tensor.name for tensor in part.feeds}) != len(part.feeds):
        raise InvalidArgumentError("Tensors to be fed are given more than once")
    if not any(tensor.dtype.is_ref for tensor in part.feeds):
        return
    needs = Needs(part.feeds)
    for op in part.operations:
        for index, (tensor, dtype) in enumerate(zip(op.inputs, op.input_types, strict=True)):
            if dtype.is_ref and needs.is_fed(tensor):
                raise InvalidArgumentError(
                    f"Input {index} of node {op.name} was passed {dtype.base.string} from the feed "
                    f"of {tensor.name} incompatible with expected {dtype.string}.",
                    node=op.name,
                    op=op.type,
                )


def _leaves(fetches: Any) -> Iterator[Any]:
    """The leaves of a structure of fetches."""
    if isinstance(fetches, list | tuple | Mapping):
        for one in fetches.values() if isinstance(fetches, Mapping) else fetches:
            yield from _leaves(one)
    else:
        yield fetches


def _refuse_unhashable(what: str, given: Iterable[Any]) -> None:
    """Raise TypeError for the first of some feeds or fetches that can be none."""
    for one in given:
        try:
            hash(one)
        except TypeError:
            raise TypeError(
                f"{what} argument {short_repr(one)} has invalid type {type(one).__name__}, must be a "
                "Tensor, an Operation, or the name of one; what is fetched stands first, what is fed "
                "second: run(fetches, feed_dict)"
            ) from None


def _key(fetches: Any) -> Hashable:
    """A hashable form of fetches: equal for equal structures of equal leaves."""
    if isinstance(fetches, list | tuple):
        return type(fetches), tuple(_key(fetch) for fetch in fetches)
    if isinstance(fetches, Mapping):
        return type(fetches), tuple((key, _key(fetch)) for key, fetch in fetches.items())
    leaf: Hashable = fetches  # a name, Tensor or Operation
    return leaf
