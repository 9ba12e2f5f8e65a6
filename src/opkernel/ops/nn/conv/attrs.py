"""The attrs of convolutions: the windows that they describe, and the values that kernels refuse."""

from collections.abc import Callable, Sequence

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.ops.nn.geometry import Windows, check_length, spatial_attr, windows_from_attrs


def conv2d_windows(
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    refusal: type[OpError] = UnimplementedError,
) -> Windows:
    """The windows of the attrs of Conv2D.

    Raises:
        refusal: windows would step over the batch or the channels.
        InvalidArgumentError: an attr is not one of two-dimensional windows.
    """
    check_length("strides", strides, 4)
    steps = spatial_attr("strides", strides, data_format, refusal)
    check_length("dilations", dilations, 4)
    gaps = spatial_attr("dilations", dilations, data_format, refusal)
    return windows_from_attrs(data_format, steps, gaps, padding, explicit_paddings)


def conv3d_windows(
    strides: Sequence[int], dilations: Sequence[int], padding: str, data_format: str
) -> Windows:
    """The windows of the attrs of Conv3D.

    Raises:
        InvalidArgumentError: an attr is not one of three-dimensional windows.
    """
    check_length("strides", strides, 5)
    check_length("dilations", dilations, 5)
    steps = spatial_attr("strides", strides, data_format)
    gaps = spatial_attr("dilations", dilations, data_format)
    return windows_from_attrs(data_format, steps, gaps, padding)


def windows_of_conv(
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> Callable[[int], Windows]:
    """The windows that the attrs of Conv describe, for a number of spatial dimensions."""
    layout = "NHWC" if data_format == "CHANNELS_LAST" else "NCHW"

    def windows_for(num_spatial: int) -> Windows:
        rank = num_spatial + 2
        gaps = dilations or [1] * rank
        check_length("strides", strides, rank)
        check_length("dilations", gaps, rank)
        steps = spatial_attr("strides", strides, layout)
        gaps = spatial_attr("dilations", gaps, layout)
        return windows_from_attrs(layout, steps, gaps, padding, explicit_paddings)

    return windows_for


def check_num_spatial(rank: int, batch_dims: int) -> int:
    """The number of spatial dimensions of an input of Conv."""
    spatial = rank - 1 - batch_dims
    if spatial not in (2, 3) or batch_dims < 0:
        raise InvalidArgumentError(
            f"The input must have 2 or 3 spatial dimensions but got {spatial}, with "
            f"batch_dims = {batch_dims}"
        )
    return spatial


def depthwise_windows(
    strides: Sequence[int], padding: str, explicit_paddings: Sequence[int], data_format: str
) -> Windows:
    """The windows without dilations, which the CPU kernels refuse, or leave out in gradients.

    Raises:
        InvalidArgumentError: the strides are not equal, or an attr is not one of such windows.
    """
    check_length("strides", strides, 4)
    steps = spatial_attr("strides", strides, data_format)
    if steps[0] != steps[1]:
        raise InvalidArgumentError(
            "Current implementation only supports equal length strides in the row and column "
            f"dimensions, got {list(steps)}"
        )
    return windows_from_attrs(data_format, steps, (1, 1), padding, explicit_paddings)


def check_unit_dilations(windows: Windows) -> None:
    """Refuse dilations, which some of TensorFlow's CPU kernels do not compute."""
    if max(windows.dilations) > 1:
        raise InvalidArgumentError(
            "Current CPU implementations do not yet support dilation rates larger than 1, "
            f"got {list(windows.dilations)}"
        )
