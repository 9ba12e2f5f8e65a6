"""SavedModels and checkpoints: cold start, a large checkpoint, a step beside that of the frozen graph.

    python benchmarks/saved_models.py [--tensorflow PYTHON_WITH_TENSORFLOW] [--folder DIR] [cold|checkpoint|step]...

Bounds: from the start of the process to the first answer of a small SavedModel a tenth of TensorFlow's time. Opening a
checkpoint of 1 GiB and reading a tensor of 1 MiB under 50 ms, and hardly more bytes than the tensor's. Reading all of it
at over half of the speed of copying the files out of the page cache, with the extra `checksums`. A step within 3 % of
the frozen graph's where that takes over 1 ms, and else at most 0.3 us and 0.1 us a variable more.
"""

import argparse
import functools
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import interleaved, medians, report, rerun_in_clean_environment, wall_seconds

import opkernel
from opkernel import TensorSpec, convert_variables_to_constants, raw_ops
from opkernel.checkpoint.crc32c import crc32c

SAMPLES = Path(__file__).parents[1] / "tests" / "data" / "saved_models"
MIB = 1 << 20
TENSORS = 512
"""Of 2 MiB each, but for every other pair, of 1 and 3."""

COLD = """
import sys, numpy as np, opkernel
model = opkernel.load(sys.argv[1])
print(model.signatures["serving_default"](x=np.ones((1, 3), np.float32))["y"])
"""
COLD_TENSORFLOW = """
import sys, numpy as np, tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
print(model.signatures["serving_default"](x=tf.constant(np.ones((1, 3), np.float32)))["y"])
"""
READ_TENSORFLOW = """
import sys, time, tensorflow as tf
def read(keys):
    start = time.perf_counter()
    reader = tf.train.load_checkpoint(sys.argv[1])
    for key in keys or reader.get_variable_to_shape_map():
        reader.get_tensor(key)
    return time.perf_counter() - start
for keys in [["layer/100"], []]:
    print(sorted(read(keys) for _ in range(5))[2])
"""


def cold_starts(tensorflow: str | None) -> None:
    """Process start to the first answer."""
    for name in ("v1", "v2"):
        commands = {"opkernel": [sys.executable, "-c", COLD, str(SAMPLES / name)]}
        if tensorflow:
            commands["TensorFlow"] = [tensorflow, "-c", COLD_TENSORFLOW, str(SAMPLES / name)]
        wall_seconds(commands, 1)  # the caches of compiled modules, and of files
        report(
            f"Cold start of a small SavedModel ({name})", wall_seconds(commands), "opkernel", 1e-3
        )


def write_checkpoint(prefix: str) -> None:
    """Write a checkpoint of 1 GiB."""
    random = np.random.default_rng(0)
    block = random.integers(0, 256, 4 * MIB, np.uint8)
    with opkernel.BundleWriter(prefix) as writer:
        for number in range(TENSORS):
            size = (2, 2, 1, 3)[number % 4] * MIB
            writer.add(f"layer/{number:03d}", block[number : number + size])


def checkpoints(folder: str | None, tensorflow: str | None) -> None:
    """Opening a checkpoint of 1 GiB, reading a tensor of it, and all."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        prefix = f"{place}/big"
        write_checkpoint(prefix)
        before = bytes_read()
        seconds = {"open, read 1 MiB": opened(prefix, ["layer/102"])}
        print(f"bytes read to open 1 GiB and read 1 MiB: {(bytes_read() - before) / MIB:.2f} MiB")
        measurements: dict[str, Callable[[], float]] = {
            "copy out of the page cache": functools.partial(copied, prefix),
            "open, read 1 MiB": functools.partial(opened, prefix, ["layer/102"]),
            "open, read all": functools.partial(opened, prefix, None),
            "the checksums alone": checksummed,
        }
        seconds = medians(measurements, 7)
        if tensorflow:
            found = run_lines([tensorflow, "-c", READ_TENSORFLOW, prefix])
            seconds |= zip(
                ["TensorFlow: open, read 1 MiB", "TensorFlow: open, read all"], found, strict=True
            )
        report("A checkpoint of 1 GiB", seconds, "copy out of the page cache", 1e-3)


def run_lines(command: list[str]) -> list[float]:
    """The numbers that a command prints."""
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]


def bytes_read() -> int:
    """The bytes that this process has read from files."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def opened(prefix: str, keys: list[str] | None) -> float:
    """Seconds to open a checkpoint and read tensors of it, each given up before the next."""
    start = time.perf_counter()
    with opkernel.load_checkpoint(prefix) as reader:
        for key in reader.keys() if keys is None else keys:
            reader.get(key)
    return time.perf_counter() - start


@functools.cache
def buffer() -> Any:
    return np.zeros(4 * MIB, np.uint8)


def copied(prefix: str) -> float:
    """Seconds to read the data file, 4 MiB after 4 MiB, to memory that is used again."""
    start, view = time.perf_counter(), memoryview(buffer())
    with open(f"{prefix}.data-00000-of-00001", "rb", buffering=0) as file:
        while file.readinto(view):
            pass
    return time.perf_counter() - start


def checksummed() -> float:
    """Seconds for the checksum of 1 GiB, of which 4 MiB are in the processor's cache."""
    start = time.perf_counter()
    for _ in range(256):
        crc32c(buffer().data)
    return time.perf_counter() - start


class Dense(opkernel.Module):
    """Layers of one width."""

    def __init__(self, width: int, depth: int) -> None:
        scale = np.float32(1 / width)
        self.kernels = [opkernel.Variable(np.full((width, width), scale)) for _ in range(depth)]

    def __call__(self, x: Any) -> Any:
        """Products and Relus, one after the other."""
        for kernel in self.kernels:
            x = raw_ops.Relu(features=x @ kernel)
        return x


def steps(width: int, depth: int, batch: int, folder: str) -> Iterator[tuple[str, Any]]:
    """A step of a SavedModel, and of its frozen graph."""
    model = Dense(width, depth)
    serve = opkernel.function(model, input_signature=[TensorSpec([None, width], opkernel.float32)])
    opkernel.save(model, folder, signatures=serve)
    x = np.ones((batch, width), np.float32)
    loaded = opkernel.load_as_session(folder)
    definition = loaded.meta_graph.signature_def["serving_default"]
    (feed,) = [info.name for info in definition.inputs.values()]
    (fetch,) = [info.name for info in definition.outputs.values()]
    frozen = convert_variables_to_constants(loaded.session, [fetch], [feed])
    for name, session in (
        ("frozen graph", opkernel.Session(frozen)),
        ("session", loaded.session),
    ):
        yield name, functools.partial(session.make_callable(fetch, [feed]), x)
    signature = opkernel.load(folder).signatures["serving_default"]
    yield "signature", functools.partial(signature, **{next(iter(signature.inputs)): x})


def report_steps() -> None:
    """Steps of SavedModels beside those of their frozen graphs."""
    for width, depth, batch in ((8, 2, 1), (8, 20, 1), (512, 4, 128)):
        folder = tempfile.mkdtemp()
        try:
            contenders = dict(steps(width, depth, batch, folder))
            for run in contenders.values():
                for _ in range(20):
                    run()
            seconds = interleaved(contenders, 15)
            report(f"A step: {depth} layers, {batch} x {width} to {width}", seconds, "frozen graph")
            more = (seconds["session"] - seconds["frozen graph"]) * 1e6
            print(f"  the session's step takes {more:.2f} us more, for {depth} variables")
        finally:
            shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="cold|checkpoint|step")
    parser.add_argument("--tensorflow", metavar="PYTHON")
    parser.add_argument("--folder", help="where the checkpoint of 1 GiB is written for a while")
    options = parser.parse_args()
    rerun_in_clean_environment()
    parts = options.parts or ["cold", "checkpoint", "step"]
    if "cold" in parts:
        cold_starts(options.tensorflow)
    if "checkpoint" in parts:
        checkpoints(options.folder, options.tensorflow)
    if "step" in parts:
        report_steps()


if __name__ == "__main__":
    main()
