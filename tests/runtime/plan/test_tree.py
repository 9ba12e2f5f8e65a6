"""The tree of a plan says what the plan does, and what its kernels are."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runtime.plan.tree_interpreter import interpret

import opkernel
from opkernel import raw_ops
from opkernel.kernel import FunctionKernel
from opkernel.runtime import CompiledPlan, PlanTree
from opkernel.runtime.plan.tree import (
    Branch,
    Branches,
    Call,
    Condition,
    Plain,
    PlanFunction,
    names_in,
    renamed,
)
from opkernel.runtime.program.run_step import RunStep

MODELS = Path(__file__).parents[4] / "shared" / "models"


def tree_of(session: opkernel.Session, fetches: Any, feeds: Any) -> PlanTree:
    plan = session.plan(fetches, feeds)
    assert isinstance(plan, CompiledPlan)
    return plan.tree


def made_again(plan: PlanTree) -> dict[str, Any]:
    """The functions of kernels, made of what the kernels say of themselves."""
    found = {}
    for name, bound in plan.globals.items():
        kernel = bound.kernel
        if not isinstance(kernel, FunctionKernel) or bound.value is not kernel.unchecked:
            continue  # a kernel of the step, or a ufunc
        registered, keywords = kernel.registered, {**kernel.attrs}
        if "construction" in registered.keywords:
            continue
        if "xp" in registered.keywords:
            keywords["xp"] = np
        make = registered.function if registered.is_maker else partial(partial, registered.function)
        found[name] = make(**keywords)
    return found


@pytest.mark.parametrize(
    "name",
    [
        *("bert_tiny", "conv_mix", "functional_control_flow", "lstm_lowered", "mlp"),
        *("mobilenet_v2", "v1_control_flow"),
    ],
)
def test_models_are_run_by_their_trees(name: str) -> None:
    if not MODELS.is_dir():
        pytest.skip("the models are not here")
    manifest = json.loads((MODELS / name / "manifest.json").read_text())
    with np.load(MODELS / name / "case.npz") as stored:
        feeds = {feed: stored[f"feed:{feed}"] for feed in manifest["feeds"]}
        expected = [stored[f"fetch:{fetch}"] for fetch in manifest["fetches"]]
    graph = opkernel.load_graph(MODELS / name / "graph.pb")
    with (
        opkernel.Session(graph, executor_type="COMPILED_PLAN") as session,
        np.errstate(all="ignore"),
    ):
        plan = tree_of(session, manifest["fetches"], list(feeds))
        for replaced in ({}, made_again(plan)):
            found = interpret(plan, RunStep(), list(feeds.values()), replaced)
            for value, wanted in zip(found, expected, strict=True):
                np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5)


def test_kernels_say_what_they_are_made_of() -> None:
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [2, 2], name="x")
        y = raw_ops.LeakyRelu(features=x, alpha=0.5, name="leaky")
        raw_ops.MatrixDiagPartV3(
            input=y, k=0, padding_value=np.float32(0), align="LEFT_LEFT", name="diagonal"
        )
    with opkernel.Session(graph, optimize=False) as session:
        plan = tree_of(session, "diagonal:0", ["x:0"])
    again = made_again(plan)
    calls = {item.op.name: item for item in plan.block if isinstance(item, Call) and item.op}
    kernels = [plan.globals[calls[name].function].kernel for name in ("leaky", "diagonal")]
    found: list[Any] = [kernel for kernel in kernels if isinstance(kernel, FunctionKernel)]
    assert [kernel.registered.is_maker for kernel in found] == [True, False]
    assert [kernel.attrs for kernel in found] == [
        {"T": opkernel.float32, "alpha": 0.5},
        {"align": "LEFT_LEFT"},
    ]
    value = np.array([[1, -2], [3, -4]], np.float32)
    np.testing.assert_array_equal(interpret(plan, RunStep(), [value], again), [[1, -2]])


def test_a_tree_is_renamed_as_a_whole() -> None:
    call = Call(None, ("a",), ("b",), "f", ("step", ["a"]), "b")
    call.reads = call.releases = ("a",)
    test = Condition("a", "is", Plain("a"))
    branches = Branches(None, ("a",), [Branch(test, frozenset(), [call], ("a",))])
    function = PlanFunction("p", ["step", "a"], [branches], ["b"])
    function.cleared = frozenset({"a"})
    new = renamed(function, {"a": "x", "b": "y", "f": "np.sin"})
    assert set(names_in(function)) >= {"p", "step", "a", "b", "f"}
    assert not set(names_in(new)) & {"a", "b", "f"}
    assert new.cleared == {"x"}
    assert repr(new.block).count("Plain(value='a')") == 1
