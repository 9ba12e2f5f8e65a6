"""The latency of predict over HTTP, beside the bare server's echo and the model's own step.

    python benchmarks/serving.py [--rounds 9] [--requests 300] [--clients 1 16] [--plain]

The echo is an application of three lines behind the same uvicorn, which gets and sends back the same request. The model's
step is `Session.run` of the signature's tensors. Each client sends its next request when it has the answer. Clients and
servers are processes of their own; they share the machine's processors. Contenders take turns; p50 and p99 are medians of
the rounds. With `--plain` uvicorn does without httptools and uvloop, as `pip install opkernel[serve]` alone installs it.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import clean_environment, rerun_in_clean_environment

import opkernel
from opkernel.proto import GraphDef

HERE = Path(__file__).resolve().parent
DIGITS = HERE.parent / "examples" / "digits"
WARM = 50
QUANTILES = (50, 99)
PLAIN = "import sys; sys.modules.update(httptools=None, uvloop=None); "
PROGRAM = "import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"

Latencies = list[float]


class HalfPlusTwo(opkernel.Module):
    """The smallest model of TensorFlow Serving's guide."""

    @opkernel.function(input_signature=[opkernel.TensorSpec([None], opkernel.float32, name="x")])
    def __call__(self, x: Any) -> Any:
        """Half of x, plus two."""
        return x * 0.5 + 2.0


class Digits(opkernel.Module):
    """The network of examples/digits."""

    @opkernel.function(
        input_signature=[opkernel.TensorSpec([None, 8, 8, 1], opkernel.float32, name="images")]
    )
    def __call__(self, images: Any) -> Any:
        """The probabilities of the digits."""
        graph_def = GraphDef.FromString((DIGITS / "digits.pb").read_bytes())
        found = opkernel.import_graph_def(
            graph_def, input_map={"images:0": images}, return_elements=["probabilities:0"]
        )
        assert found is not None
        return found[0]


def models() -> dict[str, tuple[opkernel.Module, Any]]:
    """Each model, and a row for it."""
    image = np.load(DIGITS / "test_images.npz")["images"][0, ..., np.newaxis]
    return {"half_plus_two": (HalfPlusTwo(), 1.5), "digits": (Digits(), image.tolist())}


@contextlib.contextmanager
def server(module: str, *arguments: str, is_plain: bool) -> Iterator[int]:
    """The port of a module that serves in a process of its own, which ends with the block."""
    program = (PLAIN if is_plain else "") + PROGRAM.format(module=module)
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=HERE,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield next(
            int(line.rpartition(":")[2])
            for line in process.stdout
            if line.startswith("serving at ")
        )
    finally:
        process.terminate()
        process.communicate()


def asked(port: int, request: bytes, clients: int, requests: int) -> Latencies:
    """What requests take, several clients together."""

    async def ask() -> Latencies:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        found = []
        for _ in range(max(requests // clients, 1)):
            start = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            size = next(
                line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
            )
            await reader.readexactly(int(size.partition(b":")[2]))
            found.append(time.perf_counter() - start)
        writer.close()
        return found

    async def ask_all() -> Latencies:
        of_each = await asyncio.gather(*(ask() for _ in range(clients)))
        return [one for found in of_each for one in found]

    return asyncio.run(ask_all())


def stepped(step: Callable[[], object], requests: int) -> Latencies:
    """What calls take, one after the other."""
    found = []
    for _ in range(requests):
        start = time.perf_counter()
        step()
        found.append(time.perf_counter() - start)
    return found


def own_step(directory: Path, row: Any) -> Callable[[], object]:
    """`Session.run` of the tensors of the only signature, on one row."""
    model = opkernel.load_as_session(directory)
    signature = model.meta_graph.signature_def["serving_default"]
    ((_, x),), fetches = signature.inputs.items(), [y.name for y in signature.outputs.values()]
    return partial(model.session.run, fetches, {x.name: np.array([row], np.float32)})


def http_request(row: Any) -> bytes:
    """A request to predict one row."""
    body = json.dumps({"instances": [row]}).encode()
    head = f"POST /v1/models/served:predict HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def quantiles(latencies: Latencies) -> list[float]:
    """Those that are reported."""
    return [float(q) for q in np.percentile(latencies, QUANTILES)]


def compare(directory: Path, row: Any, clients: int, options: argparse.Namespace) -> None:
    """Print the quantiles of each contender, and their ratios to the echo's."""
    serve = partial(server, "opkernel", "serve", str(directory), "--port=0", "--name=served")
    request, is_plain = http_request(row), options.plain
    with (
        server("serving_echo", is_plain=is_plain) as echo,
        serve(is_plain=is_plain) as alone,
        serve("--max-batch=16", is_plain=is_plain) as joined,
    ):
        contenders: dict[str, Callable[[int], Latencies]] = {
            "echo": partial(asked, echo, request, clients),
            "predict": partial(asked, alone, request, clients),
            "predict, batches": partial(asked, joined, request, clients),
            "Session.run": partial(stepped, own_step(directory / "1", row)),
        }
        for contender in contenders.values():
            contender(WARM)
        found: dict[str, list[list[float]]] = {name: [] for name in contenders}
        for _ in range(options.rounds):
            for name, contender in contenders.items():
                found[name].append(quantiles(contender(options.requests)))
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in found.items()
    }
    for name, values in medians.items():
        shown = ", ".join(
            f"p{q} {value * 1e3:7.3f} ms ({value / bare:5.2f} x echo)"
            for q, value, bare in zip(QUANTILES, values, medians["echo"], strict=True)
        )
        print(f"  {name:18s} {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--requests", type=int, default=300, help="of a round, all clients together"
    )
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    for name, (model, row) in models().items():
        with tempfile.TemporaryDirectory() as folder:
            opkernel.save(model, Path(folder) / "1")
            for clients in options.clients:
                print(f"{name}, {clients} clients")
                compare(Path(folder), row, clients, options)


if __name__ == "__main__":
    rerun_in_clean_environment()
    main()
