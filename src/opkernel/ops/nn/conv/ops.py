"""The ops of the convolution family, with their shape functions and the reference kernels.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/conv_ops_fused_image_transform.cc.
"""

from collections.abc import Callable, Sequence

from opkernel.kernel import KernelContract, KernelRegistry, register_kernel
from opkernel.opdef import (
    InferenceContext,
    OpHandle,
    OpShapeInferenceFn,
    ShapeHandle,
    common_shapes,
    register_op,
)
from opkernel.opdef.common_shapes.rules import shape_held_by
from opkernel.opdef.common_shapes.windows import Padding
from opkernel.ops import registration
from opkernel.ops.input_checks import require_equal
from opkernel.ops.nn.conv.gradients import gradient_maker
from opkernel.ops.nn.conv.kernels import ConvolutionKernels
from opkernel.ops.nn.conv.reference import REFERENCE, Algorithms
from opkernel.ops.nn.fused_matmul import FUSION_ATTRS
from opkernel.ops.registration import FLOATS, NARROW_FLOATS, WIDE_FLOATS
from opkernel.types import Array, DataType


def shape_like(index: int, rank: int) -> OpShapeInferenceFn:
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


def _padded_convolution_shape(c: InferenceContext, image: ShapeHandle, index: int) -> None:
    """The convolution of an image, padded as input `index` says, with the filters after it."""
    padded, filter_ = _padded_shape(c, image, index), c.with_rank(c.input(index + 1), 4)
    strides = c.get_attr("strides")
    require_equal(
        len(strides), 4, "Operation requires the stride attribute to contain 4 values, but got: {}"
    )
    c.merge(c.dim(padded, 3), c.dim(filter_, 2))
    padding = Padding.from_string(c.get_attr("padding"))
    space = [
        common_shapes.get_windowed_output_size_from_dims(
            c, c.dim(padded, i), c.dim(filter_, i - 1), strides[i], padding
        )
        for i in (1, 2)
    ]
    c.set_output(0, c.make_shape([c.dim(padded, 0), *space, c.dim(filter_, 3)]))


def fused_pad_conv2d_shape(c: InferenceContext) -> None:
    """The shape of a convolution of the image padded as input 1 says."""
    _padded_convolution_shape(c, c.with_rank(c.input(0), 4), 1)


def fused_resize_and_pad_conv2d_shape(c: InferenceContext) -> None:
    """Images with the size that input 1 holds, padded, convolved."""
    images = c.with_rank(c.input(0), 4)
    c.merge(c.input(1), c.vector(2))
    size = c.input_tensor(1)
    for axis, value in enumerate([None, None] if size is None else size.tolist(), 1):
        images = c.replace_dim(images, axis, value)
    _padded_convolution_shape(c, images, 2)


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


def _declare(
    signature: str,
    attrs: Sequence[str],
    shape_fn: OpShapeInferenceFn,
    doc: str,
    *,
    deprecated: tuple[int, str] | None = None,
    traits: str = "",
) -> OpHandle:
    return register_op(
        f"{signature} -> output: T",
        attrs=attrs,
        shape_fn=shape_fn,
        traits=f"cost=convolution {traits}",
        doc=doc,
        deprecated=deprecated,
    )


_OF_IMAGES = [_STRIDES, _NO_CUDNN, *_PADDING, _IMAGE_FORMAT, _DILATIONS]
_OF_VOLUMES = [_T, _VOLUME_STRIDES, _SAME_OR_VALID, _VOLUME_FORMAT, _VOLUME_DILATIONS]
_OLD = ["T: {half, float, double}", _VOLUME_STRIDES, _SAME_OR_VALID, _VOLUME_DILATIONS]
_BACKPROP = "input: T, filter: T, out_backprop: T"
_BY_INPUT, _BY_FILTER = "images=s-i:i", "images=i-i:-"


CONV = _declare(
    "Conv(input: T, filter: T)",
    [
        _T_OR_INT32,
        _STRIDES,
        *_PADDING,
        "data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'",
        "dilations: list(int) = []",
        "batch_dims: int = 1",
        "groups: int = 1",
    ],
    common_shapes.conv_shape,
    "The convolution of images or volumes, after `batch_dims` dimensions of them, with a filter [*spatial, in, out].",
)
CONV2D = _declare(
    "Conv2D(input: T, filter: T)",
    [_T_OR_INT32, *_OF_IMAGES],
    common_shapes.conv2d_shape_with_explicit_padding,
    "The convolution of images with a filter [rows, columns, in, out]; in groups where the images "
    "have a multiple of the filter's channels.",
    traits="images=i-:i row_rule=first_alone function_gradient=yes",
)
CONV2D_BY_INPUT = _declare(
    "Conv2DBackpropInput(input_sizes: int32, filter: T, out_backprop: T)",
    [_T_OR_INT32, *_OF_IMAGES],
    common_shapes.conv2d_backprop_input_shape,
    "The gradient of Conv2D by its input, whose shape is given; or only its rows and columns.",
    traits=_BY_INPUT,
)
CONV2D_BY_FILTER = _declare(
    "Conv2DBackpropFilter(input: T, filter_sizes: int32, out_backprop: T)",
    [_T, *_OF_IMAGES],
    shape_held_by(1, rank=4),
    "The gradient of Conv2D by its filter, whose shape is given.",
    traits=_BY_FILTER,
)
_declare(
    f"Conv2DBackpropInputV2({_BACKPROP})",
    [_T_OR_INT32, *_OF_IMAGES],
    shape_like(0, 4),
    "The gradient of Conv2D by its input; of `input` only the shape counts.",
    traits="no_kernel=tensorflow",
)
_declare(
    f"Conv2DBackpropFilterV2({_BACKPROP})",
    [_T, *_OF_IMAGES],
    shape_like(1, 4),
    "The gradient of Conv2D by its filter; of `filter` only the shape counts.",
    traits="no_kernel=tensorflow",
)
CONV3D = _declare(
    "Conv3D(input: T, filter: T)",
    _OF_VOLUMES,
    common_shapes.conv3d_shape,
    "The convolution of volumes with a filter [planes, rows, columns, in, out].",
    traits="images=i-:i row_rule=first_alone",
)
CONV3D_BY_INPUT = _declare(
    "Conv3DBackpropInputV2(input_sizes: Tshape, filter: T, out_backprop: T)",
    [*_OF_VOLUMES, "Tshape: {int32, int64} = DT_INT32"],
    shape_held_by(0, rank=5),
    "The gradient of Conv3D by its input, whose shape is given.",
    traits=_BY_INPUT,
)
CONV3D_BY_FILTER = _declare(
    "Conv3DBackpropFilterV2(input: T, filter_sizes: int32, out_backprop: T)",
    _OF_VOLUMES,
    shape_held_by(1, rank=5),
    "The gradient of Conv3D by its filter, whose shape is given.",
    traits=_BY_FILTER,
)
OLD_CONV3D_BY_INPUT = _declare(
    f"Conv3DBackpropInput({_BACKPROP})",
    _OLD,
    shape_like(0, 5),
    "The gradient of Conv3D by its input; of `input` only the shape counts.",
    deprecated=(10, "Use Conv3DBackpropInputV2"),
)
OLD_CONV3D_BY_FILTER = _declare(
    f"Conv3DBackpropFilter({_BACKPROP})",
    _OLD,
    shape_like(1, 5),
    "The gradient of Conv3D by its filter; of `filter` only the shape counts.",
    deprecated=(10, "Use Conv3DBackpropFilterV2"),
)
_DEPTHWISE = [_T, _STRIDES, *_PADDING, _IMAGE_FORMAT, _DILATIONS]
DEPTHWISE = _declare(
    "DepthwiseConv2dNative(input: T, filter: T)",
    _DEPTHWISE,
    common_shapes.depthwise_conv2d_native_shape_with_explicit_padding,
    "The convolution of each channel of images by itself, with a filter "
    "[rows, columns, channels, multiplier]; the output has channels * multiplier channels.",
    traits="images=i-:i row_rule=first_alone",
)
DEPTHWISE_BY_INPUT = _declare(
    "DepthwiseConv2dNativeBackpropInput(input_sizes: int32, filter: T, out_backprop: T)",
    _DEPTHWISE,
    shape_held_by(0, rank=4),
    "The gradient of DepthwiseConv2dNative by its input, whose shape is given.",
    traits=_BY_INPUT,
)
DEPTHWISE_BY_FILTER = _declare(
    "DepthwiseConv2dNativeBackpropFilter(input: T, filter_sizes: int32, out_backprop: T)",
    _DEPTHWISE,
    shape_held_by(1, rank=4),
    "The gradient of DepthwiseConv2dNative by its filter, whose shape is given.",
    traits=_BY_FILTER,
)
FUSED_PAD_CONV2D = _declare(
    "FusedPadConv2D(input: T, paddings: int32, filter: T)",
    [_T, "mode: {'REFLECT', 'SYMMETRIC'}", _STRIDES, _SAME_OR_VALID],
    fused_pad_conv2d_shape,
    "Conv2D of images with their mirror image around them; batch and channels are not padded.",
)
FUSED_RESIZE_AND_PAD_CONV2D = _declare(
    "FusedResizeAndPadConv2D(input: T, size: int32, paddings: int32, filter: T)",
    [
        "T: {half, float, double}",
        "resize_align_corners: bool = false",
        "mode: {'REFLECT', 'SYMMETRIC'}",
        _STRIDES,
        _SAME_OR_VALID,
    ],
    fused_resize_and_pad_conv2d_shape,
    "FusedPadConv2D of images that are resized to `size` before, bilinearly.",
)
FUSED_CONV2D = _declare(
    "_FusedConv2D(input: T, filter: T, args: TArgs, host_args: num_host_args * float)",
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
    common_shapes.conv2d_shape_with_explicit_padding,
    "Conv2D, and then the ops that `fused_ops` names, with `args` as their inputs.",
    traits="images=i-?:i row_rule=fused",
)
FUSED_DEPTHWISE = _declare(
    "_FusedDepthwiseConv2dNative(input: T, filter: T, args: num_args * T)",
    [_T, "num_args: int >= 0", _STRIDES, _SAME_OR_VALID, _IMAGE_FORMAT, _DILATIONS, *FUSION_ATTRS],
    common_shapes.depthwise_conv2d_native_shape,
    "DepthwiseConv2dNative, and then the ops that `fused_ops` names, with `args` as their inputs.",
    traits="images=i-?:i row_rule=fused",
)


def register_depthwise_convolutions(
    algorithms: Algorithms,
    types: Sequence[DataType] = FLOATS,
    registry: KernelRegistry | None = None,
) -> None:
    """Register kernels of DepthwiseConv2dNative and its kin, for some types, that compute by certain algorithms."""
    forward = ConvolutionKernels(algorithms)
    for op, all_types, make in (
        (DEPTHWISE, FLOATS, forward.depthwise_conv2d),
        (FUSED_DEPTHWISE, _UP_TO_FLOAT, forward.fused_depthwise_conv2d),
        (DEPTHWISE_BY_INPUT, FLOATS, gradient_maker(algorithms, DEPTHWISE_BY_INPUT.name)),
        (DEPTHWISE_BY_FILTER, FLOATS, gradient_maker(algorithms, DEPTHWISE_BY_FILTER.name)),
    ):
        register_kernel(
            op,
            device="CPU",
            types={"T": [one for one in all_types if one in types]},
            contract=KernelContract(outputs_as_declared=True),
            factory=True,
            registry=registry,
        )(make)


def register_convolutions(algorithms: Algorithms, registry: KernelRegistry | None = None) -> None:
    """Register kernels of all these ops that compute by certain algorithms."""
    forward = ConvolutionKernels(algorithms)
    asking = (CONV, CONV2D, CONV3D, FUSED_PAD_CONV2D, FUSED_CONV2D)

    def register(
        op: OpHandle,
        types: Sequence[DataType],
        make: Callable[..., object],
        label: str = "",
        data_formats: Sequence[str] = (),
    ) -> None:
        prepares = ("filter",) if algorithms.prepares and op in asking else ()
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
    register(FUSED_PAD_CONV2D, FLOATS, forward.fused_pad_conv2d)
    fused_types = (*FLOATS, DataType.DT_INT8, DataType.DT_QINT8)
    register(FUSED_CONV2D, fused_types, forward.fused_conv2d)

    def register_back(
        op: OpHandle, types: Sequence[DataType], label: str = "", data_formats: Sequence[str] = ()
    ) -> None:
        register(op, types, gradient_maker(algorithms, op.name), label, data_formats)

    register_depthwise_convolutions(algorithms, registry=registry)
    # The labels choose between algorithms in TensorFlow; here all are one.
    for label in ("", "custom", "eigen_tensor"):
        formats = ["NHWC"] if label else []
        no_half, wide = (_NO_HALF, WIDE_FLOATS) if label else (FLOATS, _NO_BFLOAT16)
        register_back(CONV2D_BY_INPUT, _WITH_INT32, label)
        register_back(CONV2D_BY_FILTER, FLOATS, label, formats)
        register_back(CONV3D_BY_INPUT, FLOATS, label)
        register_back(CONV3D_BY_FILTER, no_half, label)
        register_back(OLD_CONV3D_BY_INPUT, _NO_BFLOAT16, label)
        register_back(OLD_CONV3D_BY_FILTER, wide, label)


register_convolutions(REFERENCE)


@registration.register_kernel(FUSED_RESIZE_AND_PAD_CONV2D, types={"T": _NO_BFLOAT16}, factory=True)
def fused_resize_and_pad_conv2d(
    *, T: DataType, resize_align_corners: bool, mode: str, strides: list[int], padding: str
) -> Callable[[Array, Array, Array, Array], Array]:
    """The images are resized in their own type, as the convolution takes them."""
    from opkernel.ops.image.resize import (  # few convolutions resize
        interpolated_at,
        linear,
        output_size,
    )

    convolve = ConvolutionKernels(REFERENCE).fused_pad_conv2d(
        T=T, mode=mode, strides=strides, padding=padding
    )

    def fused(images: Array, size: Array, paddings: Array, filters: Array) -> Array:
        height, width = output_size(images, size, T)
        rows, columns = (
            linear(images.shape[axis], pixels, resize_align_corners, half_pixel_centers=False)
            for axis, pixels in ((1, height), (2, width))
        )
        return convolve(interpolated_at(images, rows, columns), paddings, filters)

    return fused
