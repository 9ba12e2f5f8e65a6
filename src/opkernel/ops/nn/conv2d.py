"""Conv2D and its gradients.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/conv_ops_impl.h, conv_grad_input_ops.h,
conv_grad_filter_ops.cc.
"""

from collections.abc import Callable, Sequence

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.kernel import register_kernel
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import (
    conv2d_backprop_input_shape,
    conv2d_shape_with_explicit_padding,
)
from opkernel.ops.kernel_types import FLOATS
from opkernel.ops.nn.convolution import (
    backprop_filter,
    backprop_input,
    check_unit_dilations,
    convolution,
    convolve_images,
)
from opkernel.ops.nn.geometry import (
    Windows,
    check_length,
    check_rank,
    sizes_from_tensor,
    spatial_attr,
    windows_from_attrs,
)
from opkernel.ops.nn.windows import Array
from opkernel.types import DataType

__all__ = ["CONV2D", "conv2d_windows"]

_FLOATS = "{half, bfloat16, float, double}"
_FLOATS_OR_INT32 = "{half, bfloat16, float, double, int32}"
_WITH_INT32 = (*FLOATS, DataType.DT_INT32)


def _copied_shape(index: int) -> Callable[[InferenceContext], None]:
    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.with_rank(c.input(index), 4))

    return shape


def _filter_shape(c: InferenceContext) -> None:
    """Input 1 holds the shape of the filter."""
    c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(1), 4))


def _declare(
    name: str,
    inputs: Sequence[str],
    types: str,
    shape_fn: Callable[[InferenceContext], None],
    doc: str,
) -> OpHandle:
    return register_op(
        name,
        inputs=inputs,
        outputs=["output: T"],
        attrs=[
            f"T: {types}",
            "strides: list(int)",
            "use_cudnn_on_gpu: bool = true",
            "padding: {'SAME', 'VALID', 'EXPLICIT'}",
            "explicit_paddings: list(int) = []",
            "data_format: {'NHWC', 'NCHW'} = 'NHWC'",
            "dilations: list(int) = [1, 1, 1, 1]",
        ],
        shape_fn=shape_fn,
        doc=doc,
    )


CONV2D = _declare(
    "Conv2D",
    ["input: T", "filter: T"],
    _FLOATS_OR_INT32,
    conv2d_shape_with_explicit_padding,
    "The convolution of images with a filter [rows, columns, in, out]; in groups where the images "
    "have a multiple of the filter's channels.",
)
CONV2D_BACKPROP_INPUT = _declare(
    "Conv2DBackpropInput",
    ["input_sizes: int32", "filter: T", "out_backprop: T"],
    _FLOATS_OR_INT32,
    conv2d_backprop_input_shape,
    "The gradient of Conv2D by its input, whose shape is given; or only its rows and columns.",
)
CONV2D_BACKPROP_FILTER = _declare(
    "Conv2DBackpropFilter",
    ["input: T", "filter_sizes: int32", "out_backprop: T"],
    _FLOATS,
    _filter_shape,
    "The gradient of Conv2D by its filter, whose shape is given.",
)
# TensorFlow has no CPU kernels of these two.
_declare(
    "Conv2DBackpropInputV2",
    ["input: T", "filter: T", "out_backprop: T"],
    _FLOATS_OR_INT32,
    _copied_shape(0),
    "The gradient of Conv2D by its input; of `input` only the shape counts.",
)
_declare(
    "Conv2DBackpropFilterV2",
    ["input: T", "filter: T", "out_backprop: T"],
    _FLOATS,
    _copied_shape(1),
    "The gradient of Conv2D by its filter; of `filter` only the shape counts.",
)


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


@register_kernel(CONV2D, device="CPU", types={"T": _WITH_INT32}, factory=True)
def conv2d(
    *,
    strides: list[int],
    dilations: list[int],
    padding: str,
    explicit_paddings: list[int],
    data_format: str,
) -> Callable[[Array, Array], Array]:
    """Images in layout NHWC only, as in TensorFlow."""
    check_length("dilations", dilations, 4)
    windows = conv2d_windows(strides, dilations, padding, explicit_paddings, data_format)

    def convolved(x: Array, filters: Array) -> Array:
        check_rank("convolution input", x, 4)
        check_rank("convolution filter", filters, 4)
        return convolution(x, filters, windows, convolve_images)

    return convolved


def _gradient_windows(
    op: str,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    refusal: type[OpError],
) -> Windows:
    if data_format != "NHWC":
        raise InvalidArgumentError(f"{op} only supports NHWC on the CPU, not {data_format}")
    windows = conv2d_windows(strides, dilations, padding, explicit_paddings, data_format, refusal)
    check_unit_dilations(windows)
    return windows


def conv2d_backprop_input(
    *,
    strides: list[int],
    dilations: list[int],
    padding: str,
    explicit_paddings: list[int],
    data_format: str,
) -> Callable[[Array, Array, Array], Array]:
    windows = _gradient_windows(
        "Conv2DBackpropInput",
        strides,
        dilations,
        padding,
        explicit_paddings,
        data_format,
        UnimplementedError,
    )

    def gradient_by_input(input_sizes: Array, filters: Array, gradient: Array) -> Array:
        sizes = sizes_from_tensor("Conv2DBackpropInput: input_sizes", input_sizes)
        check_rank("filter", filters, 4)
        check_rank("out_backprop", gradient, 4)
        if len(sizes) == 2:
            sizes = (gradient.shape[0], *sizes, filters.shape[2])
        if len(sizes) != 4:
            raise InvalidArgumentError(
                "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, "
                f"but got: {len(sizes)}"
            )
        return backprop_input("Conv2DBackpropInput", sizes, filters, gradient, windows)

    return gradient_by_input


def conv2d_backprop_filter(
    *,
    strides: list[int],
    dilations: list[int],
    padding: str,
    explicit_paddings: list[int],
    data_format: str,
) -> Callable[[Array, Array, Array], Array]:
    windows = _gradient_windows(
        "Conv2DBackpropFilter",
        strides,
        dilations,
        padding,
        explicit_paddings,
        data_format,
        InvalidArgumentError,
    )

    def gradient_by_filter(x: Array, filter_sizes: Array, gradient: Array) -> Array:
        sizes = sizes_from_tensor("Conv2DBackpropFilter: filter_sizes", filter_sizes)
        return backprop_filter("Conv2DBackpropFilter", x, sizes, gradient, windows)

    return gradient_by_filter


# The labels choose between algorithms in TensorFlow; here all are one.
for _label in ("", "custom", "eigen_tensor"):
    register_kernel(
        CONV2D_BACKPROP_INPUT, device="CPU", types={"T": _WITH_INT32}, label=_label, factory=True
    )(conv2d_backprop_input)
    register_kernel(
        CONV2D_BACKPROP_FILTER,
        device="CPU",
        types={"T": FLOATS},
        attrs={"data_format": ["NHWC"]} if _label else None,
        label=_label,
        factory=True,
    )(conv2d_backprop_filter)
