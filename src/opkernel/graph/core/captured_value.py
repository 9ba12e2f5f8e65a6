"""CapturedValue: a Python object whose tensor functions take from outside, at each call anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from opkernel.opdef import ShapeAndType
    from opkernel.types import DataType, PartialTensorShape


class CapturedValue(Protocol):
    """A value that a function takes besides its arguments: an array, or a variable or table by its handle.

    Captured values are compared by identity.
    """

    @property
    def name(self) -> str:
        """What to call it in graphs."""

    @property
    def captured_value(self) -> Any:
        """The handle of its resource, which is then ready for use; or the array."""

    @property
    def captured_spec(self) -> tuple[DataType, PartialTensorShape]:
        """The type and shape of that; a handle is a scalar of type resource."""

    @property
    def handle_facts(self) -> Sequence[ShapeAndType] | None:
        """The types and shapes of what the resource holds; None where that is not known."""

    def __hash__(self) -> int: ...
