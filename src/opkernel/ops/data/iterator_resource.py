"""IteratorResource: a pass over a dataset that outlives steps.

Source: IteratorResource in TensorFlow core/kernels/data/iterator_ops.{h,cc}; VerifyTypesMatch and
VerifyShapesCompatible in core/data/dataset_utils.cc.
"""

from collections.abc import Sequence
from typing import Any

from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.kernel import ResourceBase, Step
from opkernel.ops.data.dataset import DatasetBase, DatasetIterator, Element, Turns
from opkernel.ops.data.iterator_state import SavedIterator, restore_iterator, save_iterator
from opkernel.types import DataType, PartialTensorShape, TensorShape


class IteratorResource(ResourceBase):
    """An iterator; used from any thread.

    Attributes:
        dtypes, shapes: What its elements must be.
    """

    def __init__(self, dtypes: Sequence[DataType], shapes: Sequence[PartialTensorShape]) -> None:
        self.dtypes, self.shapes = tuple(dtypes), tuple(shapes)
        self._iterator: DatasetIterator | None = None
        self._turns = Turns()

    def set_dataset(self, dataset: DatasetBase, step: Step) -> None:
        """Begin a pass over a dataset.

        Raises:
            InvalidArgumentError: its elements are others.
        """
        check_types(self.dtypes, dataset.dtypes)
        check_shapes(self.shapes, dataset.shapes)
        iterator = dataset.iterator()
        with self._turns.turn(step):
            former, self._iterator = self._iterator, iterator
        if former is not None:
            former.close()

    def get_next(self, step: Step) -> Element | None:
        """The next element; None at the end.

        Raises:
            FailedPreconditionError: no pass has begun.
        """
        with self._turns.turn(step):
            iterator = self._iterator
            if iterator is None:
                raise FailedPreconditionError(
                    "GetNext() failed because the iterator has not been initialized. Ensure that "
                    "you have run the initializer operation for this iterator before getting the "
                    "next element."
                )
            return iterator.next(step)

    def save(self, step: Step) -> SavedIterator:
        """The state; raises as `get_next`."""
        with self._turns.turn(step):
            return save_iterator(self._begun("Save"))

    def restore(self, saved: SavedIterator, step: Step) -> None:
        """Begin a new pass over the same dataset, at a state that was saved.

        Raises:
            FailedPreconditionError: no pass has begun.
            InvalidArgumentError: the state is that of another dataset's iterator.
        """
        with self._turns.turn(step):
            former = self._begun("Restore")
            iterator = former.dataset.iterator()
            restore_iterator(iterator, saved, step)
            self._iterator = iterator
        former.close()

    def _begun(self, what: str) -> DatasetIterator:
        if self._iterator is None:
            raise FailedPreconditionError(
                f"{what}() failed because the iterator has not been initialized. Ensure that you "
                "have run the initializer operation for this iterator before."
            )
        return self._iterator

    def on_destroy(self) -> None:
        """Close files."""
        if self._iterator is not None:
            self._iterator.close()


def check_types(expected: Sequence[DataType], found: Sequence[DataType]) -> None:
    """Raise InvalidArgumentError unless the types are the expected ones."""
    if len(expected) != len(found):
        raise InvalidArgumentError(
            f"Number of components does not match: expected {len(expected)} types but got "
            f"{len(found)}."
        )
    for i, (wanted, given) in enumerate(zip(expected, found, strict=True)):
        if wanted != given:
            raise InvalidArgumentError(
                f"Data type mismatch at component {i}: expected {wanted.string} but got "
                f"{given.string}."
            )


def check_shapes(
    expected: Sequence[PartialTensorShape], found: Sequence[PartialTensorShape]
) -> None:
    """Raise InvalidArgumentError unless each shape may be the expected one."""
    if len(expected) != len(found):
        raise InvalidArgumentError(
            f"Number of components does not match: expected {len(expected)} shapes but got "
            f"{len(found)}."
        )
    for i, (wanted, given) in enumerate(zip(expected, found, strict=True)):
        if not wanted.is_compatible_with(given):
            raise InvalidArgumentError(
                f"Incompatible shapes at component {i}: expected {wanted} but got {given}."
            )


def check_element(shapes: Sequence[PartialTensorShape], element: Sequence[Any]) -> None:
    """Raise InvalidArgumentError unless the tensors of an element have the shapes, as far as these are known."""
    for shape, tensor in zip(shapes, element, strict=True):
        if shape.dims in (None, tensor.shape):
            continue
        if not shape.is_compatible_with(TensorShape(tensor.shape)):
            check_shapes(shapes, [PartialTensorShape(one.shape) for one in element])
