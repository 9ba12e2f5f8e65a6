"""Shapes of convolutions, poolings and batch normalisation, and of their gradients.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.common_shapes.elementwise import unchanged_shape_with_rank
from opkernel.opdef.common_shapes.rules import shape_held_by
from opkernel.opdef.common_shapes.windows import (
    ImageDims,
    Padding,
    Windows,
    check_format_constraints_on_shape,
    check_valid_padding,
    data_format_attr,
    dimensions_from_shape,
    get_explicit_padding_for_dim,
    make_shape_from_format,
    padding_attrs,
    shape_from_dimensions,
)
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import UNKNOWN_DIM, DimensionHandle, ShapeHandle
from opkernel.opdef.shapes.tensor_format import FilterTensorFormat, TensorFormat


def conv2d_shape(c: InferenceContext) -> None:
    """Images * filter [h, w, in, out] -> images; padding VALID or SAME."""
    _conv2d_shape(c, supports_explicit_padding=False)


def conv2d_shape_with_explicit_padding(c: InferenceContext) -> None:
    """Images * filter [h, w, in, out] -> images; padding VALID, SAME or EXPLICIT."""
    _conv2d_shape(c, supports_explicit_padding=True)


def _conv2d_shape(c: InferenceContext, supports_explicit_padding: bool) -> None:
    data_format = data_format_attr(c)
    filter_format = FilterTensorFormat.from_string(c.find_attr("filter_format", "HWIO"))
    rank = data_format.num_dims(2)
    image = c.with_rank(c.input(0), rank)
    check_format_constraints_on_shape(c, data_format, image)
    filter_ = c.with_rank(c.input(1), rank)
    check_format_constraints_on_shape(c, data_format, filter_)
    dilations = _int_list_attr(c, "dilations", 4, "Conv2D requires the dilation attribute to")
    who = f"Conv2D on data format {data_format.value} requires the stride attribute to"
    strides = _int_list_attr(c, "strides", 4, who)
    dims = dimensions_from_shape(c, image, data_format)
    channels_out = c.dim(filter_, filter_format.index("O"))
    channels_in = c.dim(filter_, filter_format.index("I"))
    if filter_format is FilterTensorFormat.OIHW_VECT_I:
        inner = c.dim(filter_, filter_format.inner_index(rank))
        channels_in = c.multiply(channels_in, inner)
    _check_groups(dims.channels, channels_in, channels_out)
    padding, paddings = padding_attrs(c, data_format, "HW", supports_explicit_padding)
    padding_list = c.find_attr("padding_list", [])
    if padding_list and not supports_explicit_padding:  # of quantised convolutions
        padding, data_format = Padding.EXPLICIT, TensorFormat.NHWC
        check_valid_padding(padding, padding_list, 4, data_format)
        paddings = [get_explicit_padding_for_dim(padding_list, data_format, x) for x in "HW"]
    filter_space = [c.dim(filter_, filter_format.spatial_index(i)) for i in range(2)]
    windows = Windows(data_format, "HW", filter_space, dilations, strides, padding, paddings)
    vector_size = c.dim(image, -1) if data_format is TensorFormat.NCHW_VECT_C else None
    output = _convolved(c, dims, windows, channels_out, vector_size)
    c.set_output(0, output)


def _convolved(
    c: InferenceContext,
    dims: ImageDims,
    windows: Windows,
    channels: DimensionHandle,
    vector_size: DimensionHandle | None = None,
) -> ShapeHandle:
    """Images with a place for each window along each spatial dimension, and with so many channels."""
    output = ImageDims(dims.batch, windows.numbers(c, dims.space), channels)
    return shape_from_dimensions(c, output, windows.data_format, vector_size)


def _int_list_attr(c: InferenceContext, name: str, length: int, who: str) -> list[int]:
    values: list[int] = c.get_attr(name)
    if len(values) != length:
        raise InvalidArgumentError(f"{who} contain {length} values, but got: {len(values)}")
    return values


def _check_groups(
    channels: DimensionHandle,
    filter_channels: DimensionHandle,
    output_channels: DimensionHandle,
    wanted_groups: int | None = None,
) -> None:
    """Check that a filter over fewer channels divides the input and the output into groups."""
    depth, filter_depth, output_depth = (
        dim.value for dim in (channels, filter_channels, output_channels)
    )
    if depth == UNKNOWN_DIM or filter_depth == UNKNOWN_DIM:
        return
    if filter_depth == 0:
        raise InvalidArgumentError("Depth of filter must not be 0")
    if depth % filter_depth:
        raise InvalidArgumentError(
            f"Depth of input ({depth}) is not a multiple of input depth of filter ({filter_depth})"
        )
    groups = depth // filter_depth
    if wanted_groups is not None and groups != wanted_groups:
        raise InvalidArgumentError(
            f"Input depth {depth} divided by filter input depth {filter_depth} does not match "
            f"with groups parameter ({wanted_groups})"
        )
    if groups == 1 or output_depth == UNKNOWN_DIM:
        return
    if groups == 0:
        raise InvalidArgumentError("Number of groups must not be 0")
    if output_depth % groups:
        raise InvalidArgumentError(
            f"Depth of output ({output_depth}) is not a multiple of the number of groups ({groups})"
        )


def _check_conv_ranks(input_rank: int, filter_rank: int) -> None:
    if input_rank not in (4, 5):
        raise InvalidArgumentError(
            "Input tensor must be rank 4 or 5, excluding extra batch dimensions, "
            f"but got: {input_rank}"
        )
    if filter_rank not in (4, 5):
        raise InvalidArgumentError(f"Filter tensor must be rank 4 or 5, but got: {filter_rank}")
    if input_rank != filter_rank:
        raise InvalidArgumentError(
            f"Input tensor rank must be the same as filter rank, got {input_rank} and {filter_rank}"
        )


def conv_shape(c: InferenceContext) -> None:
    """Images or volumes, with `batch_dims` leading dimensions, * filter; any padding."""
    batch_dims, groups = c.get_attr("batch_dims"), c.get_attr("groups")
    if batch_dims < 0:
        raise InvalidArgumentError(f"Batch dims must be non-negative, but got {batch_dims}.")
    if groups <= 0:
        raise InvalidArgumentError(f"Groups attribute should be a positive integer, got {groups}")
    shape, filter_ = c.input(0), c.input(1)
    if shape.dims is None or filter_.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    _check_conv_ranks(len(shape.dims) - batch_dims + 1, len(filter_.dims))
    rank = len(filter_.dims)
    # The leading dimensions are passed on, as if the convolution had one batch dimension.
    one_batch = c.make_shape([None, *shape.dims[batch_dims:]])
    strides = _int_list_attr(c, "strides", rank, "Stride attribute should")
    dilations = [1] * rank
    if c.get_attr("dilations"):
        dilations = _int_list_attr(c, "dilations", rank, "Conv requires the dilation attribute to")
    channels_last = c.get_attr("data_format") == "CHANNELS_LAST"
    data_format = TensorFormat.NHWC if channels_last else TensorFormat.NCHW
    dims = dimensions_from_shape(c, one_batch, data_format, rank - 2)
    _check_groups(dims.channels, c.dim(filter_, -2), c.dim(filter_, -1), groups)
    letters = "DHW"[5 - rank :]
    padding, paddings = padding_attrs(c, data_format, letters, True, rank)
    filter_space = [c.dim(filter_, i) for i in range(rank - 2)]
    windows = Windows(data_format, letters, filter_space, dilations, strides, padding, paddings)
    images = _convolved(c, dims, windows, c.dim(filter_, -1))
    leading = c.subshape(shape, 0, batch_dims)
    c.set_output(0, c.concatenate(leading, c.subshape(images, 1)))


def conv3d_shape(c: InferenceContext) -> None:
    """Volumes * filter [d, h, w, in, out] -> volumes; padding VALID or SAME."""
    volume, filter_ = c.with_rank(c.input(0), 5), c.with_rank(c.input(1), 5)
    data_format = data_format_attr(c)
    dilations = [*_int_list_attr(c, "dilations", 5, "Conv3D requires the dilation attribute to")]
    strides = _int_list_attr(c, "strides", 5, "Conv3D requires the stride attribute to")
    dims = dimensions_from_shape(c, volume, data_format, 3)
    _check_groups(dims.channels, c.dim(filter_, 3), c.dim(filter_, 4))
    padding = Padding.from_string(c.get_attr("padding"))
    filter_space = [c.dim(filter_, i) for i in range(3)]
    # As in TensorFlow, rows take the dilation at the place of columns, and columns take that of rows.
    rows, columns = data_format.index("H", 3), data_format.index("W", 3)
    dilations[rows], dilations[columns] = dilations[columns], dilations[rows]
    none = [(0, 0)] * 3
    windows = Windows(data_format, "DHW", filter_space, dilations, strides, padding, none)
    c.set_output(0, _convolved(c, dims, windows, c.dim(filter_, 4)))


def depthwise_conv2d_native_shape(c: InferenceContext) -> None:
    """Images * filter [h, w, in, m] -> images of in * m channels; padding VALID or SAME."""
    _depthwise_conv2d_native_shape(c, supports_explicit_padding=False)


def depthwise_conv2d_native_shape_with_explicit_padding(c: InferenceContext) -> None:
    """Images * filter [h, w, in, m] -> images of in * m channels; any padding."""
    _depthwise_conv2d_native_shape(c, supports_explicit_padding=True)


def _depthwise_conv2d_native_shape(c: InferenceContext, supports_explicit_padding: bool) -> None:
    image, filter_ = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 4)
    who = "DepthwiseConv2D requires the"
    strides = _int_list_attr(c, "strides", 4, f"{who} stride attribute to")
    dilations: Sequence[int] = (1, 1, 1, 1)
    if c.find_attr("dilations") is not None:
        dilations = _int_list_attr(c, "dilations", 4, f"{who} dilations attribute to")
    data_format = data_format_attr(c)
    dims = dimensions_from_shape(c, image, data_format)
    channels = c.multiply(c.merge(dims.channels, c.dim(filter_, 2)), c.dim(filter_, 3))
    padding, paddings = padding_attrs(c, data_format, "HW", supports_explicit_padding)
    filter_space = [c.dim(filter_, i) for i in range(2)]
    windows = Windows(data_format, "HW", filter_space, dilations, strides, padding, paddings)
    c.set_output(0, _convolved(c, dims, windows, channels))


def conv2d_backprop_filter_with_bias_shape(c: InferenceContext) -> None:
    """Input 1 holds the shape of the filter; the bias has a value for each channel of input 0."""
    images = c.with_rank(c.input(0), 4)
    channels_first = c.find_attr("data_format") == "NCHW"
    c.set_output(1, c.vector(c.dim(images, 1 if channels_first else 3)))
    c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(1), 4))


def conv2d_backprop_input_shape(c: InferenceContext) -> None:
    """Input 0 holds the shape of the images, or only rows and columns of it."""
    data_format = data_format_attr(c)
    gradient, filter_ = c.with_rank(c.input(2), 4), c.with_rank(c.input(1), 4)
    dims = dimensions_from_shape(c, gradient, data_format)
    c.merge(dims.channels, c.dim(filter_, 3))
    given = c.make_shape_from_shape_tensor(0)
    if not c.rank_known(given):
        given = c.with_rank(given, 4)
    if c.rank(given) == 4:
        # With groups the images have more channels than the filter, so only `given` knows them.
        image = dimensions_from_shape(c, given, data_format)
        c.merge(image.batch, dims.batch)
        space, channels = image.space, image.channels
    elif c.rank(given) == 2:
        space, channels = given.dims or (), c.dim(filter_, 2)
    else:
        raise InvalidArgumentError(
            "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, "
            f"but got: {c.rank(given)}"
        )
    output = ImageDims(dims.batch, space, channels)
    c.set_output(0, shape_from_dimensions(c, output, data_format))


max_pool_grad_shape = unchanged_shape_with_rank(4)
"""The gradient has the shape of the images, input 0."""
max_pool3d_grad_shape = unchanged_shape_with_rank(5)
"""The gradient has the shape of the volumes, input 0."""
avg_pool_grad_shape = shape_held_by(0, rank=4)
"""Input 0 holds the shape of the images."""
avg_pool3d_grad_shape = shape_held_by(0, rank=5)
"""Input 0 holds the shape of the volumes."""


def avg_pool_shape(c: InferenceContext) -> None:
    """Images -> images with as many rows and columns as windows; padding VALID or SAME."""
    data_format, image = _images(c)
    strides, ksize = c.get_attr("strides"), c.get_attr("ksize")
    _check_lengths("AvgPool requires the {} attribute", strides, ksize, 4)
    c.set_output(0, _slide_over_space(c, data_format, image, "HW", ksize, strides))


def max_pool_shape(c: InferenceContext) -> None:
    """Images -> images: windows over rows, columns and channels; padding VALID or SAME."""
    _max_pool_shape(c, c.get_attr("ksize"), c.get_attr("strides"), False)


def max_pool_shape_with_explicit_padding(c: InferenceContext) -> None:
    """Images -> images: windows over rows, columns and channels; any padding."""
    _max_pool_shape(c, c.get_attr("ksize"), c.get_attr("strides"), True)


def max_pool_v2_shape(c: InferenceContext, num_inputs: int | None = None) -> None:
    """As `max_pool_shape`, where the last two of `num_inputs` inputs hold ksize and strides.

    With two inputs less (they are attrs then) this is `max_pool_shape`.
    """
    num_inputs = c.num_inputs() if num_inputs is None else num_inputs
    if c.num_inputs() + 2 == num_inputs:
        max_pool_shape(c)
        return
    _images(c)
    sizes = []
    for i in (num_inputs - 2, num_inputs - 1):
        c.with_value(c.dim(c.with_rank(c.input(i), 1), 0), 4)
    for i in (num_inputs - 2, num_inputs - 1):
        tensor = c.input_tensor(i)
        if tensor is None:
            c.set_output(0, c.unknown_shape())
            return
        sizes.append(tensor.reshape(-1).tolist())
    _max_pool_shape(c, sizes[0], sizes[1], False)


def _max_pool_shape(
    c: InferenceContext, ksize: Sequence[int], strides: Sequence[int], supports_explicit: bool
) -> None:
    data_format, image = _images(c)
    _check_lengths("MaxPool requires the {} attribute", strides, ksize, 4)
    batch, space, _ = dimensions_from_shape(c, image, data_format)
    # Of a layout with vectors, windows slide over the outer channels.
    depth = c.dim(image, data_format.feature_index(c.rank(image)))
    windows = _pooling_windows(c, data_format, "HWC", ksize, strides, supports_explicit)
    rows, columns, channels = windows.numbers(c, (*space, depth))
    c.set_output(0, make_shape_from_format(c, data_format, batch, (rows, columns), channels))


def _pooling_windows(
    c: InferenceContext,
    data_format: TensorFormat,
    letters: str,
    ksize: Sequence[int],
    strides: Sequence[int],
    supports_explicit: bool = False,
) -> Windows:
    padding, paddings = padding_attrs(c, data_format, letters, supports_explicit)
    sizes = [data_format.pick(ksize, letter) for letter in letters]
    return Windows(data_format, letters, sizes, [1] * len(ksize), strides, padding, paddings)


def pool3d_shape(c: InferenceContext) -> None:
    """Volumes -> volumes with as many planes, rows and columns as windows."""
    volume = c.with_rank(c.input(0), 5)
    data_format = data_format_attr(c)
    strides, ksize = c.get_attr("strides"), c.get_attr("ksize")
    _check_lengths("Pool3D ops require the {} attribute", strides, ksize, 5)
    c.set_output(0, _slide_over_space(c, data_format, volume, "DHW", ksize, strides))


def _slide_over_space(
    c: InferenceContext,
    data_format: TensorFormat,
    images: ShapeHandle,
    letters: str,
    ksize: Sequence[int],
    strides: Sequence[int],
) -> ShapeHandle:
    """The images with as many rows and so on, named by `letters`, as windows fit in them."""
    dims = dimensions_from_shape(c, images, data_format, len(letters))
    windows = _pooling_windows(c, data_format, letters, ksize, strides)
    space = windows.numbers(c, dims.space)
    return make_shape_from_format(c, data_format, dims.batch, space, dims.channels)


def _images(c: InferenceContext) -> tuple[TensorFormat, ShapeHandle]:
    """The attr `data_format`, and input 0 with the rank that it asks for."""
    data_format = data_format_attr(c)
    image = c.with_rank(c.input(0), data_format.num_dims(2))
    check_format_constraints_on_shape(c, data_format, image)
    return data_format, image


def _check_lengths(who: str, strides: Sequence[int], ksize: Sequence[int], length: int) -> None:
    for name, values in (("stride", strides), ("ksize", ksize)):
        if len(values) != length:
            raise InvalidArgumentError(
                f"{who.format(name)} to contain {length} values, but got: {len(values)}"
            )


def fused_batch_norm_shape(c: InferenceContext) -> None:
    """Input 0, and four vectors with one element for each channel."""
    data_format = data_format_attr(c)
    rank = 5 if c.get_attr("data_format") in ("NDHWC", "NCDHW") else 4
    images = c.with_rank(c.input(0), rank)
    # Mean and variance are empty while training, unless they are averaged with the old ones.
    averages = c.find_attr("exponential_avg_factor", 1.0) != 1.0
    statistics_given = not c.get_attr("is_training") or averages
    axis = data_format.feature_index(rank)
    channels = c.dim(images, axis)
    for i in range(1, 5 if statistics_given else 3):
        channels = c.merge(channels, c.dim(c.with_rank(c.input(i), 1), 0))
    c.set_output(0, c.replace_dim(images, axis, channels))
    per_channel = c.vector(channels)
    for i in range(1, 5):
        c.set_output(i, per_channel)


def fused_batch_norm_v3_shape(c: InferenceContext) -> None:
    """As `fused_batch_norm_shape`; the sixth output is the kernel's own and unknown."""
    fused_batch_norm_shape(c)
    c.set_output(5, c.unknown_shape())


def fused_batch_norm_ex_shape(c: InferenceContext) -> None:
    """As `fused_batch_norm_v3_shape`, where the number of channels is a multiple of 4."""
    fused_batch_norm_v3_shape(c)
    images = c.with_rank(c.input(0), 4)
    channels = c.dim(images, data_format_attr(c).feature_index(4)).value
    if channels != UNKNOWN_DIM and channels % 4:
        raise InvalidArgumentError(
            f"{c.node_def.op} channel dimension must be divisible by 4, but is {channels}."
        )


def fused_batch_norm_grad_shape(c: InferenceContext) -> None:
    """The gradients of the images, of scale and of offset, and two empty vectors."""
    data_format = data_format_attr(c)
    rank = 5 if c.get_attr("data_format") in ("NDHWC", "NCDHW") else 4
    gradient = c.with_rank(c.input(0), rank)
    images = c.with_rank(c.input(1), rank)
    axis = data_format.feature_index(rank)
    channels = c.merge(c.dim(gradient, axis), c.dim(images, axis))
    for i in range(2, 5):
        channels = c.merge(channels, c.dim(c.with_rank(c.input(i), 1), 0))
    c.set_output(0, c.replace_dim(gradient, axis, channels))
    c.set_output(1, c.vector(channels))
    c.set_output(2, c.vector(channels))
    c.set_output(3, c.vector(0))
    c.set_output(4, c.vector(0))


def fused_batch_norm_grad_ex_shape(c: InferenceContext) -> None:
    """As `fused_batch_norm_grad_shape`, and the gradient of the side input, if there is one."""
    fused_batch_norm_grad_shape(c)
    if c.get_attr("num_side_inputs"):
        gradient, images = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 4)
        axis = data_format_attr(c).feature_index(4)
        channels = c.merge(c.dim(gradient, axis), c.dim(images, axis))
        c.set_output(5, c.replace_dim(gradient, axis, channels))
