"""`opkernel doctor` in processes of their own: it loads plugins."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Process

import opkernel

GOOD = """
import opkernel
from opkernel.opdef.common_shapes import unchanged_shape

DOCTOR = opkernel.register_op("DoctorOp", inputs=["x: T"], outputs=["y: T"],
    attrs=["T: {float, int32}"], shape_fn=unchanged_shape)
opkernel.register_kernel(DOCTOR, device="CPU", types={"T": opkernel.float32})(lambda x: x)
opkernel.register_kernel(DOCTOR, device="CPU", types={"T": opkernel.int32})(lambda x: -x)
"""
AMBIGUOUS = f"""{GOOD}
@opkernel.register_kernel(DOCTOR, device="CPU")
def for_all_types(x):
    return x
"""


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a plugin with one module."""
    monkeypatch.setenv("OPKERNEL_PLUGIN_PATH", str(tmp_path))

    def put(name: str, source: str, api: str = "1.0") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "plugin.toml").write_text(
            f'name = "{name}"\nversion = "0.3"\napi = "{api}"\nmodules = ["ops"]\n'
        )
        (folder / "ops.py").write_text(source)
        return folder

    return put


def test_the_environment(process: Process, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPKERNEL_PLUGIN_PATH", raising=False)
    report = json.loads(process("doctor", "--json").stdout)
    environment = report["environment"]
    assert environment["opkernel"] == opkernel.__version__
    assert environment["api"] == opkernel.API_VERSION
    assert environment["python"] == ".".join(map(str, sys.version_info[:3]))
    assert environment["numpy"] == np.__version__
    assert environment["protobuf_implementation"] in ("upb", "python")
    assert environment["memory_limit"] > 2**20
    assert environment["devices"][0] == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert environment["blas"]


def test_a_plugin_that_is_well(process: Process, put: Callable[..., Path]):
    folder = put("good", GOOD)
    done = process("doctor", "--json")
    assert done.returncode == 0
    (plugin,) = json.loads(done.stdout)["plugins"]
    assert plugin.pop("milliseconds") > 0
    assert plugin == {
        "plugin": "good",
        "version": "0.3",
        "api": "1.0",
        "found": str(folder),
        "ops": ["DoctorOp"],
        "kernels": 2,
        "error": "",
    }


def test_broken_and_refused_plugins_beside_a_good_one(process: Process, put: Callable[..., Path]):
    put("good", GOOD)
    broken = put("broken", "raise ValueError('no luck')")
    put("future", GOOD, api="9.0")
    done = process("doctor")
    assert done.returncode == 1
    table = done.stdout.partition("3 plugins\n")[2].splitlines()
    assert [line.split()[0] for line in table[1:4]] == ["broken", "future", "good"]
    assert [line.split()[-1] for line in table[1:4]] == ["broken", "broken", "well"]
    problems = [line for line in table if line.startswith("Problem:")]
    assert problems[0] == (
        f"Problem: Plugin 'broken': ValueError: no luck ({broken / 'ops.py'}, line 1)"
    )
    assert "was built for version 9.0" in problems[1]
    assert "this opkernel has version 1.0" in problems[1]


def test_kernels_that_a_node_cannot_choose_between(process: Process, put: Callable[..., Path]):
    put("ambiguous", AMBIGUOUS)
    done = process("doctor", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["plugins"][0]["error"] == ""
    assert all("Multiple OpKernel registrations of 'DoctorOp'" in one for one in report["problems"])
    assert report["problems"]
