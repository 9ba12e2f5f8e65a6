"""The attrs of convolutions and poolings: checked once, then turned into geometry for sizes.

Every op has `strides`, `padding` and `data_format`, with one entry for each dimension of its input. The
ops differ a little in the attrs that they refuse, and in the status codes.

Source: TensorFlow core/kernels/conv_ops_impl.h, ops_util.h, core/util/padding.cc.
"""

from collections.abc import Sequence
from functools import lru_cache

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.opdef.shapes.windowed_output import (
    Padding,
    check_valid_padding,
    get_explicit_padding_for_dim,
    get_windowed_output_size_verbose,
)
from opkernel.ops.input_checks import require_equal, require_rank, require_vector
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.nn.windows import Array, Geometry
from opkernel.records import dataclass

_LETTERS = "DHW"


@dataclass(frozen=True, slots=True)
class Windows:
    """How windows slide over the spatial dimensions, whatever the sizes.

    Attributes:
        strides: the distance of neighbouring windows.
        dilations: the distance of neighbouring elements of a window.
        padding: how the input is padded.
        paddings: before and after, where the padding is EXPLICIT.
        data_format: the layout of the input.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: Padding
    paddings: tuple[tuple[int, int], ...]
    data_format: TensorFormat

    @property
    def channels_last(self) -> bool:
        """Whether the layout is the one that CPU kernels compute in."""
        return self.data_format is TensorFormat.NHWC

    def spatial(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The spatial sizes of an input `shape`."""
        return tuple(shape[self.data_format.spatial_index(i)] for i in range(len(self.strides)))

    def shape(self, batch: int, spatial: Sequence[int], channels: int) -> tuple[int, ...]:
        """A shape in this layout."""
        return (batch, *spatial, channels) if self.channels_last else (batch, channels, *spatial)

    def geometry(self, spatial: Sequence[int], window: Sequence[int]) -> Geometry:
        """Where windows of this size lie in an input of this size.

        Raises:
            InvalidArgumentError: a stride is not positive, or the window does not fit.
        """
        return _geometry(self, tuple(spatial), tuple(window))


@lru_cache(maxsize=1024)
def _geometry(windows: Windows, spatial: tuple[int, ...], window: tuple[int, ...]) -> Geometry:
    along = [
        get_windowed_output_size_verbose(
            size, window[i], windows.dilations[i], windows.strides[i], windows.padding, *paddings
        )
        for i, (size, paddings) in enumerate(zip(spatial, windows.paddings, strict=True))
    ]
    return Geometry(
        window,
        windows.strides,
        windows.dilations,
        tuple((found.padding_before, found.padding_after) for found in along),
        tuple(found.size for found in along),
    )


def windows_from_attrs(
    data_format: str,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
) -> Windows:
    """The windows of spatial strides and dilations, and of padding attrs.

    Raises:
        InvalidArgumentError: `explicit_paddings` does not fit the padding.
    """
    layout, kind = TensorFormat.from_string(data_format), Padding.from_string(padding)
    rank = len(strides)
    check_valid_padding(kind, explicit_paddings, rank + 2, layout)
    paddings = ((0, 0),) * rank
    if kind is Padding.EXPLICIT:
        letters = _LETTERS[-rank:]
        paddings = tuple(
            get_explicit_padding_for_dim(explicit_paddings, layout, letter) for letter in letters
        )
    return Windows(tuple(strides), tuple(dilations), kind, paddings, layout)


def check_length(name: str, values: Sequence[int], length: int) -> None:
    """Refuse an attr or a tensor without one int32 for each dimension."""
    require_equal(length, len(values), f"Sliding window {name} field must specify {{}} dimensions")
    for value in values:
        int32_attr(name, value)


def spatial_attr(
    name: str,
    values: Sequence[int],
    data_format: str,
    refusal: type[OpError] = InvalidArgumentError,
) -> tuple[int, ...]:
    """The entries of strides or dilations for the spatial dimensions.

    Raises:
        refusal: the entry for batch or channels is not 1.
        InvalidArgumentError: an entry is not positive.
    """
    layout, rank = TensorFormat.from_string(data_format), len(values)
    if values[layout.batch_index(rank)] != 1 or values[layout.feature_index(rank)] != 1:
        raise refusal(
            f"Current implementation does not yet support {name} in the batch and depth "
            f"dimensions, got {list(values)}"
        )
    spatial = tuple(values[layout.spatial_index(i)] for i in range(rank - 2))
    if min(spatial) <= 0:
        raise InvalidArgumentError(f"Spatial {name} should be larger than 0, got {list(values)}")
    return spatial


def check_rank(name: str, array: Array, rank: int) -> None:
    """Refuse an input that has not `rank` dimensions."""
    require_rank(array, rank, f"{name} must be {rank}-dimensional, got shape {{}}")


def check_shape(name: str, actual: Sequence[int], expected: Sequence[int]) -> None:
    """Refuse an input whose shape is not the one that the others ask for."""
    if tuple(actual) != tuple(expected):
        raise InvalidArgumentError(
            f"Expected {name} shape to be {list(expected)}, but got {list(actual)}"
        )


def sizes_from_tensor(name: str, tensor: Array) -> tuple[int, ...]:
    """A shape given as a vector.

    Raises:
        InvalidArgumentError: it is no vector, or a size is negative.
    """
    require_vector(tensor, f"{name} input must be 1-dim, not {tensor.ndim}")
    sizes = tuple(tensor.tolist())
    if any(size < 0 for size in sizes):
        raise InvalidArgumentError(f"elements of {name} must be >= 0, not {list(sizes)}")
    return sizes
