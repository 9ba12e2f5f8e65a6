"""Devices through JAX: those of four CPUs, in a process of their own, and what is told where there are none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADER = """
import opkernel, sys
import numpy as np

def run(device, soft):
    graph = opkernel.Graph()
    with graph.as_default(), graph.device(device):
        y = opkernel.raw_ops.Neg(x=opkernel.placeholder(opkernel.float32, None, name="x"))
    config = opkernel.SessionConfig(allow_soft_placement=soft, device_count={"GPU": 1})
    with opkernel.Session(graph, config=config) as session:
        return session.run(y, {"x:0": 2.0})

def refusal(device):
    try:
        run(device, False)
    except opkernel.errors.InvalidArgumentError as error:
        return str(error)
"""


def run(*arguments: str, **environment: str) -> str:
    """What Python prints in a process of its own, on this machine's CPU alone."""
    variables = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    done = subprocess.run(
        [sys.executable, *arguments], env=variables, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.jax
def test_four_devices():
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    flags = "--xla_force_host_platform_device_count=4"
    run(*tests, "tests/xla/four_devices.py", XLA_FLAGS=flags)


def test_without_jax_graphs_run_on_the_cpu_and_errors_name_the_extra():
    code = """
sys.modules["jax"] = None
for name in ("GPU", "TPU", "XLA_CPU"):
    assert run(f"/device:{name}:0", True) == -2
    assert "pip install 'opkernel[xla]'" in refusal(f"/device:{name}:0"), refusal(f"/device:{name}:0")
"""
    run("-c", HEADER + code)


@pytest.mark.jax
def test_jax_is_not_imported_where_it_can_have_no_gpu():
    code = """
assert run("/device:GPU:0", True) == -2
assert "no GPU: pip install 'jax[cuda12]'" in refusal("/device:GPU:0")
assert "jax" not in sys.modules
assert run("/device:XLA_CPU:0", False) == -2
assert "jax" in sys.modules
"""
    run("-c", HEADER + code)


@pytest.mark.jax
def test_lists_are_the_same_whatever_ran_before():
    """Of kernels and types of devices: at first, and after steps on XLA's devices and in a program of XLA."""
    listed = """
from opkernel.device.device_factory import offered_device_types
from opkernel.kernel import get_all_registered_kernels, get_registered_kernels_for_op
from opkernel.ops.loader import load_all_ops

load_all_ops()
print(*sorted(str(one) for one in get_all_registered_kernels().kernel))
print(*[get_registered_kernels_for_op(op) for op in ("Neg", "VarHandleOp", "XlaLaunch")])
print(offered_device_types())
"""
    used = """
assert run("/device:XLA_CPU:0", False) == -2
with opkernel.Graph().as_default() as graph:
    y = opkernel.raw_ops.Exp(x=opkernel.raw_ops.Neg(x=opkernel.constant([0.0, 1.0])))
with opkernel.Session(graph, config=opkernel.SessionConfig(jit="xla!")) as session:
    session.run(y)
"""
    assert run("-c", HEADER + listed) == run("-c", HEADER + used + listed)
