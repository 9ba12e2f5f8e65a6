"""Models that draw numbers: generators, stateless ops, ops with seeds, dropout of Keras."""

from typing import Any

import numpy as np
import tensorflow as tf
from tests.interop.calls import Call
from tests.interop.module_models import numbers, spec
from tests.interop.text_models import functions

F32 = np.float32
MODELS: dict[str, Any] = {}
keras: Any = tf.keras
L: Any = keras.layers
SEED = [spec(2, dtype=tf.int32)]
SEEDS = [np.array(one, np.int32) for one in ([1, 2], [-3, 4], [2**31 - 1, 0])]
COUNT = [spec(dtype=tf.int32)]


@functions(MODELS, floats=SEED, integers=SEED, mask=[*SEED, spec(None, 3)], seeds=SEED)
def stateless_draws(directory):
    stateless = tf.random

    def floats(seed):
        shape = [3, 5]
        return {
            "uniform": stateless.stateless_uniform(shape, seed, -1, 2),
            "half": stateless.stateless_uniform(shape, seed, dtype=tf.float16),
            "normal": stateless.stateless_normal(shape, seed, 1, 2, tf.float64),
            "bfloat16": stateless.stateless_normal(shape, seed, dtype=tf.bfloat16),
            "truncated": stateless.stateless_truncated_normal(shape, seed),
            "parameterized": stateless.stateless_parameterized_truncated_normal(
                shape, seed, 0.5, 2.0, [-1.0, 0.0, 1.0, -3.0, 2.0], [1.0, 0.5, 9.0, 3.0, 2.5]
            ),
            "gamma": stateless.stateless_gamma(shape, seed, [0.3, 1.0, 2.0, 7.0, 30.0], 2.0),
        }

    def integers(seed):
        return {
            "int32": stateless.stateless_uniform([7], seed, -5, 100, tf.int32),
            "int64": stateless.stateless_uniform([7], seed, 0, 2**40, tf.int64),
            "full": stateless.stateless_uniform([4], seed, None, None, tf.uint64),
            "poisson": stateless.stateless_poisson([4, 3], seed, [0.5, 3.0, 40.0], tf.int64),
            "binomial": stateless.stateless_binomial(
                [4, 3], seed, [5.0, 30.0, 200.0], [0.2, 0.5, 0.9], tf.int32
            ),
            "categorical": stateless.stateless_categorical(
                tf.math.log([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8]]), 8, seed
            ),
            "shuffled": stateless.experimental.stateless_shuffle(tf.range(9), seed),
            "index": stateless.experimental.index_shuffle(tf.range(10), seed, 9),
        }

    def mask(seed, x):
        dropped = tf.nn.experimental.stateless_dropout(x, 0.4, seed)
        return dropped, tf.nn.experimental.general_dropout(
            x, 0.3, lambda shape, dtype: stateless.stateless_uniform(shape, seed, dtype=dtype)
        )

    def seeds(seed):
        return (
            stateless.split(seed, 3),
            stateless.fold_in(seed, 9),
            *[
                stateless.stateless_uniform([4], seed, alg=name)
                for name in ("philox", "auto_select")
            ],
        )

    made = {"floats": floats, "integers": integers, "mask": mask, "seeds": seeds}
    return made, [
        *[Call(name, [seed]) for seed in SEEDS for name in ("floats", "integers", "seeds")],
        *[Call("mask", [seed, numbers(5, 3)]) for seed in SEEDS],
        Call("signatures.floats", [], {"seed": SEEDS[0]}),
    ]


@functions(MODELS, draw=COUNT, integers=COUNT, move=COUNT, dense=[spec(None, 4)])
def generators(directory):
    """Generators, whose states the functions move on."""
    philox = tf.random.Generator.from_seed(12)
    other = tf.random.Generator.from_key_counter(3, [4, 5], "philox")
    w = tf.Variable(numbers(4, 6))

    def draw(n):
        return {
            "normal": philox.normal([n], 1.0, 2.0),
            "uniform": other.uniform([n, 2], dtype=tf.float64),
            "truncated": philox.truncated_normal([n]),
            "other": other.normal([n]),
        }

    def integers(n):
        return (
            philox.uniform([n], -3, 9, tf.int32),
            philox.uniform_full_int([n], tf.uint32),
            philox.binomial([n, 1], [20.0], [0.3]),
            other.uniform([n], 0, 2**50, tf.int64),
        )

    def move(n):
        philox.skip(n)
        other.reset_from_seed(77)
        return philox.make_seeds(2), philox.state + 0

    def dense(x):
        keep = philox.uniform([tf.shape(x)[0], 6]) >= 0.5
        return tf.where(keep, x @ w * 2.0, 0.0)

    made = {"draw": draw, "integers": integers, "move": move, "dense": dense}
    n = np.int32(5)
    calls = [Call("draw", [n]), Call("integers", [n]), Call("draw", [n + 3])]
    calls += [Call("move", [n]), Call("draw", [n]), Call("signatures.integers", [], {"n": n})]
    return made, [*calls, *[Call("dense", [numbers(3, 4)])] * 2], philox, other, w


@functions(MODELS, draw=COUNT, pick=[spec(None, 3)], dropped=[spec(None, 3)])
def draws_with_seeds(directory):
    tf.random.set_seed(21)

    def draw(n):
        return {
            "uniform": tf.random.uniform([n, 2], seed=1),
            "again": tf.random.uniform([n, 2], seed=1),
            "ints": tf.random.uniform([n], -4, 50, tf.int32, seed=2),
            "long": tf.random.uniform([n], 0, 2**45, tf.int64, seed=3),
            "normal": tf.random.normal([n], 1, 3, tf.float64, seed=4),
            "half": tf.random.normal([n], dtype=tf.float16, seed=5),
            "truncated": tf.random.truncated_normal([n, 3], seed=6),
            "gamma": tf.random.gamma([n], [0.4, 3.0], [1.0, 2.0], seed=7),
            "poisson": tf.random.poisson([n], [0.7, 20.0], tf.float64, seed=8),
            "shuffled": tf.random.shuffle(tf.reshape(tf.range(2 * n), [n, 2]), seed=9),
            "of_graph": tf.random.uniform([n]),
        }

    def pick(x):
        sampled = tf.random.uniform_candidate_sampler([[3, 5]], 2, 4, True, 20, seed=3)
        log_sampled = tf.random.log_uniform_candidate_sampler([[3, 5]], 2, 4, False, 20, seed=4)
        unigrams = tf.random.fixed_unigram_candidate_sampler(
            [[1, 2]], 2, 3, True, 5, unigrams=[1, 2, 3, 4, 5], seed=6
        )
        learned = tf.random.learned_unigram_candidate_sampler([[1, 2]], 2, 3, True, 9, seed=2)
        return tf.random.categorical(x, 6, seed=5), sampled, log_sampled, unigrams, learned

    def dropped(x):
        return tf.nn.dropout(x, 0.4, seed=7), tf.nn.dropout(x, 0.5, [1, 3], seed=8)

    made = {"draw": draw, "pick": pick, "dropped": dropped}
    n, x = np.int32(6), numbers(4, 3)
    once = [Call("draw", [n]), Call("pick", [x]), Call("dropped", [x])]
    return made, [*once, *once, Call("draw", [n + 7]), Call("signatures.draw", [], {"n": n})]


@functions(MODELS, loop=COUNT, mapped=[spec(None, 2)], branch=[spec(dtype=tf.bool)])
def draws_in_loops(directory):
    tf.random.set_seed(4)

    def loop(n):
        total = tf.zeros([2])
        for _ in tf.range(n):
            total += tf.random.normal([2], seed=3)
        return total

    def mapped(x):
        return tf.map_fn(lambda row: row + tf.random.uniform([2], seed=6), x, parallel_iterations=1)

    def branch(flag):
        if flag:
            return tf.random.uniform([3], seed=1)
        return tf.random.uniform([3], seed=2)

    made = {"loop": loop, "mapped": mapped, "branch": branch}
    true, false = np.bool_(True), np.bool_(False)
    return made, [
        *[Call("loop", [np.int32(n)]) for n in (3, 0, 2)],
        *[Call("mapped", [numbers(4, 2)])] * 2,
        *[Call("branch", [flag]) for flag in (true, false, true, false)],
    ]


# Keras.


def trained(name, build, *inputs):
    """A network with an endpoint in training, whose seed generators go on from call to call."""

    def save(directory):
        keras.utils.set_random_seed(7)
        keras.backend.clear_session()
        specs = [L.Input(one.shape[1:], dtype=one.dtype.name) for one in inputs]
        net = keras.Model(specs, build(*specs))
        archive = keras.export.ExportArchive()
        archive.track(net)
        wanted = [[spec(None, *one.shape[1:], dtype=one.dtype.name) for one in inputs]]
        archive.add_endpoint("train", lambda x: net(x, training=True), wanted)
        archive.add_endpoint("serve", lambda x: net(x, training=False), wanted)
        archive.write_out(str(directory), verbose=False)
        given = [*inputs]
        return [*[Call("train", [given])] * 3, Call("serve", [given]), Call("train", [given])]

    MODELS[name] = save


trained(
    "dropout",
    lambda x: L.Dense(3)(L.Dropout(0.3, noise_shape=(None, 6), seed=1)(L.Dense(6)(x))),
    numbers(5, 4),
)
trained(
    "noise_layers",
    lambda x: [
        L.GaussianNoise(0.4, seed=1)(x),
        L.GaussianDropout(0.3, seed=2)(x),
        L.AlphaDropout(0.2, seed=3)(x),
        L.SpatialDropout1D(0.4, seed=4)(x),
    ],
    numbers(3, 4, 5),
)
trained(
    "recurrent_dropout",
    lambda x: L.GRU(3, dropout=0.3, recurrent_dropout=0.2, seed=2)(
        L.LSTM(4, dropout=0.2, seed=1, return_sequences=True)(x)
    ),
    numbers(2, 5, 3),
)
trained(
    "attention_dropout",
    lambda x: L.Dropout(0.1)(L.MultiHeadAttention(2, 3, dropout=0.4, seed=5)(x, x)),
    numbers(2, 4, 6),
)


@functions(MODELS, draw=[], initial=[])
def keras_random(directory):
    generator = keras.random.SeedGenerator(31)

    def draw():
        random = keras.random
        return {
            "normal": random.normal((3,), 1.0, 2.0, seed=generator),
            "uniform": random.uniform((3,), -1, 1, seed=generator),
            "ints": random.randint((5,), 0, 30, seed=generator),
            "truncated": random.truncated_normal((4,), seed=generator),
            "categorical": random.categorical(numbers(2, 3), 5, seed=generator),
            "gamma": random.gamma((4,), 2.5, seed=generator),
            "beta": random.beta((4,), 2.0, 0.5, seed=generator),
            "binomial": random.binomial((4,), 10.0, 0.4, seed=generator),
            "shuffled": random.shuffle(tf.range(7), seed=generator),
            "dropped": random.dropout(tf.ones([9]), 0.4, seed=generator),
        }

    def initial():
        made = keras.initializers
        kinds = {
            "glorot": made.GlorotUniform(1),
            "he": made.HeNormal(2),
            "lecun": made.LecunNormal(3),
            "orthogonal": made.Orthogonal(2.0, 4),
            "scaled": made.VarianceScaling(2.0, "fan_avg", "untruncated_normal", 5),
            "uniform": made.RandomUniform(-1, 1, 6),
            "truncated": made.TruncatedNormal(0.0, 1.0, 7),
        }
        return {name: kind((4, 3)) for name, kind in kinds.items()}

    return (
        {"draw": draw, "initial": initial},
        [
            *[Call("draw")] * 3,
            Call("initial"),
            Call("signatures.draw"),
        ],
        generator.state,
    )
