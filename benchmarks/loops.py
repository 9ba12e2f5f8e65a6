"""Loops of TensorFlow 1 beside TensorFlow: an LSTM cell, scalars, beside a queue and with one inside; chains with queues.

    python benchmarks/loops.py [--tensorflow PYTHON_WITH_TENSORFLOW] [--profile CASE]

Both run the same GraphDef. Prints the time of a step, the time of a turn, and the ratio to TensorFlow
(bounds: the LSTM at least 0.9 of TensorFlow's speed, the scalars twice, loops with a queue half). `default` is what a
session takes: a plan, or the dataflow executor where there is a queue. `node by node` is that executor without plans in
it. `lstm_lowered` is the model
of that name in ../shared/models, where that is there: 3 loops of 20 turns.
"""

import argparse
import cProfile
import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dataflow import counting_loop
from measure import (
    Row,
    clean_environment,
    medians,
    note_row,
    rerun_in_clean_environment,
    seconds_a_call,
)

import opkernel
from opkernel.graph import Graph, Operation, Tensor
from opkernel.types import as_dtype

MODEL = Path(__file__).parents[2] / "shared" / "models" / "lstm_lowered"
BATCH, INPUTS, UNITS = 1, 64, 128

_TENSORFLOW = """
import json, sys
import numpy as np, tensorflow as tf
from measure import seconds_a_call
tf1 = tf.compat.v1
calls = {}
for line in sys.stdin:
    asked = json.loads(line)
    if "graph" in asked:
        with tf.Graph().as_default() as graph:
            definition = tf1.GraphDef.FromString(open(asked["graph"], "rb").read())
            tf1.import_graph_def(definition, name="")
        call = tf1.Session(graph=graph).make_callable(asked["fetch"], asked["feeds"])
        values = np.load(asked["values"])
        calls[asked["name"]] = lambda call=call, v=[values[f] for f in asked["feeds"]]: call(*v)
        np.save(asked["result"], calls[asked["name"]]())
        print("ready", flush=True)
    else:
        print(seconds_a_call(calls[asked["name"]]), flush=True)
"""


class Case(NamedTuple):
    """A graph to be run, and how many turns its loops make."""

    graph: Graph
    fetch: str
    feeds: dict[str, Any]
    turns: int


class TensorFlow:
    """A process that runs the same graphs with TensorFlow."""

    def __init__(self, python: str, folder: Path) -> None:
        self._folder = folder
        environment = clean_environment() | {
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONPATH": str(Path(__file__).parent),
        }
        self._process = subprocess.Popen(
            [python, "-c", _TENSORFLOW],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def prepare(self, name: str, case: Case) -> Any:
        """Give it a graph; what that computes."""
        graph, values, result = (self._folder / f"{name}{end}" for end in (".pb", ".npz", ".npy"))
        graph.write_bytes(case.graph.as_graph_def().SerializeToString())
        np.savez(values, **case.feeds)
        files = {"graph": str(graph), "values": str(values), "result": str(result)}
        self._ask(name=name, fetch=case.fetch, feeds=list(case.feeds), **files)
        return np.load(result)

    def seconds(self, name: str) -> float:
        """The time of a step."""
        return float(self._ask(name=name))

    def _ask(self, **asked: Any) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


class Loop:
    """Builds a loop that counts to n, as `tf.compat.v1.while_loop` does."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.pivot: Operation | None = None
        self._random = np.random.default_rng(0)

    def op(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        """The outputs of a new operation; the output, if it has one."""
        outputs = self.graph.create_op(op, list(inputs), attrs=attrs).outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def constant(self, value: Any) -> Tensor:
        """A constant, of int32 or float32; in the body it waits for the turn."""
        array = np.asarray(value, None if isinstance(value, np.ndarray) else np.int32)
        dtype = as_dtype(array.dtype)
        const = self.graph.create_op("Const", [], attrs={"dtype": dtype, "value": array})
        if self.pivot is not None:
            const.add_control_input(self.pivot)
        return const.outputs[0]

    def weights(self, *shape: int) -> Tensor:
        """Random weights."""
        return self.constant((self._random.standard_normal(shape) * 0.1).astype(np.float32))

    def count_to(
        self,
        n: Tensor,
        body: Callable[..., list[Tensor]],
        variables: list[Tensor],
        invariants: list[Tensor],
    ) -> list[Tensor]:
        """The results of a loop; `body` takes the counter, the variables and the invariants."""
        zero = self.constant(0)
        enters = [self.op("Enter", start, frame_name="loop") for start in (zero, *variables)]
        outer = [
            self.op("Enter", value, frame_name="loop", is_constant=True)
            for value in (n, *invariants)
        ]
        merges = [self.op("Merge", [enter, enter]) for enter in enters]
        goes_on = self.op("LoopCond", self.op("Less", merges[0][0], outer[0]))
        switches = [self.op("Switch", merge[0], goes_on) for merge in merges]
        inside = [self.op("Identity", switch[1]) for switch in switches]
        self.pivot = inside[0].op
        results = [self.op("AddV2", inside[0], self.constant(1)), *body(*inside, *outer[1:])]
        self.pivot = None
        for merge, result in zip(merges, results, strict=True):
            merge[0].op.update_input(1, self.op("NextIteration", result))
        return [self.op("Exit", switch[0]) for switch in switches][1:]


def lstm(turns: int) -> Case:
    """An LSTM cell over a sequence, its inputs and outputs in TensorArrays."""
    loop = Loop()
    float32 = opkernel.float32
    x = loop.graph.create_op("Placeholder", [], name="x", attrs={"dtype": float32}).outputs[0]
    n = loop.constant(turns)
    indices = loop.op("Range", loop.constant(0), n, loop.constant(1))
    source, flow = loop.op("TensorArrayV3", n, dtype=float32)
    filled = loop.op("TensorArrayScatterV3", source, indices, x, flow)
    target, results = loop.op("TensorArrayV3", n, dtype=float32)
    kernel, bias = loop.weights(INPUTS + UNITS, 4 * UNITS), loop.weights(4 * UNITS)
    zeros = loop.constant(np.zeros((BATCH, UNITS), np.float32))

    def body(i: Tensor, c: Tensor, h: Tensor, results: Tensor, *outer: Tensor) -> list[Tensor]:
        source, filled, target, kernel, bias = outer
        read = loop.op("TensorArrayReadV3", source, i, filled, dtype=float32)
        joined = loop.op("ConcatV2", [read, h], loop.constant(1))
        gates = loop.op("BiasAdd", loop.op("MatMul", joined, kernel), bias)
        new, put, keep, out = loop.op("Split", loop.constant(1), gates, num_split=4)
        kept = loop.op("Mul", loop.op("Sigmoid", keep), c)
        added = loop.op("Mul", loop.op("Sigmoid", put), loop.op("Tanh", new))
        c = loop.op("AddV2", kept, added)
        h = loop.op("Mul", loop.op("Sigmoid", out), loop.op("Tanh", c))
        return [c, h, loop.op("TensorArrayWriteV3", target, i, h, results)]

    outer = [source, filled, target, kernel, bias]
    _, _, results = loop.count_to(n, body, [zeros, zeros, results], outer)
    found = loop.op("TensorArrayGatherV3", target, indices, results, dtype=float32)
    values = np.random.default_rng(1).standard_normal((turns, BATCH, INPUTS)).astype(np.float32)
    return Case(loop.graph, found.name, {x.name: values}, turns)


def scalars(turns: int) -> Case:
    """i, x = 0, 1; while i < n: i, x = i + 1, x * 0.5 + 1."""
    graph, n, result = counting_loop()
    return Case(graph, result.name, {n.name: np.int32(turns)}, turns)


def integers(turns: int) -> Case:
    """i, x = 0, 0; while i < n: i, x = i + 1, 2 * x + 1."""
    loop = Loop()
    n = loop.graph.create_op("Placeholder", [], name="n", attrs={"dtype": opkernel.int32})

    def body(i: Tensor, x: Tensor) -> list[Tensor]:
        return [loop.op("AddV2", loop.op("Mul", x, loop.constant(2)), loop.constant(1))]

    (result,) = loop.count_to(n.outputs[0], body, [loop.constant(0)], [])
    return Case(loop.graph, result.name, {"n:0": np.int32(turns)}, turns)


def with_queue(case: Case, loop: Loop) -> Case:
    """The same, with the result put into a queue and taken out of it."""
    result = case.graph.get_tensor_by_name(case.fetch)
    queue = loop.op("FIFOQueueV2", component_types=[result.dtype])
    return case._replace(fetch=through_queue(loop.graph, queue, result).name)


def through_queue(graph: Graph, queue: Tensor, value: Tensor) -> Tensor:
    """What a queue gives once a value was put into it."""
    put = graph.create_op("QueueEnqueueV2", [queue, [value]])
    attrs = {"component_types": [value.dtype]}
    taken = graph.create_op("QueueDequeueV2", [queue], attrs=attrs)
    taken.add_control_input(put)
    return taken.outputs[0]


def counted(start: Any, body: Callable[[Loop, Tensor, Tensor, Tensor], Any], turns: int) -> Case:
    """A loop with a queue: i, x = i + 1, body(loop, i, x, queue), of a number that begins with `start`."""
    loop = Loop()
    n = loop.graph.create_op("Placeholder", [], name="n", attrs={"dtype": opkernel.int32})
    value = loop.constant(np.asarray(start))
    queue = loop.op("FIFOQueueV2", component_types=[value.dtype])
    (result,) = loop.count_to(
        n.outputs[0], lambda i, x, queue: [body(loop, i, x, queue)], [value], [queue]
    )
    return Case(loop.graph, result.name, {"n:0": np.int32(turns)}, turns)


def beside_queue(turns: int) -> Case:
    """The loop of `scalars`, whose result goes through a queue."""
    loop, case = Loop(), scalars(turns)
    loop.graph = case.graph
    return with_queue(case, loop)


def queue_inside(turns: int) -> Case:
    """A loop whose variable goes through a queue in every turn: i, x = i + 1, dequeue() * 0.5 + 1."""

    def body(loop: Loop, i: Tensor, x: Tensor, queue: Tensor) -> Any:
        half, one = loop.constant(np.array(0.5, "f4")), loop.constant(np.array(1, "f4"))
        return loop.op("AddV2", loop.op("Mul", through_queue(loop.graph, queue, x), half), one)

    return counted(np.float32(1), body, turns)


def queues_side_by_side(turns: int) -> Case:
    """A loop that puts each number into a queue and adds up what it gives: no turn needs the one before."""

    def body(loop: Loop, i: Tensor, x: Tensor, queue: Tensor) -> Any:
        return loop.op("AddV2", x, through_queue(loop.graph, queue, i))

    return counted(np.int32(0), body, turns)


def cond_inside(turns: int) -> Case:
    """Collatz numbers through a queue: x = dequeue(); x = 3 x + 1 if x is odd else x / 2, by Switch and Merge."""

    def body(loop: Loop, i: Tensor, x: Tensor, queue: Tensor) -> Any:
        x = through_queue(loop.graph, queue, x)
        one, two, three = map(loop.constant, (1, 2, 3))
        is_odd = loop.op("Cast", loop.op("FloorMod", x, two), DstT=opkernel.bool)
        even, odd = loop.op("Switch", x, is_odd)
        _, three = loop.op("Switch", three, is_odd)
        _, one = loop.op("Switch", one, is_odd)
        two, _ = loop.op("Switch", two, is_odd)
        more = loop.op("AddV2", loop.op("Mul", odd, three), one)
        return loop.op("Merge", [loop.op("FloorDiv", even, two), more])[0]

    return counted(np.int32(27), body, turns)


def straight_queue(nodes: int) -> Case:
    """A chain of that many cheap nodes whose values go through a queue at its beginning and at its end."""
    loop = Loop()
    x = loop.graph.create_op("Placeholder", [], name="x", attrs={"dtype": opkernel.float32})
    value, one = x.outputs[0], loop.constant(np.array(1, np.float32))
    for count in (0, nodes):
        for _ in range(count):
            value = loop.op("AddV2", value, one)
        case = with_queue(Case(loop.graph, value.name, {}, 0), loop)
        value = loop.graph.get_tensor_by_name(case.fetch)
    return Case(loop.graph, value.name, {"x:0": np.float32(1)}, nodes)


def lstm_lowered() -> Case:
    """The model of that name."""
    manifest = json.loads((MODEL / "manifest.json").read_text())
    values = np.load(MODEL / "case.npz")
    feeds = {feed: values[f"feed:{feed}"] for feed in manifest["feeds"]}
    return Case(opkernel.load_graph(MODEL / "graph.pb"), manifest["fetches"][0], feeds, 60)


def cases() -> dict[str, Case]:
    """What is measured, by name."""
    found = {
        "lstm": lstm(100),
        "scalars": scalars(1000),
        "integers": integers(1000),
        "beside_queue": beside_queue(1000),
        "queue_inside": queue_inside(200),
        "queues_side_by_side": queues_side_by_side(200),
        "cond_inside": cond_inside(100),
        "straight_queue": straight_queue(10),
        "straight_queue_long": straight_queue(1000),
    }
    return found | ({"lstm_lowered": lstm_lowered()} if MODEL.is_dir() else {})


def step_of(case: Case, **options: Any) -> Callable[[], Any]:
    """A step of ours."""
    session = opkernel.Session(case.graph, **options)
    call = session.make_callable(case.fetch, list(case.feeds))
    return partial(call, *case.feeds.values())


def measure(name: str, case: Case, tensorflow: TensorFlow | None) -> None:
    default, dataflow = step_of(case), step_of(case, executor_type="DATAFLOW")
    contenders: dict[str, Callable[[], float]] = {
        "default": partial(seconds_a_call, default),
        "node by node": partial(seconds_a_call, dataflow),
    }
    if tensorflow is not None:
        expected = tensorflow.prepare(name, case)
        np.testing.assert_allclose(default(), expected, rtol=1e-4, atol=1e-5)
        contenders["TensorFlow"] = partial(tensorflow.seconds, name)
    report(name, case.turns, medians(contenders))


def report(name: str, turns: int, seconds: Mapping[str, float]) -> None:
    """Print each contender's time, that of a turn, and how fast it is beside TensorFlow."""
    print(f"{name}: {turns} turns")
    for contender, value in seconds.items():
        theirs = seconds.get("TensorFlow", value)
        beside = theirs / value
        if contender != "TensorFlow":
            note_row(Row(f"{name}, {turns} turns, {contender}", value, "TensorFlow", theirs))
        print(
            f"  {contender:20s} {value * 1e3:9.3f} ms {value / turns * 1e6:8.3f} us a turn"
            f"   {beside:6.2f} x the speed of {'TensorFlow' if len(seconds) > 2 else 'itself'}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", metavar="PYTHON")
    parser.add_argument("--profile", metavar="CASE", help="profile the steps of one case instead")
    parser.add_argument("--only", metavar="CASE", help="measure one case")
    options = parser.parse_args()
    rerun_in_clean_environment()
    chosen = cases()
    if options.profile:
        step = step_of(chosen[options.profile])
        cProfile.runctx("for _ in range(50): step()", {"step": step}, {}, sort="tottime")
        return
    with tempfile.TemporaryDirectory() as folder:
        tensorflow = TensorFlow(options.tensorflow, Path(folder)) if options.tensorflow else None
        for name, case in chosen.items():
            if options.only in (None, name):
                measure(name, case, tensorflow)
        if tensorflow is not None:
            tensorflow.close()
    print("Bounds: 0.9 x for LSTMs, 2 x for scalars, 0.5 x with queues")


if __name__ == "__main__":
    main()
