"""Engines on the command line: `run --jit`, `explain MODEL`, `compile`."""

import json

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.graph import Graph, save_graph

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.jax

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3) / 10


@pytest.fixture
def model(tmp_path):
    """tanh(x @ weights) + 1, and its numbers as text."""
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[None, 4], name="x")
        y = raw_ops.Tanh(x=raw_ops.MatMul(a=x, b=WEIGHTS, name="product"), name="tanh")
        y = raw_ops.AddV2(x=raw_ops.Mul(x=y, y=y), y=1.0, name="y")
        raw_ops.AsString(input=y, name="text")
    save_graph(graph, tmp_path / "model.pb")
    return tmp_path / "model.pb"


X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
Y = np.tanh(X @ WEIGHTS) ** 2 + 1


def test_run_with_an_engine(command, model):
    done = command(
        "run", model, "--input", f"x={X.tolist()}", "--fetch", "y", "--jit=xla!", "--json"
    )
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(json.loads(done.stdout)["y:0"]["value"], Y, rtol=1e-5)


def test_an_unknown_engine_is_wrong_use(command, model):
    done = command("run", model, "--random", "--jit", "xlb")
    assert done.exit_code != 0
    assert (
        "jit must be one of off, auto, openvino, xla, not 'xlb'; perhaps you mean xla"
        in done.stderr
    )


def test_explain_shows_clusters_times_and_what_stays_outside(command, model):
    done = command("explain", model, "--jit", "xla", "--json")
    assert done.exit_code == 0, done.output
    off, xla = json.loads(done.stdout)
    assert off["engine"] == "off"
    assert off["milliseconds"] > 0
    assert xla["milliseconds"] > 0
    (cluster,) = xla["clusters"]
    assert {"product", "tanh", "y"} <= set(cluster["nodes"])
    assert xla["outside"]["text"] == "no XLA rule for AsString"
    text = command("explain", model, "--jit", "xla").stdout
    assert "Clusters for xla" in text
    assert "1 node: no XLA rule for AsString (text)" in text


def test_explain_shows_what_a_session_found_out(command, tmp_path):
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[None, 4], name="x")
        raw_ops.Fill(dims=raw_ops.Shape(input=x), value=np.float32(1), name="ones")
    save_graph(graph, tmp_path / "ones.pb")
    text = command("explain", tmp_path / "ones.pb", "--jit", "xla").stdout
    assert "no engine: ones:0 fed [1, 4]: plan for the shapes since step 3 (shapes)" in text


def test_a_node_is_explained_as_before(command, model):
    assert "tanh: Tanh on CPU" in command("explain", model, "tanh").stdout


def test_a_file_that_jax_loads(command, model, tmp_path):
    out = tmp_path / "model.jax"
    done = command("compile", model, "--to", "jax", "-o", out, "--input", "x:2,4", "--fetch", "y")
    assert done.exit_code == 0, done.output
    assert "takes x: float32[2,4]" in done.stdout
    pytest.importorskip("jax.export")
    exported = jax.export.deserialize(out.read_bytes())
    (y,) = exported.call(X)
    np.testing.assert_allclose(np.asarray(y), Y, rtol=1e-5)


def test_the_text_of_a_program(command, model, tmp_path):
    out = tmp_path / "model.mlir"
    words = ("compile", model, "--to", "stablehlo", "-o", out, "--input", "x:2,4", "--fetch", "y")
    report = json.loads(command(*words, "--json").stdout)
    assert report["inputs"] == [{"name": "x", "dtype": "float32", "shape": [2, 4]}]
    assert report["outputs"] == ["y:0"]
    text = out.read_text()
    assert "stablehlo.tanh" in text
    assert "tensor<2x4xf32>" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "The shape of x is [?,4]; a program has fixed shapes: --input x:SHAPE gives it"),
        (("--input", "x:2,5"), "--input x: [2,5] does not fit [?,4]"),
        (("--input", "z:2"), "z"),
        (("--input", "x:2,4", "--fetch", "text"), "no XLA rule for AsString"),
    ],
)
def test_what_has_no_program_is_told(command, model, tmp_path, words, message):
    fetch = () if "--fetch" in words else ("--fetch", "y")
    out = tmp_path / "no.mlir"
    done = command("compile", model, "--to", "stablehlo", "-o", out, *words, *fetch)
    assert done.exit_code != 0
    assert message in done.stderr
    assert not out.exists()
