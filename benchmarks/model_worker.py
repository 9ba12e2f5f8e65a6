"""A process that runs one frozen model when told to: by opkernel, or by TensorFlow.

    python benchmarks/model_worker.py SYSTEM GRAPH.pb FETCH FEED=KIND ...

SYSTEM is `opkernel`, `opkernel:ENGINE` for a session with that `jit`, `tensorflow`, or `openvino` for its own front end.
`models.py` and `engines.py` start it. KIND is what is fed (`VALUES`). It answers each line of its input, a JSON list,
with one line: `["save", batch, path]` writes the result; `["time", how, batch, seconds]` tells the
median seconds of as many steps as take that long, `how` being `run` or `callable`; `["profile",
batch]` tells the seconds and calls of each op (opkernel alone).
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[..., Any]
Feeds = dict[str, Any]

TOKENS = 128
VALUES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "long": lambda random, batch: random.random((batch, 1 << 24), np.float32),
    "vector": lambda random, batch: random.random((batch, 64), np.float32),
    "image": lambda random, batch: random.random((batch, 224, 224, 3), np.float32),
    "tokens": lambda random, batch: random.integers(0, 30_000, (batch, TOKENS)).astype(np.int32),
    "ones": lambda random, batch: np.ones((batch, TOKENS), np.int32),
    "zeros": lambda random, batch: np.zeros((batch, TOKENS), np.int32),
}


def by_tensorflow(path: Path, feeds: list[str], fetch: str) -> tuple[Run, Run]:
    """`run(feeds)` and `callable(*values)` of TensorFlow's Session."""
    import tensorflow as tf

    tf1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(tf1.GraphDef.FromString(path.read_bytes()), name="")
    session = tf1.Session(graph=graph)
    return lambda fed: session.run(fetch, fed), session.make_callable(fetch, feeds)


def by_openvino(path: Path, feeds: list[str], fetch: str) -> tuple[Run, Run]:
    """`run(feeds)` and `callable(*values)` of OpenVINO by itself, compiled anew for other shapes."""
    import openvino

    core = openvino.Core()
    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled: dict[Any, Any] = {}

    def call(*values: Any) -> Any:
        shapes = tuple([value.shape for value in values])
        if shapes not in compiled:
            model = core.read_model(path)
            model.reshape(dict(zip(feeds, map(list, shapes), strict=True)))
            made = core.compile_model(model, "CPU", hints)
            names = [one.get_any_name() for one in made.outputs]
            place = names.index(fetch) if fetch in names else 0
            compiled[shapes] = made.create_infer_request(), place
        request, place = compiled[shapes]
        given = dict(zip(feeds, values, strict=True))
        return request.infer(given, share_inputs=True, share_outputs=True)[place]

    return lambda fed: call(*[fed[name] for name in feeds]), call


def by_opkernel(path: Path, feeds: list[str], fetch: str, jit: str = "off") -> tuple[Run, Run, Run]:
    """`run(feeds)`, `callable(*values)` and `profile(feeds)` of opkernel's Session."""
    import opkernel
    from opkernel.runtime.traces import profile_of

    graph = opkernel.load_graph(path)
    jit = jit if jit in ("off", "auto") else f"{jit}!"  # whether it pays is what is measured
    session = opkernel.Session(graph, jit=jit)
    options = opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE)

    def profile(fed: Feeds) -> dict[str, Any]:
        steps = []
        for _ in range(5):
            metadata = opkernel.RunMetadata()
            session.run(fetch, fed, options, metadata)
            steps.append(metadata.step_stats)
        return {row.op: [row.seconds, row.calls] for row in profile_of(steps[1:]).ops}

    return lambda fed: session.run(fetch, fed), session.make_callable(fetch, feeds), profile


def median_seconds(step: Callable[[], object], at_least_s: float) -> float:
    """The median time of as many steps as take `at_least_s`, three at least."""
    times: list[float] = []
    while sum(times) < at_least_s or len(times) < 3:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    system, path, fetch, *specs = sys.argv[1:]
    kinds = dict(spec.split("=") for spec in specs)
    name, _, jit = system.partition(":")
    makers = {"openvino": by_openvino, "tensorflow": by_tensorflow}
    make = makers.get(name) or partial(by_opkernel, jit=jit or "off")
    run, call, *profile = make(Path(path), list(kinds), fetch)
    fed: dict[int, Feeds] = {}
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        batch = arguments[1 if command == "time" else 0]
        if batch not in fed:
            random = np.random.default_rng(0)
            fed[batch] = {name: VALUES[kind](random, batch) for name, kind in kinds.items()}
        feeds, answer = fed[batch], None
        values = list(feeds.values())
        if command == "save":
            np.save(arguments[1], run(feeds))
            call(*values)
        elif command == "time":
            step = partial(run, feeds) if arguments[0] == "run" else partial(call, *values)
            answer = median_seconds(step, arguments[2])
        else:
            answer = profile[0](feeds)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
