"""How fast engines are: networks by the plan, by XLA, by OpenVINO and by `auto`, beside OpenVINO by itself and TensorFlow.

    python benchmarks/engines.py [--tensorflow PYTHON_WITH_TENSORFLOW] [--models NAME ...]
                                 [--batches N ...] [--rounds N] [--json FILE]

Every system has a process of its own; all take turns. Prints for each model and batch size the time of a step by a made
callable, and its ratio to the best peer: OpenVINO by itself for the networks, `jax.jit` of the same function for the LSTM and the
chain of 1,000 tiny ops. Then what a cluster costs beyond its engine, and the first answer with `auto`.
The networks are those of `models.py`.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import (
    Worker,
    clean_environment,
    medians,
    rerun_in_clean_environment,
    seconds_a_call,
)
from models import CACHE, HERE, MODELS, SECONDS, Model

import opkernel
from opkernel import raw_ops
from opkernel.engines import ClusterArgument, engine_named
from opkernel.graph import FunctionBody, Graph, graph_to_function_def, instantiate_function

SYSTEMS = ("opkernel", "opkernel:xla", "opkernel:openvino", "opkernel:auto", "openvino")
TURNS, UNITS, INPUTS = 100, 128, 64
WARM_S = 8.0
"""So long `auto` runs steps before it is measured: engines are compiled, and take turns."""


def networks(
    python: str | None, path: Path, model: Model, batches: Sequence[int], rounds: int
) -> dict[int, dict[str, float]]:
    """For each batch size: the median seconds of a step of each system."""
    fed = [model.fetch, *model.feeds]
    pythons = dict.fromkeys(SYSTEMS, sys.executable) | ({"tensorflow": python} if python else {})
    script = str(HERE / "model_worker.py")
    found: dict[int, dict[str, float]] = {}
    for batch in batches:
        workers = {
            system: Worker([one, script, system, str(path), *fed])
            for system, one in pythons.items()
        }
        for system in [*workers]:
            if not can_run(workers[system], batch):
                workers.pop(system).close()
        workers["opkernel:auto"].ask("time", "callable", batch, WARM_S)
        times: dict[str, list[float]] = {system: [] for system in workers}
        for _ in range(rounds):
            for system, worker in workers.items():
                times[system].append(worker.ask("time", "callable", batch, SECONDS))
        for worker in workers.values():
            worker.close()
        found[batch] = {system: statistics.median(one) for system, one in times.items()}
    return found


def can_run(worker: Worker, batch: int) -> bool:
    """Whether a system takes the model: its worker ends where it does not."""
    try:
        worker.ask("time", "callable", batch, SECONDS)
    except (json.JSONDecodeError, BrokenPipeError):
        return False
    return True


def lstm_graph(batch: int) -> Graph:
    """An LSTM cell in a loop of 100 turns."""
    random = np.random.default_rng(0)
    weights = (random.standard_normal((INPUTS + UNITS, 4 * UNITS)) * 0.1).astype(np.float32)
    with Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [batch, INPUTS], name="x")

        def cell(i: Any, h: Any, c: Any) -> Any:
            joined = raw_ops.ConcatV2(values=[x, h], axis=1)
            gates = raw_ops.MatMul(a=joined, b=weights)
            a, b, g, o = raw_ops.Split(axis=1, value=gates, num_split=4)
            kept = raw_ops.Mul(x=raw_ops.Sigmoid(x=b), y=c)
            new = raw_ops.AddV2(x=kept, y=raw_ops.Mul(x=raw_ops.Sigmoid(x=a), y=raw_ops.Tanh(x=g)))
            return i + 1, raw_ops.Mul(x=raw_ops.Sigmoid(x=o), y=raw_ops.Tanh(x=new)), new

        zeros = np.zeros((batch, UNITS), np.float32)
        _, h, _ = opkernel.while_loop(lambda i, h, c: i < TURNS, cell, (0, zeros, zeros))
        raw_ops.Identity(input=h, name="y")
    return graph


def lstm_by_jax(batch: int) -> Callable[[Any], Any]:
    """The same loop by `jax.jit`."""
    import jax
    import jax.numpy as jnp

    random = np.random.default_rng(0)
    weights = (random.standard_normal((INPUTS + UNITS, 4 * UNITS)) * 0.1).astype(np.float32)

    @jax.jit
    def loop(x: Any) -> Any:
        def cell(_: Any, state: Any) -> Any:
            h, c = state
            a, b, g, o = jnp.split(jnp.concatenate([x, h], 1) @ weights, 4, axis=1)
            c = jax.nn.sigmoid(b) * c + jax.nn.sigmoid(a) * jnp.tanh(g)
            return jax.nn.sigmoid(o) * jnp.tanh(c), c

        zeros = jnp.zeros((batch, UNITS), jnp.float32)
        return jax.lax.fori_loop(0, TURNS, cell, (zeros, zeros))[0]

    return lambda x: np.asarray(loop(x))


def chain_graph(count: int) -> Graph:
    """So many tiny ops, one after the other."""
    with Graph().as_default() as graph:
        y: Any = opkernel.placeholder(opkernel.float32, [8], name="x")
        for number in range(count):
            y = raw_ops.AddV2(x=y, y=1.0) if number % 2 else raw_ops.Mul(x=y, y=0.5)
        raw_ops.Identity(input=y, name="y")
    return graph


def elementwise_graph() -> Graph:
    """Ten element-wise ops on 16 M floats."""
    with Graph().as_default() as graph:
        y: Any = opkernel.placeholder(opkernel.float32, [1 << 24], name="x")
        for number in range(10):
            y = raw_ops.AddV2(x=y, y=1.0) if number % 2 else raw_ops.Mul(x=y, y=0.5)
        raw_ops.Identity(input=y, name="y")
    return graph


def by_session(graph: Graph, jit: str, *values: Any) -> Callable[[], Any]:
    """A step of a session that has found its way."""
    jit = jit if jit in ("off", "auto") else f"{jit}!"  # whether it pays is what is measured
    session = opkernel.Session(graph, jit=jit)
    call = session.make_callable("y:0", ["x:0"])
    end = time.perf_counter() + (3.0 if jit == "auto" else 0.2)
    while time.perf_counter() < end:
        call(*values)
    return partial(call, *values)


def loops() -> dict[str, float]:
    """The LSTM at batch 1 and 8, the chain, element-wise ops on long arrays: seconds of a step."""
    found: dict[str, float] = {}
    for batch in (1, 8):
        x = np.random.default_rng(1).random((batch, INPUTS), np.float32)
        jax_loop = partial(lstm_by_jax(batch), x)
        contenders: dict[str, Callable[[], Any]] = {"jax.jit": jax_loop}
        contenders |= {jit: by_session(lstm_graph(batch), jit, x) for jit in ("off", "xla", "auto")}
        np.testing.assert_allclose(contenders["xla"](), jax_loop(), rtol=1e-4, atol=1e-5)
        found |= _medians(f"lstm, batch {batch}", contenders)
    x = np.ones(8, np.float32)
    jits = ("off", "xla", "auto")
    found |= _medians("1,000 tiny ops", {j: by_session(chain_graph(1000), j, x) for j in jits})
    x = np.ones(1 << 24, np.float32)
    found |= _medians("10 ops on 16 M", {j: by_session(elementwise_graph(), j, x) for j in jits})
    return found


def _medians(title: str, contenders: dict[str, Callable[[], Any]]) -> dict[str, float]:
    timed = {name: partial(seconds_a_call, one) for name, one in contenders.items()}
    return {f"{title}: {name}": seconds for name, seconds in medians(timed, 7).items()}


def cluster_costs() -> dict[str, float]:
    """What a step with a cluster takes beyond the program that the engine made of it: seconds."""
    found: dict[str, float] = {}
    x = np.ones(8, np.float32)
    for jit in ("xla", "openvino"):
        graph = chain_graph(20)
        body = _body(graph)
        engine = engine_named(jit)
        program = engine.compile(body, [ClusterArgument.parameter(opkernel.float32, (8,))])
        contenders: dict[str, Callable[[], Any]] = {
            "step": by_session(graph, jit, x),
            "program": partial(program.run, [x]),
        }
        times = _medians(jit, contenders)
        found[jit] = times[f"{jit}: step"] - times[f"{jit}: program"]
    return found


def _body(graph: Graph) -> FunctionBody:
    """A graph from `x` to `y` as a function."""
    x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")
    function = graph_to_function_def(graph, "chain", [x], [y])
    return instantiate_function(graph.function_library, function)


def first_answers(path: Path, model: Model, rounds: int) -> dict[str, float]:
    """Seconds to the first answer in a process of its own, `jit` off and `auto`."""
    code = (
        "import sys, time; start = time.perf_counter()\n"
        "sys.argv = ['', 'opkernel:' + sys.argv[1], *sys.argv[2:]]\n"
        "import model_worker, numpy as np, functools\n"
        "from pathlib import Path\n"
        "_, system, path, fetch, *specs = sys.argv\n"
        "kinds = dict(one.split('=') for one in specs)\n"
        "run = model_worker.by_opkernel(Path(path), list(kinds), fetch, system.split(':')[1])[0]\n"
        "random = np.random.default_rng(0)\n"
        "run({n: model_worker.VALUES[k](random, 1) for n, k in kinds.items()})\n"
        "print(time.perf_counter() - start)\n"
    )
    times: dict[str, list[float]] = {"off": [], "auto": []}
    for _ in range(rounds):
        for jit, found in times.items():
            command = [sys.executable, "-c", code, jit, str(path), model.fetch, *model.feeds]
            done = subprocess.run(
                command,
                check=True,
                env=clean_environment(),
                cwd=HERE,
                capture_output=True,
                text=True,
            )
            found.append(float(done.stdout))
    return {jit: statistics.median(one) for jit, one in times.items()}


def report(title: str, times: dict[str, float], peer: str) -> None:
    """Print times, and how they stand to a peer's."""
    print(title)
    for name, seconds in times.items():
        print(f"  {name:20s} {seconds * 1e3:10.3f} ms   {seconds / times[peer]:6.3f} x {peer}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", metavar="PYTHON", help="a Python that has TensorFlow")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured, too")
    options = parser.parse_args()
    rerun_in_clean_environment()
    results: dict[str, Any] = {}
    for name in options.models:
        path, model = CACHE / f"{name}.pb", MODELS[name]
        found = networks(options.tensorflow, path, model, options.batches, options.rounds)
        for batch, times in found.items():
            peer = "openvino" if "openvino" in times else "opkernel:openvino"
            report(f"{name}, batch {batch}", times, peer)
        results[name] = found
        results[f"{name}, first answer"] = first = first_answers(path, model, 3)
        report(f"{name}, first answer", first, "off")
    results["loops"] = loops()
    for name, seconds in results["loops"].items():
        print(f"  {name:30s} {seconds * 1e3:10.3f} ms")
    results["beyond the engine"] = cluster_costs()
    for name, seconds in results["beyond the engine"].items():
        print(f"  a cluster for {name} costs {seconds * 1e6:.1f} us more than its program")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
