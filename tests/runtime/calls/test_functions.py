"""Functions that are instantiated, run by their handles, and released.

After TensorFlow's core/common_runtime/function_test.cc.
"""

import numpy as np
import pytest
from tests.graph.function_builders import (
    ADD_AND_MUL,
    X_TIMES_16,
    X_TIMES_FOUR,
    X_TIMES_TWO,
    attr_value,
    define,
    graph_of,
    library_of,
)
from tests.runtime.function_kernels import COUNTER, FLOAT, RUN, TIMES, X, noted, run, runtime_of

import opkernel
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel import InstantiateOptions
from opkernel.proto import AttrValue
from opkernel.runtime import FunctionCallFrame, FunctionLibraryRuntime
from opkernel.runtime.calls.function_library_runtime import CalledFunctions
from opkernel.runtime.program.run_step import RunStep
from opkernel.types import DataType


class TestRun:
    def test_nested_functions(self):
        runtime = runtime_of(*TIMES)
        for name, factor in (("XTimesTwo", 2), ("XTimesFour", 4), ("XTimes16", 16)):
            (y,) = run(runtime, name, FLOAT, X)
            np.testing.assert_array_equal(y, X * factor)

    def test_one_body_for_each_signature(self):
        runtime = runtime_of(*TIMES)
        for dtype in (np.float64, np.int32, np.complex64):
            attrs = {"T": AttrValue(type=opkernel.types.as_dtype(dtype))}
            (y,) = run(runtime, "XTimesFour", attrs, X.astype(dtype))
            assert y.dtype == dtype
            np.testing.assert_array_equal(y, X * 4)

    def test_w_x_plus_b(self):
        function = define(
            "WXPlusB(w: T, x: T, b: T) -> (y: T)",
            ["wx = MatMul[T=$T; transpose_a=false; transpose_b=false](w, x)",
             "y = Add[T=$T](wx:product:0, b)"],
            "T: type",
            y="y:z:0",
        )  # fmt: skip
        w = np.array([[1, 2], [3, 4]], np.float32)
        x = np.array([[1, 3], [2, 4]], np.float32)
        b = np.array([0.5, 2.5], np.float32)
        (y,) = run(runtime_of(function), "WXPlusB", FLOAT, w, x, b)
        assert y.tolist() == [[5.5, 13.5], [11.5, 27.5]]

    def test_lists_of_arguments_and_results_are_flat(self):
        function = define(
            "F(x: N * T, l: list(L)) -> (y: T, x: N * T, l: list(L))",
            ["sum = AddN[N=$N; T=$T](x)"],
            "T: type; N: int; L: list(type)",
            y="sum:sum:0", x="x", l="l",
        )  # fmt: skip
        attrs = {"N": attr_value("3"), "L": attr_value("{int32, float}"), **FLOAT}
        args = [*(np.float32(i) for i in (1, 2, 3)), np.int32(4), np.float32(5)]
        results = run(runtime_of(function), "F", attrs, *args)
        assert [float(result) for result in results] == [6, 1, 2, 3, 4, 5]

    def test_functions_as_attrs_of_functions(self):
        function = define(
            "Twice(x: float) -> (y: float)",
            [
                "a = FunctionsTestMap[T=float; f=$f](x)",
                "b = FunctionsTestMap[T=float; f=$f](a:y:0)",
            ],
            "f: func",
            y="b:y:0",
        )
        attrs = {"f": attr_value("XTimesFour[T=float]")}
        (y,) = run(runtime_of(function, *TIMES), "Twice", attrs, X)
        np.testing.assert_array_equal(y, X * 16)

    def test_order_of_control_edges(self):
        function = define(
            "F(x: float) -> ()",
            ["a = FunctionsTestNote[T=float; to='order'](y:z:0) @ b",
             "b = FunctionsTestNote[T=float; to='order'](x)",
             "y = Add[T=float](x, x)"],
        )  # fmt: skip
        noted.clear()
        assert run(runtime_of(function), "F", {}, np.float32(1)) == []
        assert noted["order"] == [1, 2]

    def test_many_swaps(self):
        swap = define("Swap(i0: T, i1: T) -> (o0: T, o1: T)", attrs="T: type", o0="i1", o1="i0")
        lines = ["n0 = Swap[T=float](x, y)"]
        lines += [f"n{i} = Swap[T=float](n{i - 1}:o0:0, n{i - 1}:o1:0)" for i in range(1, 5)]
        many = define("Many(x: float, y: float) -> (o: float)", lines, o="n4:o0:0")
        assert run(runtime_of(swap, many), "Many", {}, np.float32(1), np.float32(2)) == [2]

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            ([], "Expects 1 arguments, but 0 is provided"),
            ([X, X], "Expects 1 arguments, but 2 is provided"),
            ([X.astype(np.int64)], r"Expects arg\[0\] to be float but int64 is provided"),
            ([[1.0]], r"Expects arg\[0\] to be float but list is provided"),
        ],
    )
    def test_arguments_are_checked(self, args, message):
        with pytest.raises(InvalidArgumentError, match=message):
            run(runtime_of(*TIMES), "XTimesTwo", FLOAT, *args)

    def test_an_error_names_the_node_in_the_function(self):
        function = define(
            "F(x: float, y: float) -> (z: float)", ["sum = Add[T=float](x, y)"], z="sum:z:0"
        )
        with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes.*'sum'"):
            run(runtime_of(function), "F", {}, X, X[:3])


class TestPruning:
    def test_dead_nodes_do_not_run_stateful_ones_do(self):
        noted.clear()
        function = define(
            "F(x: float, unused: float) -> (z: float)",
            ["bad = MatMul[T=float; transpose_a=false; transpose_b=false](unused, unused)",
             "keep = FunctionsTestNote[T=float; to='kept'](x)",
             "z = Square[T=float](x)"],
            z="z:y:0",
        )  # fmt: skip
        (z,) = run(runtime_of(function), "F", {}, np.float32(3), np.float32(np.nan))
        assert (z, noted) == (9, {"kept": [3]})

    def test_control_outputs_run(self):
        function = define(
            "F(x: float) -> (z: float)",
            ["product = MatMul[T=float; transpose_a=false; transpose_b=false](x, x)",
             "z = ZerosLike[T=float](x)"],
            controls="done=product",
            z="z:y:0",
        )  # fmt: skip
        runtime = runtime_of(function, ADD_AND_MUL)
        assert run(runtime, "AddAndMul", {}, np.float32(1.25)) == [1.5625]
        with pytest.raises(InvalidArgumentError, match="'product'"):
            run(runtime, "F", {}, np.float32(np.nan))


class TestInstantiate:
    def test_equal_names_attrs_and_options_have_one_handle(self):
        runtime = runtime_of(*TIMES)
        one = runtime.instantiate("XTimesTwo", {"a": attr_value("1"), **FLOAT})
        assert runtime.instantiate("XTimesTwo", {**FLOAT, "a": attr_value("1")}) is one
        assert runtime.instantiate("XTimesTwo", FLOAT) is not one
        double = {"T": attr_value("double")}
        assert runtime.instantiate("XTimesTwo", double) is not runtime.instantiate(
            "XTimesTwo", FLOAT
        )
        options = InstantiateOptions(executor_type="DATAFLOW")
        other = runtime.instantiate("XTimesTwo", FLOAT, options)
        assert other is runtime.instantiate("XTimesTwo", FLOAT, options)
        assert other is not runtime.instantiate("XTimesTwo", FLOAT)

    def test_plans_and_kernels_have_the_handles_of_users(self):
        library = library_of(*TIMES)
        graph = graph_of(library, "x = Placeholder[dtype=float]()", "y = XTimesTwo[T=float](x)")
        runtime = FunctionLibraryRuntime(library)
        function = CalledFunctions(runtime).function_of(graph.get_operation_by_name("y"))
        assert function is runtime.instantiate("XTimesTwo", FLOAT)

    def test_unknown_functions_are_not_found(self):
        with pytest.raises(NotFoundError, match=r"Function Foo is not defined\."):
            runtime_of(*TIMES).instantiate("Foo", FLOAT)

    def test_broken_functions_are_refused_callers_when_they_run(self):
        broken = define(
            "XTimesTwo(x: T) -> (y: T)", ["y = Add[no_T=$T](x, x)"], "T: type", y="y:z:0"
        )
        runtime = runtime_of(broken, X_TIMES_FOUR, X_TIMES_16)
        with pytest.raises(NotFoundError, match="type attr not found"):
            runtime.instantiate("XTimesTwo", FLOAT)
        handle = runtime.instantiate("XTimes16", FLOAT)
        with pytest.raises(NotFoundError, match="type attr not found"):
            runtime.run(RUN, handle, [X])
        with pytest.raises(NotFoundError, match="Attr T is not found"):
            runtime.instantiate("XTimesFour", {})

    def test_a_node_with_inputs_of_two_frames_is_refused(self):
        function = define(
            "F(i: int32) -> (o: int32)",
            ["enter = Enter[T=int32; frame_name='while'](i)",
             "add = Add[T=int32](enter:output:0, i)"],
            o="add:z:0",
        )  # fmt: skip
        with pytest.raises(
            InvalidArgumentError,
            match=r"{{node add}} has inputs from different frames. The input {{node enter}} is in "
            r"frame 'while'. The input {{node i}} is in frame ''.",
        ):
            run(runtime_of(function), "F", {}, np.int32(0))

    def test_kernels_may_be_made_at_once(self):
        runtime = runtime_of(define("F() -> ()"))
        options = InstantiateOptions(create_kernels_eagerly=True, executor_type="Nope")
        runtime.instantiate("F", {}, InstantiateOptions(executor_type="Nope"))
        with pytest.raises(NotFoundError, match="Nope"):
            runtime.instantiate("F", {}, options)

    def test_what_is_known_of_a_handle(self):
        runtime = runtime_of(*TIMES)
        handle = runtime.instantiate("XTimesTwo", FLOAT)
        body = runtime.get_function_body(handle)
        assert [op.name for op in body.arg_nodes + body.ret_nodes] == ["x", "y_RetVal"]
        assert runtime.get_ret_types(handle) == (DataType.DT_FLOAT,)
        assert "y = Mul[T=float](x, scale)" in runtime.debug_string(handle)

    def test_is_stateful(self):
        stateful = define("S() -> ()")
        stateful.signature.is_stateful = True
        runtime = runtime_of(stateful, *TIMES)
        assert runtime.is_stateful("S")
        assert runtime.is_stateful("VarHandleOp")
        assert not runtime.is_stateful("XTimesTwo")
        assert not runtime.is_stateful("Foo")

    def test_a_clone_has_functions_and_state_of_its_own(self):
        runtime = runtime_of(COUNTER)
        assert run(runtime, "Counter", {}) == [0]
        clone = runtime.clone()
        assert run(clone, "Counter", {}) == [0]
        assert run(runtime, "Counter", {}) == [1]
        clone.get_function_library_definition().add_function(X_TIMES_TWO)
        assert "XTimesTwo" not in runtime.get_function_library_definition()
        assert len(runtime.clone(skip_library=True).get_function_library_definition()) == 0

    def test_a_function_that_is_defined_anew_is_instantiated_anew(self):
        library = library_of(X_TIMES_TWO)
        runtime = FunctionLibraryRuntime(library)
        old = runtime.instantiate("XTimesTwo", FLOAT)
        library.remove_function("XTimesTwo")
        library.add_function(define("XTimesTwo(x: T) -> (y: T)", attrs="T: type", y="x"))
        assert run(runtime, "XTimesTwo", FLOAT, np.float32(3)) == [3]
        assert runtime.run(RUN, old, [np.float32(3)]) == [6]


class TestState:
    def test_equal_state_handles_share_state_others_start_again(self):
        runtime = runtime_of(COUNTER)
        first = runtime.instantiate("Counter")
        assert [runtime.run(RUN, first, []) for _ in range(2)] == [[0], [1]]
        again = runtime.instantiate("Counter")
        assert again is first
        assert runtime.run(RUN, again, []) == [2]
        for name in ("handle_1", "handle_2"):
            options = InstantiateOptions(state_handle=name)
            isolated = runtime.instantiate("Counter", {}, options)
            assert isolated is not first
            assert isolated is runtime.instantiate("Counter", {}, options)
            assert [runtime.run(RUN, isolated, []) for _ in range(3)] == [[0], [1], [2]]
        assert runtime.run(RUN, first, []) == [3]

    def test_called_functions_have_the_state_of_their_caller(self):
        caller = define("Caller() -> (n: int32)", ["n = Counter()"], n="n:n:0")
        runtime = runtime_of(COUNTER, caller)
        assert [run(runtime, "Caller", {}) for _ in range(2)] == [[0], [1]]
        options = InstantiateOptions(state_handle="mine")
        handle = runtime.instantiate("Caller", {}, options)
        assert [runtime.run(RUN, handle, []) for _ in range(2)] == [[0], [1]]
        assert run(runtime, "Counter", {}) == [2]

    def test_a_released_handle_is_not_found(self):
        runtime = runtime_of(COUNTER)
        handle = runtime.instantiate("Counter")
        assert runtime.instantiate("Counter") is handle
        runtime.release_handle(handle)
        assert runtime.run(RUN, handle, []) == [0]
        runtime.release_handle(handle)
        for refused in (
            lambda: runtime.run(RUN, handle, []),
            lambda: runtime.run_with_frame(RUN, handle, FunctionCallFrame([], [DataType.DT_INT32])),
            lambda: runtime.release_handle(handle),
            lambda: runtime.get_function_body(handle),
            lambda: handle(RunStep()),
        ):
            with pytest.raises(NotFoundError, match=rf"Handle {handle.number} not found"):
                refused()

    def test_state_goes_with_the_last_release(self):
        runtime = runtime_of(COUNTER)
        options = InstantiateOptions(state_handle="handle_3")
        for _ in range(2):
            handle = runtime.instantiate("Counter", {}, options)
            assert [runtime.run(RUN, handle, []) for _ in range(2)] == [[0], [1]]
            runtime.release_handle(handle)


class TestStepsThatCanBeStopped:
    def test_they_share_the_state_of_other_steps(self):
        runtime = runtime_of(COUNTER)
        assert run(runtime, "Counter", {}) == [0]
        stoppable = runtime.for_steps("stoppable")
        assert stoppable.instantiate("Counter") is not runtime.instantiate("Counter")
        assert run(stoppable, "Counter", {}) == [1]
        assert run(runtime, "Counter", {}) == [2]

    def test_state_handles_count_in_them(self):
        runtime, options = runtime_of(COUNTER), InstantiateOptions(state_handle="mine")
        assert run(runtime, "Counter", {}) == [0]
        stoppable = runtime.for_steps("stoppable")
        assert run(stoppable, "Counter", {}, options=options) == [0]
        assert run(runtime, "Counter", {}, options=options) == [1]
        assert run(stoppable, "Counter", {}) == [1]

    def test_a_function_goes_with_its_last_handle_of_all_steps(self):
        runtime = runtime_of(COUNTER)
        first, second = (
            one.instantiate("Counter") for one in (runtime, runtime.for_steps("stoppable"))
        )
        runtime.release_handle(second)
        assert runtime.run(RUN, first, []) == [0]
        assert runtime.run(RUN, second, []) == [1]
        runtime.release_handle(first)
        for released in (first, second):
            with pytest.raises(NotFoundError, match="it was released"):
                runtime.run(RUN, released, [])

    def test_kernels_may_instantiate_and_release_a_function_in_each_of_them(self):
        graph = graph_of(
            library_of(*TIMES),
            "x = Placeholder[dtype=float]()",
            "y = FunctionsTestMap[T=float; f=XTimesTwo[T=float]](x)",
        )
        config = opkernel.SessionConfig(operation_timeout_in_ms=60_000)
        with opkernel.Session(graph, config=config) as session:
            for _ in range(3):
                assert session.run("y:0", {"x:0": 3.0}) == 6

    def test_a_clone_in_them_has_functions_of_its_own(self):
        stoppable = runtime_of(COUNTER).for_steps("stoppable")
        assert run(stoppable, "Counter", {}) == [0]
        assert run(stoppable.clone(), "Counter", {}) == [0]
