"""`opkernel explain` and `place` of SavedModels: what a signature runs, with constants for variables and functions inlined."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command

import opkernel
from opkernel import TensorSpec, raw_ops

LAYERS = 5
MODELS = Path(__file__).parent / "saved_models"
TF1, META = MODELS / "one", MODELS / "meta" / "model.ckpt.meta"


class Net(opkernel.Module):
    """Five dense layers in a function of their own, and a count of calls that another function raises."""

    def __init__(self) -> None:
        super().__init__()
        values = np.eye(4, dtype=np.float32)
        self.weights = [opkernel.Variable(values * i, name=f"w{i}") for i in range(1, LAYERS + 1)]
        self.calls = opkernel.Variable(np.float32(0), name="calls")
        self.layers = opkernel.function(self.dense)

    def dense(self, x: Any) -> Any:
        for number, weights in enumerate(self.weights):
            product = raw_ops.MatMul(a=x, b=weights, name=f"dense{number}")
            biased = raw_ops.BiasAdd(value=product, bias=np.ones(4, np.float32))
            x = raw_ops.Relu(features=biased, name=f"relu{number}")
        return x

    @opkernel.function(input_signature=[TensorSpec([None, 4], opkernel.float32, name="x")])
    def predict(self, x: Any) -> Any:
        return {"y": self.layers(x)}

    @opkernel.function(input_signature=[TensorSpec([None, 4], opkernel.float32, name="x")])
    def counted(self, x: Any) -> Any:
        self.calls.assign_add(np.float32(1))
        return {"y": raw_ops.AddV2(x=self.layers(x), y=self.calls, name="sum")}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "net"
    net = Net()
    signatures = {"serving_default": net.predict, "counted": net.counted}
    opkernel.save(net, path, signatures=signatures)
    return path


def explained(command: Command, *words: object) -> Any:
    done = command("explain", *words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


# Without NODE.


def test_clusters_are_those_of_the_program_with_constants_for_variables(
    command: Command, model: Path
) -> None:
    pytest.importorskip("jax")
    off, xla = explained(command, model, "--jit", "xla")
    assert off["signature"] == "serving_default"
    assert (off["variables_as_constants"], off["variables_read"]) == (LAYERS, 0)
    assert off["operations"] == 3 * LAYERS
    (cluster,) = xla["clusters"]
    inside = [name.rpartition("/")[2] for name in cluster["nodes"]]
    assert {"relu0", "relu1"} <= {*inside}
    assert set(xla["outside"].values()) == {"it is fed"}


def test_variables_that_a_signature_assigns_to_stay_variables(
    command: Command, model: Path
) -> None:
    off, *_ = explained(command, model, "--jit", "xla", "--signature_def", "counted")
    assert (off["variables_as_constants"], off["variables_read"]) == (LAYERS, 1)


def test_the_program_in_a_sentence(command: Command, model: Path) -> None:
    text = command("explain", model, "--jit", "xla", "--signature_def", "counted").stdout
    expected = (
        "operations with 3 calls of stateful functions and 5 variables as constants; "
        "steps read 1 variable."
    )
    assert expected in text


# Nodes, by all their names.


@pytest.mark.parametrize("name", ["dense1", "MatMul"])
def test_a_node_by_the_end_of_its_name_and_nodes_by_their_op(
    command: Command, model: Path, name: str
) -> None:
    found = explained(command, model, name)
    if name == "MatMul":
        assert found["count"] == LAYERS
        (kind,) = found["kinds"]
        assert kind["in_steps"] == "as _FusedMatMul"
        assert kind["count"] == LAYERS
        names = [one["node"].rpartition("/")[2] for one in found["nodes"]]
        assert names == [f"dense{number}" for number in range(LAYERS)]
    else:
        assert found["op"] == "MatMul"
        assert found["in_steps"]["as_op"] == "_FusedMatMul"
        assert found["in_steps"]["runs_as"][0].endswith("/relu1")


def test_a_node_of_a_function_that_is_inlined(command: Command, model: Path) -> None:
    library = opkernel.load_as_session(model).meta_graph.graph_def.library.function
    function = next(
        one.signature.name for one in library if any(n.name == "dense2" for n in one.node_def)
    )
    found = explained(command, model, f"{function}/dense2")
    assert found["node"].endswith("/dense2")
    assert found["in_steps"]["as_op"] == "_FusedMatMul"


def test_nodes_that_no_signature_runs_are_those_of_the_file(command: Command, model: Path) -> None:
    assert explained(command, model, "SaveV2")["op"] == "SaveV2"


def test_no_such_node_and_no_such_op(command: Command, model: Path) -> None:
    done = command("explain", model, "MatNul")
    assert done.exit_code == 1
    message = "the graph has no node or op 'MatNul'; perhaps you mean MatMul"
    assert message in done.output


def test_no_such_signature(command: Command, model: Path) -> None:
    done = command("explain", model, "MatMul", "--signature_def", "serve")
    assert done.exit_code == 1
    assert "the model has no signature 'serve'" in done.output


def test_a_model_that_cannot_be_restored_is_explained_as_its_file(
    command: Command, tmp_path: Path, model: Path
) -> None:
    broken = shutil.copytree(model, tmp_path / "broken")
    for file in (broken / "variables").glob("*.data-*"):
        file.unlink()
    done = command("explain", broken, "MatMul")
    assert done.exit_code == 0, done.output
    assert "Warning: these are the nodes of the file, not what a signature runs" in done.output
    assert "within its function" in done.stdout


# Nodes of an op in a graph.


def test_many_nodes_are_counted_and_the_first_are_listed(command: Command, tmp_path: Path) -> None:
    with opkernel.Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[None], name="x")
        for number in range(25):
            x = raw_ops.Sin(x=x, name=f"sin{number}")
        raw_ops.Cos(x=x, name="unused")
        raw_ops.Identity(input=x, name="out")
    opkernel.save_graph(graph, tmp_path / "deep.pb")
    text = command("explain", tmp_path / "deep.pb", "Sin").stdout
    assert text.startswith("Sin: 25 nodes\n")
    assert "The first 20\n" in text
    found = explained(command, tmp_path / "deep.pb", "Sin")
    assert len(found["nodes"]) == 20
    assert sum(one["count"] for one in found["kinds"]) == 25


# place


def test_the_places_of_what_a_signature_runs(command: Command, model: Path) -> None:
    done = command("place", model, "--json")
    assert done.exit_code == 0, done.output
    ops = [one["op"] for one in json.loads(done.stdout)["nodes"]]
    assert ops.count("MatMul") == LAYERS
    assert not {"SaveV2", "VarHandleOp", "StatefulPartitionedCall"} & {*ops}
    done = command("place", model, "--signature_def", "counted", "--device-count", "CPU=2")
    assert done.exit_code == 0, done.output


# Models of TF1.


def test_a_signature_of_tf1(command: Command) -> None:
    off, *_ = explained(command, TF1, "--signature_def", "predict")
    assert (off["signature"], off["variables_read"]) == ("predict", 0)
    assert off["variables_as_constants"] > 0
    assert explained(command, TF1, "MatMul", "--signature_def", "predict")["op"] == "MatMul"
    done = command("place", TF1, "--signature_def", "predict", "--json")
    ops = {one["op"] for one in json.loads(done.stdout)["nodes"]}
    assert "MatMul" in ops
    assert not {"VarHandleOp", "SaveV2"} & ops


def test_where_several_signatures_are_none_is_chosen(command: Command) -> None:
    done = command("explain", TF1)
    assert done.exit_code == 1
    assert "choose one with --signature_def, of numbers, predict" in done.output
    done = command("place", TF1)
    assert done.exit_code == 0
    assert "Warning: these are the nodes of the file, not what a signature runs" in done.output


def test_a_meta_graph_without_signatures_is_a_graph(command: Command) -> None:
    off, *_ = explained(command, META)
    assert off["signature"] == ""
    assert explained(command, META, "MatMul")["node"] == "MatMul"
    done = command("place", META)
    assert done.exit_code == 0
    assert "Warning" not in done.output
    done = command("place", META, "--signature_def", "x")
    assert done.exit_code == 1
    assert "the model has no signature 'x'; it has none" in done.output
