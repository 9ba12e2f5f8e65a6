"""Gradients of the ops of opkernel.ops.nn against finite differences."""

import numpy as np
import pytest

from opkernel.testing import Tolerance, check_gradient

RANDOM = np.random.default_rng(1)
SIGNED = np.array([[-1.5, 0.6, 2.1, 7.2], [1.2, -0.25, -0.7, 5.3]])
GRADIENTS = RANDOM.normal(size=(2, 4))
IMAGE = RANDOM.permutation(np.linspace(-2, 2, 64)).reshape(2, 4, 4, 2)
FILTERS = RANDOM.normal(size=(2, 2, 2, 3))
ROUGHLY = {"delta": 1e-2, "tolerance": Tolerance(2e-3, 2e-2)}
"""For ops that have kernels of float32 alone."""
VOLUME = RANDOM.permutation(np.linspace(-2, 2, 54)).reshape(1, 3, 3, 3, 2)


@pytest.mark.parametrize(
    "op", ["Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "Softmax", "LogSoftmax"]
)  # fmt: skip
def test_of_activations(op):
    check_gradient(op, [SIGNED])


@pytest.mark.parametrize("op", ["ReluGrad", "Relu6Grad", "LeakyReluGrad", "SoftplusGrad"])
def test_of_gradients_of_activations(op):
    check_gradient(op, [GRADIENTS, SIGNED])


@pytest.mark.parametrize("op", ["EluGrad", "SeluGrad"])
def test_of_gradients_by_results(op):
    check_gradient(op, [GRADIENTS, np.maximum(SIGNED, -0.9)])


@pytest.mark.parametrize(
    "op", ["SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad"]
)
def test_of_gradients_of_unary_ops(op):
    check_gradient(op, [np.abs(SIGNED), GRADIENTS])


def test_of_biases():
    check_gradient("BiasAdd", [IMAGE, np.array([0.5, 2.0])])
    check_gradient("BiasAdd", [IMAGE, np.ones(4)], {"data_format": "NCHW"})
    check_gradient("BiasAddV1", [SIGNED, np.ones(4)])
    check_gradient("BiasAddGrad", [IMAGE])
    check_gradient("BiasAddGrad", [IMAGE], {"data_format": "NCHW"})


def test_of_cross_entropies():
    labels = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]])
    check_gradient("SoftmaxCrossEntropyWithLogits", [SIGNED, labels], without=[1])
    check_gradient("SparseSoftmaxCrossEntropyWithLogits", [SIGNED, np.array([2, 0])])


CONV2D = [
    {"strides": [1, 1, 1, 1], "padding": "SAME"},
    {"strides": [1, 2, 2, 1], "padding": "VALID"},
    {
        "strides": [1, 2, 1, 1],
        "padding": "EXPLICIT",
        "explicit_paddings": [0, 0, 1, 0, 2, 1, 0, 0],
    },
]


@pytest.mark.parametrize("attrs", CONV2D)
def test_of_convolutions(attrs):
    check_gradient("Conv2D", [IMAGE, FILTERS], attrs)


@pytest.mark.parametrize("attrs", CONV2D[:2])
def test_of_convolutions_of_each_channel(attrs):
    check_gradient("DepthwiseConv2dNative", [IMAGE, FILTERS], attrs)


def test_of_gradients_of_convolutions():
    attrs = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    back = RANDOM.normal(size=(2, 3, 3, 3))
    shapes = np.array(IMAGE.shape, np.int32), np.array(FILTERS.shape, np.int32)
    check_gradient("Conv2DBackpropInput", [shapes[0], FILTERS, back], attrs)
    check_gradient("Conv2DBackpropFilter", [IMAGE, shapes[1], back], attrs)
    deep = RANDOM.normal(size=(2, 3, 3, 6))
    check_gradient("DepthwiseConv2dNativeBackpropInput", [shapes[0], FILTERS, deep], attrs)
    check_gradient("DepthwiseConv2dNativeBackpropFilter", [IMAGE, shapes[1], deep], attrs)


def test_of_convolutions_of_volumes():
    attrs = {"strides": [1] * 5, "padding": "VALID"}
    filters = RANDOM.normal(size=(2, 2, 2, 2, 3))
    check_gradient("Conv3D", [VOLUME, filters], attrs)
    back = RANDOM.normal(size=(1, 2, 2, 2, 3))
    shapes = np.array(VOLUME.shape, np.int32), np.array(filters.shape, np.int32)
    check_gradient("Conv3DBackpropInputV2", [shapes[0], filters, back], attrs)
    check_gradient("Conv3DBackpropFilterV2", [VOLUME, shapes[1], back], attrs)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2])
def test_of_pools(padding, stride):
    attrs = {"ksize": [1, 2, 2, 1], "strides": [1, stride, stride, 1], "padding": padding}
    check_gradient("AvgPool", [IMAGE], attrs)
    check_gradient("MaxPool", [IMAGE], attrs)
    check_gradient("MaxPoolWithArgmax", [IMAGE], attrs | {"include_batch_in_index": True})
    window = [np.array(attrs.pop(name), np.int32) for name in ("ksize", "strides")]
    check_gradient("MaxPoolV2", [IMAGE, *window], attrs)


def test_of_pools_of_volumes():
    attrs = {"ksize": [1, 2, 2, 2, 1], "strides": [1] * 5, "padding": "SAME"}
    volume = VOLUME.astype(np.float32)
    check_gradient("AvgPool3D", [volume], attrs, **ROUGHLY)
    check_gradient("MaxPool3D", [volume], attrs, **ROUGHLY)


def test_of_gradients_of_pools():
    attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    after = IMAGE.reshape(2, 2, 2, 2, 2, 2).max((2, 4))
    back = RANDOM.normal(size=after.shape)
    check_gradient("AvgPoolGrad", [np.array(IMAGE.shape, np.int32), back], attrs)
    check_gradient("MaxPoolGrad", [IMAGE, after, back], attrs, without=[0, 1])


@pytest.mark.parametrize("op", ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])
@pytest.mark.parametrize("is_training", [True, False])
def test_of_batch_norm(op, is_training):
    x, scale, offset = IMAGE.astype(np.float32), *np.array([[0.5, 2], [0.1, 0.2]], np.float32)
    statistics = [np.zeros(0, np.float32)] * 2 if is_training else [offset, scale]
    check_gradient(
        op,
        [x, scale, offset, *statistics],
        {"is_training": is_training},
        without=[3, 4],
        outputs=[0],
        **ROUGHLY,
    )


def test_of_normalization():
    check_gradient("LRN", [IMAGE.astype(np.float32)], {"depth_radius": 1}, **ROUGHLY)


@pytest.mark.filterwarnings("ignore:Op BatchNormWithGlobalNormalization")
@pytest.mark.parametrize("scale", [True, False])
def test_of_batch_norm_with_global_statistics(scale):
    vectors = [np.array(v, np.float32) for v in ([0.1, -0.2], [0.8, 1.5], [0.3, 0.4], [2, 0.5])]
    attrs = {"variance_epsilon": 0.01, "scale_after_normalization": scale}
    check_gradient(
        "BatchNormWithGlobalNormalization",
        [IMAGE.astype(np.float32), *vectors],
        attrs,
        **ROUGHLY,
    )


def test_of_dilation():
    filters = RANDOM.normal(size=(2, 2, 2))
    attrs = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}
    check_gradient("Dilation2D", [IMAGE, filters], attrs)


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_of_gradients_of_batch_normalization(is_training, data_format):
    channels = 2 if data_format == "NHWC" else 4
    grad, mean = RANDOM.normal(size=IMAGE.shape), RANDOM.normal(size=channels)
    scale, variance = RANDOM.uniform(0.5, 1.5, (2, channels))
    attrs = {"is_training": is_training, "data_format": data_format, "epsilon": 0.1}
    if is_training:  # what FusedBatchNormV3 saves
        axes = (0, 1, 2) if data_format == "NHWC" else (0, 2, 3)
        mean, variance = IMAGE.mean(axes), IMAGE.var(axes)
    inputs = [grad, IMAGE, scale, mean, variance, np.zeros(0)]
    check_gradient(
        "FusedBatchNormGradV3",
        [tensor.astype(np.float32) for tensor in inputs],
        attrs,
        without=[1, 3, 4, 5] if is_training else [3, 4, 5],
        outputs=[0, 1, 2],
        **ROUGHLY,
    )


def test_of_quantization_in_a_range():
    inside = {"range_given": True, "num_bits": 30}
    check_gradient(
        "QuantizeAndDequantizeV4",
        [SIGNED, np.array(-2.0), np.array(3.0)],
        inside,
        without=[1, 2],
        delta=1e-4,
        tolerance=Tolerance(1e-4, 1e-4),
    )
