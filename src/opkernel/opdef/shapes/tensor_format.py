"""Where batch, channels and space lie in the tensors of images and of convolution filters.

A layout is spelled with one letter a dimension: N batch, C channels, D H W space; I and O are the
input and output channels of a filter. `VECT` layouts split the channels (or the width): the last
dimension holds groups of 4 or 32.

Source: TensorFlow core/util/tensor_format.h.
"""

import enum
from collections.abc import Sequence
from typing import TypeVar

from opkernel.errors import InvalidArgumentError

_T = TypeVar("_T")
_SPACE = "DHW"


def _spatial_number(letter: str, num_spatial_dims: int) -> int:
    """Which spatial dimension a letter (D, H, W, or its number) names."""
    number = int(letter) if letter.isdigit() else _SPACE.find(letter) + num_spatial_dims - 3
    if (letter not in _SPACE and not letter.isdigit()) or not 0 <= number < num_spatial_dims:
        raise InvalidArgumentError(
            f"Invalid dimension: {letter} of a layout with {num_spatial_dims} spatial dimensions"
        )
    return number


class TensorFormat(enum.Enum):
    """The layout of a tensor of images. The spatial dimensions may be any number.

    All `num_dims` count every dimension of the tensor, the vector one included.
    """

    NHWC = "NHWC"
    NCHW = "NCHW"
    NCHW_VECT_C = "NCHW_VECT_C"
    NHWC_VECT_W = "NHWC_VECT_W"
    HWNC = "HWNC"
    HWCN = "HWCN"

    @classmethod
    def from_string(cls, text: str) -> "TensorFormat":
        """The layout of a `data_format` attr; "NDHWC" and "NCDHW" are NHWC and NCHW.

        Raises:
            InvalidArgumentError: there is no such layout.
        """
        try:
            return cls({"NDHWC": "NHWC", "NCDHW": "NCHW"}.get(text, text))
        except ValueError:
            raise InvalidArgumentError(f"Invalid data format string: {text}") from None

    @property
    def is_vectorised(self) -> bool:
        """Whether the last dimension holds the elements of one vector."""
        return self in (TensorFormat.NCHW_VECT_C, TensorFormat.NHWC_VECT_W)

    def num_spatial_dims(self, num_dims: int) -> int:
        """How many of `num_dims` dimensions are spatial."""
        return num_dims - (3 if self.is_vectorised else 2)

    def num_dims(self, num_spatial_dims: int) -> int:
        """How many dimensions there are with this many spatial ones."""
        return num_spatial_dims + (3 if self.is_vectorised else 2)

    def batch_index(self, num_dims: int) -> int:
        """Where the batch is."""
        if self is TensorFormat.HWNC:
            return num_dims - 2
        return num_dims - 1 if self is TensorFormat.HWCN else 0

    def feature_index(self, num_dims: int) -> int:
        """Where the channels are: for NCHW_VECT_C the outer ones."""
        if self in (TensorFormat.NCHW, TensorFormat.NCHW_VECT_C):
            return 1
        if self in (TensorFormat.NHWC, TensorFormat.HWNC):
            return num_dims - 1
        return num_dims - 2

    def inner_index(self, num_dims: int) -> int:
        """Where a vectorised layout keeps the channels (or columns) of one vector."""
        if not self.is_vectorised:
            raise InvalidArgumentError(f"{self.value} has no inner dimension")
        return num_dims - 1

    def spatial_index(self, spatial_dim: int) -> int:
        """Where spatial dimension 0, 1, ... is."""
        if self in (TensorFormat.NHWC, TensorFormat.NHWC_VECT_W):
            return spatial_dim + 1
        if self in (TensorFormat.NCHW, TensorFormat.NCHW_VECT_C):
            return spatial_dim + 2
        return spatial_dim

    def index(self, letter: str, num_spatial_dims: int = 2) -> int:
        """Where N, C, D, H, W or spatial dimension "0", "1", ... is."""
        if letter == "N":
            return self.batch_index(self.num_dims(num_spatial_dims))
        if letter == "C":
            return self.feature_index(self.num_dims(num_spatial_dims))
        return self.spatial_index(_spatial_number(letter, num_spatial_dims))

    def pick(self, values: Sequence[_T], letter: str) -> _T:
        """The value for this dimension, of one value for each of 4 (or, with D, 5) dimensions."""
        return values[self.index(letter, 2 if len(values) < 5 else 3)]


class FilterTensorFormat(enum.Enum):
    """The layout of a convolution filter. The spatial dimensions may be any number."""

    HWIO = "HWIO"
    OIHW = "OIHW"
    OHWI = "OHWI"
    OIHW_VECT_I = "OIHW_VECT_I"

    @classmethod
    def from_string(cls, text: str) -> "FilterTensorFormat":
        """The layout of a `filter_format` attr; "DHWIO" is HWIO, and so on.

        Raises:
            InvalidArgumentError: there is no such layout.
        """
        try:
            return cls({"DHWIO": "HWIO", "OIDHW": "OIHW", "ODHWI": "OHWI"}.get(text, text))
        except ValueError:
            raise InvalidArgumentError(f"Invalid filter format string: {text}") from None

    def num_spatial_dims(self, num_dims: int) -> int:
        """How many of `num_dims` dimensions are spatial."""
        return num_dims - (3 if self is FilterTensorFormat.OIHW_VECT_I else 2)

    def num_dims(self, num_spatial_dims: int) -> int:
        """How many dimensions there are with this many spatial ones."""
        return num_spatial_dims + (3 if self is FilterTensorFormat.OIHW_VECT_I else 2)

    def input_channels_index(self, num_dims: int) -> int:
        """Where the input channels are: for OIHW_VECT_I the outer ones."""
        if self is FilterTensorFormat.HWIO:
            return num_dims - 2
        return num_dims - 1 if self is FilterTensorFormat.OHWI else 1

    def inner_input_channels_index(self, num_dims: int) -> int:
        """Where OIHW_VECT_I keeps the input channels of one vector."""
        if self is not FilterTensorFormat.OIHW_VECT_I:
            raise InvalidArgumentError(f"{self.value} has no inner dimension")
        return num_dims - 1

    def output_channels_index(self, num_dims: int) -> int:
        """Where the output channels are."""
        return num_dims - 1 if self is FilterTensorFormat.HWIO else 0

    def spatial_index(self, spatial_dim: int) -> int:
        """Where spatial dimension 0, 1, ... is."""
        offset = {FilterTensorFormat.HWIO: 0, FilterTensorFormat.OHWI: 1}.get(self, 2)
        return spatial_dim + offset

    def index(self, letter: str, num_spatial_dims: int = 2) -> int:
        """Where I, O, D, H, W or spatial dimension "0", "1", ... is."""
        num_dims = self.num_dims(num_spatial_dims)
        if letter == "I":
            return self.input_channels_index(num_dims)
        if letter == "O":
            return self.output_channels_index(num_dims)
        return self.spatial_index(_spatial_number(letter, num_spatial_dims))
