"""The structure of elements: components in tuples and dicts, and what is known of each.

A list is one tensor here, as in TensorFlow. Classes with `__tf_flatten__` are not taken apart.

Source: TensorFlow python/data/util/structure.py, nest.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.data.component_specs import (
    DatasetSpec,
    Spec,
    carrier_of,
    decoder,
    encoded,
    spec_of_component,
)
from opkernel.data.composite_values import composite_of, is_composite, map_components
from opkernel.endpoints.tensors import convert
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Tensor, TensorSpec
from opkernel.graph.tracing.nested_structure import flatten, flatten_up_to, map_structure, packer
from opkernel.messages import short_repr
from opkernel.types import DataType, PartialTensorShape

Pack = Callable[[Sequence[Any]], Any]


def flat_specs(spec: Any) -> list[Spec]:
    """The specs of the components of an element."""
    return flatten(spec)


def types_and_shapes(spec: Any) -> dict[str, Any]:
    """The attrs `output_types` and `output_shapes` for elements of a spec."""
    specs = [carrier_of(one) for one in flat_specs(spec)]
    return {
        "output_types": [one.dtype for one in specs],
        "output_shapes": [one.shape for one in specs],
    }


def types_of(spec: Any) -> Any:
    """The types of the components of an element, in its structure: equal for specs that `covering` takes."""
    return map_structure(_type_of_component, spec)


def _type_of_component(spec: Spec) -> Any:
    if isinstance(spec, TensorSpec):
        return spec.dtype
    if isinstance(spec, DatasetSpec):
        return DatasetSpec(types_of(spec.element_spec))
    return spec.with_shape(PartialTensorShape())


def normalized(value: Any) -> Any:
    """An element with a tensor, array, dataset, ragged or sparse tensor for each component; lists become tensors.

    Raises:
        InvalidArgumentError: a component makes no tensor.
        TypeError: a component is None.
    """
    return map_components(_normalized_component, value)


def _normalized_component(value: Any) -> Any:
    if value is None:
        raise TypeError("An element has a tensor or a dataset where None is given")
    if is_composite(value):
        return composite_of(value)
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
    return map_components(
        lambda one: DatasetSpec(one.element_spec) if is_dataset(one) else spec_of_component(one),
        value,
    )


def tensors_of(value: Any, spec: Any, encode: Callable[[Spec, Any], Any] = encoded) -> list[Any]:
    """The tensors that carry a normalized element of a spec, by `encoded` or `encoded_rows`.

    Raises:
        ValueError: the element is not nested like the spec.
    """
    pairs = zip(flat_specs(spec), flatten_up_to(spec, value), strict=True)
    return [encode(one, component) for one, component in pairs]


def element_packer(spec: Any, make_dataset: Callable[[Any, Any], Any]) -> Pack:
    """Gives the element of a spec that tensors carry; `make_dataset` makes a Dataset of a variant tensor and a spec."""
    pack, decoders = packer(spec), [decoder(one, make_dataset) for one in flat_specs(spec)]
    carried = [(i, decode) for i, decode in enumerate(decoders) if decode is not None]
    if not carried:
        return pack

    def pack_decoded(tensors: Sequence[Any]) -> Any:
        leaves = list(tensors)
        for i, decode in carried:
            leaves[i] = decode(leaves[i])
        return pack(leaves)

    return pack_decoded


def covering(one: Any, other: Any) -> Any:
    """The spec of what is of one of two specs, which have equal `types_of`."""
    pairs = zip(flat_specs(one), flat_specs(other), strict=True)
    return packer(one)([_covering_component(a, b) for a, b in pairs])


def _covering_component(one: Spec, other: Any) -> Spec:
    if isinstance(one, DatasetSpec):
        return DatasetSpec(covering(one.element_spec, other.element_spec))
    shape = one.shape.most_specific_compatible_shape(other.shape)
    return TensorSpec(shape, one.dtype) if isinstance(one, TensorSpec) else one.with_shape(shape)
