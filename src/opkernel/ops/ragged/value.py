"""RaggedVariant: a ragged tensor that a variant holds.

Source: TensorFlow core/kernels/ragged_tensor_variant.{h,cc}.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from opkernel.device.made_bytes import check_bytes
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.ops.tensor_list.element_arithmetic import sum_of_elements, zeros_like_element
from opkernel.proto import VariantTensorDataProto
from opkernel.types import (
    OpaqueVariant,
    Variant,
    as_dtype,
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

    __slots__ = ("nested_splits", "values")

    def __init__(self, nested_splits: Sequence[Any], values: Any) -> None:
        self.nested_splits = tuple(nested_splits)
        self.values = values

    @property
    def type_name(self) -> str:
        """The name of the type in files."""
        return _TYPE_NAME

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
        if not proto.tensors:
            raise InvalidArgumentError("A ragged tensor in a variant has no values")
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
