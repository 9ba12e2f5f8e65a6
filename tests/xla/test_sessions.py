"""Sessions whose graphs XLA or OpenVINO compile in parts: the same values as by kernels, whatever the graph."""

import importlib.util
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from tests.runtime.effects.random_programs import seeded
from tests.runtime.engines.own_engine import registered

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.graph import Graph
from opkernel.runtime.engines.engine import engine_named
from opkernel.xla.engine import XlaEngine

pytestmark = pytest.mark.jax

MODELS = [
    *("mlp", "conv_mix", "bert_tiny", "mobilenet_v2"),
    *("lstm_lowered", "functional_control_flow", "v1_control_flow"),
]
JITS = ["xla!", "xla", "auto"] + ["openvino!"] * (importlib.util.find_spec("openvino") is not None)


@pytest.mark.shared
@pytest.mark.parametrize("jit", JITS)
@pytest.mark.parametrize("name", MODELS)
def test_models_give_the_answers_of_tensorflow(shared, name, jit):
    folder = shared / "models" / name
    manifest = json.loads((folder / "manifest.json").read_text())
    graph = opkernel.load_graph(folder / "graph.pb")
    with np.load(folder / "case.npz") as stored, opkernel.Session(graph, jit=jit) as session:
        feeds = {one: stored[f"feed:{one}"] for one in manifest["feeds"]}
        for _ in range(3):
            found = session.run(manifest["fetches"], feeds)
            for value, fetch in zip(found, manifest["fetches"], strict=True):
                answer = stored[f"fetch:{fetch}"]
                assert value.dtype == answer.dtype
                atol = 1e-4 * max(np.abs(answer).max(), 0.1)
                np.testing.assert_allclose(value, answer, rtol=0, atol=atol)


@pytest.fixture
def small_clusters(monkeypatch):
    """Every operation is worth a cluster."""
    for name in {name.removesuffix("!") for name in JITS} - {"auto"}:
        monkeypatch.setattr(type(engine_named(name)), "min_cluster_size", 1)


class Counting(XlaEngine):
    """Counts its programs."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def compile(self, body, arguments):
        self.count += 1
        return super().compile(body, arguments)


@pytest.mark.parametrize("jit", JITS)
@pytest.mark.parametrize("seed", range(12))
def test_programs_with_state_have_the_same_effects(seed, jit, small_clusters, monkeypatch):
    """Variables, queues, prints, calls, loops and conditionals of both kinds, drawn at random."""
    program = seeded(seed, (8, 20, 40)[seed % 3])
    monkeypatch.setenv("OPKERNEL_JIT", "off")
    expected = program.run(False, "DATAFLOW")
    monkeypatch.setenv("OPKERNEL_JIT", jit)
    for executor in ("", "DATAFLOW"):
        assert program.run(True, executor) == expected


def training_graph():
    """A step of gradient descent on two variables; its loss."""
    random = np.random.default_rng(0)
    inputs = random.standard_normal((16, 4)).astype(np.float32)
    wanted = np.tanh(inputs @ random.standard_normal((4, 2))).astype(np.float32)
    with Graph().as_default() as graph:
        shapes = {"w": [4, 2], "b": [2]}
        handles = {
            name: raw_ops.VarHandleOp(dtype=opkernel.float32, shape=shape, shared_name=name)
            for name, shape in shapes.items()
        }
        starts = [
            raw_ops.AssignVariableOp(
                resource=handles[name], value=np.full(shape, 0.1, np.float32), name=f"start_{name}"
            )
            for name, shape in shapes.items()
        ]
        values = {
            name: raw_ops.ReadVariableOp(resource=one, dtype=opkernel.float32)
            for name, one in handles.items()
        }
        y = raw_ops.Tanh(x=raw_ops.MatMul(a=inputs, b=values["w"]) + values["b"])
        loss = raw_ops.Mean(
            input=raw_ops.SquaredDifference(x=y, y=wanted), axis=[0, 1], name="loss"
        )
        steps = [
            raw_ops.ResourceApplyGradientDescent(
                var=handles[name], alpha=0.5, delta=grad, name=f"step_{name}"
            )
            for name, grad in zip(
                values, opkernel.gradients([loss], [*values.values()]), strict=True
            )
        ]
    return graph, starts, loss, steps


def test_training_gives_the_same_losses():
    def losses(jit):
        graph, starts, loss, steps = training_graph()
        with opkernel.Session(graph, jit=jit) as session:
            session.run(starts)
            return [session.run([loss, *steps])[0] for _ in range(30)]

    expected = losses("off")
    assert expected[-1] < expected[0] / 2
    np.testing.assert_allclose(losses("xla!"), expected, rtol=1e-5)


def test_a_variable_is_made_by_the_cluster_that_assigns_to_it_first(small_clusters):
    graph, starts, loss, _ = training_graph()
    with opkernel.Session(graph, jit="xla!") as session:
        session.run(starts)
        assert session.run(loss) > 0


def test_kernels_change_what_a_program_has_written():
    """Values that were fetched before stay as they were."""
    with Graph().as_default() as graph:
        handle = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[3], shared_name="v")
        start = raw_ops.AssignVariableOp(resource=handle, value=np.zeros(3, np.float32))
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[3], name="x")
        by_program = raw_ops.AssignAddVariableOp(
            resource=handle, value=raw_ops.Abs(x=raw_ops.Neg(x=x))
        )
        by_kernel = raw_ops.AssignAddVariableOp(resource=handle, value=np.ones(3, np.float32))
        read = raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)
    config = opkernel.SessionConfig(jit="xla!", min_cluster_size=3)
    with opkernel.Session(graph, config=config) as session:
        session.run(start)
        session.run(by_program, {x: [1, 2, 3]})
        before = session.run(read)
        session.run(by_kernel)
        assert before.tolist() == [1, 2, 3]
        assert session.run(read).tolist() == [2, 3, 4]
        session.run(by_program, {x: [1, 1, 1]})
        assert session.run(read).tolist() == [3, 4, 5]


def test_two_handles_of_one_variable(small_clusters):
    """A program would take them for two variables, and lose a change."""
    with Graph().as_default() as graph:
        one, other = (
            raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[], shared_name="v", name=name)
            for name in "ab"
        )
        start = raw_ops.AssignVariableOp(resource=one, value=np.float32(1))
        x = raw_ops.Exp(x=raw_ops.Placeholder(dtype=opkernel.float32, shape=[], name="x"))
        first = raw_ops.AssignAddVariableOp(resource=one, value=x)
        with graph.control_dependencies([first]):
            second = raw_ops.AssignAddVariableOp(resource=other, value=x)
        with graph.control_dependencies([second]):
            read = raw_ops.ReadVariableOp(resource=one, dtype=opkernel.float32)
    with opkernel.Session(graph, jit="xla!") as session:
        session.run(start)
        assert session.run(read, {"x:0": 0.0}) == 3


def test_a_function_that_reads_a_variable_shares_the_cluster_of_its_caller(small_clusters):
    """It reads before what follows its call changes the variable."""

    @opkernel.function
    def doubled(handle):
        return 2 * raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)

    with Graph().as_default() as graph:
        handle = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[], shared_name="v")
        start = raw_ops.AssignVariableOp(resource=handle, value=np.float32(1))
        y = raw_ops.Neg(x=doubled(handle))
        (call,) = [op for op in graph.get_operations() if "PartitionedCall" in op.type]
        with graph.control_dependencies([call]):
            change = raw_ops.AssignAddVariableOp(resource=handle, value=np.float32(5))
    with opkernel.Session(graph, jit="xla!") as session:
        session.run(start)
        assert session.run([y, change])[0] == -2
        assert session.run([y, change])[0] == -12
        source = session.plan([y, change], []).source
    assert source.count("XlaLaunch(") == 1
    assert "Call(" not in source


def test_a_step_of_training_is_one_program():
    weights = opkernel.Variable(np.ones((4, 3), np.float32))
    bias = opkernel.Variable(np.zeros(3, np.float32))
    optimizer = opkernel.optimizers.Adam(learning_rate=0.1)
    programs = []

    class Recording(Counting):
        def compile(self, body, arguments):
            programs.append([op.type for op in body.graph.get_operations()])
            return super().compile(body, arguments)

    def loss(x):
        y = raw_ops.BiasAdd(value=raw_ops.MatMul(a=x, b=weights.value), bias=bias.value)
        return raw_ops.Mean(input=raw_ops.Square(x=y), axis=[0, 1])

    with registered(Recording()), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPKERNEL_JIT", "xla!")
        losses = [
            float(optimizer.minimize(loss, [weights, bias], np.ones((5, 4), np.float32)))
            for _ in range(3)
        ]
    np.testing.assert_allclose(losses[0], 16, rtol=1e-6)
    assert losses[2] < losses[1] < 16
    whole = [ops for ops in programs if ops.count("ResourceApplyAdam") == 2]
    assert whole
    assert "MatMul" in whole[0]


def test_threads_run_one_program():
    graph, starts, loss, _ = training_graph()
    with opkernel.Session(graph, jit="xla!") as session:
        session.run(starts)
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(float(session.run(loss))))
            for _ in range(16)
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert len(found) == 16
    assert len(set(found)) == 1


def test_a_reshape_that_does_not_fit_names_its_node(small_clusters):
    """The engine refuses the shapes; the kernel of the CPU tells what is wrong."""
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=None, name="x")
        y = raw_ops.Reshape(tensor=raw_ops.Neg(x=x), shape=[2, 3], name="reshape")
        raw_ops.Exp(x=y, name="y")
    with opkernel.Session(graph, jit="xla!") as session:
        assert session.run("y:0", {"x:0": np.zeros(6, np.float32)}).shape == (2, 3)
        with pytest.raises(InvalidArgumentError) as error:
            session.run("y:0", {"x:0": np.zeros(5, np.float32)})
    assert error.value.node == "reshape"


def test_a_process_ends_while_something_is_compiled():
    code = """
import numpy as np, opkernel
from opkernel import raw_ops
with opkernel.Graph().as_default() as graph:
    x = opkernel.placeholder(opkernel.float32, [64, 64], name="x")
    y = x
    for _ in range(60):
        y = raw_ops.Tanh(x=raw_ops.MatMul(a=y, b=x))
session = opkernel.Session(graph, jit="auto")
print(session.run(y, {x: np.eye(64)}).shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(64, 64)\n"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("size", [[2, -1], [-1, 2], [2, 3]])
def test_one_program_serves_the_places_where_a_slice_begins(size, small_clusters):
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[6, 5], name="x")
        begin = raw_ops.Placeholder(dtype=opkernel.int32, shape=[2], name="begin")
        y = raw_ops.Tanh(x=raw_ops.Slice(input=raw_ops.Exp(x=x), begin=begin, size=size))
    array = np.linspace(-1, 1, 30, dtype=np.float32).reshape(6, 5)
    with registered(Counting()) as engine, opkernel.Session(graph, jit="xla!") as session:
        for row, column in [(0, 0), (3, 0), (1, 0), (3, 2)]:
            rows, columns = (
                (first, None if n < 0 else first + n)
                for first, n in zip((row, column), size, strict=True)
            )
            expected = np.tanh(np.exp(array[slice(*rows), slice(*columns)]))
            found = session.run(y, {x: array, begin: [row, column]})
            np.testing.assert_allclose(found, expected, rtol=1e-5)
    shapes = {"[2, -1]": 2, "[-1, 2]": 3, "[2, 3]": 1}
    assert engine.count == shapes[str(size)]
