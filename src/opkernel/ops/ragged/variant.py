"""Ragged tensors as variants: RaggedTensorToVariant, RaggedTensorFromVariant.

RaggedVariant: a ragged tensor that a variant holds.

Source: TensorFlow core/ops/ragged_conversion_ops.cc, core/kernels/ragged_tensor_to_variant_op.cc,
ragged_tensor_from_variant_op.cc, ragged_tensor_variant.cc, core/kernels/ragged_tensor_variant.{h,cc}.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, full_type, register_op
from opkernel.opdef.common_shapes.rules import set_outputs
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.array.concat import concatenated
from opkernel.ops.input_checks import require
from opkernel.ops.ragged.gather_range import VALUE_TYPES, check_splits, lengths_to_splits
from opkernel.ops.ragged.to_tensor import splits_and_values
from opkernel.ops.registration import INDEX, register_kernel
from opkernel.ops.tensor_list.value import objects, sum_of_elements, zeros_like_element
from opkernel.proto import VariantTensorDataProto
from opkernel.types import (
    DataType,
    OpaqueVariant,
    TensorShape,
    Variant,
    as_dtype,
    object_scalar,
    register_variant_decoder,
    tensor_from_proto,
    tensor_to_proto,
)

__all__ = ["RaggedVariant", "as_ragged"]


_TYPE_NAME = "RaggedTensorVariant"

_OF_ROW, _OF_TURN = 400, 1 << 12
"""The bytes of a row beside its values, for each array that it has, and the work of making one."""


class RaggedVariant(Variant):
    """A ragged tensor that a variant holds.

    Attributes:
        nested_splits: The splits of the ragged dimensions, the outermost first.
        values: The flat values.
    """

    type_name = _TYPE_NAME
    __slots__ = ("nested_splits", "values")

    def __init__(self, nested_splits: Sequence[Any], values: Any) -> None:
        self.nested_splits = tuple(nested_splits)
        self.values = values

    def __str__(self) -> str:
        return _TYPE_NAME

    def to_proto(self) -> VariantTensorDataProto:
        """The ragged tensor as it stands in a file: splits, then values."""
        parts = (*self.nested_splits, self.values)
        return VariantTensorDataProto(
            type_name=_TYPE_NAME,
            tensors=[tensor_to_proto(part, as_dtype(part.dtype)) for part in parts],
        )

    @classmethod
    def from_proto(cls, proto: VariantTensorDataProto) -> "RaggedVariant":
        """The ragged tensor that stands in a file.

        Raises:
            InvalidArgumentError: it has no values.
        """
        require(proto.tensors, "A ragged tensor in a variant has no values")
        *splits, values = map(tensor_from_proto, proto.tensors)
        return cls(splits, values)

    def with_tensors(self, change: Callable[[Any], Any]) -> "RaggedVariant":
        """The ragged tensor with a function applied to its splits and its values."""
        return RaggedVariant([*map(change, self.nested_splits)], change(self.values))

    def zeros_like(self) -> "RaggedVariant":
        """The rows with zeros for their values; ZerosLike."""
        zeros = zeros_like_element(self.values, as_dtype(self.values.dtype))
        return RaggedVariant(self.nested_splits, zeros)

    def __add__(self, other: object) -> "RaggedVariant":
        """The rows with the sums of the values; AddN."""
        if not isinstance(other, RaggedVariant):
            return NotImplemented
        total = sum_of_elements(self.values, other.values, as_dtype(self.values.dtype))
        return RaggedVariant(self.nested_splits, total)

    def rows(self) -> list["RaggedVariant"]:
        """The ragged tensors of the rows."""
        if not self.nested_splits:
            check_bytes(_OF_ROW * len(self.values), "rows of a ragged tensor")
            return [RaggedVariant((), row) for row in in_time(self.values)]
        outer, *inner = self.nested_splits
        check_bytes(_OF_ROW * len(self.nested_splits) * len(outer), "rows of a ragged tensor")
        pairs = in_time(itertools.pairwise(outer), _OF_TURN * len(self.nested_splits))
        return [self._row(inner, a, b) for a, b in pairs]

    def _row(self, inner: Sequence[Any], first: Any, end: Any) -> "RaggedVariant":
        splits = []
        for level in inner:
            part = level[first : end + 1]
            splits.append(part - part[0])
            first, end = level[first], level[end]
        return RaggedVariant(splits, self.values[first:end])

    def __len__(self) -> int:
        if self.nested_splits:
            return int(self.nested_splits[0].size - 1)
        return int(self.values.shape[0]) if self.values.ndim else 1


register_variant_decoder(_TYPE_NAME, RaggedVariant.from_proto)


def as_ragged(value: object) -> RaggedVariant:
    """A value that must be a ragged tensor; it may have been read before this module was loaded."""
    if isinstance(value, RaggedVariant):
        return value
    if isinstance(value, OpaqueVariant) and value.type_name == _TYPE_NAME:
        return RaggedVariant.from_proto(value.to_proto())
    raise InvalidArgumentError(
        f"Input Variant element doesn't hold a RaggedTensorVariant but '{value}'"
    )


def ragged_tensor_to_variant_shape(c: InferenceContext) -> None:
    """A variant, or one for each row."""
    ragged_rank = c.get_attr("RAGGED_RANK")
    splits_and_values(c, ragged_rank)
    is_batch = c.get_attr("batched_input")
    c.set_output(0, c.vector(c.subtract(c.dim(c.input(0), 0), 1)) if is_batch else c.scalar())


def ragged_tensor_to_variant_gradient_shape(c: InferenceContext) -> None:
    """The shape in input 2."""
    c.set_output(0, c.make_shape_from_shape_tensor_treat_scalar_as_unknown_shape(2))


def ragged_tensor_from_variant_shape(c: InferenceContext) -> None:
    """Splits, and values of which nothing is known."""
    input_rank, output_rank = c.get_attr("input_ragged_rank"), c.get_attr("output_ragged_rank")
    if input_rank >= 0 and c.rank_known(c.input(0)):
        c.with_rank(c.input(0), output_rank - input_rank)
    set_outputs(c, [c.vector(None) for _ in range(output_rank)])


RAGGED_TENSOR_TO_VARIANT = register_op(
    "RaggedTensorToVariant(rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues) "
    "-> encoded_ragged: variant",
    attrs=[
        "RAGGED_RANK: int >= 0",
        "Tvalues: type",
        "Tsplits: {int32, int64} = DT_INT64",
        "batched_input: bool",
    ],
    shape_fn=ragged_tensor_to_variant_shape,
    type_constructor=full_type.unary(FullTypeId.TFT_RAGGED, "Tvalues"),
    doc="A ragged tensor as a variant, or if `batched_input` its rows as a vector of variants.",
)

RAGGED_TENSOR_FROM_VARIANT = register_op(
    "RaggedTensorFromVariant(encoded_ragged: variant) "
    "-> output_nested_splits: output_ragged_rank * Tsplits, output_dense_values: Tvalues",
    attrs=[
        "input_ragged_rank: int >= -1",
        "output_ragged_rank: int >= 0",
        "Tvalues: type",
        "Tsplits: {int32, int64} = DT_INT64",
    ],
    shape_fn=ragged_tensor_from_variant_shape,
    doc="The ragged tensor in a variant, or that whose rows the variants are.",
)

RAGGED_TENSOR_TO_VARIANT_GRADIENT = register_op(
    "RaggedTensorToVariantGradient(encoded_ragged_grad: variant, row_splits: Tsplits, "
    "dense_values_shape: int32) -> dense_values_grad: Tvalues",
    attrs=["Tvalues: type", "Tsplits: {int32, int64} = DT_INT64"],
    shape_fn=ragged_tensor_to_variant_gradient_shape,
    doc="The gradient of the values of RaggedTensorToVariant.",
)

_TYPES = {"Tvalues": VALUE_TYPES, "Tsplits": INDEX}


@register_kernel(RAGGED_TENSOR_TO_VARIANT, types=_TYPES)
def ragged_tensor_to_variant(nested_splits: list[Any], values: Any, *, batched_input: bool) -> Any:
    splits = [level.reshape(-1) for level in nested_splits]
    if splits and values.ndim == 0:
        raise InvalidArgumentError("The values of a ragged tensor must have at least one dimension")
    sizes = [level.size - 1 for level in splits[1:]] + [values.shape[0] if values.ndim else 1]
    for level, size in zip(splits, sizes, strict=False):
        check_splits(level, size)
    ragged = RaggedVariant(splits, values)
    if not batched_input:
        return object_scalar(ragged)
    require(splits or values.ndim != 0, "A batched input must have at least one dimension")
    rows = ragged.rows()
    return objects(rows, (len(rows),))


@register_kernel(RAGGED_TENSOR_FROM_VARIANT, types=_TYPES)
def ragged_tensor_from_variant(
    encoded: Any,
    *,
    input_ragged_rank: int,
    output_ragged_rank: int,
    Tvalues: DataType,
    Tsplits: DataType,
) -> tuple[list[Any], Any]:
    inner_rank = _inner_rank(encoded.ndim, input_ragged_rank, output_ragged_rank)
    parts = [_part(one, inner_rank, Tvalues, Tsplits) for one in in_time(encoded.reshape(-1))]
    if encoded.ndim == 0:
        splits, values = parts[0].nested_splits, parts[0].values
        for level in splits:
            check_allocation(level.shape, Tsplits)
        check_allocation(values.shape, Tvalues)
        return [level.copy() for level in splits], values.copy()
    if not output_ragged_rank:
        return [], _in_one_tensor([part.values for part in parts], Tvalues)
    return _stacked(parts, encoded.shape, inner_rank, Tvalues, Tsplits)


def _inner_rank(dims: int, input_ragged_rank: int, output_ragged_rank: int) -> int:
    """How many levels of rows each variant has; none where there are to be none."""
    inner = output_ragged_rank - dims if input_ragged_rank == -1 else input_ragged_rank
    if output_ragged_rank == 0 and inner <= 0:
        return 0
    if inner < 0:
        raise InvalidArgumentError(
            f"Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be "
            f">= 0, found output_ragged_rank: {output_ragged_rank}, encoded_variant.dims(): "
            f"{dims}, inferred input_ragged_rank: {inner}"
        )
    if inner + dims != output_ragged_rank:
        raise InvalidArgumentError(
            "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(): "
            f"{output_ragged_rank} is not {inner} + {dims}"
        )
    return inner


def _in_one_tensor(values: Sequence[Any], dtype: DataType) -> Any:
    """Tensors of one shape as the rows of one."""
    if not values:
        return np.zeros(0, dtype.numpy_dtype)
    _check_alike([one.shape for one in values])
    check_allocation((len(values), *values[0].shape), dtype)
    return np.stack(values)


def _check_alike(shapes: Sequence[tuple[int, ...]]) -> None:
    if len(set(shapes)) > 1:
        raise InvalidArgumentError(
            "All flat_values must have compatible shapes: "
            + " and ".join(sorted({str(TensorShape(one)) for one in shapes}))
        )


def _part(element: object, ragged_rank: int, values: DataType, splits: DataType) -> RaggedVariant:
    value = as_ragged(element)
    if len(value.nested_splits) != ragged_rank:
        raise InvalidArgumentError(
            f"Encoded input RaggedTensorVariant has ragged_rank={len(value.nested_splits)}. "
            f"Expected ragged_rank={ragged_rank}."
        )
    if value.values.dtype != values.numpy_dtype:
        raise InvalidArgumentError(
            f"Expected values Tensor dtype: {values.string}, found: {value.values.dtype}"
        )
    if any(level.dtype != splits.numpy_dtype for level in value.nested_splits):
        raise InvalidArgumentError(f"Expected row_splits Tensor dtype: {splits.string}")
    if ragged_rank and value.values.ndim == 0:
        raise InvalidArgumentError("Ragged values must have rank >= 1; encoded scalar element")
    return value


def _stacked(
    parts: Sequence[RaggedVariant],
    shape: tuple[int, ...],
    ragged_rank: int,
    values: DataType,
    splits: DataType,
) -> tuple[list[Any], Any]:
    """The ragged tensor whose rows the parts are."""
    counts = np.cumprod([1, *shape]).tolist()
    outer = [lengths_to_splits(np.full(counts[i], shape[i]), splits) for i in range(1, len(shape))]
    outer.append(
        lengths_to_splits(np.array([len(part) for part in in_time(parts)], np.int64), splits)
    )
    for k in range(ragged_rank):
        lengths = [np.diff(part.nested_splits[k]) for part in in_time(parts)]
        outer.append(lengths_to_splits(concatenated([np.zeros(0, np.int64), *lengths]), splits))
    flat = [part.values for part in in_time(parts)]
    if not flat:
        return outer, np.zeros(0, values.numpy_dtype)
    if any(one.ndim == 0 for one in flat):
        raise InvalidArgumentError("Ragged values must have rank >= 1; encoded scalar element")
    _check_alike([one.shape[1:] for one in flat])
    check_allocation((sum(map(len, flat)), *flat[0].shape[1:]), values)
    return outer, concatenated(flat)


@register_kernel(RAGGED_TENSOR_TO_VARIANT_GRADIENT, types=_TYPES)
def ragged_tensor_to_variant_gradient(
    encoded: Any, row_splits: Any, dense_values_shape: Any, *, Tvalues: DataType
) -> Any:
    shape = check_allocation(dense_values_shape.reshape(-1).tolist(), Tvalues)
    splits = row_splits.reshape(-1)
    check_splits(splits, splits[-1] if splits.size else 0)
    parts = []
    row_bytes = math.prod(shape[1:]) * np.dtype(Tvalues.numpy_dtype).itemsize
    for i, value in enumerate(in_time(encoded.reshape(-1))):
        if isinstance(value, RaggedVariant):
            parts.append(value.values)
        elif splits.size > i + 1:
            rows = int(splits[i + 1] - splits[i])
            check_bytes(2 * rows * row_bytes, "rows of zeros")
            parts.append(np.zeros((rows, *shape[1:]), Tvalues.numpy_dtype))
        else:
            parts.append(np.zeros(shape[1:] if encoded.ndim else shape, Tvalues.numpy_dtype))
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return np.zeros(shape, Tvalues.numpy_dtype)
    found = concatenated([part.reshape(-1) for part in parts])[: math.prod(shape)]
    gradient = np.zeros(
        shape, Tvalues.numpy_dtype
    )  # TensorFlow leaves out what has no room, and fills up the rest
    gradient.reshape(-1)[: found.size] = found
    return gradient


@g.register_gradient("RaggedTensorToVariant")
def gradient_of_to_variant(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    *splits, values = op.inputs
    rows = splits[0] if splits else g.nodes.Range(0, 1, 1)
    by_values = g.nodes.RaggedTensorToVariantGradient(
        grad, rows, g.nodes.Shape(values), Tvalues=values.dtype
    )
    return *[None] * len(splits), by_values


@g.register_gradient("RaggedTensorFromVariant")
def gradient_of_from_variant(op: g.Operation, *grads: Any) -> g.Gradients:
    rank = op.inputs[0].shape.rank
    if rank not in (0, 1):
        raise UnimplementedError(
            f"RaggedTensorFromVariant has gradients of variants of rank 0 or 1, not {rank}"
        )
    splits = list(op.outputs[:-1])
    return (g.nodes.RaggedTensorToVariant(splits, grads[-1], batched_input=rank == 1),)
