"""A kernel is edited and registered again, as in a notebook, while sessions live."""

import functools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.errors import NotFoundError
from opkernel.graph import Graph, graph_to_function_def
from opkernel.kernel import (
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    global_kernel_registry,
    register_kernel,
)
from opkernel.opdef import register_op, unchanged_shape
from opkernel.opdef.common_shapes import scalar_shape
from opkernel.proto import NameAttrList
from opkernel.runtime import execute
from opkernel.types import DataType, float32

EDITED = register_op(
    "EditedInTests",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=["T: {float, int32}"],
    shape_fn=unchanged_shape,
)
COUNTER = register_op(
    "CountedInTests", outputs=["count: int64"], shape_fn=scalar_shape, is_stateful=True
)


@pytest.fixture(autouse=True)
def _no_kernels_are_left() -> Iterator[None]:
    yield
    registry = global_kernel_registry()
    for op in (EDITED.name, COUNTER.name):
        for one in registry.registrations_for(op):
            registry.unregister(one)


def edit(compute: Callable[[Any], Any], **declaration: Any) -> None:
    """Run the notebook's cell with this as the kernel's body."""

    @register_kernel(EDITED, device="CPU", **declaration)
    def edited(x: Any) -> Any:
        return compute(x)


class Counter(OpKernel):
    """Counts how often it was computed."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.count = 0

    def compute(self, ctx: OpKernelContext) -> None:
        self.count += 1
        ctx.set_output(0, np.int64(self.count))


@pytest.fixture
def graph() -> Graph:
    """x -> edited, and a counter beside it."""
    graph = Graph()
    x = graph.create_op("Placeholder", name="x", attrs={"dtype": float32}).outputs[0]
    graph.create_op(EDITED.name, [x], name="edited")
    graph.create_op(COUNTER.name, name="counter")
    return graph


def test_the_next_run_has_the_new_kernel(graph: Graph) -> None:
    edit(lambda x: x * 2)
    with opkernel.Session(graph) as session:
        assert session.run("edited:0", {"x:0": 5}) == 10
        edit(lambda x: x * 3)
        assert session.run("edited:0", {"x:0": 5}) == 15
        edit(lambda x: x * 4, types={"T": float32})
        assert session.run("edited:0", {"x:0": 5}) == 20


def test_other_kernels_stay_with_their_state(graph: Graph) -> None:
    edit(lambda x: x)
    register_kernel(COUNTER, device="CPU")(Counter)
    fetches = ["edited:0", "counter:0"]
    with opkernel.Session(graph) as session:
        assert session.run(fetches, {"x:0": 5}) == [5, 1]
        edit(lambda x: -x)
        assert session.run(fetches, {"x:0": 5}) == [-5, 2]
        register_kernel(COUNTER, device="CPU")(Counter)
        assert session.run(fetches, {"x:0": 5}) == [-5, 1]


def test_plans_are_kept_while_nothing_changes(graph: Graph) -> None:
    edit(lambda x: x)
    with opkernel.Session(graph) as session:
        plan = session.plan("edited:0", ["x:0"])
        session.run("edited:0", {"x:0": 5})
        assert session.plan("edited:0", ["x:0"]) is plan
        # Kernels of ops that nobody has looked up yet change nothing for anybody.
        register_kernel("NeverLookedUpInTests", device="CPU")(Counter)
        assert session.plan("edited:0", ["x:0"]) is plan
        edit(lambda x: x)
        assert session.plan("edited:0", ["x:0"]) is not plan


def test_a_kernel_of_higher_priority_takes_over_and_goes(graph: Graph) -> None:
    edit(lambda x: x)
    with opkernel.Session(graph) as session:
        assert session.run("edited:0", {"x:0": 5}) == 5

        @register_kernel(EDITED, device="CPU", priority=1)
        def better(x: Any) -> Any:
            return x + 100

        assert session.run("edited:0", {"x:0": 5}) == 105
        registry = global_kernel_registry()
        registry.unregister(registry.candidates(EDITED.name, "CPU", "")[0])
        assert session.run("edited:0", {"x:0": 5}) == 5


def test_an_unregistered_kernel_is_gone(graph: Graph) -> None:
    edit(lambda x: x)
    registry = global_kernel_registry()
    with opkernel.Session(graph) as session:
        session.run("edited:0", {"x:0": 5})
        registry.unregister(registry.candidates(EDITED.name, "CPU", "")[0])
        with pytest.raises(NotFoundError, match="No registered 'EditedInTests' OpKernel for CPU"):
            session.run("edited:0", {"x:0": 5})


def test_a_step_under_way_finishes_with_the_old_kernel(graph: Graph) -> None:
    has_begun, may_end = threading.Event(), threading.Event()

    def slow(x: Any) -> Any:
        has_begun.set()
        assert may_end.wait(300)
        return x * 2

    edit(slow)
    answers = []
    with opkernel.Session(graph) as session:
        step = threading.Thread(target=lambda: answers.append(session.run("edited:0", {"x:0": 5})))
        step.start()
        assert has_begun.wait(300)
        edit(lambda x: x * 3)
        assert session.run("edited:0", {"x:0": 5}) == 15
        may_end.set()
        step.join()
        assert answers == [10]
        assert session.run("edited:0", {"x:0": 5}) == 15


def test_callables_keep_what_they_were_made_with(graph: Graph) -> None:
    edit(lambda x: x * 2)
    with opkernel.Session(graph) as session:
        call = session.make_callable("edited:0", ["x:0"])
        edit(lambda x: x * 3)
        assert call(5) == 10
        assert session.make_callable("edited:0", ["x:0"])(5) == 15


def test_functions_have_the_new_kernel_and_keep_other_state() -> None:
    edit(lambda x: x * 2)
    register_kernel(COUNTER, device="CPU")(Counter)
    graph = Graph()
    inner = Graph(function_library=graph.function_library)
    argument = inner.create_op("Placeholder", name="a", attrs={"dtype": float32}).outputs[0]
    body = inner.create_op(EDITED.name, [argument]).outputs[0]
    count = inner.create_op(COUNTER.name).outputs[0]
    definition = graph_to_function_def(inner, "f", [argument], [body, count])
    graph.function_library.add_function(definition)
    x = graph.create_op("Placeholder", name="x", attrs={"dtype": float32}).outputs[0]
    attrs = {
        "Tin": [float32],
        "Tout": [float32, DataType.DT_INT64],
        "f": NameAttrList(name="f"),
    }
    graph.create_op("StatefulPartitionedCall", [[x]], name="call", attrs=attrs)
    with opkernel.Session(graph) as session:
        assert session.run(["call:0", "call:1"], {"x:0": 5}) == [10, 1]
        edit(lambda x: x * 3)
        assert session.run(["call:0", "call:1"], {"x:0": 5}) == [15, 2]


def test_eager_calls_have_the_new_kernel() -> None:
    edit(lambda x: x * 2)
    assert execute(EDITED.name, {"x": np.float32(5)}, {}) == 10
    edit(lambda x: x * 3)
    assert execute(EDITED.name, {"x": np.float32(5)}, {}) == 15


def test_threads_see_every_edit(graph: Graph) -> None:
    edit(lambda x: x)
    stop = threading.Event()
    seen: list[float] = []

    def run(session: opkernel.Session) -> None:
        while not stop.is_set():
            seen.append(float(session.run("edited:0", {"x:0": 0})))

    with opkernel.Session(graph) as session:
        threads = [threading.Thread(target=run, args=(session,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for version in range(1, 30):
            edit(functools.partial(operator.add, version))
            assert session.run("edited:0", {"x:0": 0}) == version
        stop.set()
        for thread in threads:
            thread.join()
    assert set(seen) <= set(range(30))
