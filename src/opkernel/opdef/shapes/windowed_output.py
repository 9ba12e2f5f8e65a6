"""Output sizes of convolutions and poolings: windows sliding over one dimension.

One rule for shape functions (which know sizes as dimension handles, see
`common_shapes.get_windowed_output_size_from_dims`) and kernels (which know numbers).

Source: TensorFlow core/framework/kernel_shape_util.cc, core/util/padding.cc.
"""

import enum
from collections.abc import Sequence
from typing import NamedTuple

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef.shapes.tensor_format import TensorFormat


class Padding(enum.Enum):
    """How an input is padded before a window slides over it."""

    VALID = "VALID"
    """Not at all: only windows that fit."""
    SAME = "SAME"
    """With zeros, evenly, so that stride 1 keeps the size."""
    EXPLICIT = "EXPLICIT"
    """As the `explicit_paddings` attr says."""

    @classmethod
    def from_string(cls, text: str) -> "Padding":
        """The padding that a `padding` attr names.

        Raises:
            InvalidArgumentError: no padding has this name.
        """
        try:
            return cls(text)
        except ValueError:
            raise InvalidArgumentError(f"{text} is not an allowed padding type") from None


class WindowedOutput(NamedTuple):
    """How many windows there are, and the padding before and after the input."""

    size: int
    padding_before: int
    padding_after: int


def check_dilation_and_stride(dilation: int, stride: int) -> None:
    """Refuse a dilation or a stride below 1 with an InvalidArgumentError."""
    if stride <= 0:
        raise InvalidArgumentError(f"Stride must be > 0, but got {stride}")
    if dilation < 1:
        raise InvalidArgumentError(f"Dilation rate must be >= 1, but got {dilation}")


def get_windowed_output_size(
    input_size: int, filter_size: int, dilation: int, stride: int, padding: Padding
) -> tuple[int, int]:
    """How many windows there are, and the padding before the input.

    Raises:
        InvalidArgumentError: the stride or dilation is below 1, or the size would be negative.
        InternalError: the padding is EXPLICIT, which says more than this function is given.
    """
    if padding is Padding.EXPLICIT:
        raise InternalError(
            "get_windowed_output_size does not handle EXPLICIT padding; "
            "call get_windowed_output_size_verbose instead"
        )
    output = get_windowed_output_size_verbose(input_size, filter_size, dilation, stride, padding)
    return output.size, output.padding_before


def get_windowed_output_size_verbose(
    input_size: int,
    filter_size: int,
    dilation: int,
    stride: int,
    padding: Padding,
    padding_before: int = 0,
    padding_after: int = 0,
) -> WindowedOutput:
    """How many windows there are, and the padding on both sides.

    The paddings given count for EXPLICIT only.

    Raises:
        InvalidArgumentError: the stride or dilation is below 1, or the size would be negative.
    """
    check_dilation_and_stride(dilation, stride)
    effective = (filter_size - 1) * dilation + 1
    if padding is Padding.SAME:
        size = (input_size + stride - 1) // stride
        padding_needed = max(0, (size - 1) * stride + effective - input_size)
        padding_before = padding_needed // 2
        padding_after = padding_needed - padding_before
    else:
        if padding is Padding.VALID:
            padding_before = padding_after = 0
        room = input_size + padding_before + padding_after - effective + stride
        size = _quotient(room, stride)
    if size < 0:
        raise InvalidArgumentError(
            f"Computed output size would be negative: {size} [input_size: {input_size}, "
            f"effective_filter_size: {effective}, stride: {stride}]"
        )
    return WindowedOutput(size, padding_before, padding_after)


def _quotient(dividend: int, divisor: int) -> int:
    """Division that rounds towards zero: a window that misses by less than a stride is size 0."""
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)


def check_valid_padding(
    padding: Padding, explicit_paddings: Sequence[int], num_dims: int, data_format: TensorFormat
) -> None:
    """Check an `explicit_paddings` attr: two for each dimension, none around batch and channels.

    Raises:
        InvalidArgumentError: it is none, or the padding is not EXPLICIT and it is not empty.
    """
    if padding is not Padding.EXPLICIT:
        if explicit_paddings:
            raise InvalidArgumentError(
                "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT"
            )
        return
    if len(explicit_paddings) != 2 * num_dims:
        raise InvalidArgumentError(
            f"explicit_paddings attribute must contain {2 * num_dims} values, "
            f"but got: {len(explicit_paddings)}"
        )
    if any(value < 0 for value in explicit_paddings):
        raise InvalidArgumentError("All elements of explicit_paddings must be nonnegative")
    for index in (data_format.batch_index(num_dims), data_format.feature_index(num_dims)):
        if any(explicit_paddings[2 * index : 2 * index + 2]):
            raise InvalidArgumentError(
                "Nonzero explicit padding in the batch or depth dimensions is not supported"
            )


def get_explicit_padding_for_dim(
    explicit_paddings: Sequence[int], data_format: TensorFormat, letter: str
) -> tuple[int, int]:
    """The padding before and after the dimension N, C, D, H or W."""
    index = data_format.index(letter, 2 if len(explicit_paddings) < 10 else 3)
    return explicit_paddings[2 * index], explicit_paddings[2 * index + 1]
