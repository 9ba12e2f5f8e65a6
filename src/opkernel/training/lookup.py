"""Tables that modules hold: StaticHashTable, of arrays or of a text file, and MutableHashTable.

Source: TensorFlow python/ops/lookup_ops.py.
"""

from __future__ import annotations

import abc
import itertools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.graph import Tensor, TensorSpec, function
from opkernel.graph.core.default_graph import innermost_default
from opkernel.tracebacks import entrances
from opkernel.training.resource import PARTS_OF_TABLE, Asset, Resource
from opkernel.types import DataType, array_from_python, as_dtype, natural_dtype

__all__ = [
    "KeyValueTensorInitializer",
    "MutableHashTable",
    "StaticHashTable",
    "TextFileIndex",
    "TextFileInitializer",
]

_numbers = itertools.count(1)
_ATTRIBUTE = "table"


class TextFileIndex:
    """What of a line of a text file is a key or a value, beside the number of a column."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TableInitializer(abc.ABC):
    """What fills a table.

    Attributes:
        key_dtype: The type of the keys.
        value_dtype: The type of the values.
    """

    key_dtype: DataType
    value_dtype: DataType

    @abc.abstractmethod
    def initialize(self, handle: Any) -> None:
        """Fill the table of a handle."""

    def _tracked_children(self) -> dict[str, Any]:
        return {}


@entrances
class KeyValueTensorInitializer(TableInitializer):
    """Fills a table with keys and their values.

    Args:
        keys: The keys, which differ.
        values: As many values.
        key_dtype: The type of the keys; that of the array if not given.
        value_dtype: The type of the values.

    Raises:
        InvalidArgumentError: they make no tensors.
    """

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None
    ) -> None:
        self._keys, self.key_dtype = _array("keys", keys, key_dtype)
        self._values, self.value_dtype = _array("values", values, value_dtype)

    def initialize(self, handle: Any) -> None:
        """Fill the table of a handle."""
        raw_ops.InitializeTableV2(table_handle=handle, keys=self._keys, values=self._values)


@entrances
class TextFileInitializer(TableInitializer):
    """Fills a table with the lines of a text file; `opkernel.save` copies the file.

    Args:
        filename: The file.
        key_dtype: The type of the keys.
        key_index: The column of the keys, or one of TextFileIndex.
        value_dtype: The type of the values.
        value_index: The column of the values, or one of TextFileIndex.
        vocab_size: The number of lines, if it is known.
        delimiter: What is between columns.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
    ) -> None:
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self._filename = Asset(filename)
        self._columns = key_index, value_index
        self._vocab_size = -1 if vocab_size is None else vocab_size
        self._delimiter = delimiter

    def initialize(self, handle: Any) -> None:
        """Fill the table of a handle."""
        key_index, value_index = self._columns
        raw_ops.InitializeTableFromTextFileV2(
            table_handle=handle,
            filename=self._filename._as_graph_element(),
            key_index=key_index,
            value_index=value_index,
            vocab_size=self._vocab_size,
            delimiter=self._delimiter,
        )

    def _tracked_children(self) -> dict[str, Any]:
        return {"_filename": self._filename}


@entrances
class Table(Resource):
    """What tables have in common.

    Attributes:
        key_dtype: The type of the keys.
        value_dtype: The type of the values.
        default_value: The value of keys that the table lacks.
    """

    def __init__(self, key_dtype: DataType, value_dtype: DataType, default_value: Any) -> None:
        if innermost_default() is not None:
            raise FailedPreconditionError(
                "A table is made outside of functions and graphs: make it before, and use it there"
            )
        self.key_dtype, self.value_dtype = key_dtype, value_dtype
        self.default_value = _array("default_value", default_value, value_dtype)[0]
        self._shared_name = f"{type(self).__name__}_{next(_numbers)}"
        self._functions = {
            "_create_resource": function(self._created, [], name="creator"),
            "_initialize": function(self._filled, [], name="initializer"),
            "_destroy_resource": function(lambda: None, [], name="destroyer"),
        }
        super().__init__(
            self._shared_name, self._functions["_create_resource"], self._functions["_initialize"]
        )
        _ = self.captured_value  # it is filled now: a file may change

    @abc.abstractmethod
    def _created(self) -> Any:
        """Create the resource; gives its handle."""

    @abc.abstractmethod
    def _filled(self) -> None:
        """Fill it."""

    def lookup(self, keys: Any) -> Any:
        """The values of keys; the default value for a key that the table lacks.

        Raises:
            InvalidArgumentError: the keys are of another type.
        """
        return raw_ops.LookupTableFindV2(
            table_handle=self.handle, keys=self._keys(keys), default_value=self.default_value
        )

    def size(self) -> Any:
        """The number of keys."""
        return raw_ops.LookupTableSizeV2(table_handle=self.handle)

    def export(self) -> tuple[Any, Any]:
        """All keys, and their values."""
        keys, values = raw_ops.LookupTableExportV2(
            table_handle=self.handle, Tkeys=self.key_dtype, Tvalues=self.value_dtype
        )
        return keys, values

    def _keys(self, keys: Any) -> Any:
        return _tensor("keys", keys, self.key_dtype)

    def content_types(self, attribute: str) -> dict[str, DataType]:
        """The types of the keys and values, as ops name them."""
        return {"Tkeys": self.key_dtype, "Tvalues": self.value_dtype}

    def _tracked_children(self) -> dict[str, Any]:
        return dict(self._functions)

    def _op_attrs(self) -> dict[str, Any]:
        return {
            "key_dtype": self.key_dtype,
            "value_dtype": self.value_dtype,
            "shared_name": self._shared_name,
        }


@entrances
class StaticHashTable(Table):
    """A table that is filled once, when it is made.

        table = opkernel.lookup.StaticHashTable(
            opkernel.lookup.KeyValueTensorInitializer(["a", "b"], np.array([1, 2])), default_value=-1
        )
        table.lookup(["b", "c"])

    Args:
        initializer: What fills it.
        default_value: The value of keys that it lacks.

    Raises:
        InvalidArgumentError: the default value is of another type, or a key has two values.
        FailedPreconditionError: a function is being traced.
    """

    def __init__(self, initializer: TableInitializer, default_value: Any) -> None:
        self._initializer = initializer
        super().__init__(initializer.key_dtype, initializer.value_dtype, default_value)

    def _created(self) -> Any:
        return raw_ops.HashTableV2(**self._op_attrs())

    def _filled(self) -> None:
        graph = innermost_default()
        assert graph is not None  # it is traced
        self._initializer.initialize(graph.tensor_of(self))

    def _tracked_children(self) -> dict[str, Any]:
        return {"_initializer": self._initializer, **super()._tracked_children()}


@entrances
class MutableHashTable(Table):
    """A table whose content changes; it is saved with the content of then.

    Args:
        key_dtype: The type of the keys.
        value_dtype: The type of the values.
        default_value: The value of keys that it lacks; values have its shape, a scalar or vector.

    Raises:
        InvalidArgumentError: the default value is of another type, or of a higher rank.
        FailedPreconditionError: a function is being traced.
    """

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any) -> None:
        super().__init__(as_dtype(key_dtype), as_dtype(value_dtype), default_value)
        self._saveables = {_ATTRIBUTE: (self._save_function(), self._restore_function())}

    def insert(self, keys: Any, values: Any) -> None:
        """Give keys values.

        Raises:
            InvalidArgumentError: keys or values are of another type or shape.
        """
        raw_ops.LookupTableInsertV2(**self._content(keys, values))

    def remove(self, keys: Any) -> None:
        """Take keys out; those that it lacks do no harm."""
        raw_ops.LookupTableRemoveV2(table_handle=self.handle, keys=self._keys(keys))

    def restore(self, keys: Any, values: Any) -> None:
        """Have these keys and values, and no others."""
        raw_ops.LookupTableImportV2(**self._content(keys, values))

    def _content(self, keys: Any, values: Any) -> dict[str, Any]:
        """The inputs of ops that put keys and values into the table."""
        return {
            "table_handle": self.handle,
            "keys": self._keys(keys),
            "values": _tensor("values", values, self.value_dtype),
        }

    def saveables(self) -> Mapping[str, tuple[Any, Any]]:
        """The functions that save and restore its content."""
        return self._saveables

    def _created(self) -> Any:
        if not self.default_value.ndim:
            return raw_ops.MutableHashTableV2(**self._op_attrs())
        return raw_ops.MutableHashTableOfTensorsV2(
            **self._op_attrs(), value_shape=list(self.default_value.shape)
        )

    def _filled(self) -> None:
        """It begins empty."""

    def _save_function(self) -> Any:
        def save_fn(checkpoint_key: Any) -> list[dict[str, Any]]:
            return [
                {"name": raw_ops.Add(x=checkpoint_key, y=end), "slice_spec": "", "tensor": tensor}
                for end, tensor in zip(PARTS_OF_TABLE, self.export(), strict=True)
            ]

        return function(save_fn, [TensorSpec([], DataType.DT_STRING, "checkpoint_key")])

    def _restore_function(self) -> Any:
        def restore_fn(keys: Any, values: Any) -> Any:
            self.restore(keys, values)
            return np.int32(1)  # TensorFlow's Savers want a result

        specs = [
            TensorSpec(None, self.key_dtype, "keys"),
            TensorSpec(None, self.value_dtype, "values"),
        ]
        return function(restore_fn, specs)


def _tensor(what: str, value: Any, dtype: DataType) -> Any:
    """A tensor itself, or a value as an array of a type."""
    return value if isinstance(value, Tensor) else _array(what, value, dtype)[0]


def _array(what: str, value: Any, dtype: Any) -> tuple[Any, DataType]:
    """A value as an array of a type.

    Raises:
        InvalidArgumentError: it makes none.
    """
    wanted = natural_dtype(value) if dtype is None else as_dtype(dtype)
    try:
        return np.asarray(array_from_python(value, wanted)), wanted
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"{what} of a table makes no {wanted.tf_name} tensor: {error}"
        ) from error
