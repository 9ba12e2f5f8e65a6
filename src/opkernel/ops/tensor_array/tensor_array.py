"""TensorArray: the resource behind the ops.

Source: TensorFlow core/kernels/tensor_array.{h,cc}.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import ResourceBase, check_allocation
from opkernel.ops.array.fill import zeros
from opkernel.ops.registration import NUMBERS
from opkernel.ops.resource_op_kernel import kept
from opkernel.types import DataType, PartialTensorShape, TensorShape


@dataclass(slots=True)
class _Element:
    """An element that was written; one without a tensor stands for zeros of its shape."""

    tensor: Any
    shape: tuple[int, ...]
    is_read: bool = False
    is_cleared: bool = False

    @property
    def is_zeros(self) -> bool:
        """Whether there are no numbers: no tensor, or one without elements."""
        return self.tensor is None or self.tensor.size == 0


_OF_ELEMENT = 300
"""The bytes of an element beside those of its tensor."""


class TensorArray(ResourceBase):
    """An array of tensors; used from any thread.

    Each element is written once and then read. An array of gradients adds up the tensors that are written
    to an element, and gives zeros for an element that was never written.

    Args:
        name: the name, for messages.
        dtype: the type of all elements.
        size: how many elements there are.
        element_shape: the shape of all elements, as far as it is known.
        identical_element_shapes: the first element that is written says the shape of all.
        dynamic_size: writing beyond the end makes the array longer.
        clear_after_read: an element can be read once.
        is_grad: it is an array of gradients.
        marked_size: how many elements of an array of gradients are packed and concatenated; all
            if it is None.
    """

    def __init__(
        self,
        name: str,
        dtype: DataType,
        size: int,
        *,
        element_shape: PartialTensorShape,
        identical_element_shapes: bool = False,
        dynamic_size: bool = False,
        clear_after_read: bool = True,
        is_grad: bool = False,
        marked_size: int | None = None,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.identical_element_shapes = identical_element_shapes
        self.has_dynamic_size = dynamic_size
        self.gradients_allowed = True
        self.element_shape = element_shape
        self._clear_after_read = clear_after_read
        self._is_grad = is_grad
        self._marked_size = marked_size
        self._elements: list[_Element | None] | None = _unwritten(size)  # None once it is closed
        self._lock = threading.RLock()

    def debug_string(self) -> str:
        """The number of elements."""
        return f"TensorArray[{len(self._elements or ())}]"

    def merge_element_shape(self, shape: PartialTensorShape) -> None:
        """Learn more of the shapes of the elements.

        Raises:
            InvalidArgumentError: it contradicts the known shape.
        """
        with self._lock:
            self.element_shape = self.element_shape.merge_with(shape)

    def check_dtype(self, dtype: DataType, what: str) -> None:
        """Raise InvalidArgumentError unless the elements have a type; `what` the op did with it."""
        if dtype != self.dtype:
            raise InvalidArgumentError(
                f"TensorArray dtype is {self.dtype.string} but Op {what} dtype {dtype.string}."
            )

    def size(self) -> int:
        """The number of elements."""
        with self._lock:
            return len(self._open())

    def pack_or_concat_size(self) -> int:
        """The number of elements that are packed and concatenated."""
        with self._lock:
            size = self.size()
            return self._marked_size if self._is_grad and self._marked_size is not None else size

    def mark_size(self, size: int) -> None:
        """Have arrays of gradients that are made from now on pack and concatenate so many elements."""
        with self._lock:
            if not self._is_grad:
                self._marked_size = size

    def gradient(
        self, name: str, element_shape: PartialTensorShape, prepended: tuple[int, ...]
    ) -> "TensorArray":
        """An array for the gradients of the elements, which have `prepended` before their shapes."""
        with self._lock:
            gradient = TensorArray(
                name,
                self.dtype,
                self.size(),
                element_shape=element_shape,
                identical_element_shapes=self.identical_element_shapes,
                is_grad=True,
                marked_size=self._marked_size,
            )
            for index, element in enumerate(in_time(self._open())):
                if element is not None:
                    shape = (*prepended, *element.shape)
                    gradient._open()[index] = _Element(None, shape)
        return gradient

    def write(self, indices: Sequence[int], tensors: Sequence[Any]) -> None:
        """Write elements, or add to them.

        Raises:
            InvalidArgumentError: an index or shape does not fit, or an element was written or read.
        """
        with self._lock:
            check_bytes(_OF_ELEMENT * len(tensors), "elements of a TensorArray")
            for index, tensor in zip(in_time(indices), tensors, strict=True):
                self._write(index, tensor)

    def write_element(self, index: int, tensor: Any) -> None:
        """Write one element, or add to it; raises as `write`."""
        with self._lock:
            self._write(index, tensor)

    def read_element(self, index: int) -> Any:
        """Read one element; raises as `read`."""
        with self._lock:
            return self._read(index)

    def read(self, indices: Sequence[int]) -> list[Any]:
        """Read elements.

        Raises:
            InvalidArgumentError: there is no such element, it was cleared, or it was not written
                and its shape is not known.
        """
        with self._lock:
            check_bytes(_OF_ELEMENT * len(indices), "elements of a TensorArray")
            return [self._read(index) for index in in_time(indices)]

    def close(self) -> None:
        """Give up all elements, for good."""
        with self._lock:
            self._elements = None

    def _open(self) -> list[_Element | None]:
        if self._elements is None:
            raise InvalidArgumentError(f"TensorArray {self.name} has already been closed.")
        return self._elements

    def _write(self, index: int, tensor: Any) -> None:
        elements = self._open()
        if index < 0 or (not self.has_dynamic_size and index >= len(elements)):
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Tried to write to index {index} but array is not "
                f"resizeable and size is: {len(elements)}"
            )
        if index >= len(elements):
            _lengthen(elements, index + 1)
        element = elements[index]
        dims = self.element_shape.dims
        if dims != tensor.shape:
            if dims is not None:
                self._check_shape(index, TensorShape(tensor.shape))
            if self.identical_element_shapes and not self.element_shape.is_fully_defined():
                self.element_shape = PartialTensorShape(tensor.shape)
        if element is None:
            elements[index] = _Element(kept(tensor), tensor.shape)
        elif element.is_read:
            raise self._cannot_write(index, "it has already been read.")
        elif self._is_grad:
            self._aggregate(index, element, tensor)
        else:
            raise self._cannot_write(index, "it has already been written to.")

    def _check_shape(self, index: int, shape: TensorShape) -> None:
        if not self.element_shape.is_compatible_with(shape):
            raise self._cannot_write(
                index,
                f"the value shape is {shape} which is incompatible with the TensorArray's inferred "
                f"element shape: {self.element_shape} (consider setting infer_shape=False).",
            )

    def _cannot_write(self, index: int, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"TensorArray {self.name}: Could not write to TensorArray index {index} because {why}"
        )

    def _aggregate(self, index: int, element: _Element, tensor: Any) -> None:
        if tensor.shape != element.shape:
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Could not aggregate to TensorArray index {index} because "
                f"the existing shape is {TensorShape(element.shape)} but the new input shape is "
                f"{TensorShape(tensor.shape)}."
            )
        if element.is_zeros:
            element.tensor = kept(tensor)
            return
        if self.dtype not in NUMBERS:
            raise InvalidArgumentError(
                f"tensor_array::AddToTensor type not supported: {self.dtype.string}"
            )
        element.tensor = kept(np.add(element.tensor, tensor))
        self.gradients_allowed = False

    def _read(self, index: int) -> Any:
        elements = self._open()
        if index < 0 or (not self._is_grad and index >= len(elements)):
            raise InvalidArgumentError(
                f"Tried to read from index {index} but array size is: {len(elements)}"
            )
        element = elements[index] if index < len(elements) else None
        if element is None:
            element = self._write_zeros(elements, index)
        if element.is_cleared:
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Could not read index {index} twice because it was "
                "cleared after a previous read (perhaps try setting clear_after_read = false?)."
            )
        if element.is_zeros:
            element.tensor = self._zeros(element.shape)
        tensor = element.tensor
        if self._clear_after_read:
            element.tensor, element.is_cleared = None, True
        element.is_read = True
        return tensor

    def _write_zeros(self, elements: list[_Element | None], index: int) -> _Element:
        """Let an element stand for zeros, and those before it that do not exist yet."""
        if not self.element_shape.is_fully_defined():
            raise InvalidArgumentError(
                f"TensorArray {self.name}: Could not read from TensorArray index {index}.  "
                f"Furthermore, the element shape is not fully defined: {self.element_shape}.  "
                "It was not written; with a full element_shape it would be zeros."
            )
        shape = tuple(self.element_shape.as_tensor_shape())
        first = min(index, len(elements))
        check_bytes(_OF_ELEMENT * (index + 1 - first), "elements of a TensorArray")
        _lengthen(elements, index + 1)
        for place in in_time(range(first, len(elements))):
            elements[place] = elements[place] or _Element(None, shape)
        element = elements[index]
        assert element is not None
        return element

    def _zeros(self, shape: tuple[int, ...]) -> Any:
        has_elements = 0 not in shape
        if has_elements and self.dtype not in (*NUMBERS, DataType.DT_BOOL):
            raise InvalidArgumentError(
                f"tensor_array::TensorSetZero type not supported: {self.dtype.string}"
            )
        return kept(zeros(check_allocation(shape, self.dtype), self.dtype))


def _unwritten(count: int) -> list[_Element | None]:
    check_allocation((count,), DataType.DT_INT64)
    return [None] * count


def _lengthen(elements: list[_Element | None], size: int) -> None:
    if size > len(elements):
        elements.extend(_unwritten(size - len(elements)))
