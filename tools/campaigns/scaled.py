"""Calls whose inputs are so large that they want much: time and memory that the caller allowed are kept.

Each call has 2 s and 256 MB, and a process. It ends within 4 s, and its process grows by at most 400 MB.
"""

import contextlib
import json
import os
import random
import resource
import select
import signal
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from tools.campaigns.campaign import Finding
from tools.campaigns.samples import calls, functions_of_calls
from tools.campaigns.scaling import Arrays, scale

import opkernel
from opkernel.device.budget import Budget
from opkernel.errors import OpError
from opkernel.graph import Graph, import_graph_def
from opkernel.kernel import under_budget
from opkernel.ops.loader import load_all_ops
from opkernel.proto import GraphDef

__all__ = ["SECONDS_A_CASE", "begin", "case"]

SECONDS_A_CASE = 120
SCALE = float(os.environ.get("SCALE", "1"))
ALLOWED_S, ALLOWED_BYTES = 2.0 / SCALE, int((1 << 28) / SCALE)
MOST_S, MOST_BYTES = 4.0 / SCALE, int(400_000_000 / SCALE)
_PATIENCE_S = 60.0
_DATA_BYTES = 3 << 30


def begin() -> None:
    """Load what calls need, once for all their processes."""
    load_all_ops()


def case(rng: random.Random) -> str:
    """Scale a call, and run it."""
    by_op = _samples()
    op = rng.choice(os.environ.get("OPS", "").split() or sorted(by_op))
    graph_def = GraphDef()
    graph_def.CopyFrom(rng.choice(by_op[op]))
    plain = GraphDef()
    plain.CopyFrom(graph_def)
    arrays = scale(graph_def, rng)
    run = _run_apart(plain, graph_def, arrays)
    if not run.get("fault"):
        return run["word"]
    what = f"{op}: {run['fault']} ({run['word']} after {run['seconds']:.1f} s, {run['grown'] >> 20} MiB)"
    raise Finding(f"{what}\n{_shown(graph_def, arrays)}\n{run.get('where', '')}")


def _samples() -> dict[str, list[GraphDef]]:
    found: dict[str, list[GraphDef]] = {}
    for nodes in calls():
        graph_def = GraphDef(node=nodes)
        if any(value.HasField("func") for value in nodes[-1].attr.values()):
            graph_def.library.CopyFrom(functions_of_calls())
        graph_def.versions.producer = 2474
        found.setdefault(nodes[-1].op, []).append(graph_def)
    return found


def _shown(graph_def: GraphDef, arrays: Arrays) -> str:
    node = graph_def.node[-1]
    attrs = ", ".join(f"{name}={str(node.attr[name])[:200]!r}" for name in sorted(node.attr))
    sizes = ", ".join(
        f"{name.rpartition('/')[2]} {a.dtype}{list(a.shape)} {str(a.flat[:3] if a.size else '')[:100]}"
        for name, a in arrays.items()
    )
    return f"{node.op}({sizes}; {attrs})"


def _run_apart(plain: GraphDef, graph_def: GraphDef, arrays: Arrays) -> dict[str, Any]:
    """Run a call in another process; what it tells of it."""
    receiving, sending = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        process = os.fork()
    if process == 0:
        os.close(receiving)
        _tell(sending, plain, graph_def, arrays)
    os.close(sending)
    try:
        text, end = b"", time.monotonic() + _PATIENCE_S
        while select.select([receiving], [], [], max(end - time.monotonic(), 0))[0]:
            data = os.read(receiving, 1 << 16)
            if not data:
                break
            text += data
    finally:
        os.close(receiving)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        status = os.waitpid(process, 0)[1]
    if not text:
        return {
            "word": "killed",
            "seconds": _PATIENCE_S,
            "grown": 0,
            "fault": f"it never ended, or crashed: {status}",
        }
    return _judged(json.loads(text))


def _judged(run: dict[str, Any]) -> dict[str, Any]:
    if run["seconds"] > MOST_S:
        run["fault"] = "too slow"
    elif run["grown"] > MOST_BYTES:
        run["fault"] = "too much memory"
    return run


def _tell(sending: int, plain: GraphDef, graph_def: GraphDef, arrays: Arrays) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (_DATA_BYTES, _DATA_BYTES))
        with contextlib.suppress(Exception):
            _run(plain, {})
        if os.environ.get("WHERE"):
            import faulthandler

            faulthandler.dump_traceback_later(float(os.environ["WHERE"]), exit=False)
        _forget_peak()
        most = int(time.process_time() + 2 * MOST_S) + 2
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        before, start, began = _bytes("VmRSS"), time.monotonic(), time.process_time()
        fault = ""
        try:
            with under_budget(Budget(deadline=start + ALLOWED_S)):
                _run(graph_def, arrays)
            word = "ran"
        except OpError as error:
            word = error.code.name
            if os.environ.get("WHERE"):
                print(str(error)[:300])
        except BaseException:
            word, fault = "fault", traceback.format_exc(limit=-5)
        seconds = min(time.monotonic() - start, time.process_time() - began)
        told = {"word": word, "seconds": seconds, "grown": _bytes("VmHWM") - before, "fault": fault}
        os.write(sending, json.dumps(told).encode())
    finally:
        os._exit(0)


def _run(graph_def: GraphDef, arrays: Arrays) -> None:
    feeds = {}
    nodes = []
    for node in graph_def.node:
        if node.name in arrays:
            feeds[f"{node.name}:0"] = arrays[node.name]
            dtype = node.attr["dtype"].type
            node = type(node)(name=node.name, op="Placeholder")
            node.attr["dtype"].type = dtype
        nodes.append(node)
    scaled = GraphDef(node=nodes, library=graph_def.library, versions=graph_def.versions)
    graph = Graph()
    import_graph_def(scaled, name="", graph=graph)
    called = graph.get_operations()[-1]
    fetches = list(called.outputs) or [called]
    options = opkernel.RunOptions(timeout_in_ms=int(1000 * ALLOWED_S))
    with opkernel.Session(graph, memory_limit_bytes=ALLOWED_BYTES) as session:
        session.run(fetches, feeds, options)


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _bytes(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    return 0
