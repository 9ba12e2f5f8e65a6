"""Optionals: tensors, or nothing. Gradients of conditionals keep the tensors of a branch in them.

Source: TensorFlow core/ops/optional_ops.cc, core/kernels/data/optional_ops.cc, optional_ops_util.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, ShapeAndType, full_type, register_op
from opkernel.opdef.common_shapes import scalar_shape
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.input_checks import require, require_equal
from opkernel.ops.registration import register_kernel
from opkernel.ops.tensor_list.value import sum_of_elements, zeros_like_element
from opkernel.proto import VariantTensorDataProto
from opkernel.types import (
    DataType,
    OpaqueVariant,
    PartialTensorShape,
    TensorShape,
    Variant,
    object_scalar,
    register_variant_decoder,
    tensor_from_proto,
    tensor_to_proto,
)

__all__ = ["Optional"]

_TYPE_NAME = "tensorflow::data::Optional"


class Optional(Variant):
    """Tensors of certain types; without any, it has no value.

    Attributes:
        components: The tensors.
        dtypes: The type of each.
    """

    __slots__ = ("components", "dtypes")

    def __init__(self, components: Iterable[Any] = (), dtypes: Sequence[DataType] = ()) -> None:
        self.components = tuple(components)
        self.dtypes = tuple(dtypes)

    def __repr__(self) -> str:
        return f"Optional({', '.join(dtype.string for dtype in self.dtypes)})"

    @property
    def has_value(self) -> bool:
        """Whether there are tensors."""
        return bool(self.components)

    def with_tensors(self, change: Callable[[Any], Any]) -> Optional:
        """The optional with a function applied to each tensor."""
        return Optional(map(change, self.components), self.dtypes)

    def zeros_like(self) -> Optional:
        """The optional with zeros for its tensors; ZerosLike.

        Raises:
            InvalidArgumentError: the type of a tensor has no zero.
        """
        pairs = zip(self.components, self.dtypes, strict=True)
        return Optional([zeros_like_element(tensor, dtype) for tensor, dtype in pairs], self.dtypes)

    def __add__(self, other: object) -> Optional:
        """The optional of the sums of the tensors; AddN.

        Raises:
            InvalidArgumentError: just one has a value, or they differ in number, type or shape.
        """
        if not isinstance(other, Optional):
            return NotImplemented
        if self.has_value != other.has_value:
            raise InvalidArgumentError(
                "Cannot add optionals because one has a value and the other doesn't."
            )
        if len(self.components) != len(other.components):
            raise InvalidArgumentError(
                "Cannot add optionals because they have different numbers of components "
                f"({len(self.components)} vs. {len(other.components)})."
            )
        for mine, theirs in zip(self.dtypes, other.dtypes, strict=True):
            if mine != theirs:
                raise InvalidArgumentError(
                    "Trying to add two tensors with incompatible element types. One is "
                    f"{mine.string} and the other is {theirs.string}"
                )
        pairs = zip(self.components, other.components, self.dtypes, strict=True)
        return Optional([sum_of_elements(*pair) for pair in pairs], self.dtypes)

    def to_proto(self) -> VariantTensorDataProto:
        """The optional as it stands in a file."""
        pairs = zip(self.components, self.dtypes, strict=True)
        return VariantTensorDataProto(
            type_name=_TYPE_NAME,
            metadata=bytes([self.has_value]),
            tensors=[tensor_to_proto(tensor, dtype) for tensor, dtype in pairs],
        )

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> Optional:
        """The optional that stands in a file."""
        tensors = proto.tensors
        return cls([tensor_from_proto(t) for t in tensors], [DataType(t.dtype) for t in tensors])


register_variant_decoder(_TYPE_NAME, Optional.from_proto)


def _optional_of(handle: Any, op: str) -> Optional:
    """The optional that a handle holds; it may have been read before this module was loaded."""
    value = handle[()] if handle.ndim == 0 else None
    if isinstance(value, OpaqueVariant) and value.type_name == _TYPE_NAME:
        return Optional.from_proto(value.to_proto())
    if not isinstance(value, Optional):
        raise InvalidArgumentError(
            f"Input to {op} must be a scalar tensor containing an OptionalVariant object."
        )
    return value


def optional_from_value_shape(c: InferenceContext) -> None:
    """A scalar that holds what the inputs are."""
    scalar_shape(c)
    optional_type = c.ret_types().args[0]
    dtypes = c.get_attr("Toutput_types")
    held = [ShapeAndType(c.input(i), dtype, optional_type) for i, dtype in enumerate(dtypes)]
    c.set_output_handle_shapes_and_types(0, held)


OPTIONAL_FROM_VALUE = register_op(
    "OptionalFromValue(components: Toutput_types) -> optional: variant",
    attrs=["Toutput_types: list(type) >= 1"],
    shape_fn=optional_from_value_shape,
    type_constructor=full_type.variadic_tensor_container(FullTypeId.TFT_OPTIONAL, "Toutput_types"),
    doc="An optional that has tensors for its value.",
)
OPTIONAL_NONE = register_op(
    "OptionalNone() -> optional: variant", shape_fn=scalar_shape, doc="An optional without value."
)
OPTIONAL_HAS_VALUE = register_op(
    "OptionalHasValue(optional: variant) -> has_value: bool",
    shape_fn=scalar_shape,
    doc="Whether an optional has a value.",
)


def optional_get_value_shape(c: InferenceContext) -> None:
    """The shapes of the attr `output_shapes`."""
    c.with_rank(c.input(0), 0)
    shapes = c.get_attr("output_shapes")
    if len(shapes) != c.num_outputs():
        raise InvalidArgumentError(
            f"`output_shapes` must be the same length as `output_types` "
            f"({len(shapes)} vs. {c.num_outputs()})"
        )
    for index, shape in enumerate(shapes):
        c.set_output(index, c.make_shape_from_partial_shape(shape))


OPTIONAL_GET_VALUE = register_op(
    "OptionalGetValue(optional: variant) -> components: output_types",
    attrs=["output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"],
    shape_fn=optional_get_value_shape,
    doc="The tensors of an optional; an error if it has none.",
)


@register_kernel(OPTIONAL_FROM_VALUE, priority=2)
def optional_from_value(components: list[Any], *, Toutput_types: list[DataType]) -> Any:
    return object_scalar(Optional(components, Toutput_types))


@register_kernel(OPTIONAL_NONE, priority=2)
def optional_none() -> Any:
    return object_scalar(Optional())


@register_kernel(OPTIONAL_HAS_VALUE, priority=2)
def optional_has_value(optional: Any) -> Any:
    return np.bool_(_optional_of(optional, "OptionalHasValue").has_value)


@register_kernel(OPTIONAL_GET_VALUE, priority=2, kind="view", factory=True)
def optional_get_value(
    *, output_types: list[DataType], output_shapes: list[PartialTensorShape]
) -> Callable[[Any], Any]:
    def kernel(optional: Any) -> Any:
        value = _optional_of(optional, "OptionalGetValue")
        require(value.has_value, "The given optional does not have a value.")
        _check_components(value, output_types, output_shapes)
        return list(value.components)

    return kernel


def _check_components(
    value: Optional, dtypes: Sequence[DataType], shapes: Sequence[PartialTensorShape]
) -> None:
    """Raise InvalidArgumentError unless the tensors have the types and shapes of the node."""
    require_equal(
        len(value.components), len(dtypes), "The given optional has {} components, expected {}"
    )
    for index, (expected, actual) in enumerate(zip(dtypes, value.dtypes, strict=True)):
        if expected != actual:
            raise InvalidArgumentError(
                f"The given optional does not match the expected type for component {index}. "
                f"Expected: {expected.string}. Actual: {actual.string}."
            )
    for index, (shape, tensor) in enumerate(zip(shapes, value.components, strict=True)):
        actual_shape = TensorShape(tensor.shape)
        if not shape.is_compatible_with(actual_shape):
            raise InvalidArgumentError(
                f"The given optional does not match the expected shape for component {index}. "
                f"Expected: {shape}. Actual: {actual_shape}."
            )


@g.register_gradient("OptionalFromValue")
def optional_from_value_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    types = [tensor.dtype.base for tensor in op.inputs]
    shapes = [tensor.shape for tensor in op.inputs]
    return g.nodes.OptionalGetValue(grad, output_types=types, output_shapes=shapes)


@g.register_gradient("OptionalGetValue")
def optional_get_value_gradient(op: g.Operation, *grads: g.Tensor) -> g.Gradients:
    return g.nodes.OptionalFromValue(grads)
