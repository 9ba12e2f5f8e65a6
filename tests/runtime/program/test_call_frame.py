"""FunctionCallFrame: arguments and results; `_Arg` and `_Retval` nodes that use one."""

import numpy as np
import pytest
from tests.graph.function_builders import ADD_AND_MUL, X_TIMES_TWO, graph_of, library_of

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import FunctionRunOptions
from opkernel.proto import AttrValue
from opkernel.runtime import FunctionCallFrame, FunctionLibraryRuntime, Session
from opkernel.types import float32, int32, qint8, string

X = np.array([1, 2], np.float32)


class TestVoidVoid:
    frame = FunctionCallFrame([], [])

    def test_has_nothing(self):
        assert (self.frame.num_args, self.frame.num_retvals) == (0, 0)
        self.frame.set_args([])
        assert self.frame.get_retvals() == self.frame.consume_retvals() == []

    def test_takes_nothing(self):
        with pytest.raises(InvalidArgumentError, match="Expects 0 arguments, but 1 is provided"):
            self.frame.set_args([X])
        with pytest.raises(InvalidArgumentError, match=r"GetArg 0 is not within \[0, 0\)"):
            self.frame.get_arg(0)
        with pytest.raises(InvalidArgumentError, match=r"SetRetval 0 is not within \[0, 0\)"):
            self.frame.set_retval(0, X)


class TestFloatFloatFloat:
    @pytest.fixture
    def frame(self):
        return FunctionCallFrame([float32, float32], [float32])

    def test_arguments(self, frame):
        with pytest.raises(InternalError, match=r"Arg\[0\] does not have value"):
            frame.get_arg(0)
        for args, message in (
            ([], "Expects 2 arguments, but 0 is provided"),
            ([X], "Expects 2 arguments, but 1 is provided"),
            ([X, np.int64(1)], r"Expects arg\[1\] to be float but int64 is provided"),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                frame.set_args(args)
        frame.set_args([X, X[:1]])
        assert frame.get_arg(0) is X
        assert frame.get_arg(1).tolist() == [1]
        for index in (-1, 2):
            with pytest.raises(
                InvalidArgumentError, match=rf"GetArg {index} is not within \[0, 2\)"
            ):
                frame.get_arg(index)

    def test_results(self, frame):
        for get in (frame.get_retvals, frame.consume_retvals):
            with pytest.raises(InternalError, match=r"Retval\[0\] does not have value"):
                get()
        for index, value, message in (
            (1, X, r"SetRetval 1 is not within \[0, 1\)"),
            (0, np.int64(1), r"Expects ret\[0\] to be float, but int64 is provided\."),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                frame.set_retval(index, value)
        frame.set_retval(0, X)
        with pytest.raises(InternalError, match=r"Retval\[0\] has already been set\."):
            frame.set_retval(0, X)
        assert frame.get_retvals()[0] is X

    def test_consuming_lets_go(self, frame):
        assert frame.consume_retvals(allow_dead_tensors=True) == [None]
        frame.set_retval(0, X)
        assert frame.consume_retvals()[0] is X
        with pytest.raises(InternalError, match="does not have value"):
            frame.get_retvals()


def test_types_are_those_of_arrays_inside():
    frame = FunctionCallFrame([qint8, string], [])
    frame.set_args([np.array([1], np.int8), np.array([b"x"], object)])
    with pytest.raises(InvalidArgumentError, match=r"Expects arg\[1\] to be string but float"):
        frame.set_args([np.array([1], np.int8), X])


class TestFunctionsWithFrames:
    @pytest.mark.parametrize("executor_type", ["", "DATAFLOW"])
    def test_take_arguments_from_them_and_give_results_to_them(self, executor_type):
        runtime = FunctionLibraryRuntime(library_of(ADD_AND_MUL), executor_type=executor_type)
        handle = runtime.instantiate("AddAndMul")
        for value in (3, 4):
            frame = FunctionCallFrame([float32], [float32])
            frame.set_args([np.float32(value)])
            runtime.run_with_frame(FunctionRunOptions(), handle, frame)
            assert frame.consume_retvals() == [value * value]

    def test_fail_where_the_frame_does_not_fit(self):
        runtime = FunctionLibraryRuntime(library_of(X_TIMES_TWO))
        handle = runtime.instantiate("XTimesTwo", {"T": AttrValue(type=float32)})
        with pytest.raises(InvalidArgumentError, match=r"GetArg 0 is not within \[0, 0\).*'x'"):
            runtime.run_with_frame(FunctionRunOptions(), handle, FunctionCallFrame([], [float32]))
        frame = FunctionCallFrame([int32], [float32])
        frame.set_args([np.int32(1)])
        with pytest.raises(InvalidArgumentError, match=r"actual int32 vs\. expect float"):
            runtime.run_with_frame(FunctionRunOptions(), handle, frame)


@pytest.mark.parametrize("executor_type", ["", "DATAFLOW"])
def test_a_session_has_no_arguments(executor_type):
    graph = graph_of(
        library_of(),
        "a = _Arg[T=float; index=0]()",
        "r = _Retval[T=float; index=0](x)",
        "x = Placeholder[dtype=float]()",
    )
    with Session(graph, executor_type=executor_type) as session:
        with pytest.raises(InvalidArgumentError, match=r"GetArg 0 is not within \[0, 0\).*'a'"):
            session.run("a:0")
        with pytest.raises(InvalidArgumentError, match=r"SetRetval 0 is not within \[0, 0\).*'r'"):
            session.run("r", {"x:0": 1.0})
        assert session.run("a:0", {"a:0": 2.0}) == 2
