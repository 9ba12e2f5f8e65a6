"""XLA as an engine: clusters of sessions, compiled through JAX.

Memory that programs free stays with the process. XLA takes the memory for what a program computes on the way from the C
library, at each run. glibc gives large blocks back to the system, and blocks of other threads than the first one, too.
The system then hands out empty pages, one by one, for the next run: that takes up to half of the time of a step of training.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace

from opkernel.graph import FunctionBody, Operation
from opkernel.graph.edit.jit_options import AutoclusteringPolicy
from opkernel.libraries import check_installed
from opkernel.optimization.clusters.marks import MUST_COMPILE, device_type_of, mark_of
from opkernel.runtime.engines.engine import (
    ClusterArgument,
    CompiledCluster,
    Engine,
    register_engine,
)
from opkernel.xla.compilability import RecursiveCompilabilityChecker
from opkernel.xla.compiler import XlaCompiler
from opkernel.xla.const_analysis import backwards_const_analysis, must_be_constant
from opkernel.xla.jax_numpy import NEED, jnp, wide_types
from opkernel.xla.op_registry import DeviceRegistration, XlaOpRegistry, global_xla_op_registry

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""The parameters of glibc's `mallopt` (malloc.h)."""
_MOST_BYTES = 1 << 28
"""So much is kept at most."""


@functools.cache
def keep_freed_memory() -> None:
    """Have glibc keep what is freed, for all threads in one place, unless the environment tells it what to do."""
    is_told = "GLIBC_TUNABLES" in os.environ or any(n.startswith("MALLOC_") for n in os.environ)
    if is_told or sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _MOST_BYTES)
        mallopt(_MMAP_THRESHOLD, _MOST_BYTES)
        mallopt(_ARENA_MAX, 1)


_LARGE = 1 << 16
"""Constants of more bytes are given to a program as parameters: literals make it slow to compile."""


class XlaEngine(Engine):
    """Compiles clusters with XLA.

    Args:
        registry: The kernels; those of the process if None.
    """

    name = "xla"
    extra = "xla"
    takes_resources = True
    takes_loops = True

    def __init__(self, registry: XlaOpRegistry | None = None) -> None:
        self._registry = registry
        self._checkers: dict[tuple[DeviceRegistration, bool], RecursiveCompilabilityChecker] = {}

    @property
    def registry(self) -> XlaOpRegistry:
        """The kernels."""
        return global_xla_op_registry() if self._registry is None else self._registry

    def check_installed(self) -> None:
        """Raise UnimplementedError where JAX is not installed."""
        check_installed("jax", NEED)

    def refusal(self, op: Operation) -> str:
        """Why XLA does not compile an operation on its device, or only where it is asked to."""
        device_type, must_compile = device_type_of(op), bool(mark_of(op, MUST_COMPILE))
        registration = self.registry.compilation_device(device_type)
        if registration is None:
            return f"nothing is compiled for devices of the type {device_type}"
        key = registration, must_compile
        if key not in self._checkers:
            self._checkers[key] = RecursiveCompilabilityChecker(
                self.registry, registration, takes_all=must_compile
            )
        return self._checkers[key].refusal(op)

    def autoclustering_policy(self, op: Operation) -> AutoclusteringPolicy:
        """The policy of the registry for the device of an operation."""
        registration = self.registry.compilation_device(device_type_of(op))
        never = AutoclusteringPolicy.IF_EXPLICITLY_REQUESTED
        return never if registration is None else registration.autoclustering_policy

    def compile_time_constants(self, body: FunctionBody) -> frozenset[int]:
        """The arguments whose values shapes, axes and the like depend on."""
        return backwards_const_analysis(body, self.registry)

    def must_be_constant(self, order: Sequence[Operation]) -> Collection[Operation]:
        """The operations whose values shapes, axes and the like depend on."""
        return must_be_constant(order, self.registry)

    def compile(self, body: FunctionBody, arguments: Sequence[ClusterArgument]) -> CompiledCluster:
        """Compile a cluster; raises as `XlaCompiler.compile_function` does."""
        keep_freed_memory()
        needed = self.compile_time_constants(body)
        held = {
            index: one.constant
            for index, one in enumerate(arguments)
            if one.kind == "constant" and index not in needed and one.constant.nbytes > _LARGE
        }
        taken = [
            replace(one, kind="parameter", constant=None) if index in held else one
            for index, one in enumerate(arguments)
        ]
        result = XlaCompiler(registry=self.registry, keeps_programs=True).compile_body(body, taken)
        with wide_types():
            result.held = {index: jnp().asarray(value) for index, value in held.items()}
        return result


register_engine(XlaEngine())
