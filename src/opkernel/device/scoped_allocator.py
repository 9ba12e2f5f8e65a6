"""ScopedAllocator: the outputs of several nodes as slices of one array, for one step.

`_ScopedAllocator` allocates the backing array and announces its fields, each under a scope_id. A kernel whose
AllocatorAttributes name a scope_id gets that field, through a ScopedAllocatorInstance.

Source: TensorFlow core/common_runtime/scoped_allocator.{h,cc}, scoped_allocator_mgr.{h,cc}.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Iterable, Sequence

import numpy as np

from opkernel.device.allocator import ALLOCATOR_ALIGNMENT, Allocator, AllocatorMemoryType
from opkernel.errors import InternalError, ResourceExhaustedError
from opkernel.records import dataclass
from opkernel.state.resource_handle import ResourceBase
from opkernel.types import Array, DataType


@dataclass(frozen=True, slots=True)
class Field:
    """A part of a backing array.

    Attributes:
        scope_id: The id that AllocatorAttributes carry.
        offset: Where it begins, in bytes.
        bytes_requested: The bytes of the tensor.
        bytes_allocated: The bytes up to the next field, which is aligned.
    """

    scope_id: int
    offset: int
    bytes_requested: int
    bytes_allocated: int


def populate_fields(
    scope_id: int, shapes: Iterable[Sequence[int]], dtype: DataType
) -> tuple[Field, ...]:
    """The fields of tensors, each aligned, with the scope ids that follow `scope_id`."""
    fields: list[Field] = []
    offset = 0
    for number, shape in enumerate(shapes, scope_id + 1):
        size = math.prod(shape) * dtype.numpy_dtype.itemsize
        end = -(-(offset + size) // ALLOCATOR_ALIGNMENT) * ALLOCATOR_ALIGNMENT
        fields.append(Field(number, offset, size, end - offset))
        offset = end
    return tuple(fields)


def lies_within(tensor: Array, backing: Array) -> bool:
    """Whether all the memory of a contiguous array is memory of another."""
    start, first = tensor.ctypes.data, backing.ctypes.data
    return first <= start and start + tensor.nbytes <= first + backing.nbytes


class ScopedAllocator:
    """The fields of one backing array, each of which is given once.

    Args:
        backing_tensor: The array.
        scope_id: Its own number.
        name: Its name, for messages.
        fields: Its parts.
        expected_call_count: How many fields will be asked for; then it is forgotten.
        container: The container that forgets it.

    Raises:
        InternalError: the array is too small for the fields.
    """

    def __init__(
        self,
        backing_tensor: Array,
        scope_id: int,
        name: str,
        fields: Sequence[Field],
        expected_call_count: int,
        container: ScopedAllocatorContainer,
    ) -> None:
        end = max((one.offset + one.bytes_requested for one in fields), default=0)
        if end > backing_tensor.nbytes:
            raise InternalError(
                f"ScopedAllocator {name} needs {end} bytes for its fields, and its backing tensor has "
                f"{backing_tensor.nbytes}"
            )
        self.tensor = backing_tensor
        self.scope_id = scope_id
        self.name = name
        self.fields = tuple(fields)
        self._expected_call_count = expected_call_count
        self._container = container
        self._lock = threading.Lock()

    def allocate(self, field_index: int, num_bytes: int) -> Array:
        """The bytes of a field.

        Raises:
            ResourceExhaustedError: all expected calls have been made, or the field has another size.
        """
        with self._lock:
            field = self.fields[field_index]
            if self._expected_call_count <= 0:
                raise ResourceExhaustedError(
                    f"Scoped allocator {self.name} could not satisfy request for {num_bytes} bytes, "
                    "expected uses exhausted"
                )
            if num_bytes != field.bytes_requested:
                raise ResourceExhaustedError(
                    f"ScopedAllocator {self.name} got request for {num_bytes} bytes from field "
                    f"{field_index} which has precalculated size {field.bytes_requested} and offset "
                    f"{field.offset}"
                )
            self._expected_call_count -= 1
            is_last = self._expected_call_count == 0
        if is_last:
            self._container.drop(self)
        memory: Array = self.tensor.reshape(-1).view(np.uint8)
        return memory[field.offset : field.offset + num_bytes]


class ScopedAllocatorInstance(Allocator):
    """The allocator of one field."""

    memory_type = AllocatorMemoryType.DEVICE

    def __init__(self, scoped_allocator: ScopedAllocator, field_index: int) -> None:
        self._scoped_allocator = scoped_allocator
        self._field_index = field_index

    @property
    def name(self) -> str:
        """The name of the scoped allocator and the number of the field."""
        return f"{self._scoped_allocator.name}_field_{self._field_index}"

    def allocate(self, shape: Sequence[int], dtype: DataType) -> Array:
        """The field as an array.

        Raises:
            ResourceExhaustedError: the array has another size, or all expected calls have been made.
        """
        kind = dtype.numpy_dtype
        memory = self._allocate(
            math.prod(shape) * kind.itemsize, f"shape{[*shape]} and type {dtype.string}"
        )
        return memory.view(kind).reshape(shape)

    def allocate_raw(self, alignment: int, num_bytes: int) -> Array:
        """The bytes of the field; raises as `allocate`. The alignment is the field's own."""
        return self._allocate(num_bytes, f"{num_bytes} bytes")

    def _allocate(self, num_bytes: int, what: str) -> Array:
        try:
            return self._scoped_allocator.allocate(self._field_index, num_bytes)
        except ResourceExhaustedError as error:
            raise ResourceExhaustedError(
                f"OOM when allocating tensor with {what} by allocator {self.name}: {error.message}"
            ) from None

    def requested_size(self, array: Array) -> int:
        """Not known: 0."""
        return 0

    def allocated_size(self, array: Array) -> int:
        """Not known: 0."""
        return 0

    def allocation_id(self, array: Array) -> int:
        """None is given: 0."""
        return 0


class ScopedAllocatorContainer(ResourceBase):
    """The scoped allocators of one step on one device."""

    def __init__(self, mgr: ScopedAllocatorMgr, step_id: int) -> None:
        self._mgr = mgr
        self._step_id = step_id
        self._allocators: dict[int, ScopedAllocator | ScopedAllocatorInstance] = {}
        self._backing: list[weakref.ref[Array]] = []
        self._lock = threading.Lock()

    def on_destroy(self) -> None:
        """The step is over."""
        self._mgr.cleanup(self._step_id)

    def add_scoped_allocator(
        self,
        backing_tensor: Array,
        scope_id: int,
        scope_name: str,
        fields: Sequence[Field],
        expected_call_count: int,
    ) -> None:
        """Announce a scoped allocator under `scope_id`, and its fields under theirs.

        Raises:
            InternalError: there is one of such an id, or the array is too small for the fields.
        """
        with self._lock:
            for number, what in ((scope_id, ""), *((one.scope_id, "field ") for one in fields)):
                if number in self._allocators:
                    raise InternalError(
                        f"Cannot create ScopedAllocator because {what}scope_id {number} for name "
                        f"{scope_name} already exists"
                    )
            made = ScopedAllocator(
                backing_tensor, scope_id, scope_name, fields, expected_call_count, self
            )
            self._allocators[scope_id] = made
            self._backing.append(weakref.ref(backing_tensor))
            for index, field in enumerate(fields):
                self._allocators[field.scope_id] = ScopedAllocatorInstance(made, index)

    def get_instance(self, scope_id: int) -> ScopedAllocatorInstance | None:
        """The allocator of the field of an id; None where there is none, or none any more."""
        found = self._allocators.get(scope_id)
        return found if isinstance(found, ScopedAllocatorInstance) else None

    def backing_of(self, tensor: Array) -> Array | None:
        """The backing array of the step that an array lies in; None for all other arrays."""
        arrays = [known() for known in self._backing]
        return next((one for one in arrays if one is not None and lies_within(tensor, one)), None)

    def drop(self, allocator: ScopedAllocator) -> None:
        """Forget a scoped allocator, all of whose fields were given."""
        with self._lock:
            for number in (allocator.scope_id, *(one.scope_id for one in allocator.fields)):
                self._allocators.pop(number, None)


class ScopedAllocatorMgr:
    """The scoped allocators of a device, by step.

    Attributes:
        device_name: The device.
    """

    def __init__(self, device_name: str) -> None:
        self.device_name = device_name
        self._containers: dict[int, ScopedAllocatorContainer] = {}
        self._lock = threading.Lock()

    def get_container(self, step_id: int) -> ScopedAllocatorContainer:
        """The scoped allocators of a step, which are made at the first request."""
        with self._lock:
            found = self._containers.get(step_id)
            if found is None:
                found = self._containers[step_id] = ScopedAllocatorContainer(self, step_id)
            return found

    def cleanup(self, step_id: int) -> None:
        """Forget the scoped allocators of a step."""
        with self._lock:
            self._containers.pop(step_id, None)

    def get_instance(self, step_id: int, scope_id: int) -> ScopedAllocatorInstance:
        """The allocator of a field.

        Raises:
            InternalError: there is none in the step, or there is none any more.
        """
        container = self._containers.get(step_id)
        found = None if container is None else container.get_instance(scope_id)
        if found is None:
            raise InternalError(
                f"Failed to find instance {scope_id} in container for step {step_id} on "
                f"{self.device_name}: its _ScopedAllocator must run before the node, and each field is "
                "given once"
            )
        return found

    def backing_of(self, step_id: int, tensor: Array) -> Array | None:
        """The backing array of a step that an array lies in; None for all others."""
        container = self._containers.get(step_id)
        return None if container is None else container.backing_of(tensor)
