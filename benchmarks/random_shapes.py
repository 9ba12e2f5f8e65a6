"""Streams of batches of random sizes and lengths: by `auto`, the kernels, OpenVINO, ONNX Runtime and TensorFlow.

    python benchmarks/random_shapes.py [--models NAME ...] [--batches N] [--rounds N] [--tensorflow PYTHON] [--onnxruntime PYTHON]

A small BERT and an LSTM compute batches of 1 to 64 inputs of 5 to 128 tokens; few shapes come twice. Each system has a process of
its own for each round, and runs the whole stream from its first step on: what it compiles meanwhile counts. Prints the inputs a
second, by the clock and by the time of the processors, the ratio to ONNX Runtime, and the most memory of the process.

`write_models.py` writes the models. `--onnxruntime` names a Python with `onnxruntime`; the models stand beside the graphs as
`NAME.onnx`, converted by

    python -m tf2onnx.convert --graphdef NAME.pb --inputs x:0,... --outputs y:0 --output NAME.onnx
"""

import argparse
import importlib
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import Worker, rerun_in_clean_environment
from models import CACHE, Model

WORDS, INPUTS = 30_000, 64
Feeds = dict[str, Any]
Run = Callable[[Feeds], Any]

MODELS = {
    "bert_mini": Model("states:0", ("tokens:0=tokens", "present:0=ones", "kinds:0=zeros")),
    "lstm": Model("y:0", ("x:0=vectors",)),
}
VALUES: dict[str, Callable[[np.random.Generator, int, int], Any]] = {
    "vectors": lambda random, batch, length: random.random((batch, length, INPUTS), np.float32),
    "tokens": lambda random, *shape: random.integers(0, WORDS, shape).astype(np.int32),
    "ones": lambda random, *shape: np.ones(shape, np.int32),
    "zeros": lambda random, *shape: np.zeros(shape, np.int32),
}


def stream(model: Model, batches: int) -> Iterator[Feeds]:
    """What is fed, batch for batch."""
    random = np.random.default_rng(0)
    for _ in range(batches):
        batch, length = int(random.integers(1, 65)), int(random.integers(5, 129))
        kinds = [one.split("=") for one in model.feeds]
        yield {name: VALUES[kind](random, batch, length) for name, kind in kinds}


def by_onnxruntime(path: Path, model: Model) -> Run:
    """A step of ONNX Runtime."""
    onnxruntime = importlib.import_module("onnxruntime")  # another Python has it
    session = onnxruntime.InferenceSession(path.with_suffix(".onnx"))
    return lambda feeds: session.run([model.fetch], feeds)[0]


def by_openvino(path: Path, model: Model) -> Run:
    """A step of OpenVINO by itself, whose shapes are dynamic."""
    import openvino

    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    source = path.with_suffix(".onnx")
    compiled = openvino.Core().compile_model(source if source.exists() else path, "CPU", hints)
    request = compiled.create_infer_request()
    output = compiled.output(model.fetch)
    return lambda feeds: request.infer(feeds, share_inputs=True)[output]


def by_tensorflow(path: Path, model: Model) -> Run:
    """A step of TensorFlow."""
    import model_worker

    return model_worker.by_tensorflow(
        path, [one.split("=")[0] for one in model.feeds], model.fetch
    )[0]


def by_opkernel(jit: str, path: Path, model: Model) -> Run:
    """A step of opkernel."""
    import opkernel

    session = opkernel.Session(opkernel.load_graph(path), jit=jit)
    return partial(session.run, model.fetch)


def work(system: str, name: str, batches: int) -> None:
    """Run a stream when told to; answer with seconds and memory."""
    model, path = MODELS[name], CACHE / f"{name}.pb"
    makers: dict[str, Callable[[Path, Model], Run]] = {
        "onnxruntime": by_onnxruntime,
        "openvino": by_openvino,
        "tensorflow": by_tensorflow,
        "off": partial(by_opkernel, "off"),
        "auto": partial(by_opkernel, "auto"),
    }
    run = makers[system](path, model)
    for _ in sys.stdin:
        seconds, processors, checked = 0.0, time.process_time(), list[float]()
        for feeds in stream(model, batches):
            start = time.perf_counter()
            result = run(feeds)
            seconds += time.perf_counter() - start
            checked.append(float(np.abs(result).mean()))
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        answer = [seconds, time.process_time() - processors, megabytes, checked]
        print(json.dumps(answer), flush=True)


def compare(name: str, systems: dict[str, str], batches: int, rounds: int) -> None:
    """Print how all systems do."""
    inputs = sum(len(next(iter(one.values()))) for one in stream(MODELS[name], batches))
    found: dict[str, list[Any]] = {}
    for _ in range(rounds):
        for system, python in systems.items():
            worker = Worker([python, __file__, "--work", system, name, str(batches)])
            try:
                found.setdefault(system, []).append(worker.ask("run"))
            except (json.JSONDecodeError, BrokenPipeError):
                print(f"{name}: {system} does not run it")
            worker.close()
    found = {system: answers for system, answers in found.items() if answers}
    wanted = found["off"][0][3] if "off" in found else None
    print(f"{name}: {batches} batches, {inputs:,} inputs; most memory of the process")
    peer = "onnxruntime" if "onnxruntime" in found else next(iter(found))
    per_s = {
        s: inputs / statistics.median(one[0] for one in answers) for s, answers in found.items()
    }
    for system, answers in found.items():
        if wanted is not None:
            np.testing.assert_allclose(answers[0][3], wanted, rtol=1e-3)
        processors = inputs / statistics.median(one[1] for one in answers)
        print(
            f"  {system:12s} {per_s[system]:9.1f} a second   {per_s[system] / per_s[peer]:6.3f} x {peer}"
            f"   {processors:9.1f} a second of the processors   {answers[0][2]:7.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tensorflow", metavar="PYTHON", help="a Python that has TensorFlow")
    parser.add_argument("--onnxruntime", metavar="PYTHON", help="a Python that has ONNX Runtime")
    options = parser.parse_args()
    rerun_in_clean_environment()
    systems = {"off": sys.executable, "auto": sys.executable, "openvino": sys.executable}
    for name in ("onnxruntime", "tensorflow"):
        if getattr(options, name):
            systems[name] = getattr(options, name)
    for name in options.models:
        compare(name, systems, options.batches, options.rounds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        main()
