"""Executables: what a session has compiled for each combination of feeds and fetches.

Source: DirectSession::Run and RunInternal in TensorFlow core/common_runtime/direct_session.cc.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from opkernel.device.local_device import LocalDevice
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.graph import Graph, Operation, Tensor
from opkernel.graph.edit.subgraph import Needs
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.kernel import global_kernel_registry
from opkernel.logs import logger
from opkernel.messages import short_repr
from opkernel.records import replace
from opkernel.runtime.calls.function_library_runtime import CalledFunctions, FunctionLibraryRuntime
from opkernel.runtime.placement.placer import place
from opkernel.runtime.program.builder import StepProgram, watched_program
from opkernel.runtime.program.executable import Executable, LimitedExecutable, Run
from opkernel.runtime.program.feeds_and_fetches import FetchPlan, converters
from opkernel.runtime.program.request import NO_JIT, ProgramRequest, Subgraph, Variant
from opkernel.runtime.session.session_runtime import SessionRuntime

if TYPE_CHECKING:
    from opkernel.runtime.adaptive.adaptive import Finding


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(dict[K, V]):
    """A dict of bounded size, which drops the entries that were not used for longest.

    Finding an entry again costs no more than in any dict: nothing is noted. Instead there are two generations. New
    entries, and entries found in the older generation, go to the younger one, which is this dict and may be read from
    any thread; all else takes a lock. When the younger generation holds half of the allowed entries it becomes the
    older one, and the entries left in the old generation are dropped. The half that was used last is always there.

    Args:
        most: how many values are kept of both generations together; at least 1.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._older: dict[K, V] = {}

    def find(self, key: K) -> V | None:
        """The value of a key, of whichever generation; None if there is none. It is young again."""
        if key in self._older:
            self.keep(key, self._older.pop(key))
        return self.get(key)

    def keep(self, key: K, value: V) -> V:
        """Keep a new value, and drop others where these are too many."""
        if len(self) >= max(self._most // 2, 1):
            self._older = self.copy() if self._most > 1 else {}
            super().clear()
        self[key] = value
        return value

    def stop_dropping(self) -> None:
        """Keep all that is there, and whatever comes."""
        self._most = sys.maxsize

    def clear(self) -> None:
        """Drop all."""
        super().clear()
        self._older.clear()


_MOST_FINDINGS = 1000


class Executables:
    """The executables of one graph; used from any thread.

    They are dropped once the graph was edited or a kernel registered anew, and the longest unused where
    they become too many. Steps under way finish with theirs; kernels, and their state, stay.

    Args:
        graph: The graph, which may grow.
        session: How they are made, and where they run.

    Attributes:
        library: The functions of the graph.
        findings: What programs have found out about their steps, the last thousand.
    """

    def __init__(self, graph: Graph, session: SessionRuntime) -> None:
        config, devices, sanitizer = session.config, session.target.devices, session.sanitizer
        self.findings = deque["Finding"](maxlen=_MOST_FINDINGS)
        self._graph = graph
        self._session = session
        self._lock = threading.RLock()
        self._registry = global_kernel_registry()
        self._made = LruCache[Hashable, Executable](config.max_executables)
        self._made_at = self._versions()
        self._traced = LruCache[Hashable, tuple[StepProgram, Executable]](config.max_executables)
        self._is_finalized = False
        self.library = FunctionLibraryRuntime(
            graph.function_library,
            lambda: graph.graph_def_versions.producer,  # an import may lower it
            device=devices.client_device,
            watcher=sanitizer,
            executor_type=config.executor_type,
            inter_op_pool=session.pool(),
            devices=devices.mgr.all,
            optimize=config.optimize if sanitizer is None else False,
            providers=session.providers,
            jit=session.jit if sanitizer is None else NO_JIT,
        )
        self._kernels = self.library.kernels_of(graph, session.target.op_segment)
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

    def traced(self, plain: Executable, values: Sequence[Any]) -> Executable:
        """What runs steps on these values now, with nodes that tell the step's `stats_collector` what they took."""
        special = None if plain.variables is None else plain.variables.current()
        running = plain if special is None else special
        program = running.program_for(values)
        shapes = tuple([v.shape for v in values]) if running.program.adaptive is not None else ()
        key = id(plain), shapes
        with self._lock:
            known = self._traced.find(key)
            if known is None or known[0] is not program:
                if program.request.tries_engines and not running.is_settled(values):
                    logger("opkernel.engines").info(
                        "Traced steps try no engines: Session.warm_up has them tried before"
                    )
                with self._session.limits.working():
                    known = self._traced.keep(key, (program, self._tracing(running, program)))
        return known[1]

    def _tracing(self, running: Executable, program: StepProgram) -> Executable:
        library = program.request.library
        assert isinstance(library, CalledFunctions)
        runtime, target = library.runtime.cache.plain.for_steps("traced"), self._session.target
        traced, watcher = CalledFunctions(runtime, lowers=library.lowers), runtime.watcher
        if target.is_remote:
            request = replace(program.request, library=traced, watcher=watcher)
            return running.with_program(target.build_program(request))
        return running.with_program(watched_program(program, traced, watcher))

    def for_graph(self, graph: Graph) -> Executables:
        """Executables of another graph, made in the same way."""
        other = Executables(graph, self._session)
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
            self._traced.clear()

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
                self._traced.clear()
            executable = self._made.find(key)
            if executable is None:
                if self._is_finalized:
                    plain = self._made.find((*key[:-1], ""))
                    if variant == "stoppable" and plain is not None:
                        return plain
                    raise FailedPreconditionError("Session has been finalized.")
                with self._session.limits.working():
                    executable = self._made.keep(key, self._make(fetches, feeds, variant))
        return executable

    def _devices_of_nodes(self) -> Mapping[str, LocalDevice]:
        """Where the nodes of the whole graph are, so that a resource is in one place for all steps."""
        session, edits = self._session, self._graph.edits
        devices = session.target.devices
        if self._placed[0] != (edits, len(devices.mgr.all)):
            operations, found = self._graph.get_operations(), {}
            devices.include(operations)
            if not devices.is_one:
                assignment = place(
                    operations, devices, is_logged=session.config.log_device_placement
                )
                found = {op.name: assignment.device_of(op) for op in operations}
            self._placed = (edits, len(devices.mgr.all)), found
        return self._placed[1]

    def _applied(self, run: Run) -> Run:
        """The function of a program as the session runs it: within its limits, under its sanitizer."""
        sanitizer = self._session.sanitizer
        return self._session.limits.applied(run if sanitizer is None else sanitizer.watched(run))

    def _for_any_shapes(self, request: ProgramRequest) -> Callable[[Run], Run]:
        """As `_applied`, for a program that may be fed arrays of other shapes than its graph says."""
        from opkernel.runtime.session.fed_shapes import AnyShapes  # for some sessions

        feeds, build = request.part.feeds, self._session.target.build_program
        unknown = replace(request, feed_facts=[TensorFacts() for _ in feeds])
        chosen = AnyShapes(feeds, lambda: build(unknown).run)
        return lambda run: self._applied(chosen.applied(run))

    def _make(self, fetches: Any, feeds: Sequence[Any], variant: Variant) -> Executable:
        session, versions = self._session, self._versions()
        config, target, limits = session.config, session.target, session.limits
        fetch_plan = FetchPlan(self._graph, fetches, session.state)
        tensors = [as_tensor(self._graph, feed) for feed in feeds]
        part = Subgraph(tensors, fetch_plan.tensors, fetch_plan.targets)
        _check_feeds(part)
        request = replace(
            self.library.for_steps(variant).request(
                part, self._kernels, lowers=not config.place_pruned_graph
            ),
            devices=target.devices,
            placed=self._devices_of_nodes(),
            logs_placement=config.log_device_placement,
            is_current=lambda: not self._is_finalized and self._versions() == versions,
            findings=self.findings,
        )
        if variant == "partial":
            request = replace(request, passes=False, executor_type="DATAFLOW", jit=NO_JIT)
        program = target.build_program(request)
        feeds = converters(tensors, session.state, checks_shapes=config.checks_feed_shapes)
        new = partial(LimitedExecutable, limits=limits) if limits.budget else Executable
        answer, kept = fetch_plan.answer(), fetch_plan.kept
        applies = self._applied if config.checks_feed_shapes else self._for_any_shapes(request)
        executable = new(program, feeds, applies(program.run), answer, kept, applied=applies)
        is_plain = bool(variant) or target.is_remote or not request.follows_variables
        reads = part.has_variables and part.fetches and not part.acts
        if is_plain or limits.budget or not reads:
            return executable
        # For some graphs.
        from opkernel.runtime.adaptive.variables import VariableSpecializer, with_selected_values

        def finish(special: StepProgram, taken: Sequence[int]) -> Executable:
            def applied(run: Run) -> Run:
                return applies(with_selected_values(run, taken, len(tensors)))

            run = applied(special.run)
            return replace(executable, program=special, run=run, taken=taken, applied=applied)

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


_LEAVES = frozenset([Operation, Tensor, str])


def _key(fetches: Any) -> Hashable:
    """A hashable form of fetches: equal for equal structures of equal leaves."""
    if type(fetches) in _LEAVES:  # most steps have one: no structure is looked for
        return fetches  # type: ignore[no-any-return]  # these have hashes
    if isinstance(fetches, list | tuple):
        return type(fetches), tuple(_key(fetch) for fetch in fetches)
    if isinstance(fetches, Mapping):
        return type(fetches), tuple((key, _key(fetch)) for key, fetch in fetches.items())
    leaf: Hashable = fetches  # a name, Tensor or Operation
    return leaf
