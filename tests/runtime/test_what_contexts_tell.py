"""What a kernel is told of its call, its outputs, its executor: the same whoever runs it."""

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.graph.function_builders import define, graph_of, library_of

import opkernel
from opkernel.errors import InternalError
from opkernel.kernel import (
    AsyncOpKernel,
    GraphCollector,
    InstantiateOptions,
    OpKernel,
    OpKernelContext,
)
from opkernel.opdef import InferenceContext, unchanged_shape
from opkernel.proto import RunMetadata

EXECUTORS = ["", "DATAFLOW", "COMPILED_PLAN", "SINGLE_THREADED_EXECUTOR"]
X = np.array([1, 2], np.float32)

told: list[Any] = []
tell: list[Callable[[OpKernelContext], Any]] = []
"""What the kernels below are to tell of their contexts."""


def two_like_the_input(c: InferenceContext) -> None:
    for index in range(2):
        c.set_output(index, c.input(0))


for _op in ("ContextsTell", "ContextsTellLater"):
    opkernel.register_op(
        _op,
        inputs=["x: float"],
        outputs=["y: float", "z: float"],
        shape_fn=two_like_the_input,
        is_stateful=True,
    )


@opkernel.register_kernel("ContextsTell", device="CPU")
class Tell(OpKernel):
    """Tells, and sets the outputs that it must."""

    def compute(self, ctx: OpKernelContext) -> None:
        told.append(tell[0](ctx))
        for index in range(2):
            if ctx.output_required(index):
                ctx.set_output(index, -ctx.input(0))


@opkernel.register_kernel("ContextsTellLater", device="CPU")
class TellLater(AsyncOpKernel):
    """Does so on a thread of its own."""

    def compute_async(self, ctx: OpKernelContext, done: Callable[[], None]) -> None:
        def work() -> None:
            Tell.compute(self, ctx)  # type: ignore[arg-type]  # which needs nothing of itself
            done()

        threading.Thread(target=work).start()


@pytest.fixture(autouse=True)
def nothing_told() -> Iterator[None]:
    told.clear()
    tell[:] = [lambda ctx: None]
    yield
    told.clear()


def arguments(ctx: OpKernelContext) -> Any:
    """The arguments of the call, and how many results it has."""
    frame = ctx.call_frame
    return [frame.get_arg(i).tolist() for i in range(frame.num_args)], frame.num_retvals


def telling(op: str, **called: str) -> Any:
    """A function that calls the op on the product of its arguments."""
    lines = ["xy = Mul[T=float](x, y)", f"t = {op}(xy:z:0)"]
    return define("Telling(x: float, y: float) -> (z: float)", lines, z="t:y:0")


def caller(how: str, op: str) -> opkernel.Graph:
    """A graph that calls the function on x and 2, or y, in one of the ways that there are."""
    noinline = telling(op)
    noinline.attr["_noinline"].b = True
    call = {
        "by name": "call = Telling(x, two)",
        "call": "call = StatefulPartitionedCall[Tin={float, float}; Tout={float}; f=Telling](x, two)",
        "if": "call = If[Tcond=bool; Tin={float, float}; Tout={float}; then_branch=Telling; "
        "else_branch=Telling](c, x, two)",
    }[how]
    value = "<dtype: DT_FLOAT tensor_shape {} float_val: 2>"
    return graph_of(
        library_of(noinline),
        "x = Placeholder[dtype=float]()",
        "c = Placeholder[dtype=bool]()",
        f"two = Const[dtype=float; value={value}]()",
        call,
    )


OPTIONS = {
    "plain": None,
    "in time": opkernel.RunOptions(timeout_in_ms=60_000),
    "traced": opkernel.RunOptions(trace_level=3),
}


class TestCallFrame:
    @pytest.mark.parametrize("options", OPTIONS)
    @pytest.mark.parametrize("op", ["ContextsTell", "ContextsTellLater"])
    @pytest.mark.parametrize("how", ["by name", "call", "if"])
    @pytest.mark.parametrize("executor", ["", "DATAFLOW"])
    def test_is_that_of_the_call(self, executor: str, how: str, op: str, options: str) -> None:
        tell[0] = arguments
        with opkernel.Session(caller(how, op), executor_type=executor) as session:
            for factor in (1, 10):
                session.run("call:0", {"x:0": factor * X, "c:0": True}, OPTIONS[options])
        assert told == [([[1, 2], 2], 1), ([[10, 20], 2], 1)]

    def test_of_a_graph_has_nothing(self) -> None:
        tell[0] = arguments
        graph = opkernel.Graph()
        y = graph.create_op("ContextsTell", [X]).outputs[0]
        opkernel.Session(graph).run(y)
        assert told == [([], 0)]

    def test_of_a_loop_has_the_variables_of_each_turn(self) -> None:
        tell[0] = arguments

        @opkernel.function
        def loop(x: Any) -> Any:
            def body(i: Any, x: Any) -> Any:
                return i + 1, opkernel.raw_ops.ContextsTell(x=x)[0]

            return opkernel.while_loop(lambda i, x: i < 2, body, [np.int32(0), x])

        loop(X)
        assert told == [([0, [1, 2]], 2), ([1, [-1, -2]], 2)]

    def test_of_a_traced_function_has_its_arguments(self) -> None:
        tell[0] = arguments

        @opkernel.function
        def traced(x: Any, n: Any) -> Any:
            return opkernel.raw_ops.ContextsTell(x=x)[0], n, n

        traced(X, np.int32(7))
        assert told == [([[1, 2], 7], 3)]

    def test_is_one_for_all_kernels_of_a_call_and_another_for_the_next(self) -> None:
        tell[0] = lambda ctx: ctx.call_frame

        @opkernel.function
        def twice(x: Any) -> Any:
            first = opkernel.raw_ops.ContextsTell(x=x)[0]
            return opkernel.raw_ops.ContextsTell(x=first)[0]

        twice(X)
        twice(X)
        assert told[0] is told[1]
        assert told[2] is told[3]
        assert told[0] is not told[2]

    def test_of_a_function_that_calls_itself_is_the_innermost(self) -> None:
        tell[0] = arguments
        call_down = (
            "more = If[Tcond=float; Tin={float}; Tout={float}; then_branch=Down; else_branch=Same]"
        )
        less = [
            "one = Const[dtype=float; value=<dtype: DT_FLOAT tensor_shape {} float_val: 1>]()",
            "less = Sub[T=float](x, one:output:0)",
            f"{call_down}(less:z:0, less:z:0)",
            "t = ContextsTell(x) @ more",
        ]
        down = define("Down(x: float) -> (y: float)", less, y="t:y:0")
        same = define("Same(x: float) -> (y: float)", ["y = Identity[T=float](x)"], y="y:output:0")
        graph = graph_of(library_of(down, same), "x = Placeholder[dtype=float]()", "call = Down(x)")
        for executor in ("", "DATAFLOW"):
            told.clear()
            with opkernel.Session(graph, executor_type=executor) as session:
                session.run("call:0", {"x:0": np.float32(3)})
            assert told == [([1], 1), ([2], 1), ([3], 1)]

    def test_keeps_the_services_of_the_step(self) -> None:
        services = [
            *("step_id", "session_handle", "function_library", "cancellation_manager", "deadline"),
            *("step_container", "rendezvous", "start_time_usecs"),
        ]
        tell[0] = lambda ctx: [getattr(ctx, name) for name in services]
        graph = caller("if", "ContextsTell")
        z = graph.create_op("ContextsTell", [graph.get_tensor_by_name("x:0")], name="z")
        with opkernel.Session(graph) as session:
            session.run(
                ["call:0", z], {"x:0": X, "c:0": True}, opkernel.RunOptions(timeout_in_ms=60_000)
            )
        assert told[0] == told[1]
        assert None not in told[0]


def outputs_required(ctx: OpKernelContext) -> list[bool]:
    return [ctx.output_required(index) for index in range(2)]


class TestOutputRequired:
    @pytest.mark.parametrize("sanitize", [False, True])
    @pytest.mark.parametrize("options", OPTIONS)
    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_of_what_nobody_takes_is_false(
        self, executor: str, options: str, sanitize: bool
    ) -> None:
        tell[0] = outputs_required
        graph = graph_of(
            library_of(),
            "x = Placeholder[dtype=float]()",
            "t = ContextsTell(x)",
            "y = Neg[T=float](t)",
            "z = Neg[T=float](t:1)",
            "after = NoOp() @ t",
        )
        expected = {
            "y:0": [True, False],
            "z:0": [False, True],
            "t:1": [False, True],
            ("y:0", "t:1"): [True, True],
            "after": [False, False],
        }
        with opkernel.Session(graph, executor_type=executor, sanitize=sanitize) as session:
            for fetches in expected:
                session.run(fetches, {"x:0": X}, OPTIONS[options])
        assert told == list(expected.values())

    def test_of_what_is_fed_is_false(self) -> None:
        tell[0] = outputs_required
        graph = graph_of(
            library_of(), "x = Placeholder[dtype=float]()", "t = ContextsTell(x)",
            "sum = AddV2[T=float](t, t:1)",
        )  # fmt: skip
        for executor in ("", "DATAFLOW"):
            with opkernel.Session(graph, executor_type=executor) as session:
                assert session.run("sum:0", {"x:0": 1.0, "t:0": 5.0}) == 4
        assert told == [[False, True]] * 2

    @pytest.mark.parametrize("op", ["ContextsTell", "ContextsTellLater"])
    @pytest.mark.parametrize("executor", ["", "DATAFLOW"])
    def test_within_functions_and_by_asynchronous_kernels(self, executor: str, op: str) -> None:
        tell[0] = outputs_required
        with opkernel.Session(caller("if", op), executor_type=executor) as session:
            session.run("call:0", {"x:0": X, "c:0": True})
        assert told == [[True, False]]

    @pytest.mark.parametrize("executor", ["", "DATAFLOW"])
    def test_within_loops_of_tensorflow_1(self, executor: str) -> None:
        tell[0] = outputs_required
        frame = "T=float; frame_name='f'; parallel_iterations=1"
        graph = graph_of(
            library_of(),
            "x = Placeholder[dtype=float]()",
            f"enter = Enter[{frame}](x)",
            "merge = Merge[T=float; N=2](enter, next)",
            "zero = Const[dtype=float; value=<dtype: DT_FLOAT tensor_shape {}>]() @ merge",
            "goes_on = Greater[T=float](merge, zero)",
            "cond = LoopCond(goes_on)",
            "switch = Switch[T=float](merge, cond)",
            "t = ContextsTell(switch:1)",
            "next = NextIteration[T=float](t:1)",
            "exit = Exit[T=float](switch)",
        )
        with opkernel.Session(graph, executor_type=executor) as session:
            assert session.run("exit:0", {"x:0": np.float32(1)}) == -1
        assert told == [[False, True]]

    def test_of_eager_calls_is_true(self) -> None:
        tell[0] = outputs_required
        opkernel.raw_ops.ContextsTell(x=X)
        assert told == [[True, True]]


class TestExecutorType:
    @pytest.mark.parametrize("executor", EXECUTORS)
    def test_is_the_sessions(self, executor: str) -> None:
        tell[0] = lambda ctx: ctx.executor_type
        graph = caller("if", "ContextsTell")
        z = graph.create_op("ContextsTell", [graph.get_tensor_by_name("x:0")], name="z")
        with opkernel.Session(graph, executor_type=executor) as session:
            session.run(["call:0", z], {"x:0": X, "c:0": False})
        assert told == [executor, executor]

    def test_of_a_function_is_its_own_where_it_names_one(self) -> None:
        tell[0] = lambda ctx: ctx.executor_type
        graph = graph_of(
            library_of(telling("ContextsTell")),
            "x = Placeholder[dtype=float]()",
            "call = StatefulPartitionedCall[Tin={float, float}; Tout={float}; f=Telling; "
            "executor_type='DATAFLOW'](x, x)",
        )
        with opkernel.Session(graph, optimize=False) as session:
            session.run("call:0", {"x:0": X})
        assert told == ["DATAFLOW"]


class TestStackTrace:
    @pytest.mark.parametrize("op", ["ContextsTell", "ContextsTellLater"])
    def test_of_an_eager_call_ends_at_the_call(self, op: str) -> None:
        tell[0] = lambda ctx: ctx.stack_trace
        call = getattr(opkernel.raw_ops, op)
        line = sys._getframe().f_lineno + 1
        call(x=X)
        (stack,) = told
        assert (stack[-1].filename, stack[-1].lineno) == (__file__, line)
        assert stack[-1].name == "test_of_an_eager_call_ends_at_the_call"

    def test_of_two_threads_are_told_apart(self) -> None:
        both = threading.Barrier(2)
        stacks: dict[Any, str] = {}

        def find(ctx: OpKernelContext) -> None:
            both.wait(300)  # both calls are under way
            stacks[ctx.input(0).item()] = ctx.stack_trace[-1].name
            both.wait(300)

        def first() -> None:
            opkernel.raw_ops.ContextsTellLater(x=np.float32(1))

        def second() -> None:
            opkernel.raw_ops.ContextsTellLater(x=np.float32(2))

        tell[0] = find
        threads = [threading.Thread(target=one) for one in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stacks == {1: "first", 2: "second"}

    def test_of_a_node_is_where_it_was_made(self) -> None:
        tell[0] = lambda ctx: ctx.stack_trace
        graph = opkernel.Graph()
        op = graph.create_op("ContextsTell", [X])
        opkernel.Session(graph).run(op.outputs[0])
        assert told == [op.traceback]


class TestGraphCollector:
    def test_a_kernel_collects_the_graphs_of_what_it_instantiates(self) -> None:
        def instantiate(ctx: OpKernelContext) -> GraphCollector:
            collector = ctx.graph_collector or GraphCollector()
            options = InstantiateOptions(graph_collector=collector)
            ctx.function_library.instantiate("Folded", {}, options)
            return collector

        tell[0] = instantiate
        three = "Const[dtype=float; value=<dtype: DT_FLOAT tensor_shape {} float_val: 3>]()"
        lines = [f"a = {three}", f"b = {three}", "c = Mul[T=float](a:output:0, b:output:0)"]
        lines.append("y = Mul[T=float](c:z:0, x)")
        folded = define("Folded(x: float) -> (y: float)", lines, y="y:z:0")
        graph = graph_of(
            library_of(folded), "x = Placeholder[dtype=float]()", "t = ContextsTell(x)"
        )
        metadata = RunMetadata()
        with opkernel.Session(graph) as session:
            session.run("t:0", {"x:0": X})
            options = opkernel.RunOptions(output_partition_graphs=True)
            session.run("t:0", {"x:0": X}, options, metadata)
        (graphs,) = metadata.function_graphs
        by_kernel, by_step = told
        for collected in (by_kernel, by_step):
            assert collected.dirty
            before = [node.op for node in collected.raw_graph.node]
            after = [node.op for node in collected.optimized_graph.node]
            assert (before.count("Mul"), before.count("Const")) == (2, 2)
            assert (after.count("Mul"), after.count("Const")) == (1, 1)
            (only,) = collected.partitioned_graphs
            assert only == collected.optimized_graph
        assert graphs.pre_optimization_graph == by_step.raw_graph
        assert graphs.post_optimization_graph == by_step.optimized_graph
        assert list(graphs.partition_graphs) == by_step.partitioned_graphs
        by_step.clear_graphs()
        assert not by_step.dirty
        assert not by_step.raw_graph.node

    def test_a_step_that_is_asked_for_graphs_has_those_of_the_functions_that_nodes_call(
        self,
    ) -> None:
        tell[0] = lambda ctx: ctx.graph_collector
        metadata = RunMetadata()
        with opkernel.Session(caller("if", "ContextsTell")) as session:
            session.run(
                "call:0", {"x:0": X, "c:0": True}, opkernel.RunOptions(trace_level=3), metadata
            )
            assert not metadata.function_graphs
            options = opkernel.RunOptions(output_partition_graphs=True)
            session.run("call:0", {"x:0": X, "c:0": True}, options, metadata)
        assert told[0] is None
        assert isinstance(told[1], GraphCollector)
        (graphs,) = metadata.function_graphs
        assert {node.op for node in graphs.pre_optimization_graph.node} >= {"Mul", "ContextsTell"}
        (part,) = graphs.partition_graphs
        assert {node.device for node in part.node} == {
            "/job:localhost/replica:0/task:0/device:CPU:0"
        }
        (whole,) = metadata.partition_graphs
        assert "If" in {node.op for node in whole.node}


@pytest.mark.parametrize("what", ["call_frame", "executor_type"])
def test_a_kernel_that_claims_to_ignore_its_call_may_not_ask(what: str) -> None:
    op = f"ContextsClaim_{what}".title().replace("_", "")
    opkernel.register_op(op, inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape)
    claims = opkernel.KernelContract(outputs_as_declared=True, ignores_call=True)

    @opkernel.register_kernel(op, device="CPU", contract=claims)
    class Asks(OpKernel):
        def compute(self, ctx: OpKernelContext) -> None:
            ctx.set_output(0, ctx.input(0) * bool(getattr(ctx, what)))

    with pytest.raises(InternalError, match=f"asks for the {what}, though it claims ignores_call"):
        getattr(opkernel.raw_ops, op)(x=X)
