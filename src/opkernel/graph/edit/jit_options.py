"""JitOptions: with which compiler, and how eagerly, a graph is cut into clusters.

Source: TensorFlow compiler/jit/flags.h, OptimizerOptions.GlobalJitLevel in core/protobuf/config.proto.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Literal, Protocol

from opkernel.graph.core.operation import Operation
from opkernel.graph.functions.function_body import FunctionBody
from opkernel.records import dataclass, field

CompileMode = Literal["strict", "lazy", "async"]
"""When clusters are compiled (DeviceCompileMode in TensorFlow)."""


class AutoclusteringPolicy(Enum):
    """When operations of a device are compiled without having been marked."""

    IF_ENABLED_GLOBALLY = "if enabled globally"
    IF_EXPLICITLY_REQUESTED = "if explicitly requested"
    ALWAYS = "always"


class ClusterCompiler(Protocol):
    """What the passes ask of an engine."""

    @property
    def name(self) -> str:
        """The name of the engine."""

    @property
    def min_cluster_size(self) -> int:
        """Smaller clusters do not pay."""

    @property
    def takes_resources(self) -> bool:
        """Whether variables may enter clusters."""

    @property
    def takes_loops(self) -> bool:
        """Whether loops and conditionals of TensorFlow 1 become While and If for it."""

    def refusal(self, op: Operation) -> str:
        """Why an operation has to stay outside of clusters; empty where it may be inside."""

    def autoclustering_policy(self, op: Operation) -> AutoclusteringPolicy:
        """When an operation is compiled that nobody has marked."""

    def compile_time_constants(self, body: FunctionBody) -> frozenset[int]:
        """The arguments of a cluster whose values it must know when it compiles."""

    def must_be_constant(self, order: Sequence[Operation]) -> Collection[Operation]:
        """Those of some operations of a cluster, and of their inputs, whose values it must know when it compiles."""


@dataclass(frozen=True)
class JitOptions:
    """How clusters are formed.

    Attributes:
        compiler: Compiles the clusters.
        is_global: Whether operations may be in clusters that nobody has marked (`global_jit_level`).
        min_cluster_size: Smaller clusters stay as they are, unless they are marked; None for what the compiler says.
        max_cluster_size: No cluster gets larger.
        mode: `lazy`: what cannot be compiled runs uncompiled; `async`: so does what is not compiled yet, and another
            thread compiles it. `strict`, for launches that a graph has of its own: it fails the step.
        has_compile_nodes: Whether a cluster is compiled by one node and run by another, with a call of the function
            where it could not be compiled (_XlaCompile, _XlaRun); else one node does all (XlaLaunch).
        outside: Filled by the pass: why operations stay outside, by their names.
    """

    compiler: ClusterCompiler
    is_global: bool = True
    min_cluster_size: int | None = None
    max_cluster_size: int = 1 << 31
    mode: CompileMode = "lazy"
    has_compile_nodes: bool = False
    outside: dict[str, str] = field(default_factory=dict)

    @property
    def smallest(self) -> int:
        """The least size of a cluster that nobody has asked for."""
        given = self.min_cluster_size
        return self.compiler.min_cluster_size if given is None else given
