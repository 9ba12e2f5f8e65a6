"""Limits of time and memory hold for what an engine computes, as for kernels."""

import time
from collections import deque
from typing import Any

import numpy as np
import pytest
from tests.engines.clusters import body_of

import opkernel
from opkernel import raw_ops
from opkernel.device.budget import Budget
from opkernel.errors import DeadlineExceededError, ResourceExhaustedError
from opkernel.graph import Graph
from opkernel.kernel import under_budget
from opkernel.runtime.engines import late_work
from opkernel.runtime.engines.engine import ClusterArgument, engine_named

LIBRARIES = {"openvino": "openvino", "xla": "jax"}
SIZE = 600


@pytest.fixture(params=[pytest.param("openvino"), pytest.param("xla", marks=pytest.mark.jax)])
def jit(request):
    pytest.importorskip(LIBRARIES[request.param])
    return request.param


def tiled(x):
    """A tensor in the middle that is much larger than what comes in and goes out."""
    more = raw_ops.Exp(x=raw_ops.Tile(input=x, multiples=[1000, 1]))
    return raw_ops.Mean(input=raw_ops.Sqrt(x=raw_ops.Tanh(x=more)), axis=[0])


def joined(x):
    """Many tensors of which each would fit."""
    parts = [raw_ops.MatMul(a=raw_ops.Mul(x=x, y=float(i)), b=x) for i in range(1, 17)]
    both = [raw_ops.ConcatV2(values=parts, axis=axis) for axis in (1, 0)]
    return raw_ops.Sum(input=raw_ops.MatMul(a=both[0], b=both[1]), axis=[0, 1])


@pytest.mark.parametrize("make", [tiled, joined])
def test_a_step_takes_no_more_memory_than_it_may(jit, make):
    with Graph().as_default() as graph:
        x = raw_ops.Placeholder(dtype=opkernel.float32, shape=[SIZE, SIZE], name="x")
        raw_ops.Identity(input=make(x), name="y")
    limit = 16 * SIZE * SIZE * 4
    for chosen in ("off", f"{jit}!"):
        with (
            opkernel.Session(graph, jit=chosen, memory_limit_bytes=limit) as session,
            pytest.raises(ResourceExhaustedError),
        ):
            session.run("y:0", {"x:0": np.ones((SIZE, SIZE), np.float32)})


def chain(length):
    """The function of a chain of products."""
    graph = Graph()
    with graph.as_default():
        arg = graph.create_op("_Arg", name="arg", attrs={"T": opkernel.float32, "index": 0})
        y = arg.outputs[0]
        for _ in range(length):
            y = raw_ops.Tanh(x=raw_ops.MatMul(a=y, b=arg.outputs[0]))
    return body_of(graph, [arg], [y])


def test_compiling_looks_at_the_clock(jit):
    argument = ClusterArgument.parameter(opkernel.float32, (SIZE, SIZE))
    body, budget = chain(1), Budget(deadline=time.monotonic() - 1)
    with under_budget(budget), pytest.raises(DeadlineExceededError, match="Timed out while"):
        engine_named(jit).compile(body, [argument])


def test_a_program_of_openvino_is_stopped():
    pytest.importorskip("openvino")
    argument = ClusterArgument.parameter(opkernel.float32, (SIZE, SIZE))
    compiled: Any = engine_named("openvino").compile(chain(300), [argument])
    x = np.full((SIZE, SIZE), 1e-3, np.float32)
    late = late_work.LateWork()
    with pytest.raises(DeadlineExceededError, match="Timed out while it ran"):
        late.do(lambda: compiled.run([x]), time.monotonic() + 0.05, "it ran")
    while late.is_under_way:
        time.sleep(0.01)
    assert compiled._free == deque()  # the request has failed: it serves no other run
    short = engine_named("openvino").compile(chain(1), [argument])
    np.testing.assert_allclose(short.run([x])[0][0], np.tanh(x @ x), rtol=1e-5)
