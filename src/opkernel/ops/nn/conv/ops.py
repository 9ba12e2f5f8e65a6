"""The ops of the convolution family, with the reference kernels.

The shape functions of convolutions that are of no use to other ops.

Source: TensorFlow core/ops/nn_ops.cc.
"""

from collections.abc import Callable, Sequence

from opkernel.kernel import KernelContract, KernelRegistry, register_kernel
from opkernel.opdef import InferenceContext, OpHandle, ShapeHandle, register_op
from opkernel.opdef.common_shapes import (
    conv2d_backprop_input_shape,
    conv2d_shape_with_explicit_padding,
    conv3d_shape,
    conv_shape,
    depthwise_conv2d_native_shape,
    depthwise_conv2d_native_shape_with_explicit_padding,
    get_windowed_output_size_from_dims,
)
from opkernel.opdef.common_shapes.rules import shape_held_by
from opkernel.opdef.shapes.windowed_output import Padding
from opkernel.ops.input_checks import require_equal
from opkernel.ops.kernel_types import FLOATS, NARROW_FLOATS, WIDE_FLOATS
from opkernel.ops.nn.conv.gradient_kernels import GradientKernels
from opkernel.ops.nn.conv.kernels import ConvolutionKernels
from opkernel.ops.nn.conv.reference import REFERENCE, Algorithms
from opkernel.ops.nn.epilogue import FUSION_ATTRS
from opkernel.types import DataType


def shape_like(index: int, rank: int) -> Callable[[InferenceContext], None]:
    """The shape of input `index`."""
    return lambda c: c.set_output(0, c.with_rank(c.input(index), rank))


def _padded_shape(c: InferenceContext, image: ShapeHandle, index: int) -> ShapeHandle:
    """An image with the padding that an input holds."""
    paddings = c.with_rank(c.input(index), 2)
    rows = c.value(c.dim(paddings, 0))
    require_equal(rows, 4, "Shape must be rank {} but is rank 4")
    c.merge(paddings, c.matrix(4, 2))
    values = c.input_tensor(index)
    if values is None:
        return c.unknown_shape_of_rank(4)
    sums = values.sum(axis=1).tolist()
    return c.make_shape([c.add(c.dim(image, i), both) for i, both in enumerate(sums)])


def padded_convolution_shape(c: InferenceContext, image: ShapeHandle, index: int) -> None:
    """The convolution of an image, padded as input `index` says, with the filters after it."""
    padded, filter_ = _padded_shape(c, image, index), c.with_rank(c.input(index + 1), 4)
    strides = c.get_attr("strides")
    require_equal(
        len(strides), 4, "Operation requires the stride attribute to contain 4 values, but got: {}"
    )
    c.merge(c.dim(padded, 3), c.dim(filter_, 2))
    padding = Padding.from_string(c.get_attr("padding"))
    space = [
        get_windowed_output_size_from_dims(
            c, c.dim(padded, i), c.dim(filter_, i - 1), strides[i], padding
        )
        for i in (1, 2)
    ]
    c.set_output(0, c.make_shape([c.dim(padded, 0), *space, c.dim(filter_, 3)]))


def fused_pad_conv2d_shape(c: InferenceContext) -> None:
    """The shape of a convolution of the image padded as input 1 says."""
    padded_convolution_shape(c, c.with_rank(c.input(0), 4), 1)


ShapeFn = Callable[[InferenceContext], None]

_WITH_INT32 = (*FLOATS, DataType.DT_INT32)
_NO_HALF = (DataType.DT_BFLOAT16, DataType.DT_FLOAT, DataType.DT_DOUBLE)
_NO_BFLOAT16 = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)
_UP_TO_FLOAT = (*NARROW_FLOATS, DataType.DT_FLOAT)

_T = "T: {half, bfloat16, float, double}"
_T_OR_INT32 = "T: {half, bfloat16, float, double, int32}"
_STRIDES, _DILATIONS = "strides: list(int)", "dilations: list(int) = [1, 1, 1, 1]"
_VOLUME_STRIDES = "strides: list(int) >= 5"
_VOLUME_DILATIONS = "dilations: list(int) = [1, 1, 1, 1, 1]"
_SAME_OR_VALID = "padding: {'SAME', 'VALID'}"
_PADDING = ["padding: {'SAME', 'VALID', 'EXPLICIT'}", "explicit_paddings: list(int) = []"]
_IMAGE_FORMAT = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
_VOLUME_FORMAT = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'"
_NO_CUDNN = "use_cudnn_on_gpu: bool = true"

_FORWARD = ["input: T", "filter: T"]
_BY_INPUT = ["input_sizes: int32", "filter: T", "out_backprop: T"]
_BY_FILTER = ["input: T", "filter_sizes: int32", "out_backprop: T"]
_OLD_BACKPROP = ["input: T", "filter: T", "out_backprop: T"]


def _declare(
    name: str,
    inputs: Sequence[str],
    attrs: Sequence[str],
    shape_fn: ShapeFn,
    doc: str,
    *,
    deprecated: tuple[int, str] | None = None,
    traits: str = "",
) -> OpHandle:
    has_layout = _IMAGE_FORMAT in attrs or _VOLUME_FORMAT in attrs
    layout = "has_data_format" if has_layout and "Backprop" not in name else ""
    return register_op(
        name,
        inputs=inputs,
        outputs=["output: T"],
        attrs=attrs,
        shape_fn=shape_fn,
        traits=f"{layout} cost=convolution {traits}",
        doc=doc,
        deprecated=deprecated,
    )


def _conv2d(
    name: str, inputs: Sequence[str], types: str, shape_fn: ShapeFn, doc: str, traits: str = ""
) -> OpHandle:
    attrs = [types, _STRIDES, _NO_CUDNN, *_PADDING, _IMAGE_FORMAT, _DILATIONS]
    return _declare(name, inputs, attrs, shape_fn, doc, traits=traits)


def _conv3d(
    name: str,
    inputs: Sequence[str],
    shape_fn: ShapeFn,
    doc: str,
    more_attrs: Sequence[str] = (),
    traits: str = "",
) -> OpHandle:
    attrs = [_T, _VOLUME_STRIDES, _SAME_OR_VALID, _VOLUME_FORMAT, _VOLUME_DILATIONS, *more_attrs]
    return _declare(name, inputs, attrs, shape_fn, doc, traits=traits)


def _old_conv3d(name: str, shape_fn: ShapeFn, doc: str) -> OpHandle:
    attrs = ["T: {half, float, double}", _VOLUME_STRIDES, _SAME_OR_VALID, _VOLUME_DILATIONS]
    gone = 10, f"Use {name}V2"
    return _declare(name, _OLD_BACKPROP, attrs, shape_fn, doc, deprecated=gone)


CONV = _declare(
    "Conv",
    _FORWARD,
    [
        _T_OR_INT32,
        _STRIDES,
        *_PADDING,
        "data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'",
        "dilations: list(int) = []",
        "batch_dims: int = 1",
        "groups: int = 1",
    ],
    conv_shape,
    "The convolution of images or volumes, after `batch_dims` dimensions of them, with a "
    "filter [*spatial, in, out].",
)
CONV2D = _conv2d(
    "Conv2D",
    _FORWARD,
    _T_OR_INT32,
    conv2d_shape_with_explicit_padding,
    "The convolution of images with a filter [rows, columns, in, out]; in groups where the images "
    "have a multiple of the filter's channels.",
    traits="row_rule=first_alone function_gradient=yes",
)
CONV2D_BY_INPUT = _conv2d(
    "Conv2DBackpropInput",
    _BY_INPUT,
    _T_OR_INT32,
    conv2d_backprop_input_shape,
    "The gradient of Conv2D by its input, whose shape is given; or only its rows and columns.",
)
CONV2D_BY_FILTER = _conv2d(
    "Conv2DBackpropFilter",
    _BY_FILTER,
    _T,
    shape_held_by(1, rank=4),
    "The gradient of Conv2D by its filter, whose shape is given.",
)
_conv2d(
    "Conv2DBackpropInputV2",
    _OLD_BACKPROP,
    _T_OR_INT32,
    shape_like(0, 4),
    "The gradient of Conv2D by its input; of `input` only the shape counts.",
    traits="no_kernel=tensorflow",
)
_conv2d(
    "Conv2DBackpropFilterV2",
    _OLD_BACKPROP,
    _T,
    shape_like(1, 4),
    "The gradient of Conv2D by its filter; of `filter` only the shape counts.",
    traits="no_kernel=tensorflow",
)
CONV3D = _conv3d(
    "Conv3D",
    _FORWARD,
    conv3d_shape,
    "The convolution of volumes with a filter [planes, rows, columns, in, out].",
    traits="row_rule=first_alone",
)
CONV3D_BY_INPUT = _conv3d(
    "Conv3DBackpropInputV2",
    ["input_sizes: Tshape", "filter: T", "out_backprop: T"],
    shape_held_by(0, rank=5),
    "The gradient of Conv3D by its input, whose shape is given.",
    ["Tshape: {int32, int64} = DT_INT32"],
)
CONV3D_BY_FILTER = _conv3d(
    "Conv3DBackpropFilterV2",
    _BY_FILTER,
    shape_held_by(1, rank=5),
    "The gradient of Conv3D by its filter, whose shape is given.",
)
OLD_CONV3D_BY_INPUT = _old_conv3d(
    "Conv3DBackpropInput",
    shape_like(0, 5),
    "The gradient of Conv3D by its input; of `input` only the shape counts.",
)
OLD_CONV3D_BY_FILTER = _old_conv3d(
    "Conv3DBackpropFilter",
    shape_like(1, 5),
    "The gradient of Conv3D by its filter; of `filter` only the shape counts.",
)
_DEPTHWISE = [_T, _STRIDES, *_PADDING, _IMAGE_FORMAT, _DILATIONS]
DEPTHWISE = _declare(
    "DepthwiseConv2dNative",
    _FORWARD,
    _DEPTHWISE,
    depthwise_conv2d_native_shape_with_explicit_padding,
    "The convolution of each channel of images by itself, with a filter "
    "[rows, columns, channels, multiplier]; the output has channels * multiplier channels.",
    traits="row_rule=first_alone",
)
DEPTHWISE_BY_INPUT = _declare(
    "DepthwiseConv2dNativeBackpropInput",
    _BY_INPUT,
    _DEPTHWISE,
    shape_held_by(0, rank=4),
    "The gradient of DepthwiseConv2dNative by its input, whose shape is given.",
)
DEPTHWISE_BY_FILTER = _declare(
    "DepthwiseConv2dNativeBackpropFilter",
    _BY_FILTER,
    _DEPTHWISE,
    shape_held_by(1, rank=4),
    "The gradient of DepthwiseConv2dNative by its filter, whose shape is given.",
)
FUSED_PAD_CONV2D = _declare(
    "FusedPadConv2D",
    ["input: T", "paddings: int32", "filter: T"],
    [_T, "mode: {'REFLECT', 'SYMMETRIC'}", _STRIDES, _SAME_OR_VALID],
    fused_pad_conv2d_shape,
    "Conv2D of images with their mirror image around them; batch and channels are not padded.",
)
FUSED_CONV2D = _declare(
    "_FusedConv2D",
    ["input: T", "filter: T", "args: TArgs", "host_args: num_host_args * float"],
    [
        "T: {half, float, double, int8, qint8}",
        "TArgs: list(type) >= 1",
        "num_args: int >= 0",
        "num_host_args: int >= 0 = 0",
        _STRIDES,
        *_PADDING,
        "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
        "filter_format: {'HWIO', 'OIHW', 'OIHW_VECT_I'} = 'HWIO'",
        _DILATIONS,
        _NO_CUDNN,
        *FUSION_ATTRS,
    ],
    conv2d_shape_with_explicit_padding,
    "Conv2D, and then the ops that `fused_ops` names, with `args` as their inputs.",
    traits="row_rule=fused",
)
FUSED_DEPTHWISE = _declare(
    "_FusedDepthwiseConv2dNative",
    ["input: T", "filter: T", "args: num_args * T"],
    [
        _T,
        "num_args: int >= 0",
        _STRIDES,
        _SAME_OR_VALID,
        _IMAGE_FORMAT,
        _DILATIONS,
        *FUSION_ATTRS,
    ],
    depthwise_conv2d_native_shape,
    "DepthwiseConv2dNative, and then the ops that `fused_ops` names, with `args` as their inputs.",
    traits="row_rule=fused",
)


def register_convolutions(algorithms: Algorithms, registry: KernelRegistry | None = None) -> None:
    """Register kernels of all these ops that compute by certain algorithms."""
    forward, gradients = ConvolutionKernels(algorithms), GradientKernels(algorithms)
    asking = (
        forward.conv,
        forward.conv2d,
        forward.conv3d,
        forward.fused_pad_conv2d,
        forward.fused_conv2d,
    )

    def register(
        op: OpHandle,
        types: Sequence[DataType],
        make: Callable[..., object],
        label: str = "",
        data_formats: Sequence[str] = (),
    ) -> None:
        prepares = ("filter",) if algorithms.prepares and make in asking else ()
        register_kernel(
            op,
            device="CPU",
            types={"T": types},
            attrs={"data_format": data_formats} if data_formats else None,
            label=label,
            contract=KernelContract(outputs_as_declared=True, prepares=prepares),
            factory=True,
            registry=registry,
        )(make)

    register(CONV, _WITH_INT32, forward.conv)
    register(CONV2D, _WITH_INT32, forward.conv2d)
    register(CONV3D, FLOATS, forward.conv3d)
    register(DEPTHWISE, FLOATS, forward.depthwise_conv2d)
    register(FUSED_PAD_CONV2D, FLOATS, forward.fused_pad_conv2d)
    fused_types = (*FLOATS, DataType.DT_INT8, DataType.DT_QINT8)
    register(FUSED_CONV2D, fused_types, forward.fused_conv2d)
    register(FUSED_DEPTHWISE, _UP_TO_FLOAT, forward.fused_depthwise_conv2d)
    register(DEPTHWISE_BY_INPUT, FLOATS, gradients.depthwise_backprop_input)
    register(DEPTHWISE_BY_FILTER, FLOATS, gradients.depthwise_backprop_filter)
    # The labels choose between algorithms in TensorFlow; here all are one.
    for label in ("", "custom", "eigen_tensor"):
        formats = ["NHWC"] if label else []
        no_half, wide = (_NO_HALF, WIDE_FLOATS) if label else (FLOATS, _NO_BFLOAT16)
        register(CONV2D_BY_INPUT, _WITH_INT32, gradients.conv2d_backprop_input, label)
        register(CONV2D_BY_FILTER, FLOATS, gradients.conv2d_backprop_filter, label, formats)
        register(CONV3D_BY_INPUT, FLOATS, gradients.conv3d_backprop_input_v2, label)
        register(CONV3D_BY_FILTER, no_half, gradients.conv3d_backprop_filter_v2, label)
        register(OLD_CONV3D_BY_INPUT, _NO_BFLOAT16, gradients.conv3d_backprop_input, label)
        register(OLD_CONV3D_BY_FILTER, wide, gradients.conv3d_backprop_filter, label)


register_convolutions(REFERENCE)
