"""Functions in their steps: called by kernels, cancelled, dead, recursive, from many threads."""

import sys
import threading
from typing import Any

import numpy as np
import pytest
from tests.graph.function_builders import define, graph_of, library_of, node
from tests.runtime.function_kernels import (
    COUNTER,
    FLOAT,
    RUN,
    TIMES,
    Outcome,
    X,
    run,
    runtime_of,
    seen_steps,
)

from opkernel.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
)
from opkernel.graph import FunctionLibraryDefinition
from opkernel.kernel import (
    CancellationManager,
    FunctionRunOptions,
    InstantiateOptions,
    OpKernelContext,
    RendezvousArgs,
    create_key,
    parse_key,
)
from opkernel.runtime import FunctionLibraryRuntime, Session
from opkernel.runtime.calls.function_options import FunctionStep
from opkernel.runtime.program.run_step import RunStep


class TestKernelsThatCallFunctions:
    @pytest.mark.parametrize("way", ["run", "call", "async"])
    @pytest.mark.parametrize("executor_type", ["", "DATAFLOW"])
    def test_find_them_in_the_library_of_the_step(self, way, executor_type):
        graph = graph_of(
            library_of(*TIMES),
            "x = Placeholder[dtype=float]()",
            f"y = FunctionsTestMap[T=float; f=XTimesFour[T=float]; way='{way}'](x)",
        )
        with Session(graph, executor_type=executor_type) as session:
            assert session.run("y:0", {"x:0": 3.0}) == 12

    @pytest.mark.parametrize("way", ["run", "call", "async"])
    def test_fail_as_the_function_fails(self, way):
        function = define(
            "F(x: float) -> (y: float)", ["c = CheckNumerics[T=float; message='oh'](x)"],
            y="c:output:0",
        )  # fmt: skip
        graph = graph_of(
            library_of(function),
            "x = Placeholder[dtype=float]()",
            f"y = FunctionsTestMap[T=float; f=F; way='{way}'](x)",
        )
        with pytest.raises(InvalidArgumentError, match=r"oh.*'c'"):
            Session(graph).run("y:0", {"x:0": np.inf})

    def test_a_node_of_a_function_gets_a_kernel_that_calls_it(self):
        runtime = runtime_of(*TIMES)
        kernel = runtime.create_kernel(node("call = XTimesFour[T=float](x)"))
        assert kernel.as_async() is kernel
        context = OpKernelContext(kernel, [X], RunStep(function_library=runtime))
        np.testing.assert_array_equal(context.run()[0], X * 4)
        context, done = OpKernelContext(kernel, [X], RunStep()), threading.Event()
        kernel.start(context, done.set)
        assert done.wait(300)
        np.testing.assert_array_equal(context.finish()[0], X * 4)
        assert runtime.create_kernel(node("n = Neg[T=float](x)")).type_string == "Neg"
        with pytest.raises(NotFoundError):
            runtime.create_kernel(node("n = Nope()"))


class TestStep:
    LIBRARY = define("F() -> (ok: bool)", ["ok = FunctionsTestStep()"], ok="ok:ok:0")

    def seen(self, options):
        runtime = runtime_of(self.LIBRARY)
        seen_steps.clear()
        runtime.run(options, runtime.instantiate("F"), [])
        (seen,) = seen_steps
        return seen, runtime

    def test_is_that_of_the_caller(self):
        step = RunStep(60)
        seen, _ = self.seen(FunctionRunOptions(step=step))
        for name in ("rendezvous", "cancellation_manager", "deadline", "step_id"):
            assert seen[name] is getattr(step, name)

    def test_without_a_caller_is_one_of_its_own(self):
        seen, runtime = self.seen(RUN)
        assert seen["library"] is runtime
        assert seen["rendezvous"] is not None
        assert seen["step_id"] > 0

    def test_options_come_before_the_caller(self):
        step, manager, stats = RunStep(60), CancellationManager(), object()
        assert step.deadline is not None
        deadline = step.deadline - 30
        seen, _ = self.seen(
            FunctionRunOptions(
                step=step, step_id=77, deadline=deadline, cancellation_manager=manager,
                stats_collector=stats, run_all_kernels_inline=True, create_rendezvous=True,
            )
        )  # fmt: skip
        assert seen["rendezvous"] not in (None, step.rendezvous)
        assert seen["cancellation_manager"] is manager
        assert seen["stats_collector"] is stats
        assert (seen["deadline"], seen["step_id"], seen["inline"]) == (deadline, 77, True)
        assert seen["container"] is step.step_container

    @pytest.mark.parametrize("way", ["manager", "step", "deadline"])
    def test_a_function_does_not_start_in_a_step_that_has_ended(self, way):
        step = RunStep(0 if way == "deadline" else None)
        manager = CancellationManager()
        if way == "manager":
            manager.start_cancel()
            options = FunctionRunOptions(step=step, cancellation_manager=manager)
        else:
            if way == "step":
                step.cancel()
            options = FunctionRunOptions(step=step)
        with pytest.raises(DeadlineExceededError if way == "deadline" else CancelledError):
            self.seen(options)

    @pytest.mark.parametrize("executor_type", ["", "DATAFLOW"])
    def test_a_cancellation_ends_a_loop(self, executor_type):
        always = define("Always(x: float) -> (c: bool)", ["c = Equal[T=float](x, x)"], c="c:z:0")
        same = define("Same(x: float) -> (x: float)", x="x")
        endless = define(
            "Endless(x: float) -> (y: float)",
            ["y = While[T={float}; cond=Always; body=Same](x)"],
            y="y:output:0",
        )
        runtime = runtime_of(always, same, endless, executor_type=executor_type)
        manager, outcome = CancellationManager(), Outcome()
        runtime.run_async(
            FunctionRunOptions(cancellation_manager=manager),
            runtime.instantiate("Endless"),
            [np.float32(1)],
            outcome,
        )
        assert not outcome.is_there.wait(0.05)
        manager.start_cancel()
        assert isinstance(outcome.wait()[0], CancelledError)

    def test_what_a_function_calls_does_not_end_its_rendezvous(self):
        runtime = runtime_of(*TIMES)
        step = FunctionStep(RunStep(), FunctionRunOptions(create_rendezvous=True))
        options = FunctionRunOptions(step=step)
        runtime.run(options, runtime.instantiate("XTimesTwo", FLOAT), [X])
        assert step.rendezvous is not None
        step.rendezvous.send(
            parse_key(create_key("/cpu:0", 1, "/cpu:0", "x")), RendezvousArgs(), X, False
        )

    def test_run_async_uses_the_runner(self):
        runtime = runtime_of(*TIMES)
        given: list[Any] = []
        outcome: list[Any] = []
        runtime.run_async(
            FunctionRunOptions(runner=given.append),
            runtime.instantiate("XTimesTwo", FLOAT),
            [np.float32(2)],
            lambda *args: outcome.append(args),
        )
        assert outcome == []
        (work,) = given
        work()
        assert outcome == [(None, [4])]


class TestDeadResults:
    FUNCTION = define(
        "F(x: float, p: bool) -> (no: float, yes: float)",
        ["s = Switch[T=float](x, p)"],
        no="s:output_false:0",
        yes="s:output_true:0",
    )

    @pytest.mark.parametrize("executor_type", ["", "DATAFLOW"])
    def test_are_none_where_that_is_allowed(self, executor_type):
        runtime = runtime_of(self.FUNCTION, executor_type=executor_type)
        options = FunctionRunOptions(allow_dead_tensors=True)
        args = np.float32(1), np.bool_(True)
        assert run(runtime, "F", {}, *args, run_options=options) == [None, 1]
        with pytest.raises(OpError):
            run(runtime, "F", {}, *args)


IF_MORE = (
    "y = If[Tcond=bool; Tin={int32}; Tout={int32}; then_branch=Step; else_branch=One](more:z:0, n)"
)


class TestRecursion:
    FACTORIAL = (
        define("One(n: int32) -> (y: int32)", ["y = OnesLike[T=int32](n)"], y="y:y:0"),
        define(
            "Step(n: int32) -> (y: int32)",
            ["one = OnesLike[T=int32](n)", "less = Sub[T=int32](n, one:y:0)",
             "rest = Factorial(less:z:0)", "y = Mul[T=int32](n, rest:y:0)"],
            y="y:z:0",
        ),
        define(
            "Factorial(n: int32) -> (y: int32)",
            ["one = OnesLike[T=int32](n)", "more = Greater[T=int32](n, one:y:0)",
             IF_MORE],
            y="y:output:0",
        ),
    )  # fmt: skip

    @pytest.mark.parametrize("executor_type", ["", "DATAFLOW"])
    def test_functions_may_call_each_other(self, executor_type):
        runtime = runtime_of(*self.FACTORIAL, executor_type=executor_type)
        assert run(runtime, "Factorial", {}, np.int32(10)) == [3628800]

    def test_a_depth_of_two_hundred_calls(self):
        assert run(runtime_of(*self.FACTORIAL), "Factorial", {}, np.int32(100)) == [0]

    def test_what_functions_call_is_looked_through_once(self, monkeypatch):
        """Or chains of functions would take time that grows with the square of their length."""
        looked_through: list[str] = []
        look = FunctionLibraryDefinition.reachable_definitions

        def reachable_definitions(library, *args):
            found = look(library, *args)
            looked_through.extend(found)
            return found

        monkeypatch.setattr(
            FunctionLibraryDefinition, "reachable_definitions", reachable_definitions
        )
        count = 40
        chain = [
            define(f"F{n}(x: float) -> (y: float)", [f"y = F{n + 1}(x)"], y="y:y:0")
            for n in range(count)
        ]
        last = define(f"F{count}(x: float) -> (y: float)", ["y = Neg[T=float](x)"], y="y:y:0")
        graph = graph_of(library_of(*chain, last), "x = Placeholder[dtype=float]()", "y = F0(x)")
        with Session(graph) as session:
            assert session.run("y:0", {"x:0": 1.0}) == -1
        assert count < len(looked_through) < 3 * count

    def test_recursion_without_end_is_an_error_of_the_step(self):
        endless = define("Endless(x: float) -> (y: float)", ["y = Endless(x)"], y="y:y:0")
        library = library_of(endless)
        graph = graph_of(library, "x = Placeholder[dtype=float]()", "y = Endless(x)")
        depth = sys.getrecursionlimit()
        with Session(graph) as session:
            for _ in range(2):
                with pytest.raises(ResourceExhaustedError, match="call each other too deeply"):
                    session.run("y:0", {"x:0": 1.0})
            assert session.run("x:0", {"x:0": 1.0}) == 1
        with pytest.raises(ResourceExhaustedError, match="call each other too deeply"):
            run(FunctionLibraryRuntime(library), "Endless", {}, np.float32(1))
        assert sys.getrecursionlimit() == depth


def test_many_threads_instantiate_run_and_release():
    runtime = runtime_of(COUNTER, *TIMES)
    failures = []

    def work(number):
        try:
            for turn in range(50):
                handle = runtime.instantiate("XTimesFour", FLOAT)
                assert runtime.run(RUN, handle, [np.float32(turn)]) == [4 * turn]
                runtime.release_handle(handle)
                options = InstantiateOptions(state_handle=f"{number}")
                mine = runtime.instantiate("Counter", {}, options)
                assert runtime.run(RUN, mine, []) == [0]
                runtime.release_handle(mine)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert not failures


def test_a_library_may_be_empty():
    runtime = FunctionLibraryRuntime(FunctionLibraryDefinition())
    assert not runtime.get_function_library_definition()
