"""Shapes of poolings and of their gradients.

Source: TensorFlow core/framework/common_shape_fns.cc.
"""

from collections.abc import Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.opdef.common_shapes.elementwise import unchanged_shape_with_rank
from opkernel.opdef.common_shapes.windows import (
    check_format_constraints_on_shape,
    data_format_attr,
    dimensions_from_shape,
    get_windowed_output_size_from_dims,
    get_windowed_output_size_from_dims_v2,
    make_shape_from_format,
    padding_attrs,
)
from opkernel.opdef.shapes.inference_context import InferenceContext
from opkernel.opdef.shapes.shape_handles import ShapeHandle
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.opdef.shapes.windowed_output import Padding

max_pool_grad_shape = unchanged_shape_with_rank(4)
"""The gradient has the shape of the images, input 0."""
max_pool3d_grad_shape = unchanged_shape_with_rank(5)
"""The gradient has the shape of the volumes, input 0."""


def avg_pool_grad_shape(c: InferenceContext) -> None:
    """Input 0 holds the shape of the images."""
    c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(0), 4))


def avg_pool3d_grad_shape(c: InferenceContext) -> None:
    """Input 0 holds the shape of the volumes."""
    c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(0), 5))


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
    padding, paddings = padding_attrs(c, data_format, "HWC", supports_explicit)
    rows, columns, channels = (
        get_windowed_output_size_from_dims_v2(
            c,
            dim,
            data_format.pick(ksize, letter),
            1,
            data_format.pick(strides, letter),
            padding,
            paddings[i],
        )
        for i, (letter, dim) in enumerate(zip("HWC", (*space, depth), strict=True))
    )
    c.set_output(0, make_shape_from_format(c, data_format, batch, (rows, columns), channels))


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
    padding = Padding.from_string(c.get_attr("padding"))
    space = [
        get_windowed_output_size_from_dims(
            c, dim, data_format.pick(ksize, letter), data_format.pick(strides, letter), padding
        )
        for dim, letter in zip(dims.space, letters, strict=True)
    ]
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
