"""`opkernel place`: where nodes run, why, and what goes between devices."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

import opkernel
from opkernel import raw_ops as r
from opkernel.graph import save_graph

PREFIX = "/job:localhost/replica:0/task:0/device:"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [None], name="x")
        with graph.device("/device:CPU:1"):
            v = r.VarHandleOp(dtype="float", shape=[], shared_name="v", name="v")
            y = r.Neg(x=x, name="y")
        read = r.ReadVariableOp(resource=v, dtype="float", name="read")
        z = r.AddV2(x=read, y=y, name="z")
        r.Mul(x=y, y=z, name="product")
        r.AddV2(x=y, y=np.float32(1), name="more")
    save_graph(graph, tmp_path / "model.pb")
    return tmp_path / "model.pb"


def test_each_node_has_its_device_and_its_reason(model: Path, command: Command) -> None:
    found = json.loads(command("place", model, "--device-count", "CPU=2", "--json").output)
    devices = {node["name"]: node["device"].removeprefix(PREFIX) for node in found["nodes"]}
    assert devices == {
        **dict.fromkeys(["product", "z", "more", "more/y"], "CPU:0"),
        **dict.fromkeys(["x", "v", "y", "read"], "CPU:1"),
    }
    reasons = {node["name"]: node["reason"] for node in found["nodes"]}
    assert reasons["y"] == "it asks for /device:CPU:1; kernels: CPU"
    assert "'read' uses the resource of 'v'" in reasons["read"]
    assert reasons["x"].endswith("beside 'y'")
    assert found["transfers"] == [{"from": f"{PREFIX}CPU:1", "to": f"{PREFIX}CPU:0", "tensors": 2}]


def test_the_table_is_for_people(model: Path, command: Command) -> None:
    text = command("place", model, "--device-count", "CPU=2").output
    assert "  y        Neg             CPU:1   it asks for /device:CPU:1; kernels: CPU\n" in text
    assert text.endswith("Tensors between devices\n  from   to     tensors\n  CPU:1  CPU:0  2\n")


def test_what_does_not_exist_is_refused_unless_placement_is_soft(
    model: Path, command: Command
) -> None:
    refused = command("place", model)
    assert refused.exit_code == 1
    assert "{{node y}} was explicitly assigned to /device:CPU:1 but available devices" in (
        refused.output
    )
    soft = command("place", model, "--soft-placement")
    assert soft.output.endswith("Nothing goes between devices.\n")


@pytest.mark.parametrize("given", ["CPU", "=2", "CPU=two", "CPU=-1"])
def test_a_count_has_a_form(model: Path, command: Command, given: str) -> None:
    refused = command("place", model, "--device-count", given)
    assert refused.exit_code == 2
    assert "takes the form TYPE=N" in refused.output


def test_explain_tells_where_a_node_is_and_why(model: Path, command: Command) -> None:
    text = command("explain", model, "read", "--device-count", "CPU=2").output
    assert f"Sessions run it on {PREFIX}CPU:1: they ask for /device:CPU:1; 'read' uses" in text
