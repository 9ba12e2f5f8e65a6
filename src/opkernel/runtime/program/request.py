"""ProgramRequest: what a program must compute, and the services for building it.

A `Subgraph` is what certain feeds, fetches and targets need of a graph, a `Partition` the part of it that a device
runs, and `ExecutorArgs` are what an executor runs it with.

State: `_marked` says which libraries of functions have some that are marked to be compiled.

Source: TensorFlow core/graph/subgraph.cc, graph_partition.cc.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, MutableSequence, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from opkernel.device.budget import current_budget
from opkernel.device.local_device import LocalDevice
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import FunctionLibraryDefinition, Graph, Operation, Tensor
from opkernel.graph.core.structural_ops import ASSIGNMENTS, VARIABLE_OPS
from opkernel.graph.edit.effects import Effect, effect_of
from opkernel.graph.edit.subgraph import Needs, prune_and_order
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.kernel.node_properties import is_marked
from opkernel.messages import did_you_mean
from opkernel.proto import NodeDef
from opkernel.records import dataclass, field, replace
from opkernel.runtime.placement.placer import DeviceSet
from opkernel.runtime.plan.functional_ops import FunctionLibrary, calling
from opkernel.runtime.program.kernels import KernelCache

if TYPE_CHECKING:
    from opkernel.graph.edit.jit_options import JitOptions
    from opkernel.runtime.adaptive.adaptive import Finding
    from opkernel.runtime.program.inter_op_pool import InterOpPool
    from opkernel.runtime.watch.kernel_watcher import KernelWatcher


_TAKES_SHAPES = "BroadcastGradientArgs"
"""An op of shapes, whose own shape is not what counts."""


@dataclass(frozen=True)
class Subgraph:
    """A part of a graph.

    Attributes:
        feeds: The tensors that are given.
        fetches: Those that are computed.
        targets: The operations that run for their effects.
        kind: Says what an operation needs.
        order: All that is needed, inputs before consumers, if that is known.
    """

    feeds: Sequence[Tensor]
    fetches: Sequence[Tensor]
    targets: Sequence[Operation] = ()
    kind: type[Needs] = Needs
    order: list[Operation] | None = None

    @property
    def graph(self) -> Graph | None:
        """The graph; None where nothing is fetched or run."""
        graphs = [tensor.graph for tensor in self.fetches] + [op.graph for op in self.targets]
        return graphs[0] if graphs else None

    @property
    def names(self) -> Sequence[str]:
        """The names of what is fetched and run."""
        return [tensor.name for tensor in self.fetches] + [op.name for op in self.targets]

    @cached_property
    def operations(self) -> list[Operation]:
        """All that is needed, inputs before consumers.

        Raises:
            InvalidArgumentError: the operations depend on each other in a cycle.
        """
        if self.order is not None:
            return self.order
        return prune_and_order(self.fetches, self.targets, self.feeds, self.kind)

    @property
    def knows_shapes(self) -> bool:
        """Whether the shapes of all feeds are known."""
        return all(tensor.shape.is_fully_defined() for tensor in self.feeds)

    @property
    def has_variables(self) -> bool:
        """Whether operations stand for variables."""
        return not VARIABLE_OPS.isdisjoint([op.type for op in self.operations])

    @property
    def acts(self) -> bool:
        """Whether operations have effects, but for calls, assignments, and what watches over values."""
        signatures = {op.signature for op in self.operations if op.type not in ASSIGNMENTS}
        acting = [one for one in signatures if effect_of(one) is Effect.ACTS]
        return not all(one.traits.calls or one.traits.debug_only for one in acting)

    @property
    def has_effects(self) -> bool:
        """Whether a step may change what outlives it: variables, tables, files, the state of random numbers."""
        ops = self.operations
        for signature in {op.signature for op in ops}:
            traits, is_assignment = signature.traits, signature.op_type in ASSIGNMENTS
            is_quiet = traits.calls or traits.debug_only
            if is_assignment or (effect_of(signature) is Effect.ACTS and not is_quiet):
                return True
        calls = calling(ops)
        library = calls[0].graph.function_library if calls else FunctionLibraryDefinition()
        nodes = [op.node_def for op in calls]
        bodies = library.reachable_definitions(nodes).values() if calls else ()
        return any(_may_act(library, one.op) for body in bodies for one in body.node_def)

    @cached_property
    def reads_shapes(self) -> bool:
        """Whether operations, or functions that they call, ask for the shapes of tensors."""
        ops = self.operations
        signatures = {op.signature for op in ops}
        if any(s.traits.reads_shapes_only or s.op_type == _TAKES_SHAPES for s in signatures):
            return True
        calls = calling(ops)
        nodes = [op.node_def for op in calls]
        return bool(calls) and read_shapes(calls[0].graph.function_library, nodes)


@dataclass(frozen=True)
class ExecutorArgs:
    """The arguments from which an executor is made.

    Attributes:
        part: What it computes: `run` gets values for its feeds.
        kernels: The kernels of the nodes.
        library: The functions that nodes call.
        watcher: Watches the kernels, where given.
        pool: The threads that steps have for expensive kernels, if they have any.
        findings: Take what the executor finds out about its steps.
    """

    part: Subgraph
    kernels: KernelCache
    library: FunctionLibrary
    watcher: KernelWatcher | None = None
    pool: InterOpPool | None = None
    findings: MutableSequence[Finding] = field(default_factory=list)

    @property
    def feeds(self) -> Sequence[Tensor]:
        """The tensors that `run` gets values for."""
        return self.part.feeds

    @property
    def fetches(self) -> Sequence[Tensor]:
        """The tensors that it computes."""
        return self.part.fetches

    @property
    def order(self) -> list[Operation]:
        """The operations that are needed, inputs before consumers."""
        return self.part.operations


def _may_act(library: FunctionLibraryDefinition, op: str) -> bool:
    """Whether nodes of functions with an op may have effects, calls of further functions aside."""
    op_def, traits = library.look_up(op).op_def, library.traits(op)
    is_quiet = traits.has_no_effect or traits.only_reads_state or traits.state_of_step
    makes_handle = not op_def.input_arg and bool(op_def.output_arg)
    is_call = traits.calls or traits.debug_only or op in library
    return op_def.is_stateful and not (is_quiet or is_call or makes_handle)


def read_shapes(library: FunctionLibraryDefinition, nodes: Sequence[NodeDef]) -> bool:
    """Whether nodes, or the functions that they need, ask for shapes."""
    bodies = [function.node_def for function in library.reachable_definitions(nodes).values()]
    types = {node.op for node in chain(nodes, *bodies)}
    return _TAKES_SHAPES in types or any(library.traits(op).reads_shapes_only for op in types)


Passes = bool | Collection[str]
"""All optimisation passes, none, or those of these names."""

Variant = Literal["", "stoppable", "traced", "partial"]
"""The kinds of steps of a program: plain, with a cancellation manager or deadline, recorded, or
run in parts."""

GlobalJitLevel = Literal["DEFAULT", "OFF", "ON_1", "ON_2"]
"""How eagerly clusters are formed: with OFF of marked nodes alone."""


@dataclass(frozen=True)
class Jit:
    """Which engines compile parts of a program; none by default.

    Attributes:
        options: How its clusters are formed and compiled.
        is_tried: Whether engines are tried while the program runs, which keeps the fastest: that of `options`, or
            all that are installed.
        min_cluster_size: Of those that are tried; None for what each says.
        precision: A lower precision in which those that can are tried, too.
        takes_marks: Whether XLA compiles what is marked to be compiled, where there are no `options`.
    """

    options: JitOptions | None = None
    is_tried: bool = False
    min_cluster_size: int | None = None
    precision: str = ""
    takes_marks: bool = False

    @property
    def name(self) -> str:
        """`off`, `auto`, or the name of the engine, as `choose_jit` takes it."""
        if self.options is not None:
            return self.options.compiler.name
        return "auto" if self.is_tried else "off"

    def options_for(self, part: Subgraph) -> JitOptions | None:
        """How clusters of a part are formed; None where nothing of it is compiled."""
        if self.options is not None or not self.takes_marks:
            return self.options
        return _options_for_marks() if _asks_to_compile(part.operations) else None

    def candidates(self) -> list[JitOptions]:
        """How clusters are formed for each engine that is tried; this imports the engines."""
        if self.options is not None:
            return [replace(self.options, mode="async")]
        from opkernel.graph.edit.jit_options import JitOptions
        from opkernel.runtime.engines.engine import engine_named, registered_engines

        found = []
        for name in registered_engines():
            engine = engine_named(name)
            try:
                engine.check_installed()
            except UnimplementedError:
                continue
            engines = [engine]
            if self.precision in engine.lower_precisions:
                engines.append(engine.in_precision(self.precision))
            found += [JitOptions(one, True, self.min_cluster_size, mode="async") for one in engines]
        return found


def is_compiling_forbidden() -> bool:
    """Whether nothing may be compiled in this process, as `OPKERNEL_JIT=never` says."""
    return os.environ.get("OPKERNEL_JIT") == "never"


_marked: WeakKeyDictionary[FunctionLibraryDefinition, tuple[int, bool]] = WeakKeyDictionary()
"""How many functions libraries had when they were looked through, and whether one of these was marked."""


def _asks_to_compile(operations: Sequence[Operation]) -> bool:
    """Whether some operations, or functions of their library, are marked to be compiled."""
    if any(is_marked(op.slim_message.attr) for op in operations):
        return True
    library = operations[0].graph.function_library if operations else None
    if not library:
        return False
    count, has_marks = _marked.get(library, (0, False))
    if count != len(library):
        has_marks = any(
            is_marked(one.attr) or any(is_marked(node.attr) for node in one.node_def)
            for one in library.values()
        )
        _marked[library] = len(library), has_marks
    return has_marks


def _options_for_marks() -> JitOptions | None:
    """How clusters of marked nodes are formed; None, with a warning, where what compiles them is not installed."""
    from opkernel.graph.edit.jit_options import JitOptions
    from opkernel.runtime.engines.engine import engine_named, warn_of_missing_engine

    engine = engine_named("xla")
    try:
        engine.check_installed()
    except UnimplementedError as error:
        warn_of_missing_engine(str(error))
        return None
    return JitOptions(engine, is_global=False)


NO_JIT = Jit()

_PRECISIONS = ("float32", "bfloat16", "float16")

_SHAPES = "shape_specialization"
_FOLDING = "constant_folding"


@dataclass(frozen=True)
class ProgramRequest:
    """The purpose of a program.

    Attributes:
        part: What is fed, fetched and run.
        kernels: The kernels of the nodes.
        library: The functions that nodes call.
        devices: Where nodes may run.
        placed: Where nodes of some names are already.
        passes: The optimisation passes that run.
        executor_type: The registered name of the executor; empty for the default one.
        watcher: Watches the kernels, where given.
        pool: The threads that steps have for expensive kernels, if they have any.
        feed_facts: All that is known of what will be fed. None where whoever runs the program sees to
            it that feeds have the shapes that the graph says.
        keeps_bits: Whether it gives the bits that `part` gives as it is: only passes that round alike run.
        is_current: Whether the graph and the kernels are still those of the request.
        logs_placement: Whether it is logged where each node is placed.
        jit: The engines that compile parts of it.
        findings: Take what the program finds out about its steps.
    """

    part: Subgraph
    kernels: KernelCache
    library: FunctionLibrary
    devices: DeviceSet
    placed: Mapping[str, LocalDevice] = field(default_factory=dict)
    passes: Passes = False
    executor_type: str = ""
    watcher: KernelWatcher | None = None
    pool: InterOpPool | None = None
    feed_facts: Sequence[TensorFacts] | None = None
    keeps_bits: bool = False
    is_current: Callable[[], bool] = lambda: True
    logs_placement: bool = False
    jit: Jit = NO_JIT
    findings: MutableSequence[Finding] = field(default_factory=list)

    def jit_options(self) -> JitOptions | None:
        """How clusters of the part are formed; None where there are none, or programs with clusters are tried beside it."""
        return None if self.tries_engines else self.jit.options_for(self.part)

    @property
    def follows_shapes(self) -> bool:
        """Whether the program may have others beside it, for shapes that feeds turn out to have."""
        return self._has_pass(_SHAPES) and self.watcher is None and self.feed_facts is None

    @property
    def follows_variables(self) -> bool:
        """Whether the program may have others beside it, for values that variables turn out to have.

        These fold the values into each other, and so round otherwise.
        """
        is_plain = self.watcher is None and self.devices.is_one
        return self._has_pass(_FOLDING) and is_plain and not is_deterministic()

    @property
    def tries_engines(self) -> bool:
        """Whether engines are tried beside the plan."""
        is_plain = self.watcher is None and self.feed_facts is None and current_budget() is None
        return self.jit.is_tried and is_plain and self.devices.is_one

    def _has_pass(self, name: str) -> bool:
        return self.passes is True or (self.passes is not False and name in self.passes)


def choose_jit(
    name: str = "",
    *,
    level: GlobalJitLevel = "DEFAULT",
    min_cluster_size: int | None = None,
    has_compile_nodes: bool = False,
) -> Jit:
    """The engines that a session asked for.

    Args:
        name: `off`, where only marked nodes are compiled, `auto`, or the name of an engine; a lower precision may
            follow, as in `auto:bfloat16`. An engine is tried beside the kernels; with `!` at the end, as in `xla!`, it
            compiles all that it takes, and the first step waits for it. Where empty, what OPKERNEL_JIT says; XLA where the level asks for clusters;
            else off. With `OPKERNEL_JIT=never` nothing is compiled, whatever the name.
        level: With OFF, marked nodes alone are compiled.
        min_cluster_size: Smaller clusters stay as they are.
        has_compile_nodes: Whether a node compiles a cluster, and another runs it.

    Raises:
        InvalidArgumentError: there is no such engine, or no such precision.
        UnimplementedError: what the engine needs is not installed, or it does not compute in that precision.
    """
    if is_compiling_forbidden():
        return NO_JIT
    name = name or os.environ.get("OPKERNEL_JIT", "") or ("xla!" if level[:2] == "ON" else "off")
    insists = name.endswith("!") or is_deterministic()
    name, _, precision = name.removesuffix("!").partition(":")
    if precision and precision not in _PRECISIONS:
        raise InvalidArgumentError(
            f"The precision of jit must be one of {', '.join(_PRECISIONS)}, not {precision!r}"
            f"{did_you_mean(precision, _PRECISIONS)}"
        )
    if name == "off" or (name == "auto" and is_deterministic()):
        return Jit(takes_marks=True)
    if precision == "float32" or is_deterministic():
        precision = ""
    if name == "auto":
        return Jit(is_tried=True, min_cluster_size=min_cluster_size, precision=precision)
    from opkernel.graph.edit.jit_options import JitOptions  # few sessions have engines
    from opkernel.runtime.engines.engine import engine_named, registered_engines

    names = registered_engines()
    if name not in names:
        known = ["off", "auto", *names]
        raise InvalidArgumentError(
            f"jit must be one of {', '.join(known)}, not {name!r}{did_you_mean(name, known)}"
        )
    engine = engine_named(name)
    engine.check_installed()
    if precision:
        engine = engine.in_precision(precision)
    options = JitOptions(
        engine, level != "OFF", min_cluster_size, has_compile_nodes=has_compile_nodes
    )
    return Jit(options, is_tried=not (insists or level != "DEFAULT" or has_compile_nodes))


def is_deterministic() -> bool:
    """Whether results must be the same at each step and in each process (OPKERNEL_DETERMINISTIC=1)."""
    return os.environ.get("OPKERNEL_DETERMINISTIC", "0") not in ("", "0")


@dataclass(frozen=True, slots=True)
class Partition:
    """The part of a graph that one device runs.

    Attributes:
        device: The device.
        part: The operations, with their feeds, fetches and targets. Sends to other partitions are
            targets; receives have no inputs.
        feed_indices: Which of the program's feeds those of the part are.
        fetch_indices: Which of the program's fetches those of the part are.
    """

    device: LocalDevice
    part: Subgraph
    feed_indices: Sequence[int] = ()
    fetch_indices: Sequence[int] = ()

    @classmethod
    def of_all(cls, device: LocalDevice, whole: Subgraph) -> Partition:
        """The partition of a program that runs on one device."""
        return cls(device, whole, range(len(whole.feeds)), range(len(whole.fetches)))


def arg_name(feed: Tensor, index: int) -> str:
    """The name of the node that stands for a feed of a program in its partition."""
    return f"_arg_{feed.op.name}_{feed.value_index}_{index}"
