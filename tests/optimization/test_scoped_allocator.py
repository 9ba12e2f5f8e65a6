"""Reductions side by side become one where that is asked for; results stay."""

import threading
from typing import Any

import numpy as np
import pytest
from tests.optimization.optimizing import ops_of, optimized
from tests.runtime.dataflow.loop_builders import Builder

import opkernel
from opkernel.kernel import LocalCollectiveExecutor
from opkernel.proto import ConfigProto, RewriterConfig

SHAPES = [(3,), (2, 2), (), (0, 4), (17,)]
GROUP: dict[str, Any] = {"group_size": 2, "group_key": 1, "final_op": "Div", "subdiv_offsets": [0]}


def reduced(b: Builder, x: Any, key: int, merge_op: str = "Add", **attrs: Any) -> Any:
    return b.op("CollectiveReduce", x, instance_key=key, merge_op=merge_op, **GROUP, **attrs)


def of_gradients(scale: float) -> tuple[Builder, list[Any]]:
    """Means of tensors of several shapes: computed ones, a constant, and one that others take."""
    b = Builder()
    constants = [b.constant(np.full(shape, scale, np.float32)) for shape in SHAPES]
    computed = [b.op("Exp", one) for one in constants[:-1]] + [constants[-1]]
    means = [reduced(b, one, 10 + i) for i, one in enumerate(computed)]
    return b, [*(b.op("Neg", mean) for mean in means), means[1], b.op("Sqrt", computed[0])]


def run_both(built: Any, **options: Any) -> list[Any]:
    """What two sessions fetch that run side by side."""
    executor, answers = LocalCollectiveExecutor(), [None, None]

    def run(index: int) -> None:
        b, fetches = built(float(index + 1))
        with opkernel.Session(b.graph, collective_executor=executor, **options) as session:
            for _ in range(2):
                answers[index] = session.run(fetches)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


@pytest.mark.parametrize("executor", ["COMPILED_PLAN", "DATAFLOW"])
def test_results_are_those_of_each_by_itself(executor: str) -> None:
    config = ConfigProto()
    config.graph_options.rewrite_options.scoped_allocator_optimization = RewriterConfig.ON
    config.experimental.executor_type = executor
    mean = (np.exp(np.float32(1)) + np.exp(np.float32(2))) / 2
    for index, answers in enumerate(run_both(of_gradients, config=config)):
        *negated, second, root = answers
        for value, shape, want in zip(negated, SHAPES, [mean] * 4 + [1.5], strict=True):
            np.testing.assert_allclose(value, np.full(shape, -want), rtol=1e-6)
        np.testing.assert_allclose(second, np.full((2, 2), mean), rtol=1e-6)
        np.testing.assert_allclose(root, np.full(3, np.exp((index + 1) / 2)), rtol=1e-6)


def test_one_reduction_is_left_where_it_is_asked_for() -> None:
    b, fetches = of_gradients(1.0)
    assert ops_of(optimized(b, fetches)).count("CollectiveReduce") == 5
    passes = {"scoped_allocator", "common_subexpressions"}
    assert ops_of(optimized(b, fetches, *passes)).count("CollectiveReduce") == 1


def test_reductions_that_differ_or_need_each_other_stay_apart() -> None:
    b = Builder()
    x = b.constant(np.ones(2, np.float32))
    first, second = reduced(b, x, 1), reduced(b, x, 2, "Max")
    after_first = [reduced(b, b.op("Neg", one), 3 + i) for i, one in enumerate((first, first))]
    crossed = reduced(b, b.op("Neg", second), 5), reduced(b, b.op("Exp", first), 6, "Max")
    fetches = [*after_first, *crossed]
    one = optimized(b, fetches, "scoped_allocator")
    left = [
        op.attr["merge_op"].s.decode() for op in one.operations if op.type == "CollectiveReduce"
    ]
    assert sorted(left) == ["Add", "Add", "Max", "Max"]


@pytest.mark.parametrize(
    ("ops", "is_on"), [([], True), (["CollectiveReduce", "Abs"], True), (["Abs"], False)]
)
def test_the_ops_that_may_be_merged_can_be_named(ops: list[str], is_on: bool) -> None:
    config = ConfigProto()
    options = config.graph_options.rewrite_options
    options.scoped_allocator_optimization = RewriterConfig.ON
    options.scoped_allocator_opts.enable_op.extend(ops)
    passes = opkernel.SessionConfig.of(config).optimize
    assert (not isinstance(passes, bool) and "scoped_allocator" in passes) is is_on
