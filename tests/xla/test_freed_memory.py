"""What programs free stays with the process, so that the next run finds it."""

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.jax
pytest.importorskip("jax")

PROGRAM = """
import resource, numpy as np, opkernel
from opkernel import raw_ops
with opkernel.Graph().as_default() as graph:
    y = raw_ops.Placeholder(dtype=opkernel.float32, shape=[4096, 8], name="x")
    for _ in range(2):
        wide = raw_ops.Tanh(x=raw_ops.MatMul(a=y, b=np.full((8, 4096), 1e-2, np.float32)))
        y = raw_ops.MatMul(a=wide, b=np.full((4096, 8), 1e-3, np.float32))
with opkernel.Session(graph, jit="xla!") as session:
    def run(steps):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(steps):
            session.run(y, {"x:0": np.ones((4096, 8), np.float32)})
        return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // steps
    run(5)
    print(run(10))
"""


def faults_a_step(**environment: str) -> int:
    """How many pages the system hands out for a step, in an environment that says nothing else of glibc."""
    env = {n: v for n, v in os.environ.items() if not n.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=env | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(ran.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_most_steps_need_no_new_pages_from_the_system():
    """Intermediate results of 64 MiB have 16,384 pages each."""
    assert faults_a_step() < 8_000
    assert faults_a_step(MALLOC_MMAP_THRESHOLD_="100000") > 16_000  # as the user wishes
