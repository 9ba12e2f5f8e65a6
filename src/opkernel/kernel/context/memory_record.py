"""The memory that a kernel takes, where steps track it (`MemoryRecord`), and keeps from one computation to the next.

Source: OpKernelContext::TrackingState in TensorFlow core/framework/op_kernel.h; PersistentTensor in TensorFlow 1.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from opkernel.device.allocation import num_bytes
from opkernel.device.allocator import Allocator, TrackingAllocator
from opkernel.kernel.node_properties import MemoryType


def _reference(tensor: Any) -> Callable[[], Any]:
    """A weak reference where there may be one: tensors of devices need not allow it."""
    try:
        return weakref.ref(tensor)
    except TypeError:
        return lambda: tensor


class MemoryRecord:
    """Sizes, in bytes, of the temporary and the persistent memory of one computation.

    Kernels record from any of their threads. Memory that was temporary and became an output is
    not counted as temporary.

    Attributes:
        references: Tensors to be kept for as long as work on them may go on.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._temp: list[tuple[Callable[[], Any], int]] = []
        self._persistent: dict[MemoryType, int] = {}
        self._persistent_ids: list[tuple[int, MemoryType]] = []
        self._wrapped: dict[int, tuple[Allocator, TrackingAllocator]] = {}
        self.references: list[Any] = []

    def wrapped(self, allocator: Allocator) -> TrackingAllocator:
        """The allocator, followed from now on; the same for the same one."""
        with self._lock:
            found = self._wrapped.get(id(allocator))
            if found is None:
                found = self._wrapped[id(allocator)] = allocator, TrackingAllocator(allocator)
            return found[1]

    def consume_wrapped_allocators(self) -> list[tuple[Allocator, TrackingAllocator]]:
        """The allocators that were followed, each with its follower; the record forgets them."""
        with self._lock:
            wrapped, self._wrapped = self._wrapped, {}
        return list(wrapped.values())

    def record_temp(self, array: Any, size: int | None = None) -> None:
        """Record an array that is of use during the computation only."""
        with self._lock:
            self._temp.append((_reference(array), num_bytes(array) if size is None else size))

    def record_output(self, array: Any) -> None:
        """Record that an array, recorded as temporary perhaps, is an output."""
        with self._lock:
            self._temp = [(ref, size) for ref, size in self._temp if ref() is not array]

    def record_persistent(
        self, size: int, alloc_id: int = -1, memory_type: MemoryType = MemoryType.DEVICE_MEMORY
    ) -> None:
        """Record memory that the kernel keeps; a negative size says that it was given back."""
        with self._lock:
            self._persistent[memory_type] = self._persistent.get(memory_type, 0) + size
            if alloc_id >= 0:
                self._persistent_ids.append((alloc_id, memory_type))

    @property
    def temp_memory_allocated(self) -> int:
        """The bytes of temporary memory."""
        with self._lock:
            return sum(size for _, size in self._temp)

    def persistent_memory_allocated(self, memory_type: MemoryType | None = None) -> int:
        """The bytes of persistent memory: of host memory, of the device's, or of both."""
        with self._lock:
            wanted = list(MemoryType) if memory_type is None else [memory_type]
            return sum(self._persistent.get(one, 0) for one in wanted)

    def persistent_alloc_ids(self, memory_type: MemoryType | None = None) -> list[int]:
        """The numbers that persistent memory was recorded with: of host memory, of the device's, or of both."""
        with self._lock:
            found = list(self._persistent_ids)
        return [number for number, kind in found if memory_type in (None, kind)]

    def clear(self) -> None:
        """Forget everything (clear_recorded_memory)."""
        with self._lock:
            self._temp, self._persistent, self._persistent_ids = [], {}, []


class _User(Protocol):
    """A context, or the construction of a kernel."""

    def record_tensor_reference(self, tensor: Any) -> None:
        """Have a tensor kept until work on it is over."""


class PersistentTensor:
    """The result of `allocate_persistent`; the kernel keeps it, and asks for its tensor in each computation.

        self.state = construction.allocate_persistent(float32, [3])
        ...
        state = self.state.access_tensor(ctx)

    A context that records memory notes each access, so that work on an asynchronous device may go on.

    Args:
        tensor: The tensor; none yet if None.
    """

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Any = None) -> None:
        self._tensor = tensor

    def access_tensor(self, ctx: _User) -> Any:
        """The tensor; the context, or construction, that uses it tracks it from now on."""
        ctx.record_tensor_reference(self._tensor)
        return self._tensor

    @property
    def is_initialized(self) -> bool:
        """Whether there is a tensor."""
        return self._tensor is not None

    @property
    def num_elements(self) -> int:
        """The number of its elements; 0 if there is no tensor."""
        return 0 if self._tensor is None else math.prod(self._tensor.shape)

    @property
    def allocated_bytes(self) -> int:
        """The bytes that it takes; 0 if there is no tensor."""
        return 0 if self._tensor is None else num_bytes(self._tensor)
