"""Keras models, exported and saved, each with calls."""

from typing import Any

import numpy as np
import tensorflow as tf
from tests.interop.calls import Call

F32 = np.float32
MODELS: dict[str, Any] = {}
keras: Any = tf.keras
L: Any = keras.layers


def model(build):
    """A Keras model: it is built with the same weights at each run, and its `calls` are compared."""

    def save(directory):
        keras.utils.set_random_seed(7)
        keras.backend.clear_session()
        return build(str(directory))

    MODELS[build.__name__] = save
    return build


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(F32)


def shaken(net, seed=3):
    """The model with weights that are not those of an initialiser: statistics of batches differ from 0 and 1."""
    random = np.random.RandomState(seed)
    for variable in net.weights:
        value = variable.numpy()
        if value.dtype == F32 and value.ndim == 1:
            variable.assign(random.uniform(0.5, 1.5, value.shape).astype(F32))
    return net


def exported(net, directory, *inputs):
    """Export a model, and call its `serve` and its default signature."""
    shaken(net).export(directory, verbose=False)
    names = [tensor.name for tensor in net.inputs]
    serve = [*inputs] if len(inputs) == 1 else [[*inputs]]
    return [
        Call("serve", serve),
        Call("signatures.serving_default", [], dict(zip(names, inputs, strict=True))),
        Call(
            "serve",
            [one[:1] for one in serve] if len(inputs) == 1 else [[one[:1] for one in inputs]],
        ),
    ]


@model
def dense(directory):
    net = keras.Sequential(
        [
            L.Input((6,), name="x"),
            L.Dense(8, "relu"),
            L.Dropout(0.5),
            L.BatchNormalization(),
            L.Dense(8, "gelu", kernel_regularizer="l2"),
            L.LeakyReLU(),
            L.Dense(3, "softmax"),
        ]
    )
    return exported(net, directory, numbers(5, 6))


@model
def convolutional(directory):
    x = L.Input((16, 16, 3), name="image")
    y = L.Rescaling(1 / 2)(x)
    y = L.Conv2D(8, 3, padding="same", use_bias=False)(y)
    y = L.BatchNormalization()(y)
    y = L.ReLU(6)(y)
    y = L.DepthwiseConv2D(3, strides=2, padding="same")(y)
    y = L.SeparableConv2D(8, 3, activation="swish")(y)
    z = L.Conv2D(8, 1)(y)
    y = L.Add()([y, z])
    y = L.MaxPooling2D()(L.ZeroPadding2D()(y))
    y = L.Concatenate()([y, L.AveragePooling2D(3, 1, "same")(y)])
    y = L.Conv2DTranspose(4, 3, strides=2)(y)
    y = L.UpSampling2D(interpolation="nearest")(y)
    y = L.GroupNormalization(2)(y)
    net = keras.Model(x, L.Dense(2)(L.GlobalAveragePooling2D()(y)))
    return exported(net, directory, numbers(2, 16, 16, 3))


@model
def convolutional_1d_3d(directory):
    x = L.Input((12, 4), name="line")
    y = L.Conv1D(5, 3, dilation_rate=2, padding="causal", activation="elu")(x)
    y = L.MaxPooling1D(2)(y)
    z = L.Reshape((6, 5, 1, 1))(y)
    z = L.Conv3D(2, (2, 2, 1), padding="same")(z)
    net = keras.Model(x, [L.Flatten()(z), L.GlobalMaxPooling1D()(y)])
    return exported(net, directory, numbers(2, 12, 4))


@model
def lstm(directory):
    x = L.Input((5, 3), name="x")
    y = L.LSTM(4, return_sequences=True)(x)
    y = L.Bidirectional(L.LSTM(3, return_sequences=True))(y)
    net = keras.Model(x, L.Dense(2)(L.LSTM(4)(y)))
    return exported(net, directory, numbers(2, 5, 3))


@model
def gru_with_mask(directory):
    x = L.Input((None,), dtype="int32", name="ids")
    y = L.Embedding(20, 4, mask_zero=True)(x)
    y = L.GRU(5, return_sequences=True)(y)
    y = L.Bidirectional(L.GRU(3, reset_after=False), merge_mode="sum")(y)
    net = keras.Model(x, L.Dense(1, "sigmoid")(y))
    ids = np.array([[3, 7, 0, 0], [1, 2, 5, 19]], np.int32)
    return exported(net, directory, ids)


@model
def simple_rnn(directory):
    x = L.Input((4, 3), name="x")
    y, state = L.SimpleRNN(4, return_sequences=True, return_state=True)(L.Masking()(x))
    cells = L.RNN(L.StackedRNNCells([L.LSTMCell(3), L.GRUCell(2)]))(y)
    net = keras.Model(x, {"cells": cells, "state": state, "y": L.TimeDistributed(L.Dense(2))(y)})
    given = numbers(2, 4, 3)
    given[0, 2:] = 0
    return exported(net, directory, given)


@model
def transformer(directory):
    ids = L.Input((6,), dtype="int32", name="ids")
    mask = L.Input((6,), dtype="bool", name="mask")
    x = L.Embedding(30, 8)(ids)
    x = L.LayerNormalization()(x)
    attended = L.MultiHeadAttention(2, 4)(
        x, x, attention_mask=mask[:, None, :], use_causal_mask=True
    )
    x = L.LayerNormalization()(x + L.Dropout(0.1)(attended))
    x = x + L.Dense(8)(L.Dense(16, "gelu")(x))
    pooled = keras.ops.mean(x * keras.ops.expand_dims(keras.ops.cast(mask, "float32"), -1), axis=1)
    net = keras.Model([ids, mask], L.Dense(3)(pooled))
    given = np.random.RandomState(0).randint(0, 30, (2, 6)).astype(np.int32)
    return exported(net, directory, given, np.array([[1, 1, 1, 1, 0, 0], [1] * 6], bool))


@model
def several_inputs_and_outputs(directory):
    a, b = L.Input((3,), name="a"), L.Input((2,), name="b")
    hidden = L.Dense(4, "tanh")(L.Concatenate()([a, L.Dense(2)(b)]))
    outputs = {
        "sum": L.Dense(1, name="sum")(hidden),
        "class": L.Dense(3, "softmax", name="class")(hidden),
    }
    return exported(keras.Model([a, b], outputs), directory, numbers(4, 3), numbers(4, 2, seed=2))


@model
def training_flag(directory):
    """Saved and not exported: calls with `training`, and the variables of a compiled optimiser."""
    net = keras.Sequential([L.Input((4,)), L.Dense(3), L.BatchNormalization(), L.Dense(1)])
    net.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    net.fit(numbers(8, 4), numbers(8, 1), verbose=0)
    tf.saved_model.save(shaken(net), directory)
    x = numbers(5, 4, seed=4)
    return [Call("signatures.serving_default", [], {"inputs": x})]


@model
def exported_endpoints(directory):
    """An archive with several endpoints, one of them with `training`."""
    net = shaken(keras.Sequential([L.Input((4,)), L.Dense(3), L.BatchNormalization(), L.Dense(1)]))
    archive = keras.export.ExportArchive()
    archive.track(net)
    spec = tf.TensorSpec([None, 4])
    archive.add_endpoint("infer", lambda x: net(x, training=False), [spec])
    archive.add_endpoint("train", lambda x: net(x, training=True), [spec])
    archive.add_variable_collection("own", net.trainable_variables)
    archive.write_out(directory, verbose=False)
    x = numbers(5, 4, seed=4)
    return [
        Call("infer", [x]),
        Call("train", [x]),
        Call("infer", [x]),
        Call("signatures.train", [], {"x": x}),
        Call("infer", [x]),
    ]


@model
def layer_of_functions(directory):
    """A custom layer with functions of its own, weights that are not trained, and nested layers in dicts."""

    class Scaled(keras.layers.Layer):
        def build(self, shape):
            self.scale = self.add_weight(name="scale", shape=(shape[-1],), initializer="ones")
            self.count = self.add_weight(
                name="count", shape=(), initializer="zeros", trainable=False
            )
            self.parts = {"a": L.Dense(3), "b": L.Dense(3)}

        def call(self, x, training=False):
            self.count.assign_add(1.0)
            return (self.parts["a"](x) + self.parts["b"](x)) * self.count + keras.ops.sum(
                self.scale
            )

    net = keras.Sequential([L.Input((2,)), Scaled(), L.UnitNormalization()])
    return exported(net, directory, numbers(3, 2))


@model
def mixed_precision(directory):
    policy = keras.mixed_precision.DTypePolicy("mixed_bfloat16")
    net = keras.Sequential(
        [L.Input((4,)), L.Dense(8, "relu", dtype=policy), L.Dense(2, dtype="float32")]
    )
    return exported(net, directory, numbers(3, 4))


@model
def small_convolutional(directory):
    net = keras.Sequential(
        [
            L.Input((6, 6, 2), name="x"),
            L.Conv2D(3, 3, padding="same", use_bias=False),
            L.BatchNormalization(),
            L.ReLU(),
            L.DepthwiseConv2D(3, strides=2),
            L.MaxPooling2D(),
            L.Flatten(),
            L.Dense(2),
        ]
    )
    return exported(net, directory, numbers(2, 6, 6, 2))
