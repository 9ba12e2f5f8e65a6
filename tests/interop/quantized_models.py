"""Models in small numbers: simulated quantisation, and graphs of quantised tensors."""

import warnings
from typing import Any

import numpy as np
import tensorflow as tf
from tests.interop.calls import Call
from tests.interop.keras_models import exported
from tests.interop.module_models import numbers, spec
from tests.interop.text_models import functions

F32 = np.float32
MODELS: dict[str, Any] = {}
v1 = tf.compat.v1
keras: Any = tf.keras
IMAGES = [spec(None, 8, 8, 3)]


@functions(MODELS, predict=IMAGES, train=[*IMAGES, spec(None, 2)])
def trained_with_fake_quantization(directory):
    """A small network whose weights, by channel, and activations are rounded, with the step that trains it."""
    w, b = tf.Variable(numbers(3, 3, 3, 4)), tf.Variable(numbers(4))
    out = tf.Variable(numbers(4, 2))
    low, high = tf.Variable(-1.0, trainable=False), tf.Variable(1.0, trainable=False)

    def forward(x, training):
        fake = tf.quantization
        weights = fake.fake_quant_with_min_max_vars_per_channel(
            w, [-1.0, -0.8, -0.9, -1.0], [1.0, 0.9, 0.7, 1.0], num_bits=8, narrow_range=True
        )
        hidden = tf.nn.relu6(tf.nn.conv2d(x, weights, 2, "SAME") + b)
        if training:
            low.assign(0.9 * low + 0.1 * tf.reduce_min(hidden))
            high.assign(0.9 * high + 0.1 * tf.reduce_max(hidden))
        hidden = fake.fake_quant_with_min_max_vars(hidden, low, high, num_bits=7)
        pooled = tf.reduce_mean(hidden, [1, 2])
        return fake.fake_quant_with_min_max_args(pooled, -2.0, 2.5) @ out

    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(forward(x, True) - y))
        variables = [w, b, out]
        for variable, grad in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.1 * grad)
        return loss

    x = numbers(2, 8, 8, 3)
    calls = [Call("predict", [x]), *[Call("train", [x, numbers(2, 2)])] * 3]
    calls += [Call("predict", [x]), Call("signatures.predict", [], {"x": x})]
    made = {"predict": lambda x: forward(x, False), "train": train}
    return made, calls, w, b, out, low, high


@functions(MODELS, there=[spec(None, 4)], rounded=[spec(None, 4)], ranges=[spec(None, 4)])
def quantized_and_back(directory):
    kinds = {"qint8": tf.qint8, "quint8": tf.quint8, "qint32": tf.qint32, "quint16": tf.quint16}

    def there(x):
        found = {}
        for name, kind in kinds.items():
            for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
                made, low, high = tf.quantization.quantize(x, -1.5, 1.25, kind, mode=mode)
                found[f"{name}_{mode}"] = [
                    low,
                    high,
                    tf.quantization.dequantize(made, low, high, mode),
                ]
        return found

    def rounded(x):
        quantize = tf.quantization.quantize_and_dequantize_v2
        return (
            quantize(x, -1.0, 1.0, num_bits=5),
            quantize(x, -1.0, 1.0, range_given=True, round_mode="HALF_UP", narrow_range=True),
            tf.raw_ops.QuantizeAndDequantizeV4(
                input=x, input_min=-1.0, input_max=0.5, num_bits=6, range_given=True
            ),
            tf.quantization.quantize(x, [-1.0] * 4, [0.5, 1, 2, 3], tf.qint8, "SCALED", axis=1)[1:],
            tf.raw_ops.QuantizeAndDequantizeV3(
                input=x, input_min=-1.0, input_max=1.0, num_bits=4, range_given=True
            ),
        )

    def ranges(x):
        made, low, high = tf.quantization.quantize(x, -1.0, 1.0, tf.qint32, mode="MIN_FIRST")
        asked = tf.raw_ops.RequantizationRange(input=made, input_min=low, input_max=high)
        return tf.bitcast(
            tf.raw_ops.Requantize(
                input=made,
                input_min=low,
                input_max=high,
                requested_output_min=asked[0],
                requested_output_max=asked[1],
                out_type=tf.quint8,
            )[0],
            tf.uint8,
        ), asked

    x = numbers(3, 4)
    made = {"there": there, "rounded": rounded, "ranges": ranges}
    return made, [Call(name, [x]) for name in made]


@functions(MODELS, multiply=[spec(None, 6)], convolve=IMAGES, pool=IMAGES)
def quantized_kernels(directory):
    """Layers of bytes as the transform of graphs wrote them."""
    ops = tf.raw_ops
    w, filters = tf.Variable(numbers(6, 3)), tf.Variable(numbers(3, 3, 3, 2))

    def quantize(x):
        return tf.quantization.quantize(
            x, tf.reduce_min(x), tf.reduce_max(x), tf.quint8, mode="MIN_FIRST"
        )

    def dequantize(values):
        made, low, high = values
        asked = ops.RequantizationRange(input=made, input_min=low, input_max=high)
        small = ops.Requantize(
            input=made,
            input_min=low,
            input_max=high,
            requested_output_min=asked[0],
            requested_output_max=asked[1],
            out_type=tf.quint8,
        )
        relu = ops.QuantizedRelu(features=small[0], min_features=small[1], max_features=small[2])
        return tf.quantization.dequantize(relu[0], relu[1], relu[2], "MIN_FIRST")

    def multiply(x):
        a, low, high = quantize(x)
        b, min_b, max_b = quantize(w)
        return dequantize(
            ops.QuantizedMatMul(a=a, b=b, min_a=low, max_a=high, min_b=min_b, max_b=max_b)
        )

    def convolve(x):
        a, low, high = quantize(x)
        b, min_b, max_b = quantize(filters)
        return dequantize(
            ops.QuantizedConv2D(
                input=a,
                filter=b,
                min_input=low,
                max_input=high,
                min_filter=min_b,
                max_filter=max_b,
                strides=[1, 2, 2, 1],
                padding="SAME",
            )
        )

    def pool(x):
        a, low, high = quantize(x)
        pooled = ops.QuantizedMaxPool(
            input=a,
            min_input=low,
            max_input=high,
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 2, 1],
            padding="VALID",
        )
        shaped = ops.QuantizedReshape(
            tensor=pooled[0], shape=[-1, 48], input_min=pooled[1], input_max=pooled[2]
        )
        return tf.quantization.dequantize(*shaped, "MIN_FIRST")

    made = {"multiply": multiply, "convolve": convolve, "pool": pool}
    x = numbers(2, 8, 8, 3)
    calls = [Call("multiply", [numbers(3, 6)]), Call("convolve", [x]), Call("pool", [x])]
    return made, [*calls, Call("signatures.convolve", [], {"x": x})], w, filters


def int8_keras(directory):
    """Keras' own quantisation: dense layers and an embedding of int8."""
    keras.utils.set_random_seed(7)
    x = keras.layers.Input((5,), dtype="int32", name="ids")
    y = keras.layers.Flatten()(keras.layers.Embedding(12, 4)(x))
    net = keras.Model(x, keras.layers.Dense(3)(keras.layers.Dense(6, "relu")(y)))
    with warnings.catch_warnings():  # Keras hands its variables to NumPy in an old way
        warnings.simplefilter("ignore", DeprecationWarning)
        for layer in net.layers:
            if layer.weights:
                layer.quantize("int8")
    return exported(net, str(directory), np.random.RandomState(1).randint(0, 12, (3, 5), np.int32))


MODELS["int8_keras"] = int8_keras


@functions(MODELS, mixed=[spec(None, 6)])
def small_floats(directory):
    """Half and bfloat16 beside float: sums in another order would tell."""
    w = tf.Variable(numbers(6, 3))

    def mixed(x):
        half = tf.cast(x, tf.float16) @ tf.cast(w, tf.float16)
        brain = tf.nn.softmax(tf.cast(x, tf.bfloat16) * tf.constant(2, tf.bfloat16))
        small = tf.cast(tf.cast(x, tf.dtypes.experimental.float8_e4m3fn), tf.float32)
        return tf.cast(half, tf.float32), brain, small, tf.saturate_cast(x * 300.0, tf.int8)

    return {"mixed": mixed}, [Call("mixed", [numbers(4, 6)])], w
