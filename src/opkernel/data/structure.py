"""The structure of elements: tensors and datasets in tuples and dicts, and what is known of each.

A list is one tensor here, as in TensorFlow. Classes with `__tf_flatten__` are not taken apart.

Source: TensorFlow python/data/util/structure.py, nest.py; DatasetSpec in python/data/ops/dataset_ops.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.endpoints.tensors import convert, dtype_of
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Tensor, TensorSpec
from opkernel.graph.tracing.nested_structure import flatten, map_structure, packer
from opkernel.messages import short_repr
from opkernel.records import dataclass
from opkernel.types import DataType, PartialTensorShape

Pack = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class DatasetSpec:
    """A component that is a dataset itself.

    Attributes:
        element_spec: The spec of its elements.
    """

    element_spec: Any

    dtype = DataType.DT_VARIANT
    shape = PartialTensorShape([])


Spec = TensorSpec | DatasetSpec


def flat_specs(spec: Any) -> list[Spec]:
    """The specs of the components of an element."""
    return flatten(spec)


def types_and_shapes(spec: Any) -> dict[str, Any]:
    """The attrs `output_types` and `output_shapes` for elements of a spec."""
    specs = flat_specs(spec)
    return {
        "output_types": [one.dtype for one in specs],
        "output_shapes": [one.shape for one in specs],
    }


def types_of(spec: Any) -> Any:
    """The types of the components of an element, in its structure."""
    return map_structure(lambda one: one.dtype, spec)


def normalized(value: Any) -> Any:
    """An element with a tensor, array or dataset for each component; lists become tensors.

    Raises:
        InvalidArgumentError: a component makes no tensor.
        TypeError: a component is None.
    """
    if value is None:
        raise TypeError("An element has a tensor or a dataset where None is given")
    if isinstance(value, tuple):
        parts = [normalized(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, Mapping):
        pairs = {key: normalized(part) for key, part in value.items()}
        return pairs if type(value) is dict else map_structure(lambda leaf: leaf, pairs)
    return value if is_dataset(value) else convert(value)


def int64_of(value: Any) -> Any:
    """An integer, or an array or list of integers, as int64; a tensor of a graph as it is.

    Raises:
        TypeError: it is no integer.
        InvalidArgumentError: it is too large.
    """
    if isinstance(value, Tensor):
        return value
    array = np.asarray(value)
    if not all(isinstance(number, int) for number in array.ravel().tolist()):
        raise TypeError(f"An integer is needed, not {short_repr(value)}")
    try:
        return np.array(array.tolist(), np.int64)
    except OverflowError:
        raise InvalidArgumentError(f"{short_repr(value)} is too large for int64") from None


def number_of(value: Any, dtype: DataType) -> Any:
    """A number of a type, or an array or tensor of such.

    Raises:
        TypeError: it is none.
        InvalidArgumentError: it is too large.
    """
    if dtype is DataType.DT_INT64:
        return int64_of(value)
    try:
        return convert(value, dtype)
    except InvalidArgumentError as error:
        raise TypeError(error.message) from None


def flag_of(value: Any) -> Any:
    """A bool; a tensor of a graph as it is.

    Raises:
        TypeError: it is no bool.
    """
    if isinstance(value, Tensor):
        return value
    if np.ndim(value) or not isinstance(np.asarray(value).item(), bool | int):
        raise TypeError(f"A bool is needed, not {short_repr(value)}")
    return bool(value)


def path_of(value: Any) -> Any:
    """The name of a file; a tensor of a graph as it is.

    Raises:
        TypeError: it is no name.
    """
    if isinstance(value, str | bytes | os.PathLike):
        return os.fspath(value)
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.ndarray) and value.dtype == object and not value.ndim:
        return value
    raise TypeError(f"The name of a file is needed, not {short_repr(value)}")


def checked_function(value: Any) -> Callable[..., Any]:
    """A Python function; TypeError for other values."""
    if not callable(value):
        raise TypeError(f"A function is needed, not {short_repr(value)}")
    function: Callable[..., Any] = value
    return function


def is_dataset(value: Any) -> bool:
    """Whether a value is a Dataset."""
    return hasattr(value, "element_spec") and hasattr(value, "variant_tensor")


def spec_of_value(value: Any) -> Any:
    """The spec of a normalized element."""
    return map_structure(_spec_of_component, value)


def _spec_of_component(value: Any) -> Spec:
    if is_dataset(value):
        return DatasetSpec(value.element_spec)
    shape = value.shape if isinstance(value, Tensor) else PartialTensorShape(value.shape)
    return TensorSpec(shape, dtype_of(value))


def tensors_of(value: Any) -> list[Any]:
    """The tensors of a normalized element: of a dataset, its variant tensor."""
    return [leaf.variant_tensor if is_dataset(leaf) else leaf for leaf in flatten(value)]


def element_packer(spec: Any, make_dataset: Callable[[Any, Any], Any]) -> Pack:
    """Gives tensors the structure of a spec; `make_dataset` makes a Dataset of a variant tensor and a spec."""
    pack, specs = packer(spec), flat_specs(spec)
    nested = [i for i, one in enumerate(specs) if isinstance(one, DatasetSpec)]
    if not nested:
        return pack

    def pack_datasets(tensors: Sequence[Any]) -> Any:
        leaves = list(tensors)
        for i in nested:
            leaves[i] = make_dataset(leaves[i], specs[i].element_spec)  # type: ignore[union-attr]  # is a DatasetSpec
        return pack(leaves)

    return pack_datasets


def with_shapes(spec: Any, change: Callable[[PartialTensorShape], PartialTensorShape]) -> Any:
    """A spec with each shape replaced."""
    return map_structure(lambda one: TensorSpec(change(one.shape), one.dtype), spec)


def covering(one: Any, other: Any) -> Any:
    """The spec of what is of one of two specs, which have the same structure and types."""
    pairs = zip(flat_specs(one), flat_specs(other), strict=True)
    shapes = iter([a.shape.most_specific_compatible_shape(b.shape) for a, b in pairs])
    return with_shapes(one, lambda _: next(shapes))
