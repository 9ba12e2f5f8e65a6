"""The tables of docs/engines.md: where engines compute other values than the kernels. They list what is so, and all of it."""

import pytest
from tools.campaigns.engine_child import EngineChild
from tools.campaigns.engine_differences import documented, measured, representatives

from opkernel.engines.openvino.op_rule import rules
from opkernel.xla.op_registry import global_xla_op_registry

PARTS = 6
"""Parts of the ops that are looked at apart, on several processors."""
WITHOUT_CALLS = {
    "openvino": set[str](),
    "xla": {
        *("AdjustContrast", "BatchMatrixBandPart", "BatchNormWithGlobalNormalization"),
        *("BatchNormWithGlobalNormalizationGrad",),  # of old graphs alone
    },
}


@pytest.fixture(scope="module")
def child():
    found = EngineChild()
    yield found
    found.close()


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("engine", ["openvino", pytest.param("xla", marks=pytest.mark.jax)])
def test_ops_differ_for_the_numbers_that_the_table_says(engine, part, child):
    pytest.importorskip({"openvino": "openvino", "xla": "jax"}[engine])
    ops = {op for op in _ops(engine) if sum(map(ord, op)) % PARTS == part}
    found = measured(child, engine, representatives(engine, ops))
    wanted = {op: kinds for op, kinds in documented(engine).items() if op in ops}
    assert {op: frozenset(kinds) for op, kinds in found.items()} == wanted, found


def _ops(engine):
    return (
        set(rules()) if engine == "openvino" else set(global_xla_op_registry().all_registered_ops())
    )
