"""Graphs of TensorFlow 1 that draw numbers with the seeds of the graph and of ops: initialisers, dropout, samplers."""

from typing import Any

import numpy as np
import tensorflow as tf
from tests.interop.calls import Call
from tests.interop.session_models import in_session, numbers, variable

v1 = tf.compat.v1
F32 = np.float32
MODELS: dict[str, Any] = {}


def model(build):
    """A model without inputs but `n`: the function gives outputs, which three steps draw."""

    def save(directory, session):
        n = v1.placeholder(tf.int32, [], name="n")
        outputs = build(n)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, directory, {"n": n}, outputs)
        return [Call("signatures.serving_default", [], {"n": np.int32(k)}) for k in (5, 5, 8)]

    MODELS[build.__name__] = in_session(save)
    return build


@model
def initializers(n):
    made = v1.initializers
    kinds = {
        "normal": v1.random_normal_initializer(1.0, 2.0, seed=1),
        "truncated": v1.truncated_normal_initializer(stddev=0.5, seed=2),
        "uniform": v1.random_uniform_initializer(-3, 4, seed=3),
        "orthogonal": v1.orthogonal_initializer(gain=1.5, seed=4),
        "glorot_uniform": v1.glorot_uniform_initializer(seed=5),
        "glorot_normal": v1.glorot_normal_initializer(seed=6),
        "he": made.he_normal(seed=7),
        "lecun": made.lecun_uniform(seed=8),
        "scaled": v1.variance_scaling_initializer(2.0, "fan_out", "uniform", seed=9),
        "of_the_graph": v1.random_normal_initializer(),
    }
    found = {name: kind([4, 6], tf.float32) for name, kind in kinds.items()}
    found["ints"] = v1.random_uniform_initializer(0, 9, seed=3)([4], tf.int32)
    found["double"] = v1.random_normal_initializer(seed=3)([4], tf.float64)
    return found


@model
def variables_from_initializers(n):
    """Variables that restoring sets, and others that the step initialises anew."""
    kept = variable("kept", numbers(3))
    drawn = v1.get_variable("drawn", [3, 4], initializer=v1.orthogonal_initializer(seed=2))
    with tf.control_dependencies([drawn.initializer]):
        value = drawn.read_value()
    with tf.control_dependencies([value]):
        moved = drawn.assign_add(tf.random.normal([3, 4], seed=5))
    return {"kept": kept + 0.0, "value": value, "moved": moved}


@model
def draws(n):
    return {
        "uniform": tf.random.uniform([n], seed=1),
        "of_the_graph": tf.random.uniform([n]),
        "next": tf.random.uniform([n]),
        "ints": tf.random.uniform([n], 3, 99, tf.int64, seed=2),
        "normal": tf.random.normal([n], seed=3),
        "truncated": v1.truncated_normal([n, 3], 1.0, 2.0, seed=4),
        "shuffled": v1.random_shuffle(tf.range(n), seed=5),
        "multinomial": v1.multinomial(numbers(2, 4), n, seed=6),
        "gamma": v1.random_gamma([n], [0.5, 9.0], seed=7),
        "poisson": v1.random_poisson([1.5, 30.0], [n], seed=8),
        "crop": v1.random_crop(tf.reshape(tf.range(24), [4, 6]), [2, 3], seed=9),
    }


@model
def legacy_dropout(n):
    x = tf.ones([n, 4])
    hidden = tf.matmul(v1.nn.dropout(x, keep_prob=0.6, seed=3), numbers(4, 5))
    second = v1.nn.dropout(tf.nn.relu(hidden), rate=0.5, noise_shape=[1, 5], seed=4)
    loss = tf.reduce_sum(tf.square(second))
    return {"y": second, "grad": v1.gradients(loss, x)[0]}


@model
def sampled_losses(n):
    weights, biases = numbers(20, 3), numbers(20, seed=1)
    labels = tf.cast(tf.reshape(tf.range(n), [-1, 1]), tf.int64)
    inputs = tf.random.uniform([n, 3], seed=9)
    drawn = tf.random.learned_unigram_candidate_sampler(labels, 1, 4, True, 20, seed=5)
    return {
        "softmax": v1.nn.sampled_softmax_loss(weights, biases, labels, inputs, 5, 20, seed=2),
        "nce": v1.nn.nce_loss(
            weights,
            biases,
            labels,
            inputs,
            5,
            20,
            sampled_values=tf.random.uniform_candidate_sampler(labels, 1, 5, True, 20, seed=3),
        ),
        "learned": drawn.sampled_candidates,
    }


@model
def draws_in_a_loop(n):
    v1.disable_control_flow_v2()
    try:
        _, total = v1.while_loop(
            lambda i, t: i < n,
            lambda i, t: (i + 1, t + tf.random.normal([2], seed=4)),
            [0, tf.zeros([2])],
        )
        chosen = v1.cond(
            n > 5, lambda: tf.random.uniform([2], seed=1), lambda: tf.random.normal([2], seed=1)
        )
    finally:
        v1.enable_control_flow_v2()
    return {"total": total, "chosen": chosen}
