"""Engine: a compiler for clusters, parts of graphs that became functions.

An engine says which operations it takes, compiles a cluster for the types and shapes of its arguments, and runs it.
All else (marking of clusters, launching, the way back to the kernels of the CPU) is the same for all engines.
`clusters_of` tells which parts of a graph an engine would compile, and why it leaves out the rest.

State: `_engines` has the registered engines; `_PROVIDED` those of opkernel, which register themselves when imported.
"""

from __future__ import annotations

import functools
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Sequence
from copy import copy
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from opkernel.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from opkernel.graph import FunctionBody, Graph, Operation, Tensor, instantiate_function
from opkernel.graph.edit.jit_options import AutoclusteringPolicy, JitOptions
from opkernel.logs import logger
from opkernel.messages import did_you_mean
from opkernel.optimization import Grouping, copy_to_optimize
from opkernel.records import dataclass
from opkernel.registrations import Registrations, declaring_site, load_plugins
from opkernel.slots import NamedSlots
from opkernel.types import DataType, as_dtype


@dataclass(frozen=True, eq=False)
class ClusterArgument:
    """What is known of an argument when a cluster is compiled.

    Attributes:
        kind: `parameter`, `constant` or `resource`.
        dtype: The type of the tensor; of a resource, that of its value.
        shape: The shape of the tensor or of the resource's value.
        constant: The value of a constant.
        name: A name for messages.
        is_initialized: Whether a resource has a value.
    """

    kind: Literal["parameter", "constant", "resource"]
    dtype: DataType
    shape: tuple[int, ...] = ()
    constant: Any = None
    name: str = ""
    is_initialized: bool = True

    @classmethod
    def parameter(cls, dtype: DataType, shape: Sequence[int], name: str = "") -> ClusterArgument:
        """A tensor that is known when the program runs."""
        return cls("parameter", dtype, tuple(shape), name=name)

    @classmethod
    def of_constant(cls, value: Any, name: str = "") -> ClusterArgument:
        """A tensor that is known now."""
        array = np.asarray(value)
        return cls("constant", as_dtype(array.dtype), array.shape, array, name)

    @classmethod
    def variable(
        cls,
        dtype: DataType,
        shape: Sequence[int] = (),
        name: str = "",
        *,
        is_initialized: bool = True,
    ) -> ClusterArgument:
        """A variable, whose value is known when the program runs."""
        return cls("resource", dtype, tuple(shape), name=name, is_initialized=is_initialized)

    def check(self, index: int, array: Any) -> None:
        """Raise InvalidArgumentError where an array has another shape or type than this argument, the one of a number."""
        if array.shape != self.shape or array.dtype != self.dtype.numpy_dtype:
            raise InvalidArgumentError(
                f"Argument {index} of a compiled function is {array.dtype}{list(array.shape)}, and it was "
                f"compiled for {self.dtype.string}{list(self.shape)}"
            )

    @property
    def key(self) -> Hashable:
        """Equal for arguments that one program serves."""
        value = (
            None if self.constant is None else (self.constant.tobytes(), str(self.constant.dtype))
        )
        return self.kind, self.dtype, self.shape, value, self.is_initialized


@dataclass(frozen=True, eq=False)
class ResourceUpdate:
    """A resource that the program gives a new value.

    Attributes:
        input_index: Which argument of the function it is.
        dtype, shape: Of its value at the end.
        modified: Whether it was assigned to.
    """

    input_index: int
    dtype: DataType
    shape: tuple[int, ...]
    modified: bool = True


class CompiledCluster(Protocol):
    """A compiled cluster. Safe under threads."""

    @property
    def resource_updates(self) -> Sequence[ResourceUpdate]:
        """The resources that it writes."""

    def run(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Run it.

        Args:
            inputs: A value for each argument; of a resource, its value; of a constant, anything.

        Returns:
            The results, in the types that the function declares (for one that is a resource, the index of
            the argument), and the new values of the resources that `resource_updates` lists.
            Nobody else writes to these arrays.
        """


@dataclass(frozen=True)
class OperationTime:
    """How long an operation of a cluster took in a run.

    Attributes:
        name: The name of the operation; the engine's own name for what stands for no single one.
        op: Its op, or the engine's word for what it does.
        seconds: The time.
    """

    name: str
    op: str
    seconds: float


@runtime_checkable
class MeasuringCluster(CompiledCluster, Protocol):
    """A compiled cluster that can tell what its operations take."""

    def prepare_to_measure(self) -> None:
        """Do what takes long before the first measured run, such as compiling the cluster again."""

    def run_measured(
        self, inputs: Sequence[Any]
    ) -> tuple[list[Any], list[Any], Sequence[OperationTime]]:
        """Run it, as `run`; also gives what operations took, in the order in which they ran."""


class Engine(ABC):
    """A compiler for clusters.

    Attributes:
        name: What `Session(jit=...)` calls it.
        extra: The extra of opkernel that installs what it needs.
        min_cluster_size: Smaller clusters are left to the kernels of the CPU.
        takes_resources: Whether variables may enter clusters.
        takes_loops: Whether it compiles While and If; loops and conditionals of TensorFlow 1 become such for it.
        lower_precisions: The types, besides float32, in which it can compute what is in float32.
        precision: The type in which it does.
    """

    name: str
    extra: str = ""
    min_cluster_size: int = 4
    takes_resources: bool = False
    takes_loops: bool = False
    lower_precisions: Collection[str] = ()
    precision: str = "float32"

    @abstractmethod
    def check_installed(self) -> None:
        """Raise UnimplementedError, which names the extra, where what the engine needs is not installed.

        It is quick, and imports nothing heavy.
        """

    def in_precision(self, precision: str) -> Engine:
        """The engine that computes in a lower precision; its name says so.

        Raises:
            UnimplementedError: it cannot.
        """
        if precision not in self.lower_precisions:
            known = ", ".join(("float32", *self.lower_precisions))
            raise UnimplementedError(f"{self.name} does not compute in {precision}, but in {known}")
        engine = copy(self)
        engine.name, engine.precision = f"{self.name}:{precision}", precision
        return engine

    @abstractmethod
    def refusal(self, op: Operation) -> str:
        """Why an operation has to stay outside of clusters, in a few words; empty where it may be inside."""

    def autoclustering_policy(self, op: Operation) -> AutoclusteringPolicy:
        """When an operation is compiled that nobody has marked."""
        return AutoclusteringPolicy.IF_ENABLED_GLOBALLY

    def compile_time_constants(self, body: FunctionBody) -> frozenset[int]:
        """The arguments of a cluster whose values it must know when it compiles."""
        return frozenset()

    def must_be_constant(self, order: Sequence[Operation]) -> Collection[Operation]:
        """Those of some operations of a cluster, and of their inputs, whose values it must know when it compiles.

        Passes keep such operations out of clusters where that saves compiling. Inputs come first in `order`.
        """
        return frozenset()

    @abstractmethod
    def compile(self, body: FunctionBody, arguments: Sequence[ClusterArgument]) -> CompiledCluster:
        """Compile a cluster for certain arguments.

        Raises:
            OpError: it cannot; the error names the node where one is to blame.
        """


_PROVIDED: NamedSlots[object] = NamedSlots("engine")
_engines = Registrations[Engine]("An engine")


def register_engine(engine: Engine) -> None:
    """Have sessions find an engine by its name. A module that runs again may register its own again.

    Raises:
        AlreadyExistsError: another one has this name.
    """
    _engines.add(engine.name, engine, declaring_site(sys._getframe(1)))


def registered_engines() -> list[str]:
    """The names of all engines, those of opkernel first, installed or not."""
    provided = _PROVIDED.names()
    return [*provided, *[name for name in _engines.names() if name not in provided]]


def engine_named(name: str) -> Engine:
    """An engine by its name, which may end in the precision that it computes in: `openvino:bfloat16`.

    Raises:
        NotFoundError: there is none; plugins were loaded to find it.
        UnimplementedError: it does not compute in that precision.
    """
    name, _, precision = name.partition(":")
    if _PROVIDED.get(name) is None and name not in _engines:
        load_plugins()
    engine = _engines.get(name)
    if engine is None:
        known = registered_engines()
        raise NotFoundError(
            f"There is no engine {name!r}{did_you_mean(name, known)}; there are {', '.join(known)}"
        )
    return engine.in_precision(precision) if precision else engine


@functools.cache
def warn_of_missing_engine(why: str) -> None:
    """Warn, once for each reason, that kernels compute what a graph marks to be compiled."""
    logger("opkernel.engines").warning("Kernels compute what is marked to be compiled: %s", why)


@dataclass(frozen=True)
class ClusterNodes:
    """A cluster.

    Attributes:
        name: The name of the node that launches it.
        nodes: The names of its nodes, in the order of the graph.
    """

    name: str
    nodes: Sequence[str]


@dataclass(frozen=True)
class Clusters:
    """What an engine makes of a graph.

    Attributes:
        clusters: The clusters, in the order of the graph.
        outside: Why nodes are in none, by their names.
        left: How many operations the graph has then, constants and clusters not counted.
    """

    clusters: Sequence[ClusterNodes]
    outside: dict[str, str]
    left: int


def clusters_of(
    graph: Graph,
    fetches: Sequence[Tensor],
    feeds: Sequence[Tensor] = (),
    targets: Sequence[Operation] = (),
    *,
    engine: Engine,
    min_cluster_size: int | None = None,
) -> Clusters:
    """The clusters of what computes `fetches`, once all passes have run.

    Nodes of functions whose bodies do not take the place of their calls are named FUNCTION/NODE.

    Raises:
        OpError: the graph is not in order.
    """
    found = Clusters((), {}, 0)
    waiting: list[tuple[str, Subject]] = [("", (graph, fetches, feeds, targets))]
    seen: set[str] = set()
    while waiting:
        prefix, subject = waiting.pop(0)
        one, called = _clusters_of(prefix, subject, JitOptions(engine, True, min_cluster_size))
        outside, left = {**found.outside, **one.outside}, found.left + one.left
        found = Clusters([*found.clusters, *one.clusters], outside, left)
        for body in called:
            if body.name not in seen:
                seen.add(body.name)
                part = body.graph, body.outputs, body.inputs, body.targets
                waiting.append((f"{body.name}/", part))
    return found


Subject = tuple[Graph, Sequence[Tensor], Sequence[Tensor], Sequence[Operation]]
"""A graph, its fetches, its feeds and its targets."""


def _clusters_of(
    prefix: str, subject: Subject, options: JitOptions
) -> tuple[Clusters, list[FunctionBody]]:
    """The clusters of a graph without its functions, and the bodies of those that it still calls."""
    copied = copy_to_optimize(*subject)
    copied.editor.jit = options
    copied.run_passes(Grouping)
    clusters = [
        ClusterNodes(one.what.split()[2], [n for n in one.parts if n not in options.outside])
        for one in copied.changes
        if one.pass_name == "mark_for_compilation"
    ]
    there = {op.name for op in copied.operations}
    kept = [
        ClusterNodes(prefix + one.name, [prefix + name for name in one.nodes])
        for one in clusters
        if one.name in there
    ]
    others = {op.name: op for op in copied.operations if op.type not in ("Const", "XlaLaunch")}
    outside = {prefix + name: why for name, why in options.outside.items() if name in others}
    library = copied.graph.function_library
    called = library.reachable_definitions([op.node_def for op in others.values()])
    bodies = [
        instantiate_function(library, one) for one in called.values() if not one.signature.attr
    ]
    return Clusters(kept, outside, len(others)), bodies
