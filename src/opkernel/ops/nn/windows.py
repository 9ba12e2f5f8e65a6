"""Windows that slide over channels-last arrays `[batch, *spatial, channels]`: from attrs to where they lie.

Any number of spatial dimensions. Convolutions and poolings, and their gradients, are all told here which
elements of the input each window has (`Geometry`), and turn their attrs `strides`, `padding` and
`data_format`, with one entry for each dimension of the input, into it (`Windows`). The ops differ a little in
the attrs that they refuse, and in the status codes.

Source: TensorFlow core/kernels/conv_ops_impl.h, ops_util.h, core/util/padding.cc.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.lib.stride_tricks import as_strided

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.kernel import allocate, scratch
from opkernel.opdef.common_shapes.windows import (
    Padding,
    WindowedOutput,
    check_valid_padding,
    get_explicit_padding_for_dim,
    get_windowed_output_size_verbose,
)
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.ops.input_checks import (
    int32_attr,
    require,
    require_equal,
    require_rank,
    require_vector,
)
from opkernel.records import dataclass, replace
from opkernel.types import Array, as_dtype

_Overlap = tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]

_SMALL_WINDOW = 64
"""Elements of a window up to which it is kept where they meet the input."""


@dataclass(frozen=True)
class Geometry:
    """Where the windows of a convolution lie: one entry a spatial dimension.

    Attributes:
        window: the filter's size.
        strides: the distance of neighbouring windows.
        dilations: the distance of neighbouring elements of a window.
        padding: the zeros before and after the input.
        output: the number of windows.
    """

    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    output: tuple[int, ...]

    @cached_property
    def is_padded(self) -> bool:
        """Whether there is any padding."""
        return any(map(any, self.padding))

    @cached_property
    def is_pointwise(self) -> bool:
        """Whether each window is one element, taken in order."""
        ones = (1,) * len(self.window)
        return self.window == ones and self.strides == ones and not self.is_padded

    def padded_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape `[batch, *spatial, channels]` with its padding."""
        spatial = (s + sum(p) for s, p in zip(shape[1:-1], self.padding, strict=True))
        return (shape[0], *spatial, shape[-1])

    def inner(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """Where in the padded array that of this shape lies."""
        spatial = zip(shape[1:-1], self.padding, strict=True)
        return (slice(None), *(slice(before, before + size) for size, (before, _) in spatial))


def geometry_along(
    along: Sequence[WindowedOutput],
    window: Sequence[int],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> Geometry:
    """The geometry of windows whose number, and whose padding, is known along each dimension."""
    paddings = tuple((one.padding_before, one.padding_after) for one in along)
    return Geometry(tuple(window), strides, dilations, paddings, tuple(one.size for one in along))


def pad(x: Array, geometry: Geometry, value: float = 0, *, in_scratch: bool = False) -> Array:
    """The input with its padding; the input itself if it has none."""
    if not geometry.is_padded:
        return x
    shape = geometry.padded_shape(x.shape)
    if in_scratch:
        padded = scratch("padded tile", shape, x.dtype)
    else:
        padded = allocate(shape, as_dtype(x.dtype))
    put_inside(padded, geometry.inner(x.shape), x, value)
    return padded


_FEW_PADDED = 1 << 12
"""Elements that are sooner filled than their margins are found."""


def put_inside(whole: Array, inside: Sequence[slice], x: Array, value: float = 0) -> None:
    """Fill `whole` with `x` at `inside`, slices of the first axes, and with a value around it."""
    if whole.size <= _FEW_PADDED:
        whole.fill(value)
    else:
        for axis, where in enumerate(inside):
            if where != slice(None):
                whole[(*inside[:axis], slice(where.start))] = value
                whole[(*inside[:axis], slice(where.stop, None))] = value
    whole[tuple(inside)] = x


def clipped(first: int, step: int, count: int, size: int) -> tuple[slice, slice]:
    """Which of `count` places `first`, `first + step`, ... lie in `range(size)`, and where.

    Both slices are `slice(0, 0)` where none does.
    """
    start = max(0, -(first // step))
    stop = min(count, (size - 1 - first) // step + 1)
    if start >= stop:
        return slice(0, 0), slice(0, 0)
    last = first + (stop - 1) * step
    return slice(start, stop), slice(first + start * step, last + 1, step)


def meetings(
    first: int, stride: int, count: int, size: int, window: int, dilation: int
) -> Iterator[tuple[int, slice, slice]]:
    """Where windows and an input meet along one axis, for each element of the window.

    Args:
        first: where the first window begins; negative in the padding.
        stride: the distance of neighbouring windows.
        count: the number of windows.
        size: the size of the input.
        window: the size of a window, which may be much larger than the input.
        dilation: the distance of neighbouring elements of a window.

    Yields:
        The offset of an element in the window, which windows have it in the input, and where.
    """
    offsets = range(window)
    if dilation > 0:
        low = -((first + (count - 1) * stride) // dilation)
        offsets = range(max(0, low), min(window, (size - 1 - first) // dilation + 1))
    for at in offsets:
        windows, elements = clipped(first + at * dilation, stride, count, size)
        if windows.stop:
            yield at, windows, elements


def overlaps(geometry: Geometry, spatial: Sequence[int]) -> Iterable[_Overlap]:
    """Where windows and an input without padding meet, for each element of the window.

    Gives three things: the element's offset in the window; an index of the windows `[batch, *output, ...]`
    that have this element in the input; and an index of these elements `[batch, *spatial, ...]`. Elements
    that lie in the padding for all windows are left out.
    """
    if math.prod(geometry.window) > _SMALL_WINDOW:
        return in_time(_overlaps(geometry, spatial), SLOW)
    return in_time(_small_overlaps(geometry, tuple(spatial)), SLOW)


@lru_cache(maxsize=256)
def _small_overlaps(geometry: Geometry, spatial: tuple[int, ...]) -> Iterable[_Overlap]:
    return tuple(_overlaps(geometry, spatial))


def _overlaps(geometry: Geometry, spatial: Sequence[int]) -> Iterator[_Overlap]:
    axes = [
        list(
            meetings(
                -geometry.padding[i][0],
                geometry.strides[i],
                geometry.output[i],
                size,
                geometry.window[i],
                geometry.dilations[i],
            )
        )
        for i, size in enumerate(spatial)
    ]
    everything = slice(None)
    for found in itertools.product(*axes):
        offset = tuple(at for at, _, _ in found)
        yield offset, (everything, *(w for _, w, _ in found)), (everything, *(e for *_, e in found))


@lru_cache(maxsize=256)
def turned_geometry(geometry: Geometry, spatial: tuple[int, ...]) -> Geometry:
    """Where the windows of the turned filter lie in the gradient by the output.

    There is one for each input element, with the gradients of the windows that the element is in, where
    strides are 1. `spread` is for all strides, and copies.
    """
    padding = []
    for axis, size in enumerate(spatial):
        reach = (geometry.window[axis] - 1) * geometry.dilations[axis]
        first = geometry.padding[axis][0]
        padding.append((reach - first, size - geometry.output[axis] + first))
    return replace(geometry, padding=tuple(padding), output=spatial)


def spread(gradient: Array, geometry: Geometry, spatial: Sequence[int]) -> tuple[Array, Geometry]:
    """The gradient by the output, laid out so that windows slide over it once per input element.

    An input element lies in some windows of the convolution. Its window here holds the gradients of these,
    beginning with the window that has it last. There are zeros where a stride steps over the element.

    Returns:
        The array `[batch, *(spatial + reach), channels]`, and where its windows lie.
    """
    reach = [(w - 1) * d for w, d in zip(geometry.window, geometry.dilations, strict=True)]
    sizes = [size + more for size, more in zip(spatial, reach, strict=True)]
    dtype = as_dtype(gradient.dtype)
    out = allocate((gradient.shape[0], *sizes, gradient.shape[-1]), dtype)
    out.fill(0)
    axes = [
        clipped(reach[i] - before, geometry.strides[i], geometry.output[i], sizes[i])
        for i, (before, _) in enumerate(geometry.padding)
    ]
    everything = slice(None)
    out[(everything, *(to for _, to in axes))] = gradient[(everything, *(at for at, _ in axes))]
    places = replace(
        geometry, strides=(1,) * len(sizes), padding=((0, 0),) * len(sizes), output=tuple(spatial)
    )
    return out, places


def strided(array: Array, offset: int, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A view of a contiguous array; `offset` and `strides` count elements, not bytes."""
    size = array.itemsize
    return np.ndarray(shape, array.dtype, array, offset * size, [s * size for s in strides])


def windows_of(padded: Array, geometry: Geometry) -> Array:
    """A view `[batch, *output, *window, channels]` of a padded input."""
    batch, *along, channel = padded.strides
    outer = [s * step for s, step in zip(along, geometry.strides, strict=True)]
    inner = [s * step for s, step in zip(along, geometry.dilations, strict=True)]
    shape = (padded.shape[0], *geometry.output, *geometry.window, padded.shape[-1])
    strides = (batch, *outer, *inner, channel)
    if padded.flags.c_contiguous:
        return np.ndarray(shape, padded.dtype, padded, 0, strides)  # begins in a fifth of the time
    return as_strided(padded, shape, strides)


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
    return geometry_along(along, window, windows.strides, windows.dilations)


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
            f"Current implementation does not yet support {name} in the batch and depth dimensions, got {list(values)}"
        )
    spatial = tuple(values[layout.spatial_index(i)] for i in range(rank - 2))
    require(min(spatial) > 0, f"Spatial {name} should be larger than 0, got {list(values)}")
    return spatial


def check_rank(name: str, array: Array, rank: int) -> None:
    """Refuse an input that has not `rank` dimensions."""
    require_rank(array, rank, f"{name} must be {rank}-dimensional, got shape {{}}")


def check_shape(name: str, actual: Sequence[int], expected: Sequence[int]) -> None:
    """Refuse an input whose shape is not the one that the others ask for."""
    require_equal([*expected], [*actual], f"Expected {name} shape to be {{}}, but got {{}}")


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
