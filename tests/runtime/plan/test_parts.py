"""Plans that are too long or too deep are cut: where the limits are, and how large the parts become."""

import pytest
from tests.runtime.dataflow.loop_builders import BOOL, Builder

import opkernel
from opkernel.graph import Tensor
from opkernel.runtime import CompiledPlan
from opkernel.runtime.plan import compiled_plan, tree
from opkernel.runtime.plan.compiled_plan import LINES_A_PART, MAX_DEPTH, plan_functions
from opkernel.runtime.plan.text import Writer
from opkernel.runtime.program.run_step import RunStep


def plan_of(b: Builder, fetches: list[Tensor], feeds: list[str]) -> CompiledPlan:
    with opkernel.Session(b.graph, executor_type="COMPILED_PLAN", optimize=False) as session:
        plan = session.plan(fetches, feeds)
    assert isinstance(plan, CompiledPlan)
    return plan


def sizes(function: tree.PlanFunction) -> tuple[int, int]:
    """How many lines a function has beside its head and its end, and how deeply they are indented."""
    texts = Writer(function).texts
    depths = [(len(text) - len(text.lstrip())) // 4 for text in texts]
    return len(texts) - 2 - bool(function.unset), max(depths)


@pytest.mark.parametrize(("count", "parts"), [(599, 1), (600, 1), (601, 2), (1201, 3)])
def test_a_long_plan_is_cut_at_600_statements(count: int, parts: int) -> None:
    assert LINES_A_PART == 600
    b = Builder()
    x = y = b.placeholder("x", opkernel.int32)
    for _ in range(count):
        y = b.op("Neg", y)
    plan = plan_of(b, [y, x], ["x:0"])
    functions = plan_functions(plan.tree)
    assert len(functions) == parts + (parts > 1)
    assert max(sizes(one)[0] for one in functions) == min(count, LINES_A_PART)
    assert functions[-1].name == "plan"
    assert plan.run(RunStep(), 7) == (7 * (-1) ** count, 7)


def nested(b: Builder, depth: int, width: int = 1) -> Tensor:
    """`x` through conditionals in each other; each negates it so many times."""

    def at(level: int, x: Tensor) -> Tensor:
        for _ in range(width):
            x = b.op("Neg", x)
        if level == depth:
            return x
        p = b.placeholder(f"p{level}", BOOL)
        return b.cond(p, lambda x: [at(level + 1, x)], lambda x: [b.op("Square", x)], [x])[0]

    return at(0, b.placeholder("x"))


@pytest.mark.parametrize("depth", [9, 10, 25])
def test_a_deep_plan_is_cut_at_ten_blocks(depth: int) -> None:
    assert MAX_DEPTH == 10
    b = Builder()
    y = nested(b, depth)
    feeds = ["x:0", *[f"p{level}:0" for level in range(depth)]]
    plan = plan_of(b, [y], feeds)
    functions = plan_functions(plan.tree)
    assert (len(functions) == 1) == (depth < 10)
    assert max(sizes(one)[1] for one in functions) <= MAX_DEPTH
    for taken in (depth, 0, depth // 2):
        step = [3.0, *[level < taken for level in range(depth)]]
        (found,) = b.run([y], dict(zip(feeds, step, strict=True)), "COMPILED_PLAN", optimize=False)
        assert found == (3.0 * (-1) ** (depth + 1) if taken == depth else 9.0)


@pytest.mark.parametrize(("lines", "depth"), [(5, 2), (7, 3), (12, 2), (30, 10)])
def test_parts_are_within_the_limits(
    monkeypatch: pytest.MonkeyPatch, lines: int, depth: int
) -> None:
    """Each statement of a block counts, and what an `if` or a loop adds to its blocks."""
    monkeypatch.setattr(compiled_plan, "LINES_A_PART", lines)
    monkeypatch.setattr(compiled_plan, "MAX_DEPTH", depth)
    b = Builder()
    y = nested(b, 5, width=9)

    def body(i: Tensor, x: Tensor, y: Tensor) -> list[Tensor]:
        for _ in range(14):
            x = b.op("AddV2", x, y)
        return [b.op("AddV2", i, b.constant(1)), x]

    results = b.while_loop(
        lambda i, *_: b.op("Less", i, b.constant(3)), body, [b.constant(0), y], [y]
    )
    feeds = ["x:0", *[f"p{level}:0" for level in range(5)]]
    plan = plan_of(b, results, feeds)
    found = [sizes(one) for one in plan_functions(plan.tree)]
    assert len(found) > 3
    assert max(one for one, _ in found) <= lines + 6
    assert max(one for _, one in found) <= depth + 3
    given = dict(zip(feeds, [2.0, *[True] * 5], strict=True))
    expected = b.run(results, given, "DATAFLOW")
    assert b.run(results, given, "COMPILED_PLAN", optimize=False) == expected == [3, 86.0]
