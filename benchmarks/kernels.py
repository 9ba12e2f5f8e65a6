"""What a kernel costs beyond its computation, inside a plan, by the form that it is written in.

    python benchmarks/kernels.py [--tensorflow PYTHON_WITH_TENSORFLOW]

Each form is a chain of 100 nodes on 8 floats; the kernels hand their first input on, so that all
that is left is the cost of the form. What one node takes is told in units of a tiny `np.add` called
by hand in the same run: a ufunc adds under 0.1 of it to the addition, a function takes under 0.35,
a class that reads its inputs and sets its output under 2, one that also allocates under 3.5.

With a Python that has TensorFlow it then compares an op in Python in a graph with TensorFlow's
`numpy_function`, both of which add (bound: at least 30 x cheaper).
"""

import argparse
import json
import statistics
import subprocess
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import clean_environment, interleaved, rerun_in_clean_environment

import opkernel
from opkernel.graph import Graph
from opkernel.kernel import KernelContract, OpKernel, OpKernelContext, register_kernel
from opkernel.opdef import register_op, unchanged_shape
from opkernel.types import float32

CHAIN = 100
BOUNDS = {"ufunc": 0.1, "function": 0.35, "class": 2.0, "class that allocates": 3.5}
CHEAPER = 30
CLAIMS = KernelContract(outputs_as_declared=True)  # what claims nothing is checked at every call
OPS = {
    "ufunc": "BenchmarkUfunc",
    "function": "BenchmarkFunction",
    "class": "BenchmarkClass",
    "class that allocates": "BenchmarkAllocatingClass",
    "function that adds": "BenchmarkFunctionThatAdds",
}
_TENSORFLOW = """
import json, statistics, sys, time
import numpy as np, tensorflow as tf
tf1 = tf.compat.v1
with tf.Graph().as_default() as g:
    x = tf1.placeholder(tf.float32, [8], "x")
    chains = []
    for node in (lambda y: tf.numpy_function(np.add, [y, x], tf.float32), tf.identity):
        y = x
        for _ in range(int(sys.argv[1])):
            y = node(y)
        chains.append(y)
    calls = [tf1.Session(graph=g).make_callable(y, [x]) for y in chains]
x8, found = np.ones(8, np.float32), []
for _ in range(9):
    times = []
    for call in calls:
        start = time.perf_counter()
        for _ in range(20): call(x8)
        times.append((time.perf_counter() - start) / 20)
    found.append(times[0] - times[1])
print(json.dumps(statistics.median(found)))
"""


def declare(name: str) -> str:
    """An op of two inputs and an output of their shape."""
    inputs = ["a: float", "b: float"]
    return register_op(name, inputs=inputs, outputs=["c: float"], shape_fn=unchanged_shape).name


register_kernel(declare("BenchmarkUfunc"), device="CPU")(np.add)


@register_kernel(declare("BenchmarkFunction"), device="CPU", contract=CLAIMS, kind="view")
def hand_on(a: Any, b: Any) -> Any:
    """Hand the first input on."""
    return a


@register_kernel(declare("BenchmarkClass"), device="CPU", contract=CLAIMS)
class HandOn(OpKernel):
    """Reads its inputs and sets its output."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Compute one step."""
        a = ctx.input(0)
        ctx.input(1)
        ctx.set_output(0, a)


@register_kernel(declare("BenchmarkAllocatingClass"), device="CPU", contract=CLAIMS)
class Allocates(OpKernel):
    """Reads its inputs and allocates its output."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Compute one step."""
        a = ctx.input(0)
        ctx.input(1)
        ctx.allocate_output(0, a.shape)


@register_kernel(declare("BenchmarkFunctionThatAdds"), device="CPU")
def add_in_python(a: Any, b: Any) -> Any:
    """A user's op in Python."""
    return np.add(a, b)


def chain(op: str, length: int) -> Callable[..., Any]:
    """The plan of a chain of nodes, as a function of the array that is fed."""
    graph = Graph()
    attrs = {"dtype": float32, "shape": [8]}
    first = graph.create_op("Placeholder", [], name="x", attrs=attrs).outputs[0]
    tensor = first
    for index in range(length):
        tensor = graph.create_op(op, [tensor, first], name=f"n{index}").outputs[0]
    return opkernel.Session(graph).make_callable(tensor, [first])


def by_hand(length: int) -> Callable[[Any], Any]:
    """Calls of `np.add`, one after the other in one function."""
    text = "def chain(x):\n    y = x\n" + "    y = add(y, x)\n" * length + "    return y\n"
    names: dict[str, Any] = {"add": np.add}
    exec(text, names)  # the text above
    function: Callable[[Any], Any] = names["chain"]
    return np.errstate(all="ignore")(function)  # as plans run


def measure(rounds: int = 25) -> tuple[float, dict[str, float]]:
    """Median seconds of `np.add`, and what a node of each form takes in units of it.

    The unit is taken anew each round: machines change their speed. What a call of the plan takes by
    itself is left out, of the ufunc's node the addition, too.
    """
    x8 = np.ones(8, np.float32)
    contenders = {form: partial(chain(op, CHAIN), x8) for form, op in OPS.items()}
    contenders |= {
        "nothing": partial(chain("", 0), x8),
        "by hand": partial(by_hand(CHAIN), x8),
        "nothing by hand": partial(by_hand(0), x8),
    }
    units, found = [], []
    for _ in range(rounds):
        seconds = interleaved(contenders, rounds=1)
        unit = seconds["by hand"] - seconds["nothing by hand"]
        units.append(unit / CHAIN)
        found.append({form: (seconds[form] - seconds["nothing"]) / unit for form in OPS})
    medians = {form: statistics.median(one[form] for one in found) for form in OPS}
    medians["ufunc"] -= 1
    return statistics.median(units), medians


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", metavar="PYTHON")
    options = parser.parse_args()
    rerun_in_clean_environment()
    unit, found = measure()
    print(f"One np.add by hand takes {unit * 1e9:.0f} ns; beyond its computation a kernel takes")
    for form, bound in BOUNDS.items():
        verdict = "" if found[form] < bound else "   MISSED"
        print(f"  {form:22s} {found[form]:6.3f} x   (under {bound}){verdict}")
    if options.tensorflow:
        environment = clean_environment() | {"TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [options.tensorflow, "-c", _TENSORFLOW, str(CHAIN)]
        output = subprocess.run(command, env=environment, check=True, capture_output=True)
        theirs = json.loads(output.stdout.splitlines()[-1]) / CHAIN
        ours = unit * found["function that adds"]
        print("An op in Python that adds, in a graph:")
        print(f"  opkernel {ours * 1e9:6.0f} ns")
        print(
            f"  numpy_function {theirs * 1e9:6.0f} ns: {theirs / ours:.0f} x (at least {CHEAPER})"
        )


if __name__ == "__main__":
    main()
