"""Where batch, channels and space lie in the tensors of images and of convolution filters.

A layout is spelled with one letter a dimension: N batch, C channels, D H W space; I and O are the
input and output channels of a filter. `VECT` layouts split the channels (or the width): the last
dimension holds groups of 4 or 32.

Source: TensorFlow core/util/tensor_format.h.
"""

import enum
import re
from collections.abc import Sequence
from typing import Self, TypeVar

from opkernel.errors import InvalidArgumentError

_T = TypeVar("_T")
_SPACE = "DHW"
_OF_IMAGES = {text: text.replace("D", "") for text in ["NDHWC", "NCDHW", "DHWIO", "OIDHW", "ODHWI"]}


class _Layout(enum.Enum):
    """A layout. In its `_order`, an S stands for all spatial dimensions, and a V for the vectors."""

    def __init__(self, name: str) -> None:
        self._order = re.sub("_VECT_.", "V", name).replace("HW", "S")

    @classmethod
    def from_string(cls, text: str) -> Self:
        """The layout of a `data_format` or `filter_format` attr; that of volumes is that of images.

        Raises:
            InvalidArgumentError: there is no such layout.
        """
        try:
            return cls(_OF_IMAGES.get(text, text))
        except ValueError:
            kind = "data" if cls is TensorFormat else "filter"
            raise InvalidArgumentError(f"Invalid {kind} format string: {text}") from None

    @property
    def is_vectorised(self) -> bool:
        """Whether the last dimension holds the elements of one vector."""
        return self._order.endswith("V")

    def num_spatial_dims(self, num_dims: int) -> int:
        """How many of `num_dims` dimensions are spatial."""
        return num_dims - len(self._order) + 1

    def num_dims(self, num_spatial_dims: int) -> int:
        """How many dimensions there are with this many spatial ones."""
        return num_spatial_dims + len(self._order) - 1

    def spatial_index(self, spatial_dim: int) -> int:
        """Where spatial dimension 0, 1, ... is."""
        return self._order.index("S") + spatial_dim

    def index(self, letter: str, num_spatial_dims: int = 2) -> int:
        """Where a dimension with a letter of its own is, or D, H, W or spatial dimension "0", "1", ..."""
        if letter in self._order:
            return self._place(letter, self.num_dims(num_spatial_dims))
        number = int(letter) if letter.isdigit() else _SPACE.find(letter) + num_spatial_dims - 3
        if (letter not in _SPACE and not letter.isdigit()) or not 0 <= number < num_spatial_dims:
            raise InvalidArgumentError(
                f"Invalid dimension: {letter} of a layout with {num_spatial_dims} spatial dimensions"
            )
        return self.spatial_index(number)

    def _place(self, letter: str, num_dims: int) -> int:
        """Where a letter is; behind the spatial dimensions it is counted from the end."""
        place = self._order.index(letter)
        is_behind = place > self._order.index("S")
        return num_dims - len(self._order) + place if is_behind else place

    def inner_index(self, num_dims: int) -> int:
        """Where a vectorised layout keeps the channels (or columns) of one vector."""
        if not self.is_vectorised:
            raise InvalidArgumentError(f"{self.value} has no inner dimension")
        return num_dims - 1


class TensorFormat(_Layout):
    """The layout of a tensor of images. The spatial dimensions may be any number.

    All `num_dims` count every dimension of the tensor, the vector one included.
    """

    NHWC = "NHWC"
    NCHW = "NCHW"
    NCHW_VECT_C = "NCHW_VECT_C"
    NHWC_VECT_W = "NHWC_VECT_W"
    HWNC = "HWNC"
    HWCN = "HWCN"

    def batch_index(self, num_dims: int) -> int:
        """Where the batch is."""
        return self._place("N", num_dims)

    def feature_index(self, num_dims: int) -> int:
        """Where the channels are: for NCHW_VECT_C the outer ones."""
        return self._place("C", num_dims)

    def pick(self, values: Sequence[_T], letter: str) -> _T:
        """The value for this dimension, of one value for each of 4 (or, with D, 5) dimensions."""
        return values[self.index(letter, 2 if len(values) < 5 else 3)]


class FilterTensorFormat(_Layout):
    """The layout of a convolution filter. The spatial dimensions may be any number."""

    HWIO = "HWIO"
    OIHW = "OIHW"
    OHWI = "OHWI"
    OIHW_VECT_I = "OIHW_VECT_I"
