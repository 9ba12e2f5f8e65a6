"""Modules that TensorFlow saves, each with calls: functions of every form, state, tables, assets, gradients."""

import collections
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf
from tests.interop.calls import Call, ragged, sparse

F32 = np.float32
MODELS: dict[str, Any] = {}
Pair = collections.namedtuple("Pair", ["left", "right"])  # noqa: PYI024  # TensorFlow keeps its name


def model(build):
    """A model that TensorFlow saves: the function saves it in a directory, and gives the calls to compare."""
    MODELS[build.__name__] = build
    return build


def spec(*shape, dtype=tf.float32, name=None):
    return tf.TensorSpec(shape, dtype, name=name)


def numbers(*shape, seed=0, dtype=F32):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(dtype)


def save(module, directory, signatures=None, **options):
    tf.saved_model.save(
        module,
        str(directory),
        signatures,
        tf.saved_model.SaveOptions(**options) if options else None,
    )


class Linear(tf.Module):
    def __init__(self, rows, columns, name=None):
        super().__init__(name)
        self.w = tf.Variable(numbers(rows, columns), name="w")
        self.b = tf.Variable(numbers(columns, seed=1), name="b")

    @tf.function
    def __call__(self, x):
        return x @ self.w + self.b


@model
def linear(directory):
    module = Linear(3, 2)
    module(tf.zeros([2, 3]))
    module.__call__.get_concrete_function(spec(None, 3))
    save(module, directory, module.__call__.get_concrete_function(spec(None, 3, name="x")))
    x = numbers(4, 3, seed=5)
    return [
        Call("__call__", [x]),
        Call("__call__", [x[:2]]),
        Call("__call__", [x.tolist()]),
        Call("signatures.serving_default", [], {"x": x}),
    ]


@model
def nested_modules(directory):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Linear(3, 4), Linear(4, 4), Linear(4, 1)]
            self.named = {"first": self.layers[0], "scale": tf.Variable(2.0)}
            self.pair = (tf.Variable(1.0, name="one"), tf.Variable(3.0, trainable=False))
            self.named_pair = Pair(tf.Variable(5.0), [tf.Variable(7.0)])
            self.shared = self.layers[1].w
            self.parent = self

        @tf.function(input_signature=[spec(None, 3)])
        def __call__(self, x):
            for layer in self.layers:
                x = tf.nn.relu(layer(x))
            return x * self.named["scale"] + self.pair[1] + self.shared[0, 0]

        @tf.function(input_signature=[])
        def total(self):
            return self.pair[0] + self.pair[1] + self.named_pair.left + self.named_pair.right[0]

    save(Net(), directory)
    x = numbers(4, 3, seed=5)
    return [
        Call("__call__", [x]),
        Call("parent.parent.__call__", [x]),
        Call("layers.0.__call__", [x]),
        Call("named.first.__call__", [x]),
        Call("total"),
    ]


@model
def cycle(directory):
    class Node(tf.Module):
        def __init__(self, value):
            super().__init__()
            self.value = tf.Variable(value)

        @tf.function(input_signature=[spec()])
        def add(self, x):
            return x + self.value + self.other.value

    first, second = Node(1.0), Node(2.0)
    first.other, second.other = second, first
    save(first, directory)
    return [Call("add", [F32(3)]), Call("other.other.other.add", [F32(4)])]


@model
def polymorphic(directory):
    class Net(tf.Module):
        @tf.function
        def f(self, x, scale=2, mode="plain", *, flag=False, other=None):
            x = x * tf.cast(scale, x.dtype)
            if mode == "negative":
                x = -x
            if flag:
                x = x + tf.constant(100, x.dtype)
            return x if other is None else (x, other)

    net = Net()
    x, i = tf.constant([1.0, 2.0]), tf.constant([[1, 2]])
    net.f(x)
    net.f(i)
    net.f(x, 3)
    net.f(x, scale=2.5)
    net.f(x, mode="negative")
    net.f(x, flag=True)
    net.f(x, tf.constant(4.0), "negative", flag=True, other=tf.constant([7]))
    save(net, directory)
    x, i = np.array([3, -4], F32), np.array([[5, 6]], np.int32)
    return [
        Call("f", [x]),
        Call("f", [i]),
        Call("f", [x, 3]),
        Call("f", [x], {"scale": 2.5}),
        Call("f", [x], {"mode": "negative"}),
        Call("f", [], {"x": x, "flag": True}),
        Call("f", [x, F32(4), "negative"], {"flag": True, "other": np.array([9], np.int32)}),
    ]


@model
def structures(directory):
    class Net(tf.Module):
        @tf.function
        def f(self, inputs, *rest, **named):
            total = inputs["a"] + inputs["b"][0] * inputs["b"][1]
            for one in rest:
                total += one
            result = {"total": total, "pair": Pair(total * 2, [total * 3, None]), "none": None}
            result.update({key: value + 1 for key, value in named.items()})
            return result

        @tf.function(input_signature=[Pair(spec(2), (spec(), spec(2)))])
        def g(self, pair):
            return pair.left * pair.right[0], pair.right[1]

        @tf.function(input_signature=[{"z": spec(), "a": spec(), "m": [spec(), spec()]}])
        def order(self, d):
            return d["z"] - d["a"], d["m"][0] / d["m"][1]

    net = Net()
    one = tf.constant(1.0)
    net.f({"a": one, "b": (one, one)})
    net.f({"a": one, "b": (one, one)}, one, one)
    net.f({"a": one, "b": (one, one)}, one, k=one, j=one)
    save(net, directory)
    inputs = {"a": F32(2), "b": (F32(3), F32(4))}
    return [
        Call("f", [inputs]),
        Call("f", [inputs, F32(5), F32(6)]),
        Call("f", [inputs, F32(5)], {"j": F32(1), "k": F32(2)}),
        Call("g", [Pair(np.array([1, 2], F32), (F32(3), np.array([5, 6], F32)))]),
        Call("order", [{"z": F32(9), "a": F32(4), "m": [F32(8), F32(2)]}]),
    ]


@model
def captured(directory):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable([1.0, 2.0])
            self.big = tf.constant(numbers(20, 20))
            self.count = tf.Variable(0, dtype=tf.int64, trainable=False)

        @tf.function(input_signature=[spec(20)])
        def f(self, x):
            self.count.assign_add(1)
            return tf.linalg.matvec(self.big, x) * self.v[1] + tf.cast(self.count, tf.float32)

        @tf.function(input_signature=[spec(2)])
        def set(self, x):
            old = self.v.read_value()
            self.v.assign(x)
            return old, self.v + 0.0

        @tf.function(input_signature=[])
        def nothing(self):
            self.count.assign_add(10)

        @tf.function
        def without_signature(self, x):
            return x

    save(Net(), directory)
    x = numbers(20, seed=3)
    return [
        Call("f", [x]),
        Call("f", [x]),
        Call("set", [np.array([3, 4], F32)]),
        Call("f", [x]),
        Call("nothing"),
        Call("f", [x]),
        Call("set", [np.array([0, 0], F32)]),
    ]


@model
def types_of_variables(directory):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.values = {
                "bfloat16": tf.Variable(tf.constant([1.5, -2], tf.bfloat16)),
                "half": tf.Variable(tf.constant([1.5, -2], tf.float16)),
                "double": tf.Variable(tf.constant([1.5, -2], tf.float64)),
                "bool": tf.Variable([True, False]),
                "string": tf.Variable(["a", "b\0c"]),
                "complex": tf.Variable(tf.constant([1 + 2j], tf.complex64)),
                "int8": tf.Variable(tf.constant([1, -2], tf.int8)),
                "uint64": tf.Variable(tf.constant([2**63], tf.uint64)),
                "scalar": tf.Variable(7),
                "empty": tf.Variable(tf.zeros([0, 3])),
                "unknown": tf.Variable(tf.zeros([2, 3]), shape=[None, 3]),
            }

        @tf.function(input_signature=[])
        def all(self):
            return {key: tf.identity(value) for key, value in self.values.items()}

        @tf.function(input_signature=[spec(None, 3)])
        def grow(self, rows):
            self.values["unknown"].assign(tf.concat([self.values["unknown"], rows], 0))
            return self.values["unknown"].read_value()

    save(Net(), directory)
    return [Call("all"), Call("grow", [numbers(2, 3)]), Call("grow", [numbers(1, 3)]), Call("all")]


@model
def types_of_arguments(directory):
    class Net(tf.Module):
        @tf.function
        def f(self, x):
            return tf.identity(x)

    net = Net()
    for dtype in (
        "bfloat16",
        "float16",
        "float64",
        "bool",
        "int8",
        "uint16",
        "int64",
        "complex128",
    ):
        net.f.get_concrete_function(spec(2, dtype=tf.as_dtype(dtype)))
    net.f.get_concrete_function(spec(None, dtype=tf.string))
    save(net, directory)
    return [
        Call("f", [np.array([1.5, 2], ml_dtypes.bfloat16)]),
        Call("f", [np.array([1.5, 2], np.float16)]),
        Call("f", [np.array([1.5, 2], np.float64)]),
        Call("f", [np.array([True, False])]),
        Call("f", [np.array([1, -2], np.int8)]),
        Call("f", [np.array([1, 2], np.uint16)]),
        Call("f", [np.array([1, -2], np.int64)]),
        Call("f", [np.array([1j, -2], np.complex128)]),
        Call("f", [np.array([b"x", b"\xff"], object)]),
    ]


@model
def tables(directory):
    asset = Path(f"{directory}.txt")
    asset.write_text("zero\none\ntwo\n")

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(
                    [1, 2, 3], [10.0, 20.0, 30.0], tf.int64, tf.float32
                ),
                -1.0,
            )
            self.words = tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer(
                    str(asset),
                    tf.string,
                    tf.lookup.TextFileIndex.WHOLE_LINE,
                    tf.int64,
                    tf.lookup.TextFileIndex.LINE_NUMBER,
                ),
                -1,
            )
            self.mutable = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
            self.mutable.insert([5], [[1.0, 2.0]])
            self.dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, -1, -2)
            self.dense.insert([7, 8], [70, 80])

        @tf.function(input_signature=[spec(None, dtype=tf.int64)])
        def f(self, keys):
            return self.table.lookup(keys), self.mutable.lookup(keys), self.dense.lookup(keys)

        @tf.function(input_signature=[spec(None, dtype=tf.string)])
        def index(self, words):
            return self.words.lookup(words)

        @tf.function(input_signature=[spec(None, dtype=tf.int64), spec(None, 2)])
        def insert(self, keys, values):
            self.mutable.insert(keys, values)
            self.dense.insert(keys, keys * 2)
            return self.mutable.size(), self.dense.size()

    save(Net(), directory)
    asset.unlink()
    keys = np.array([1, 3, 5, 7, 8, 9], np.int64)
    return [
        Call("f", [keys]),
        Call("index", [np.array([b"two", b"zero", b"three"], object)]),
        Call("insert", [np.array([9, 10], np.int64), numbers(2, 2)]),
        Call("f", [keys]),
    ]


@model
def asset(directory):
    file = Path(f"{directory}.bin")
    file.write_bytes(b"what the asset holds")

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.file = tf.saved_model.Asset(str(file))

        @tf.function(input_signature=[])
        def content(self):
            return tf.io.read_file(self.file)

    save(Net(), directory)
    file.unlink()
    return [Call("content")]


@model
def custom_gradient(directory):
    @tf.custom_gradient
    def clipped(x):
        def grad(dy):
            return tf.clip_by_value(dy * 3.0, -0.5, 0.5)

        return tf.square(x), grad

    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([0.1, 2.0, -3.0])

        @tf.function(input_signature=[spec(3)])
        def loss(self, x):
            return tf.reduce_sum(clipped(self.w * x))

    save(Net(), directory, experimental_custom_gradients=True)
    return [Call("loss", [numbers(3)])]


@model
def composite(directory):
    class Net(tf.Module):
        @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
        def double(self, x):
            return x.with_flat_values(x.flat_values * 2.0)

        @tf.function(
            input_signature=[tf.RaggedTensorSpec([None, None, None], tf.int32, ragged_rank=2)]
        )
        def deep(self, x):
            return x, x.nested_row_splits[0]

        @tf.function(input_signature=[tf.SparseTensorSpec([None, 3], tf.float32)])
        def scaled(self, x):
            return tf.SparseTensor(x.indices, x.values * 3.0, x.dense_shape)

        @tf.function(input_signature=[{"s": tf.SparseTensorSpec([2, 3], tf.float32), "d": spec(3)}])
        def both(self, x):
            return {"s": x["s"], "d": x["d"] + tf.reduce_sum(x["s"].values)}

        @tf.function(input_signature=[spec(2, 3), spec(2, dtype=tf.int64)])
        def rows(self, values, indices):
            return tf.IndexedSlices(values, indices, tf.constant([9, 3], tf.int64))

    save(Net(), directory)
    given = sparse([[0, 1], [1, 2]], np.array([4, 5], F32), [2, 3])
    return [
        Call("double", [ragged(np.array([1, 2, 3], F32), [0, 1, 3])]),
        Call("deep", [ragged(np.array([1, 2, 3], np.int32), [0, 1, 3], [0, 1, 1, 3])]),
        Call("scaled", [given]),
        Call("both", [{"s": given, "d": np.ones(3, F32)}]),
        Call("rows", [numbers(2, 3), np.array([4, 1], np.int64)]),
    ]


@model
def control_flow(directory):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.steps = tf.Variable(0)
            self.w = tf.Variable(0.5)

        @tf.function(input_signature=[spec(dtype=tf.int32)])
        def collatz(self, n):
            self.steps.assign(0)
            while n > 1:
                if n % 2 == 0:
                    n = n // 2
                else:
                    n, _ = 3 * n + 1, 0
                self.steps.assign_add(1)
            return self.steps + 0

        @tf.function(input_signature=[spec(None)])
        def scan(self, x):
            result = tf.TensorArray(tf.float32, 0, dynamic_size=True)
            total = 0.0
            for i in tf.range(tf.shape(x)[0]):
                total = total * self.w + x[i]
                result = result.write(i, total)
            return result.stack()

        @tf.function(input_signature=[spec(dtype=tf.int32), spec()])
        def choose(self, index, x):
            return tf.switch_case(index, [lambda: x, lambda: x * self.w, lambda: -x])

        @tf.function(input_signature=[spec(None)])
        def mapped(self, x):
            return tf.map_fn(lambda one: one * one + self.w, x)

        @tf.function(input_signature=[spec(dtype=tf.int32)])
        def recursive(self, n):
            return tf.vectorized_map(lambda i: i * 2, tf.range(n))

    save(Net(), directory)
    return [
        *[Call("collatz", [np.int32(n)]) for n in (1, 7, 27)],
        Call("scan", [numbers(5)]),
        Call("scan", [numbers(1)]),
        *[Call("choose", [np.int32(i), F32(3)]) for i in range(4)],
        Call("mapped", [numbers(4)]),
        Call("recursive", [np.int32(4)]),
    ]


@model
def signatures(directory):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(2.0)

        @tf.function(input_signature=[spec(None, name="x"), spec(name="scale")])
        def scaled(self, x, scale):
            return {"y": x * scale * self.w, "n": tf.size(x)}

        @tf.function(input_signature=[spec(None, name="odd-name"), spec(None, name="b")])
        def pair(self, a, b):
            return a + b, a - b

        @tf.function(input_signature=[])
        def constant(self):
            return {"w": self.w * 1.0}

        @tf.function(input_signature=[spec(None)])
        def unnamed(self, x):
            return x + 1.0

    net = Net()
    save(
        net,
        directory,
        {
            "serving_default": net.scaled,
            "pair": net.pair,
            "constant": net.constant,
            "unnamed": net.unnamed,
        },
    )
    x = numbers(3)
    return [
        Call("signatures.serving_default", [], {"x": x, "scale": F32(3)}),
        Call("signatures.pair", [], {"odd_name": x, "b": x * 2}),
        Call("signatures.constant"),
        Call("signatures.unnamed", [], {"x": x}),
        Call("signatures.unnamed", [x]),
        Call("scaled", [x, F32(3)]),
    ]


@model
def default_inputs(directory):
    class Net(tf.Module):
        @tf.function(input_signature=[spec(None, name="x"), spec(name="scale")])
        def f(self, x, scale=tf.constant(3.0)):  # noqa: B008  # a default that the signature keeps
            return {"y": x * scale}

    net = Net()
    save(net, directory, net.f)
    x = numbers(3)
    return [
        Call("signatures.serving_default", [], {"x": x, "scale": F32(1)}),
        Call("f", [x, F32(5)]),
        Call("f", [x]),
    ]


@model
def optimizer_slots(directory):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.net = Linear(3, 1)
            self.optimizer = tf.keras.optimizers.Adam(0.1)
            self.optimizer.build(self.net.trainable_variables)

        @tf.function(input_signature=[spec(None, 3), spec(None, 1)])
        def train(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self.net(x) - y))
            grads = tape.gradient(loss, self.net.trainable_variables)
            self.optimizer.apply_gradients(zip(grads, self.net.trainable_variables, strict=True))
            return loss

    save(Net(), directory)
    x, y = numbers(8, 3), numbers(8, 1, seed=2)
    return [Call("train", [x, y])] * 5


@model
def functions_as_attributes(directory):
    root = tf.Module()
    root.v = tf.Variable(3.0)
    root.f = tf.function(lambda x: x * root.v, input_signature=[spec()])
    root.g = tf.function(lambda x, y=2.0: x * y)
    root.g(tf.constant(1.0))
    root.functions = [root.f, root.g]
    root.none = None
    save(root, directory)
    return [
        Call("f", [F32(2)]),
        Call("g", [F32(2)]),
        Call("functions.0", [F32(5)]),
        Call("functions.1", [F32(5)]),
    ]


@model
def shared_names(directory):
    """Two modules whose functions and variables have the same names."""
    root = tf.Module()
    root.a, root.b = Linear(2, 2, "same"), Linear(2, 2, "same")
    root.b.w.assign(root.b.w * 10.0)
    for one in (root.a, root.b):
        one.__call__.get_concrete_function(spec(None, 2))
    root.twice = tf.function(lambda x: root.b(root.a(root.a(x))), input_signature=[spec(None, 2)])
    save(root, directory)
    x = numbers(3, 2)
    return [Call("a.__call__", [x]), Call("b.__call__", [x]), Call("twice", [x])]


@model
def resource_arguments(directory):
    """A function that takes a variable as an argument of another function."""
    root = tf.Module()
    root.v, root.w = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    inner = tf.function(lambda variable, x: variable.assign_add(x) * 2.0)
    root.f = tf.function(lambda x: (inner(root.v, x), inner(root.w, -x)), input_signature=[spec(2)])
    save(root, directory)
    return [Call("f", [np.array([1, 1], F32)])] * 2


@model
def debug_info(directory):
    module = Linear(2, 2)
    module.__call__.get_concrete_function(spec(None, 2))
    save(module, directory, save_debug_info=True)
    return [Call("__call__", [numbers(2, 2)])]


@model
def text_format(directory):
    module = Linear(2, 2)
    module.__call__.get_concrete_function(spec(None, 2))
    save(module, directory)
    from google.protobuf import text_format as text
    from tensorflow.core.protobuf import saved_model_pb2

    binary = Path(directory) / "saved_model.pb"
    message = saved_model_pb2.SavedModel.FromString(binary.read_bytes())
    binary.with_suffix(".pbtxt").write_text(text.MessageToString(message))
    binary.unlink()
    return [Call("__call__", [numbers(2, 2)])]


@model
def devices_named(directory):
    root = tf.Module()
    with tf.device("/CPU:0"):
        root.v = tf.Variable(2.0)

    @tf.function(input_signature=[spec()])
    def f(x):
        with tf.device("/job:localhost/replica:0/task:0/device:CPU:0"):
            return x * root.v

    root.f = f
    save(
        root,
        directory,
        experimental_variable_policy=tf.saved_model.experimental.VariablePolicy.SAVE_VARIABLE_DEVICES,
    )
    return [Call("f", [F32(4)])]


@model
def function_aliases(directory):
    root = tf.Module()
    root.f = tf.function(lambda x: x * 2.0, input_signature=[spec()])
    save(root, directory, function_aliases={"doubled": root.f})
    return [Call("f", [F32(4)])]


@model
def gradients_of_functions(directory):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = Linear(3, 4), Linear(4, 1)
            self.table = tf.Variable(numbers(5, 3))

        @tf.function(input_signature=[spec(None, dtype=tf.int32)])
        def loss(self, ids):
            x = tf.gather(self.table, ids)
            hidden = tf.tanh(self.first(x))
            total = 0.0
            for i in tf.range(2):
                total += tf.reduce_sum(self.second(hidden)) * tf.cast(i + 1, tf.float32)
            return tf.cond(total > 0.0, lambda: total * total, lambda: total * 3.0)

    save(Net(), directory)
    return [Call("loss", [np.array([0, 2, 2], np.int32)])]
