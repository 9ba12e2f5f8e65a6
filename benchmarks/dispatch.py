"""What a step costs beyond its kernels: a chain of 1,000 tiny ops, a graph of one op, a traced convolution.

    python benchmarks/dispatch.py [--tensorflow PYTHON_WITH_TENSORFLOW]

Prints the compiled plan against the same NumPy calls written by hand (bound for the chain: 1.05 x),
and, with a Python that has TensorFlow, against its Session, its callables and `tf.function`, which
take turns with the others (bounds for the chain: as fast as the Session, 1.2 x as fast as
`tf.function`; for one op: `run` at least 20 x as fast as the Session's). Conv2D, BiasAdd and Relu as a
traced function are to take as long as in a session (bound: 1.1 x the callable).
"""

import argparse
import json
import subprocess
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import (
    clean_environment,
    medians,
    report,
    rerun_in_clean_environment,
    seconds_a_call,
)

import opkernel
from opkernel.graph import Graph, Tensor

CHAIN = 1000
_TENSORFLOW = """
import json, sys, time
import numpy as np, tensorflow as tf
tf1 = tf.compat.v1
x8 = np.ones(8, np.float32)
steps = {}
for name, length in (("chain", int(sys.argv[1])), ("one", 1)):
    with tf.Graph().as_default() as g:
        x = y = tf1.placeholder(tf.float32, [8], "x")
        c = tf.constant(np.full(8, 0.5, np.float32))
        for i in range(length):
            y = tf.raw_ops.AddV2(x=y, y=c) if i % 3 == 0 else (
                tf.raw_ops.Mul(x=y, y=c) if i % 3 == 1 else tf.nn.relu(y))
        s = tf1.Session(graph=g)
    c = tf.constant(np.full(8, 0.5, np.float32))
    def chain(x, length=length):
        for i in range(length):
            x = x + c if i % 3 == 0 else x * c if i % 3 == 1 else tf.nn.relu(x)
        return x
    function = tf.function(chain, autograph=False)
    steps[name, "callable"] = lambda call=s.make_callable(y, [x]): call(x8)
    steps[name, "function"] = lambda function=function: function(x8)
    steps[name, "Session.run"] = lambda s=s, x=x, y=y: s.run(y, {x: x8})
for line in sys.stdin:
    step = steps[tuple(json.loads(line))]
    step()
    calls, seconds = 1, 0.0
    while seconds < 0.02:
        calls *= 2
        start = time.perf_counter()
        for _ in range(calls): step()
        seconds = time.perf_counter() - start
    print(seconds / calls, flush=True)
"""


class TensorFlow:
    """A process that measures the same with TensorFlow."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-c", _TENSORFLOW, str(CHAIN)],
            env=clean_environment() | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def seconds(self, graph: str, how: str) -> float:
        """The seconds a call takes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([graph, how]) + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def chain_graph(length: int) -> tuple[Graph, Tensor, Tensor]:
    """A graph of AddV2, Mul and Relu in turn on 8 floats."""
    graph = Graph()
    with graph.as_default():
        attrs = {"dtype": opkernel.DataType.DT_FLOAT, "shape": opkernel.TensorShape([8])}
        first = graph.create_op("Placeholder", [], name="x", attrs=attrs).outputs[0]
        half = np.full(8, 0.5, np.float32)
        constant = graph.create_op(
            "Const", [], name="c", attrs={"dtype": opkernel.DataType.DT_FLOAT, "value": half}
        ).outputs[0]
        tensor = first
        for index in range(length):
            op = ("AddV2", "Mul", "Relu")[index % 3]
            inputs = [tensor] if op == "Relu" else [tensor, constant]
            tensor = graph.create_op(op, inputs, name=f"n{index}").outputs[0]
    return graph, first, tensor


def apply_chain(length: int, x: Any) -> Any:
    """The same chain as Python to be traced."""
    half = np.full(8, 0.5, np.float32)
    for index in range(length):
        if index % 3 == 2:
            x = opkernel.raw_ops.Relu(features=x)
        else:
            x = x * half if index % 3 else x + half
    return x


def by_hand(length: int) -> Callable[[Any], Any]:
    """The same chain as straight NumPy calls in one function."""
    lines = ["add(x, c)", "multiply(x, c)", "maximum(x, zero)"]
    text = "def chain(x):\n" + "".join(f"    x = {lines[i % 3]}\n" for i in range(length))
    names: dict[str, Any] = {
        "add": np.add,
        "multiply": np.multiply,
        "maximum": np.maximum,
        "c": np.full(8, 0.5, np.float32),
        "zero": np.float32(0),
    }
    exec(text + "    return x\n", names)  # the text above
    function: Callable[[Any], Any] = names["chain"]
    return function


def convolution(x: Any) -> Any:
    """A convolution with its bias and activation, as Python to be traced."""
    ops, filters = opkernel.raw_ops, np.full((3, 3, 32, 32), 0.01, np.float32)
    y = ops.Conv2D(input=x, filter=filters, strides=[1, 1, 1, 1], padding="SAME")
    return ops.Relu(features=ops.BiasAdd(value=y, bias=np.ones(32, np.float32)))


def measure_convolution() -> dict[str, float]:
    """Median seconds a call of the convolution in a session, and traced."""
    image = np.ones((1, 56, 56, 32), np.float32)
    graph = Graph()
    with graph.as_default():
        x = opkernel.raw_ops.Placeholder(dtype=opkernel.DataType.DT_FLOAT, shape=image.shape)
        y = convolution(x)
    call, function = opkernel.Session(graph).make_callable(y, [x]), opkernel.function(convolution)
    np.testing.assert_array_equal(call(image), function(image))
    steps = {
        "opkernel callable": partial(call, image),
        "opkernel function": partial(function, image),
    }
    return medians({step: partial(seconds_a_call, run) for step, run in steps.items()})


def measure(theirs: TensorFlow | None) -> dict[str, dict[str, float]]:
    """Median seconds a call of each contender."""
    x8 = np.ones(8, np.float32)
    found = {}
    for name, length in (("chain", CHAIN), ("one", 1)):
        graph, first, last = chain_graph(length)
        session = opkernel.Session(graph)
        call = session.make_callable(last, [first])
        hand = by_hand(length)
        function = opkernel.function(partial(apply_chain, length))
        np.testing.assert_array_equal(call(x8), hand(x8))
        np.testing.assert_array_equal(function(x8), hand(x8))
        steps: dict[str, Callable[[], object]] = {
            "NumPy by hand": partial(hand, x8),
            "opkernel callable": partial(call, x8),
            "opkernel function": partial(function, x8),
            "opkernel Session.run": partial(session.run, last, {first: x8}),
        }
        contenders = {step: partial(seconds_a_call, run) for step, run in steps.items()}
        if theirs:
            for how in ("callable", "function", "Session.run"):
                contenders[f"TensorFlow {how}"] = partial(theirs.seconds, name, how)
        found[name] = medians(contenders)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", metavar="PYTHON")
    options = parser.parse_args()
    rerun_in_clean_environment()
    theirs = TensorFlow(options.tensorflow) if options.tensorflow else None
    found = measure(theirs)
    if theirs:
        theirs.close()
    report(f"A chain of {CHAIN} ops on 8 floats", found["chain"], "NumPy by hand")
    report("A graph of one op", found["one"], "NumPy by hand")
    report("Conv2D, BiasAdd and Relu", measure_convolution(), "opkernel callable")


if __name__ == "__main__":
    main()
