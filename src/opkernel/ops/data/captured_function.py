"""Functions that datasets call: with the arguments that they have captured, in the step that asks for an element.

Source: TensorFlow core/data/captured_function.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opkernel.errors import InternalError, InvalidArgumentError, OutOfRangeError
from opkernel.kernel import FunctionHandle, Step
from opkernel.ops.data.dataset import DatasetBase, Element, dataset_of
from opkernel.types import DataType


class CapturedFunction:
    """A function with its last arguments.

    Args:
        handle: The function.
        captured: The last arguments.
        takes: The types of the first arguments.
        gives: The types of the results; None for any.
        what: The attr, for messages.
        is_stateful: Whether calls with equal arguments may differ, so that their order counts.

    Attributes:
        gives: The types of the results.
        is_stateful: The argument.

    Raises:
        InvalidArgumentError: the function takes or gives other types.
    """

    def __init__(
        self,
        handle: FunctionHandle,
        captured: Sequence[Any],
        takes: Sequence[DataType],
        gives: Sequence[DataType] | None,
        *,
        what: str,
        is_stateful: bool = True,
    ) -> None:
        self.is_stateful = is_stateful
        arguments, self.gives = handle.call_types
        first = len(arguments) - len(captured)
        if tuple(arguments[: max(first, 0)]) != tuple(takes):
            raise InvalidArgumentError(
                f"{what} takes {_texts(arguments[: max(first, 0)])}, and would be called with "
                f"{_texts(takes)}"
            )
        for dtype, tensor in zip(arguments[first:], captured, strict=True):
            if dtype.numpy_dtype != tensor.dtype:
                raise InvalidArgumentError(f"{what} takes another type than a captured tensor's")
        if gives is not None and tuple(self.gives) != tuple(gives):
            raise InvalidArgumentError(
                f"{what} gives {_texts(self.gives)}, and should give {_texts(gives)}"
            )
        self._handle = handle
        self._captured = tuple(captured)
        self._bound: tuple[Step | None, Callable[..., Sequence[Any]]] = (None, lambda: ())

    def within(self, step: Step, element: Element) -> Element:
        """The results for the first arguments; an OutOfRangeError of the function stays one."""
        bound = self._bound
        if bound[0] is not step:
            bound = self._bound = step, self._handle.bound(step)
        return tuple(bound[1](*element, *self._captured))

    def __call__(self, step: Step, element: Element) -> Element:
        """The results for the first arguments.

        Raises:
            InternalError: the function ran out of range, which would end the dataset.
        """
        try:
            return self.within(step, element)
        except OutOfRangeError as error:
            raise InternalError(f"A function returned `OutOfRange`: {error.message}") from error

    def dataset(self, step: Step, element: Element) -> DatasetBase:
        """The dataset that the function gives.

        Raises:
            InvalidArgumentError: it gives something else.
        """
        results = self(step, element)
        if len(results) != 1 or self.gives[0] is not DataType.DT_VARIANT:
            raise InvalidArgumentError("Function must return a single scalar of dtype DT_VARIANT.")
        return dataset_of(results[0])

    def flag(self, step: Step, element: Element) -> bool:
        """The bool that the function gives.

        Raises:
            InvalidArgumentError: it gives something else.
        """
        results = self(step, element)
        if len(results) != 1 or self.gives[0] is not DataType.DT_BOOL or results[0].size != 1:
            raise InvalidArgumentError("Filter predicate `f` must return a scalar bool.")
        return bool(results[0].reshape(())[()])

    def number(self, step: Step, element: Element, complaint: str) -> int:
        """The int64 that the function gives; InvalidArgumentError with `complaint` where it gives something else."""
        results = self(step, element)
        if len(results) != 1 or self.gives[0] is not DataType.DT_INT64 or results[0].ndim:
            raise InvalidArgumentError(complaint)
        return int(results[0])


def _texts(types: Sequence[DataType]) -> str:
    return f"({', '.join(dtype.string for dtype in types)})"
