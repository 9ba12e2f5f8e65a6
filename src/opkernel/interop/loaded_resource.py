"""What functions of a SavedModel take from outside besides variables: tables, constants, paths of assets.

Source: TensorFlow python/trackable/resource.py, asset.py, python/saved_model/load.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opkernel.interop.loaded_objects import ObjectSource
from opkernel.training.resource import Resource
from opkernel.types import DataType, PartialTensorShape, dtype_of_array

if TYPE_CHECKING:
    from opkernel.opdef import ShapeAndType
    from opkernel.proto import SavedObject

__all__ = ["Again", "LoadedConstant", "LoadedResource"]


class TableSource(ObjectSource, Protocol):
    """What makes the objects of a SavedModel, and knows its tables."""

    nodes: Sequence[SavedObject]

    def types_of_table(self, number: int, attribute: str) -> dict[str, DataType]:
        """The types of keys and values of a table, as ops name them."""


class LoadedResource(Resource):
    """A table, or another resource: created and filled by the functions of its model at first use.

    Args:
        source: What makes the objects of the model.
        number: Its number there.
        name: What to call it.
        create: Creates the resource; gives its handle.
        fill: Called once, when there is a handle.
    """

    def __init__(
        self,
        source: TableSource,
        number: int,
        name: str,
        create: Callable[[], Any],
        fill: Callable[[], object],
    ) -> None:
        super().__init__(name, create, fill)
        self._source, self._number = source, number

    def saveables(self) -> Mapping[str, tuple[Any, Any]]:
        """The functions that save and restore its content, by the attributes of checkpoints."""
        return {
            name: (self._source.get(saved.save_function), self._source.get(saved.restore_function))
            for name, saved in self._source.nodes[self._number].saveable_objects.items()
        }

    def content_types(self, attribute: str) -> dict[str, DataType]:
        """The types of the keys and values of an attribute, as ops name them."""
        return self._source.types_of_table(self._number, attribute)

    def _tracked_children(self) -> dict[str, Any]:
        numbers = self._source.children(self._number)
        return {name: self._source.get(number) for name, number in numbers.items()}


class LoadedConstant:
    """A constant that functions share."""

    handle_facts: Sequence[ShapeAndType] | None = None

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.captured_value = value

    @property
    def captured_spec(self) -> tuple[DataType, PartialTensorShape]:
        """Its type and shape."""
        dtype = dtype_of_array(self.captured_value)
        assert dtype is not None
        return dtype, PartialTensorShape(self.captured_value.shape)

    def numpy(self) -> Any:
        """Its value."""
        return self.captured_value.copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Its value, for NumPy."""
        return np.asarray(self.captured_value, dtype)

    def _tracked_children(self) -> dict[str, Any]:
        return {}

    def __repr__(self) -> str:
        return f"<opkernel.LoadedConstant {self.name!r}>"


class Again:
    """The same value, where a function takes it twice."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.name = value.name
        self.captured_spec = value.captured_spec
        self.handle_facts = value.handle_facts

    @property
    def captured_value(self) -> Any:
        """The value."""
        return self.value.captured_value
