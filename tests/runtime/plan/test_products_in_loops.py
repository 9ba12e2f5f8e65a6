"""Loops hold BLAS to their thread where they multiply matrices, whatever way they end."""

from typing import Any

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import INT32, Builder

import opkernel
from opkernel.graph import Tensor, graph_to_function_def
from opkernel.kernel import one_blas_thread, register_kernel
from opkernel.opdef import register_op
from opkernel.proto import NameAttrList

BLOCKS = register_op(
    "ProductsInLoopsTestBlocks",
    inputs=["x: float"],
    outputs=["y: float"],
    shape_fn=lambda c: c.set_output(0, c.input(0)),
    is_stateful=True,
)
seen: list[int] = []


@register_kernel(BLOCKS, device="CPU")
def blocks(x: np.ndarray) -> np.ndarray:
    seen.append(len(one_blas_thread.blocks))
    return x * 1


def loop_of_tensorflow_1(b: Builder, function: str) -> Tensor:
    def body(i: Tensor, x: Tensor) -> list[Tensor]:
        product = b.op(function, b.op(BLOCKS.name, x), *([x] if function == "MatMul" else []))
        return [b.op("AddV2", i, b.constant(1)), product]

    start = [b.constant(0), b.placeholder("x")]
    return b.while_loop(lambda i, _: b.op("Less", i, b.constant(2)), body, start)[1]


def functional_loop(b: Builder, function: str) -> Tensor:
    def define(name: str, body: Any) -> NameAttrList:
        inner = Builder()
        arguments = [inner.placeholder("i", INT32), inner.placeholder("x")]
        definition = graph_to_function_def(inner.graph, name, arguments, body(inner, *arguments))
        b.graph.function_library.add_function(definition)
        return NameAttrList(name=name)

    def turn(inner: Builder, i: Tensor, x: Tensor) -> list[Tensor]:
        other = [x] if function == "MatMul" else []
        product = inner.op(function, inner.op(BLOCKS.name, x), *other)
        return [inner.op("AddV2", i, inner.constant(1)), product]

    go_on = define("go_on", lambda inner, i, _: [inner.op("Less", i, inner.constant(2))])
    start = [b.constant(0), b.placeholder("x")]
    return b.operation("While", start, cond=go_on, body=define("turn", turn)).outputs[1]


@pytest.mark.parametrize("make", [loop_of_tensorflow_1, functional_loop])
def test_blas_is_held_within_loops_with_products_and_no_others(make):
    for function, blocks_around in (("MatMul", 1), ("Neg", 0)):
        b = Builder()
        y = make(b, function)
        seen.clear()
        with opkernel.Session(b.graph) as session:
            session.run(y, {"x:0": np.eye(2, dtype="f4")})
            assert seen == [blocks_around] * 2
            if function == "MatMul":
                with pytest.raises(opkernel.errors.InvalidArgumentError):
                    session.run(y, {"x:0": np.ones((2, 3), "f4")})
        assert not one_blas_thread.blocks
