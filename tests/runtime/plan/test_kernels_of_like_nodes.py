"""Plans run like nodes by one kernel; nodes of other attrs or labels have kernels of their own."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.graph import Graph, Tensor
from opkernel.kernel import (
    Device,
    OpKernel,
    create_op_kernel,
    global_kernel_registry,
    register_kernel,
)
from opkernel.proto import NodeDef
from opkernel.runtime import CompiledPlan
from opkernel.runtime.program import kernels

LABEL = "of like nodes"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the nodes that kernels are made for."""
    names: list[str] = []
    create = create_op_kernel

    def noted(device: Device, node_def: NodeDef, **options: Any) -> OpKernel:
        names.append(node_def.name)
        return create(device, node_def, **options)

    monkeypatch.setattr(kernels, "create_op_kernel", noted)
    return names


def plan_of(graph: Graph, fetches: list[Tensor]) -> CompiledPlan:
    with opkernel.Session(graph, optimize=False) as session:
        plan = session.plan(fetches, ["x:0"])
    assert isinstance(plan, CompiledPlan)
    return plan


def chain(graph: Graph, op: str, count: int, **attrs: object) -> Tensor:
    """`x` through nodes of one op, the names of which are its name and numbers."""
    with graph.as_default():
        y = opkernel.placeholder(opkernel.float32, [3], name="x")
        for number in range(count):
            y = graph.create_op(op, [y], name=f"{op}{number}", attrs=attrs).outputs[0]
    return y


def test_like_nodes_have_one_kernel(made: list[str]) -> None:
    graph = Graph()
    plan = plan_of(graph, [chain(graph, "Neg", 3)])
    assert made == ["Neg0"]
    assert [statement.op.name for statement in plan.tree.block if statement.op] == [
        f"Neg{number}" for number in range(3)
    ]
    with opkernel.Session(graph, optimize=False) as session:
        assert session.run("Neg2:0", {"x:0": [1, -2, 3]}).tolist() == [-1, 2, -3]


def test_nodes_of_other_attrs_have_others(made: list[str]) -> None:
    graph = Graph()
    x = chain(graph, "LeakyRelu", 2, alpha=0.5)
    with graph.as_default():
        other = graph.create_op("LeakyRelu", [x], name="other", attrs={"alpha": 0.25}).outputs[0]
    plan_of(graph, [other])
    assert made == ["LeakyRelu0", "other"]
    with opkernel.Session(graph, optimize=False) as session:
        assert session.run(other, {"x:0": [-16, 0, 2]}).tolist() == [-1, 0, 2]


@pytest.fixture
def _labelled() -> Iterator[None]:
    register_kernel("Cos", device="CPU", label=LABEL)(lambda x: x * 2)
    yield
    registry = global_kernel_registry()
    for one in registry.registrations_for("Cos"):
        if one.kernel_def.label == LABEL:
            registry.unregister(one)


@pytest.mark.usefixtures("_labelled")
@pytest.mark.parametrize("labelled", [0, 1, 2])
def test_a_label_counts_for_its_node_alone(labelled: int, made: list[str]) -> None:
    graph, x = Graph(), np.array([0.5], np.float32)
    with graph.as_default():
        y = opkernel.placeholder(opkernel.float32, [1], name="x")
        for number in range(3):
            attrs = {"_kernel": LABEL} if number == labelled else {}
            y = graph.create_op("Cos", [y], name=f"y{number}", attrs=attrs).outputs[0]
    expected = x
    for number in range(3):
        expected = expected * 2 if number == labelled else np.cos(expected)
    with opkernel.Session(graph, optimize=False) as session:
        assert session.run(y, {"x:0": x}) == pytest.approx(expected, rel=1e-6)
    assert len(made) == 2


def test_errors_name_the_node_that_failed() -> None:
    graph = Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, None, name="x")
        w = [opkernel.constant(np.ones([n, n], np.float32), name=f"w{n}") for n in (2, 3)]
        y = graph.create_op("MatMul", [x, w[0]], name="first").outputs[0]
        z = graph.create_op("MatMul", [x, w[1]], name="second").outputs[0]
    with opkernel.Session(graph) as session:
        for fetch, name, columns in ((y, "first", 3), (z, "second", 2)):
            with pytest.raises(opkernel.errors.InvalidArgumentError, match=name) as caught:
                session.run([y, z] if name == "second" else fetch, {x: np.ones([1, columns])})
            assert caught.value.node == name
