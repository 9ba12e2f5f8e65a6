"""Random graphs give the same in stages, and in pieces, as node after node."""

import random
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.graph import Graph, Tensor
from opkernel.graph.edit.subgraph import Needs
from opkernel.kernel import Step
from opkernel.runtime.adaptive.stages import StageBranch, StagedPlan, find_stages
from opkernel.runtime.calls.function_library_runtime import CalledFunctions, FunctionLibraryRuntime
from opkernel.runtime.program.executors import is_independent, new_executor
from opkernel.runtime.program.kernels import KernelCache
from opkernel.runtime.program.request import ExecutorArgs, Subgraph

GRAPHS = 60


def random_graph(choose: random.Random) -> tuple[Graph, list[Tensor]]:
    """A graph whose nodes mostly take what was made last, so that there are chains and forks."""
    graph = Graph()
    with graph.as_default():
        tensors = [opkernel.placeholder(opkernel.float32, [2], name=f"x{i}") for i in range(2)]
        for number in range(choose.randint(4, 40)):
            a, b = (choose.choice(tensors[-choose.choice([2, 4, 40]) :]) for _ in range(2))
            kind = choose.choice(["Sub", "Maximum", "Neg", "Identity", "Split", "Const"])
            if kind == "Split":
                split = graph.create_op(kind, [np.int32(0), a], attrs={"num_split": 2}).outputs
                tensors.append(
                    graph.create_op("ConcatV2", [[split[1], split[0]], np.int32(0)]).outputs[0]
                )
            elif kind == "Const":
                tensors.append(graph.create_op("AddV2", [a, np.float32(number)]).outputs[0])
            else:
                inputs = [a] if kind in ("Neg", "Identity") else [a, b]
                tensors.append(graph.create_op(kind, inputs).outputs[0])
            if choose.random() < 0.1:
                tensors[-1].op.add_control_input(a.op)
    return graph, tensors


def random_step(choose: random.Random) -> tuple[ExecutorArgs, list[np.ndarray[Any, Any]]]:
    """A step of such a graph, and what is fed."""
    graph, tensors = random_graph(choose)
    feeds = [*tensors[:2], *choose.sample(tensors[2:], choose.randint(0, 2))]
    fetches = choose.sample(tensors, choose.randint(1, 3))
    library = CalledFunctions(FunctionLibraryRuntime(graph.function_library))
    args = ExecutorArgs(Subgraph(feeds, fetches), KernelCache(0, graph.op_registry), library)
    return args, [np.array([choose.random(), choose.random()], np.float32) for _ in feeds]


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_random_graphs(seed: int) -> None:
    choose = random.Random(seed)
    args, values = random_step(choose)
    expected = new_executor("COMPILED_PLAN", args).run(Step(), *values)
    for _ in range(4):
        seconds = {op.name: choose.choice([0, 0, 1e-3, 2e-3]) for op in args.order}
        sources = Needs(args.feeds).sources
        stages = find_stages(args.order, sources, seconds, is_independent, threads=3)
        assert not stages or any(len(stage) > 1 for stage in stages)
        if stages:
            staged = StagedPlan(stages, args)
            runs = [staged.try_out(together=False), staged.try_out(together=True), staged.run]
            for run in runs:
                for got, wanted in zip(run(Step(), *values), expected, strict=True):
                    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("seed", range(GRAPHS))
def test_random_graphs_in_pieces(seed: int) -> None:
    choose = random.Random(seed)
    args, values = random_step(choose)
    expected = new_executor("DATAFLOW", args).run(Step(), *values)
    size = choose.randint(1, 6)
    pieces = [args.order[start : start + size] for start in range(0, len(args.order), size)]
    staged = StagedPlan([[StageBranch(piece, 0.0)] for piece in pieces], args)
    for _ in range(2):
        for got, wanted in zip(staged.run(Step(), *values), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_most_of_these_graphs_have_branches() -> None:
    """Or the test above would test nothing."""
    found = 0
    for seed in range(GRAPHS):
        graph, tensors = random_graph(random.Random(seed))
        order = [op for op in graph.get_operations() if op.type != "Placeholder"]
        seconds = dict.fromkeys((op.name for op in order if op.type != "Const"), 1e-3)
        found += bool(find_stages(order, Needs(tensors[:2]).sources, seconds, is_independent, 3))
    assert found > GRAPHS / 4
