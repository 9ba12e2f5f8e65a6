"""Kernels of devices that compute on the host, and constants, which come to the device once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.device.local_device import CPU
from opkernel.kernel import OpKernel, OpKernelConstruction
from opkernel.kernel.registry.memory_types import MemoryTypes


def constant(*, value: Any, construction: OpKernelConstruction) -> Callable[[], Any]:
    """The kernel of Const."""
    tensor = construction.device.to_device(value)
    return lambda: tensor


def on_cpu(
    factory: Callable[[OpKernelConstruction], OpKernel],
) -> Callable[[OpKernelConstruction], OpKernel]:
    """A factory whose kernels are those of the CPU, for arrays of NumPy."""

    def make(construction: OpKernelConstruction) -> OpKernel:
        there = OpKernelConstruction(
            CPU,
            construction.properties,
            MemoryTypes(construction.input_memory_types, construction.output_memory_types),
            construction.graph_def_version,
            construction.function_library,
            contract=construction.contract,
        )
        return factory(there)

    return make
