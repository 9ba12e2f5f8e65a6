"""XlaAllocator: the memory of one of JAX's devices, which JAX gives out and counts.

Source: TensorFlow compiler/jit/xla_tensor.h, core/common_runtime/gpu/gpu_bfc_allocator.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opkernel.device.allocation import check_allocation
from opkernel.device.allocation_ledger import AllocatorStats
from opkernel.device.allocator import AllocatorMemoryType
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp, wide_types

_COUNTS = ("num_allocs", "bytes_in_use", "peak_bytes_in_use", "largest_alloc_size", "bytes_limit")
"""JAX's names are those of AllocatorStats."""


class XlaAllocator:
    """Gives arrays on a device of JAX's (fulfils `opkernel.device.allocator.Allocator`)."""

    memory_type = AllocatorMemoryType.DEVICE
    tracks_allocation_sizes = False

    def __init__(self, jax_device: Any) -> None:
        self._device = jax_device

    @property
    def name(self) -> str:
        """JAX's name for the device."""
        return str(self._device)

    def allocate(self, shape: Sequence[int], dtype: DataType) -> Any:
        """An array; raises as the allocator of the host does."""
        sizes = check_allocation(shape, dtype)
        with wide_types():
            return jnp().empty(sizes, dtype.numpy_dtype, device=self._device)

    def allocate_raw(self, alignment: int, num_bytes: int) -> Any:
        """Refused: JAX gives arrays only."""
        raise UnimplementedError(f"Allocator {self.name} gives arrays of JAX, and no bytes")

    def get_stats(self) -> AllocatorStats | None:
        """JAX's counts; None where it does not count, as on the CPU."""
        found = self._device.memory_stats()
        if not found:
            return None
        known = {name: found[name] for name in _COUNTS if name in found}
        return AllocatorStats(**known)

    def clear_stats(self) -> bool:
        """Nothing: the counts are JAX's."""
        return False

    def requested_size(self, array: Any) -> int:
        """Refused, as are the next two."""
        raise self._refusal()

    def allocated_size(self, array: Any) -> int:
        """Refused."""
        raise self._refusal()

    def allocation_id(self, array: Any) -> int:
        """Refused."""
        raise self._refusal()

    def _refusal(self) -> InvalidArgumentError:
        return InvalidArgumentError(f"Allocator {self.name} does not track its arrays")
