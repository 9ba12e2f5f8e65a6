"""Traced functions on arrays: what they return, state, errors, threads, new kernels."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, TensorSpec, raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.opdef.common_shapes import unchanged_shape

ONES = np.ones(3, np.float32)


def test_results_are_the_callers_own() -> None:
    @opkernel.function
    def call(x: Any) -> Any:
        return x, opkernel.constant([1.0, 2.0]), x + 1

    argument = ONES.copy()
    first = call(argument)
    for result in first:
        result[:] = 7
    assert argument.tolist() == [1, 1, 1]
    second = call(argument)
    assert [result.tolist() for result in second] == [[1, 1, 1], [1, 2], [2, 2, 2]]


@pytest.mark.parametrize(
    "value",
    [
        np.array([b"a", b"\x00"], object),
        np.array([True]),
        np.array([1 + 2j], np.complex64),
        np.array([1.5, 2], opkernel.bfloat16.numpy_dtype),
        np.zeros((0, 3), np.int8),
        np.array([(1,)], opkernel.qint8.as_numpy_dtype),
    ],
)
def test_arrays_of_all_types_pass_through(value: Any) -> None:
    @opkernel.function
    def call(x: Any) -> Any:
        return {"same": x}

    for _ in range(2):
        found = call(value)["same"]
        assert found.dtype == value.dtype
        assert found.tolist() == value.tolist()


def test_arrays_in_any_layout_are_taken() -> None:
    call = opkernel.function(lambda x: x * 2)
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    for view in (base.T, base[::2], base[:, ::-1], np.asfortranarray(base)):
        np.testing.assert_array_equal(call(view), view * 2)
    big = np.arange(3, dtype=">f4")
    np.testing.assert_array_equal(call(big), big * 2)


def test_lists_and_numbers_are_python_values_unless_a_signature_says_tensors() -> None:
    double = opkernel.function(lambda x: x * 2)
    assert double(4) == 8
    assert double([1, 2])[:2] == [1, 2]  # a list of two, as Python doubles it
    double = opkernel.function(lambda x: x * 2, input_signature=[TensorSpec([None])])
    assert double([1, 2]).tolist() == [2, 4]


def test_handles_are_arguments_and_results() -> None:
    @opkernel.function
    def make(x: Any) -> Any:
        handle = raw_ops.VarHandleOp(dtype=x.dtype, shape=[3], shared_name="handed_on")
        raw_ops.AssignVariableOp(resource=handle, value=x)
        return handle

    @opkernel.function
    def read(handle: Any) -> Any:
        return raw_ops.ReadVariableOp(resource=handle, dtype=opkernel.float32)

    handle = make(ONES)
    assert read(handle).tolist() == [1, 1, 1]
    raw_ops.AssignAddVariableOp(resource=handle, value=ONES)
    assert read(handle).tolist() == [2, 2, 2]
    assert read.experimental_get_tracing_count() == 1


def test_a_failing_kernel_is_told_with_the_line_of_its_node() -> None:
    @opkernel.function
    def call(x: Any, i: Any) -> Any:
        y = x + 1
        return raw_ops.GatherV2(params=y, indices=i, axis=0, name="row")

    with pytest.raises(InvalidArgumentError, match="'row'") as caught:
        call(ONES, np.int32(9))
    line = call.python_function.__code__.co_firstlineno + 3
    assert caught.value.__notes__ == [f"'row' was made at {__file__}:{line}"]
    assert call(ONES, np.int32(0)) == 2


def test_a_failing_kernel_in_a_called_function_is_told() -> None:
    inner = opkernel.function(lambda x, i: raw_ops.GatherV2(params=x, indices=i, axis=0))
    outer = opkernel.function(lambda x, i: inner(x, i))
    with pytest.raises(InvalidArgumentError, match=r"indices.* = 9 is not in \[0, 3\)"):
        outer(ONES, np.int32(9))


def test_an_op_without_a_kernel_fails_when_it_is_run() -> None:
    opkernel.register_op(
        "FunctionCallsNoKernel", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
    )
    call = opkernel.function(lambda x: opkernel.graph.apply_op("FunctionCallsNoKernel", x=x))
    assert call.get_concrete_function(ONES).function_def.node_def[0].op == "FunctionCallsNoKernel"
    with pytest.raises(NotFoundError, match="FunctionCallsNoKernel"):
        call(ONES)


def test_a_kernel_that_is_registered_anew_counts_from_the_next_call() -> None:
    op = opkernel.register_op(
        "FunctionCallsEdited", inputs=["x: float"], outputs=["y: float"], shape_fn=unchanged_shape
    )

    def register(factor: float) -> None:
        @opkernel.register_kernel(op, device="CPU")
        def kernel(x: Any) -> Any:
            return np.float32(factor) * x

    register(2)
    inner = opkernel.function(lambda x: opkernel.graph.apply_op(op.name, x=x))
    outer = opkernel.function(lambda x: inner(x))
    assert (inner(ONES)[0], outer(ONES)[0]) == (2, 2)
    register(3)
    assert (inner(ONES)[0], outer(ONES)[0]) == (3, 3)


def test_one_function_on_many_threads_is_traced_once() -> None:
    traces = []
    barrier = threading.Barrier(8)

    @opkernel.function
    def inner(x: Any) -> Any:
        return x + 1

    @opkernel.function
    def call(x: Any) -> Any:
        traces.append(x)
        return inner(x) * 2

    def work(number: int) -> Any:
        barrier.wait()
        return [call(np.full(4, number + turn, np.float32))[0] for turn in range(50)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(8)))
    assert found == [[2 * (number + turn + 1) for turn in range(50)] for number in range(8)]
    assert len(traces) == 1


def test_functions_that_call_each_other_may_be_traced_on_two_threads() -> None:
    barrier = threading.Barrier(2, timeout=300)

    def meeting(other: list[Any]) -> Any:
        first = [True]

        def call(x: Any, depth: int) -> Any:
            if first and first.pop():
                threading.Event().wait(0.01)
            return x if depth == 0 else other[0](x, depth - 1) + 1

        return opkernel.function(call)

    one: list[Any] = []
    two: list[Any] = []
    one.append(meeting(two))
    two.append(meeting(one))

    def work(function: Any) -> Any:
        barrier.wait()
        return function(np.float32(0), 5)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, [one[0], two[0]])) == [5, 5]


def test_resources_of_a_step_end_with_the_call() -> None:
    @opkernel.function
    def call(x: Any) -> Any:
        array = raw_ops.TensorArrayV3(size=2, dtype=opkernel.float32, tensor_array_name="steps")
        flow = raw_ops.TensorArrayWriteV3(handle=array.handle, index=0, value=x, flow_in=array.flow)
        flow = raw_ops.TensorArrayWriteV3(handle=array.handle, index=1, value=x, flow_in=flow)
        return raw_ops.TensorArrayGatherV3(
            handle=array.handle, indices=[0, 1], flow_in=flow, dtype=opkernel.float32
        )

    for value in (1, 2):
        assert call(np.float32(value)).tolist() == [value, value]


def test_loops_of_tensorflow_1_run_in_a_function() -> None:
    @opkernel.function
    def call(n: Any) -> Any:
        entered = raw_ops.Enter(data=opkernel.constant(0), frame_name="f")
        limit, one = (
            raw_ops.Enter(data=value, frame_name="f", is_constant=True)
            for value in (n, opkernel.constant(1))
        )
        merge = raw_ops.Merge(inputs=[entered, entered])
        switch = raw_ops.Switch(
            data=merge.output, pred=raw_ops.LoopCond(input=merge.output < limit)
        )
        turn = raw_ops.NextIteration(data=switch.output_true + one)
        merge.output.op.update_input(1, turn)
        return raw_ops.Exit(data=switch.output_false)

    assert call(np.int32(7)) == 7


def test_a_function_and_a_session_agree() -> None:
    @opkernel.function
    def call(x: Any) -> Any:
        (y,) = opkernel.while_loop(lambda y: y[0] < 100, lambda y: y * x, [x])
        return y, opkernel.cond(y[1] > 50, lambda: y, lambda: -y)

    value = np.array([2, 3], np.float32)
    with Graph().as_default() as graph:
        x = opkernel.placeholder("float32", [None])
        results = call(x)
    with Session(graph) as session:
        for mine, theirs in zip(call(value), session.run(results, {x: value}), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_shapes_that_never_repeat_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opkernel.graph.tracing.function_tracing._MAX_KEPT", 8)
    call = opkernel.function(lambda x: x * 2, input_signature=[TensorSpec([None])])
    for size in range(40):
        assert call(np.ones(size, np.float32)).shape == (size,)
    assert call.experimental_get_tracing_count() == 1
    assert len(call._traces.quick) <= 8


def test_a_function_that_is_gone_leaves_nothing() -> None:
    def make() -> Any:
        call = opkernel.function(lambda x: x + np.ones(3, np.float32))
        call(ONES)
        return call.get_concrete_function(ONES)

    import weakref

    gone = weakref.ref(make().graph)
    gc.collect()
    assert gone() is None
