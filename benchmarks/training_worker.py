"""A process that trains a network when told to, by opkernel or by TensorFlow.

    python benchmarks/training_worker.py NETWORK SYSTEM

NETWORK is `digits` (examples/training) or a module: `transformer`, `resnet`, `text_classifier`, `embeddings`; SYSTEM is `opkernel`, `opkernel:ENGINE` with that
engine's compiled clusters, or `tensorflow`. `training.py` starts it. It answers each line of its input: `[batch, seconds]`
trains that long, and tells the steps a second; `["losses", batch, steps]` tells the losses of the next steps.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

Train = Callable[..., float]

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "training"


def digits(system: str) -> tuple[Train, Callable[[int], Any]]:
    """A step of the digits network, and its batches."""
    sys.path.insert(0, str(EXAMPLE))
    images, labels = importlib.import_module("digits").images_and_labels("training")
    module = "train_tensorflow" if system == "tensorflow" else "network"
    network = importlib.import_module(module).Network()
    return network.train, lambda size: (images[:size], labels[:size])


def by_opkernel(network: ModuleType) -> Train:
    """A step of a network."""
    import opkernel
    from opkernel import raw_ops

    first = network.initial_weights()
    weights = {name: opkernel.Variable(value, name=name) for name, value in first.items()}
    optimizer = getattr(opkernel.optimizers, network.OPTIMIZER)(network.LEARNING_RATE)

    def loss(*batch: Any) -> Any:
        return network.loss(raw_ops, weights, *batch)

    return lambda *batch: float(optimizer.minimize(loss, [*weights.values()], *batch))


def by_tensorflow(network: ModuleType) -> Train:
    """A step of a network, in a graph and a session, as the digits network's."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    optimizers = {
        "Adam": lambda rate: tf1.train.AdamOptimizer(rate, epsilon=1e-7),
        "Adagrad": tf1.train.AdagradOptimizer,
    }
    with tf.Graph().as_default() as graph:
        fed = [tf1.placeholder(one.dtype, [None, *one.shape[1:]]) for one in network.batch(1)]
        first = network.initial_weights()
        weights = {name: tf1.Variable(value, use_resource=True) for name, value in first.items()}
        loss = network.loss(tf.raw_ops, weights, *fed)
        step = optimizers[network.OPTIMIZER](network.LEARNING_RATE).minimize(loss)
        session = tf1.Session(graph=graph)
        session.run(tf1.global_variables_initializer())
    return lambda *batch: float(session.run([loss, step], dict(zip(fed, batch, strict=True)))[0])


def steps_a_second(train: Train, batch: Any, seconds: float) -> float:
    """How often `train` runs in that time."""
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        train(*batch)
        steps += 1
    return steps / (time.perf_counter() - start)


def main() -> None:
    name, system = sys.argv[1:]
    system, _, engine = system.partition(":")
    os.environ["OPKERNEL_JIT"] = f"{engine}!" if engine not in ("", "auto") else engine or "off"
    if name == "digits":
        train, batch_of = digits(system)
    else:
        network = importlib.import_module(name)
        by = by_tensorflow if system == "tensorflow" else by_opkernel
        train, batch_of = by(network), network.batch
    for line in sys.stdin:
        match json.loads(line):
            case ["losses", batch, steps]:
                answer: Any = [train(*batch_of(batch)) for _ in range(steps)]
            case [batch, seconds]:
                answer = steps_a_second(train, batch_of(batch), seconds)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
