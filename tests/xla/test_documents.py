"""What notes on TensorFlow's source tell of XLA, under the names that they give."""

import subprocess
import sys

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.graph import Graph
from opkernel.kernel import find_kernel_registration
from opkernel.optimization import Grouping, optimization_passes
from opkernel.proto import AttrValue
from opkernel.xla import XlaArgument, XlaCompiler, global_xla_op_registry

pytestmark = pytest.mark.jax


def graph_of_one():
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[3], name="x")
        raw_ops.Neg(x=raw_ops.Exp(x=x, name="e"), name="y")
    return graph


def test_register_compilation_kernels():
    """XlaOpRegistry::RegisterCompilationKernels: each op's kernels, for each compilation device, as XlaJitOp."""
    registry = global_xla_op_registry()
    registry.register_compilation_kernels()
    graph = graph_of_one()
    for device in ("XLA_CPU_JIT", "XLA_GPU_JIT"):
        node = graph.get_operation_by_name("e").node_def
        found = find_kernel_registration(device, node, registry=registry.kernels)
        assert found.class_name == "XlaJitOp"


def test_register_xla_device_kernels():
    """RegisterXlaDeviceKernels: a device that compiles has kernels where the compiler has."""
    code = """
import opkernel
from opkernel.kernel import find_kernel_registration
from opkernel.proto import AttrValue, NodeDef
config = opkernel.SessionConfig(device_count={"XLA_CPU": 1})
opkernel.Session(opkernel.Graph(), config=config)
node = NodeDef(name="e", op="Exp", input=["x"], attr={"T": AttrValue(type=1)})
print(find_kernel_registration("XLA_CPU", node).kernel_def.device_type)
"""  # in a process of its own: the kernels stay
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "XLA_CPU\n"


def test_convert_graph_to_xla():
    """CompileGraph, ConvertGraphToXla: a graph with feeds and fetches becomes a computation."""
    graph = graph_of_one()
    x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")
    argument = XlaArgument.parameter(opkernel.float32, (3,))
    result = XlaCompiler().compile_graph(graph, [x], [y], [argument])
    given = np.array([0, 1, 2], np.float32)
    (value,), _ = result.run([given])
    np.testing.assert_allclose(value, -np.exp(given), rtol=1e-6)


def test_convert_tf_graph_to_xla_session_module():
    """ConvertTfGraphToXlaSessionModule: the computation can be written down, as StableHLO today."""
    graph = graph_of_one()
    x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")
    argument = XlaArgument.parameter(opkernel.float32, (3,))
    text = XlaCompiler().compile_graph(graph, [x], [y], [argument]).stablehlo()
    assert "stablehlo.exponential" in text
    assert "stablehlo.negate" in text


def test_create_xla_launch_op():
    """RegisterLaunchOpCreator, CreateXlaLaunchOp: a call that must be compiled is launched."""

    @opkernel.function(jit_compile=True)
    def f(x):
        return raw_ops.Exp(x=x)

    with Graph().as_default() as graph:
        y = f(raw_ops.Placeholder(dtype=opkernel.float32, shape=[3], name="x"))
    config = opkernel.SessionConfig(jit="xla!", global_jit_level="OFF")
    with opkernel.Session(graph, config=config) as session:
        source = session.plan(y, ["x:0"]).source
        np.testing.assert_allclose(session.run(y, {"x:0": np.zeros(3)}), [1, 1, 1])
    assert "XlaLaunch(" in source


def test_mark_for_compilation_pass_run():
    """MarkForCompilationPass::Run is a pass of POST_REWRITE_FOR_EXEC, before those that build on its marks."""
    passes = {one.name: (one.grouping, one.phase) for one in optimization_passes()}
    phases = {
        "clone_constants_for_better_clustering": 5,
        "cluster_scoping": 9,
        "mark_for_compilation": 10,
        "increase_dynamism_for_auto_jit": 20,
        "partially_decluster": 30,
        "encapsulate_subgraphs": 50,
        "build_xla_ops": 60,
    }
    for name, phase in phases.items():
        assert passes[name] == (Grouping.POST_REWRITE_FOR_EXEC, phase)
    assert passes["functionalize_control_flow"] == (Grouping.PRE_PLACEMENT, 27)


def test_an_attr_has_xla_compile_a_node():
    """An attr of a node that is true forces XLA to compile it."""
    graph = graph_of_one()
    graph.get_operation_by_name("e").set_attr("_XlaCompile", AttrValue(b=True))
    config = opkernel.SessionConfig(jit="xla!", global_jit_level="OFF")
    with opkernel.Session(graph, config=config) as session:
        source = session.plan("y:0", ["x:0"]).source
        assert source.count("XlaLaunch(") == 1
        assert "negative(" in source
        np.testing.assert_allclose(session.run("y:0", {"x:0": np.zeros(3)}), [-1, -1, -1])
