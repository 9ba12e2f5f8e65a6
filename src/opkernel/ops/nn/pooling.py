"""The common part of poolings: their attrs, checked, and the geometry of their windows.

Source: TensorFlow core/kernels/pooling_ops_common.cc, pooling_ops_3d.cc.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.ops.nn.geometry import Windows, check_length, windows_from_attrs
from opkernel.ops.nn.windows import Array, Geometry


@dataclass(frozen=True, slots=True)
class Pool:
    """Windows of one size.

    Attributes:
        ksize: the size of the windows over space.
        windows: how they slide.
        depth: the size of the windows over channels.
        depth_stride: how they slide over channels.
    """

    ksize: tuple[int, ...]
    windows: Windows
    depth: int
    depth_stride: int

    @property
    def rank(self) -> int:
        """The number of dimensions of the input."""
        return len(self.ksize) + 2

    def geometry(self, shape: Sequence[int]) -> Geometry:
        """Where the windows lie in an input `[batch, *spatial, channels]`.

        Raises:
            InvalidArgumentError: the shape has not the rank that the windows have, or is too small
                for them; or the padding is as large as a window.
        """
        if len(shape) != self.rank:
            raise InvalidArgumentError(
                f"tensor_in must be {self.rank}-dimensional, got shape {list(shape)}"
            )
        for size, paddings in zip(self.ksize, self.windows.paddings, strict=True):
            if max(paddings) >= size and any(paddings):
                raise InvalidArgumentError(
                    f"Padding {paddings} needs to be smaller than the window size {size}"
                )
        return self.windows.geometry(shape[1:-1], self.ksize)

    def output_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of what windows over space make of an input of this shape."""
        along = self.geometry(shape).output  # first, as it checks the rank
        return (shape[0], *along, shape[-1])

    def refuse_depth(self, op: str) -> None:
        """Refuse windows over the channels."""
        if self.depth != 1 or self.depth_stride != 1:
            raise UnimplementedError(f"{op} is not yet supported on the depth dimension.")


def check_channels_last(op: str, data_format: str) -> None:
    """Refuse, as TensorFlow does, the layouts that only GPUs compute in."""
    if data_format not in ("NHWC", "NDHWC"):
        raise InvalidArgumentError(
            f"Default {op} only supports NHWC or NDHWC on device type CPU, not {data_format}"
        )


def sizes_in_tensor(tensor: Array) -> list[int]:
    """The values of `ksize` or `strides`, where they are inputs of any shape."""
    sizes: list[int] = tensor.reshape(-1).tolist()
    return sizes


def pool_from_attrs(
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    rank: int = 4,
    data_format: str = "NHWC",
) -> Pool:
    """The windows of attrs for inputs of `rank` dimensions, images or volumes.

    Raises:
        InvalidArgumentError: an attr has not one entry for each dimension, or a size is not
            positive.
        UnimplementedError: there are windows over the batch.
    """
    check_length("ksize", ksize, rank)
    check_length("stride", strides, rank)
    if ksize[0] != 1 or strides[0] != 1:
        raise UnimplementedError("Pooling is not yet supported on the batch dimension.")
    if min(ksize) <= 0:
        raise InvalidArgumentError(f"Sliding window ksize must be positive, got {list(ksize)}")
    layout = TensorFormat.from_string(data_format)
    channel, places = layout.feature_index(rank), [layout.spatial_index(i) for i in range(rank - 2)]
    explicit = explicit_paddings if padding == "EXPLICIT" else ()
    steps = [strides[i] for i in places]
    windows = windows_from_attrs(data_format, steps, (1,) * len(steps), padding, explicit)
    return Pool(tuple(ksize[i] for i in places), windows, ksize[channel], strides[channel])


def pool_in_layout(
    ksize: Sequence[int], strides: Sequence[int], padding: str, data_format: str, rank: int = 4
) -> Pool:
    """The windows of attrs that say the layout; raises as `pool_from_attrs`."""
    return pool_from_attrs(ksize, strides, padding, rank=rank, data_format=data_format)


def padded_pool_in_layout(
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> Pool:
    """The windows of MaxPool's attrs; raises as `pool_from_attrs`."""
    return pool_from_attrs(ksize, strides, padding, explicit_paddings, data_format=data_format)


def padded_channels_last_pool(
    op: str,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> Pool:
    """The windows of MaxPool's attrs for kernels of `op` on the CPU; raises as `channels_last_pool`."""
    check_channels_last(op, data_format)
    return pool_from_attrs(ksize, strides, padding, explicit_paddings)


def channels_last_pool(
    op: str,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
    rank: int = 4,
) -> Pool:
    """The windows of attrs for kernels of `op` on the CPU; raises as `check_channels_last` and `pool_from_attrs`."""
    check_channels_last(op, data_format)
    return pool_from_attrs(ksize, strides, padding, rank=rank)
