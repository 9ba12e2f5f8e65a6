"""Synchronous kernels that wait are named; those that work, and asynchronous ones, are not."""

import threading
import time

import numpy as np
import pytest

import opkernel
from opkernel.kernel import AsyncOpKernel, OpKernel
from opkernel.opdef import register_op, scalar_shape
from opkernel.runtime import BlockedKernel, BlockedKernelWatchdog, Session


def graph_of(op):
    graph = opkernel.Graph()
    with graph.as_default():
        return graph.create_op(op, [], name=f"the_{op}").outputs[0]


@pytest.fixture(scope="module", autouse=True)
def ops():
    for name, kernel in (("Waits", Waits), ("Works", Works), ("WaitsRightly", WaitsRightly)):
        register_op(name, outputs=["y: float"], shape_fn=scalar_shape)
        opkernel.register_kernel(name, device="CPU")(kernel)


class Waits(OpKernel):
    def compute(self, ctx):
        threading.Event().wait(0.5)
        ctx.set_output(0, np.float32(1))


class Works(OpKernel):
    def compute(self, ctx):
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            pass
        ctx.set_output(0, np.float32(1))


class WaitsRightly(AsyncOpKernel):
    def compute_async(self, ctx, done):
        ctx.set_output(0, np.float32(1))
        threading.Timer(0.5, done).start()


@pytest.mark.parametrize("options", [{}, {"executor_type": "DATAFLOW"}, {"inter_op_threads": 1}])
@pytest.mark.parametrize(
    ("op", "reported"), [("Waits", ["the_Waits"]), ("Works", []), ("WaitsRightly", [])]
)
def test_who_is_reported(op, reported, options):
    found: list[BlockedKernel] = []
    tensor = graph_of(op)
    with BlockedKernelWatchdog(after_s=0.2, report=found.append):
        assert Session(tensor.graph, **options).run(tensor) == 1
    assert [blocked.node for blocked in found] == reported
    for blocked in found:
        assert "threading.Event().wait(0.5)" in blocked.stack
        assert "must be an AsyncOpKernel" in str(blocked)
