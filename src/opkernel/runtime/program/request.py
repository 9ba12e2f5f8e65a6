"""ProgramRequest: what a program must compute, and the services for building it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Literal

from opkernel.device.budget import current_budget
from opkernel.device.local_device import LocalDevice
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.messages import did_you_mean
from opkernel.records import dataclass, field
from opkernel.runtime.placement.device_set import DeviceSet
from opkernel.runtime.plan.functional_ops import FunctionLibrary
from opkernel.runtime.program.kernels import KernelCache
from opkernel.runtime.program.subgraph import Subgraph

if TYPE_CHECKING:
    from opkernel.graph.edit.jit_options import JitOptions
    from opkernel.runtime.adaptive.findings import Finding
    from opkernel.runtime.step.inter_op_pool import InterOpPool
    from opkernel.runtime.step.kernel_watcher import KernelWatcher

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
        tries_all: Whether all installed engines are tried while the program runs, which keeps the fastest.
        min_cluster_size: Of those that are tried; None for what each says.
        precision: A lower precision in which those that can are tried, too.
    """

    options: JitOptions | None = None
    tries_all: bool = False
    min_cluster_size: int | None = None
    precision: str = ""

    def candidates(self) -> list[JitOptions]:
        """How clusters are formed for each engine that is installed; this imports the engines."""
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
    is_current: Callable[[], bool] = lambda: True
    logs_placement: bool = False
    jit: Jit = NO_JIT
    findings: MutableSequence[Finding] = field(default_factory=list)

    @property
    def follows_shapes(self) -> bool:
        """Whether the program may have others beside it, for shapes that feeds turn out to have."""
        return self._has_pass(_SHAPES) and self.watcher is None and self.feed_facts is None

    @property
    def follows_variables(self) -> bool:
        """Whether the program may have others beside it, for values that variables turn out to have."""
        return self._has_pass(_FOLDING) and self.watcher is None and self.devices.is_one

    @property
    def tries_engines(self) -> bool:
        """Whether engines are tried beside the plan."""
        is_plain = self.watcher is None and self.feed_facts is None and current_budget() is None
        return self.jit.tries_all and is_plain and self.devices.is_one

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
        name: `off`, `auto`, or the name of an engine; a lower precision may follow, as in `auto:bfloat16`. Where
            empty, what OPKERNEL_JIT says; XLA where the level asks for clusters; else off.
        level: With OFF, marked nodes alone are compiled.
        min_cluster_size: Smaller clusters stay as they are.
        has_compile_nodes: Whether a node compiles a cluster, and another runs it.

    Raises:
        InvalidArgumentError: there is no such engine, or no such precision.
        UnimplementedError: what the engine needs is not installed, or it does not compute in that precision.
    """
    name = name or os.environ.get("OPKERNEL_JIT", "") or ("xla" if level[:2] == "ON" else "off")
    name, _, precision = name.partition(":")
    if precision and precision not in _PRECISIONS:
        raise InvalidArgumentError(
            f"The precision of jit must be one of {', '.join(_PRECISIONS)}, not {precision!r}"
            f"{did_you_mean(precision, _PRECISIONS)}"
        )
    if name == "off" or (name == "auto" and is_deterministic()):
        return Jit()
    if precision == "float32" or is_deterministic():
        precision = ""
    if name == "auto":
        return Jit(tries_all=True, min_cluster_size=min_cluster_size, precision=precision)
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
    return Jit(
        JitOptions(engine, level != "OFF", min_cluster_size, has_compile_nodes=has_compile_nodes)
    )


def is_deterministic() -> bool:
    """Whether results must be the same at each step and in each process (OPKERNEL_DETERMINISTIC=1)."""
    return os.environ.get("OPKERNEL_DETERMINISTIC", "0") not in ("", "0")
