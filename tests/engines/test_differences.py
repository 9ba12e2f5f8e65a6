"""The tables of docs/engines.md: where engines compute other values than the kernels. They list what is so, and all of it."""

import pytest
from tools.campaigns.engine_calls import sampled_calls
from tools.campaigns.engine_child import EngineChild
from tools.campaigns.engine_differences import documented, engine_ops, measured, representatives

from opkernel.engines.openvino.op_rule import rules
from opkernel.kernel import global_kernel_registry
from opkernel.ops.loader import declared_ops_of_extra, load_all_ops

PARTS = 6
"""Parts of the ops that are looked at apart, on several processors."""


@pytest.fixture(scope="module")
def child():
    found = EngineChild()
    yield found
    found.close()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("engine", ["openvino", pytest.param("xla", marks=pytest.mark.jax)])
def test_ops_differ_for_the_numbers_that_the_table_says(engine, part, child):
    pytest.importorskip({"openvino": "openvino", "xla": "jax"}[engine])
    ops = {op for op in engine_ops(engine) if sum(map(ord, op)) % PARTS == part}
    examples = measured(child, engine, representatives(engine, ops))
    found = {op: frozenset(kinds) for op, kinds in examples.items()}
    wanted = {op: kinds for op, kinds in documented(engine).items() if op in ops}
    assert found.keys() == wanted.keys() - (IN_OTHER_CALLS[engine] - found.keys()), examples
    for op in found:
        kinds = wanted[op]
        assert found[op] == kinds or (found[op] < kinds and op in BY_PROCESSOR), examples


BY_PROCESSOR = {"MatrixTriangularSolve"}
"""BLAS solves by other products on other processors: on some of them infinity stays where it is, as in XLA."""


IN_OTHER_CALLS = {"openvino": set[str](), "xla": {"Conv3D"}}
"""Ops that differ in some calls, but in none of those that are tried here: `tools/campaigns/engines.py` found them."""


def test_marked_ops_are_those_that_differ_for_nan_or_infinity():
    """With OPKERNEL_DETERMINISTIC=1 OpenVINO's engine refuses them."""
    differing = {op for op, kinds in documented("openvino").items() if kinds & {"NaN", "infinity"}}
    assert {op for op in rules().names() if rules()[op].differs_for_non_finite} == differing


@pytest.mark.parametrize("engine", ["openvino", "xla"])
def test_ops_that_engines_and_kernels_compute_have_calls(engine):
    load_all_ops()
    own = [
        one for one in global_kernel_registry().registrations() if one.owner.startswith("opkernel.")
    ]
    on_cpu = {one.kernel_def.op for one in own if one.kernel_def.device_type == "CPU"}
    by_xla = {*declared_ops_of_extra("xla")}  # their kernels are the engine
    with_kernels = on_cpu.intersection(engine_ops(engine)) - by_xla
    called = {node.op for call in sampled_calls() for node in call.graph_def.node}
    assert with_kernels - called == WITHOUT_CALLS[engine]


WITHOUT_CALLS = {
    "openvino": set[str](),
    "xla": {
        *("StackCloseV2", "TensorArrayCloseV3", "_ArrayToList", "_ListToArray"),  # no values
        *("ResourceStridedSliceAssign", "TensorArrayGradV3"),  # tests of XLA's own have them
        *("_EagerConst", "_HostCast"),  # of eager calls and passes
        # Of old graphs:
        *("AdjustContrast", "BatchMatrixBandPart", "BatchNormWithGlobalNormalization"),
        *("BatchMatrixDiag", "BatchMatrixDiagPart", "BatchMatrixSetDiag"),
        *("BatchNormWithGlobalNormalizationGrad", "Conv3DBackpropFilter", "Conv3DBackpropInput"),
    },
}
