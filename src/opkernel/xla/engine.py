"""XLA as an engine: clusters of sessions, compiled through JAX."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

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
from opkernel.xla.compilability import OperationFilter, RecursiveCompilabilityChecker
from opkernel.xla.compiler import XlaCompiler
from opkernel.xla.computation import XlaCompilationResult
from opkernel.xla.const_analysis import backwards_const_analysis, must_be_constant
from opkernel.xla.freed_memory import keep_freed_memory
from opkernel.xla.jax_numpy import NEED, jnp, wide_types
from opkernel.xla.op_registry import (
    DeviceRegistration,
    XlaOpRegistry,
    global_xla_op_registry,
)

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
        device_type = device_type_of(op)
        must_compile = bool(mark_of(op, MUST_COMPILE))
        checker = self._checker(device_type, must_compile=must_compile)
        if checker is None:
            return f"nothing is compiled for devices of the type {device_type}"
        return checker.refusal(op)

    def autoclustering_policy(self, op: Operation) -> AutoclusteringPolicy:
        """The policy of the registry for the device of an operation."""
        registration = self.registry.compilation_device(device_type_of(op))
        never = AutoclusteringPolicy.IF_EXPLICITLY_REQUESTED
        return never if registration is None else registration.autoclustering_policy

    def _checker(
        self, device_type: str, *, must_compile: bool
    ) -> RecursiveCompilabilityChecker | None:
        registration = self.registry.compilation_device(device_type)
        if registration is None:
            return None
        key = registration, must_compile
        if key not in self._checkers:
            every = OperationFilter.everything()
            allowed = every if must_compile else OperationFilter.of(registration)
            self._checkers[key] = RecursiveCompilabilityChecker(
                self.registry, registration.compilation_device_name, allowed
            )
        return self._checkers[key]

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
        return _Holding(result, held) if held else result


class _Holding:
    """A program that has large constants as parameters."""

    def __init__(self, result: XlaCompilationResult, held: dict[int, Any]) -> None:
        self._result = result
        self.resource_updates = result.resource_updates
        with wide_types():
            self._held = {index: jnp().asarray(value) for index, value in held.items()}

    def run(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Run it, as `CompiledCluster.run`."""
        given = list(inputs)
        for index, value in self._held.items():
            given[index] = value
        return self._result.run(given)


register_engine(XlaEngine())
