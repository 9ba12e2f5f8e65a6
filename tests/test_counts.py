"""Counts of a thousand million: refused, or taken without so many of anything. The system ends what takes too much."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[1] / "src"
MEMORY_BYTES, CPU_S = 6 << 30, 300

SCRIPT = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES}, {MEMORY_BYTES}))
resource.setrlimit(resource.RLIMIT_CPU, ({CPU_S}, {CPU_S}))
import numpy as np
import opkernel
from opkernel import raw_ops
from opkernel.distributed import ClusterSpec, predict, replica_device_setter

COUNT = int(sys.argv[1])

def session(**options):
    with opkernel.Graph().as_default() as graph:
        ones = raw_ops.Fill(dims=[500, 500], value=1.0)
        product = raw_ops.MatMul(a=ones, b=ones)
        with opkernel.Session(graph, config=opkernel.SessionConfig(**options)) as session:
            assert session.run(product)[0, 0] == 500

def loop():
    with opkernel.Graph().as_default() as graph:
        last = opkernel.while_loop(
            lambda i: raw_ops.Less(x=i, y=np.int32(10)),
            lambda i: raw_ops.AddV2(x=i, y=np.int32(1)),
            [np.int32(0)],
            parallel_iterations=COUNT,
        )
        assert opkernel.Session(graph).run(last) == [10]

def frame():
    with opkernel.Graph().as_default() as graph:
        entered = raw_ops.Enter(
            data=raw_ops.Fill(dims=[2], value=1.0), frame_name="f", parallel_iterations=COUNT
        )
        assert opkernel.Session(graph).run(raw_ops.Exit(data=entered)).tolist() == [1, 1]

def mapped():
    with opkernel.Graph().as_default() as graph:
        raw_ops.Neg(x=opkernel.placeholder(np.float32, [None], name="x"), name="y")
    opkernel.save_graph(graph, "model.pb")
    found = [*predict("model.pb", {{"x": np.ones(4, np.float32)}}, batch_size=COUNT)]
    assert len(found) == 1

WAYS = {{
    "tasks": lambda: ClusterSpec({{"a": COUNT}}),
    "an index of a task": lambda: ClusterSpec({{"a": {{COUNT: "host:1"}}}}).job_tasks("a"),
    "tasks of a file": lambda: ClusterSpec.from_tf_config(f'{{{{"cluster": {{{{"a": {{COUNT}}}}}}}}}}'),
    "parameter servers": lambda: replica_device_setter(ps_tasks=COUNT),
    "devices": lambda: session(device_count={{"CPU": COUNT}}),
    "threads": lambda: session(inter_op_parallelism_threads=COUNT),
    "threads of a kernel": lambda: session(intra_op_parallelism_threads=COUNT),
    "executables": lambda: session(max_executables=COUNT),
    "iterations": loop,
    "iterations of a frame": frame,
    "rows": mapped,
    "checkpoints": lambda: opkernel.CheckpointManager("here", max_to_keep=COUNT),
    "outputs": lambda: raw_ops.Unpack(value=[1.0], num=COUNT),
    "dimensions": lambda: opkernel.TensorShape([1] * 255),
}}
for name, way in WAYS.items():
    print(name, flush=True)
    try:
        way()
    except opkernel.errors.InvalidArgumentError as error:
        print("  refused:", error, flush=True)
print("all done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of the system are Linux's")
@pytest.mark.parametrize("count", [10**9, (1 << 62) + 1])
def test_a_large_count_is_refused_or_costs_nothing(tmp_path: Path, count: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(count)],
        env={**os.environ, "PYTHONPATH": str(SOURCES), "OPENBLAS_NUM_THREADS": "2"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.endswith("all done\n"), done.stdout[-2000:] + done.stderr[-2000:]
