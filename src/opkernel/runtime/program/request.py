"""ProgramRequest: what a program must compute, and the services for building it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from opkernel.device.budget import current_budget
from opkernel.device.local_device import LocalDevice
from opkernel.graph.inference.tensor_facts import TensorFacts
from opkernel.records import dataclass, field
from opkernel.runtime.engines.choice import Jit
from opkernel.runtime.placement.device_set import DeviceSet
from opkernel.runtime.plan.functional_ops import FunctionLibrary
from opkernel.runtime.program.kernels import KernelCache
from opkernel.runtime.program.subgraph import Subgraph

if TYPE_CHECKING:
    from opkernel.runtime.step.inter_op_pool import InterOpPool
    from opkernel.runtime.step.kernel_watcher import KernelWatcher

__all__ = ["Passes", "ProgramRequest", "Variant"]

Passes = bool | Collection[str]
"""All optimisation passes, none, or those of these names."""

Variant = Literal["", "stoppable", "traced", "partial"]
"""The kinds of steps of a program: plain, with a cancellation manager or deadline, recorded, or
run in parts."""

NO_JIT = Jit()

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
