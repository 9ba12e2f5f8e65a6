"""TensorArrays and stacks in programs; expected values are formulas."""

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.gradients import gradients
from opkernel.graph import cond, while_loop

pytestmark = pytest.mark.jax

VALUE = np.array([1.0, 2.0], np.float32)


def array(size, **attrs):
    return raw_ops.TensorArrayV3(size=np.int32(size), dtype="float", **attrs)


def all_of(handle, size, flow):
    indices = np.arange(size, dtype=np.int32)
    return raw_ops.TensorArrayGatherV3(handle=handle, indices=indices, flow_in=flow, dtype="float")


def test_elements_are_written_and_read():
    @opkernel.function(jit_compile=True)
    def run(x, index):
        handle, flow = array(3, element_shape=[2])
        flow = raw_ops.TensorArrayWriteV3(handle=handle, index=index, value=x, flow_in=flow)
        read = raw_ops.TensorArrayReadV3(handle=handle, index=index, flow_in=flow, dtype="float")
        size = raw_ops.TensorArraySizeV3(handle=handle, flow_in=flow)
        return read, size, all_of(handle, 3, flow)

    read, size, everything = run(VALUE, np.int32(1))
    np.testing.assert_array_equal(read, VALUE)
    assert size == 3
    np.testing.assert_array_equal(everything, [[0, 0], VALUE, [0, 0]])


def test_rows_and_pieces():
    @opkernel.function(jit_compile=True)
    def run(rows, indices, pieces):
        handle, flow = array(3)
        flow = raw_ops.TensorArrayScatterV3(
            handle=handle, indices=indices, value=rows, flow_in=flow
        )
        scattered = all_of(handle, 3, flow)
        handle, flow = array(3)
        flow = raw_ops.TensorArraySplitV3(
            handle=handle, value=pieces, lengths=np.array([2, 2, 2]), flow_in=flow
        )
        joined = raw_ops.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype="float")
        raw_ops.TensorArrayCloseV3(handle=handle)
        return scattered, all_of(handle, 3, flow), *joined

    rows, pieces = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(6, dtype=np.float32)
    scattered, split, joined, lengths = run(rows, np.array([2, 0, 1], np.int32), pieces)
    np.testing.assert_array_equal(scattered, rows[[1, 2, 0]])
    np.testing.assert_array_equal(split, pieces.reshape(3, 2))
    np.testing.assert_array_equal(joined, pieces)
    assert lengths.tolist() == [2, 2, 2]


def test_an_array_in_a_loop_and_in_a_branch():
    @opkernel.function(jit_compile=True)
    def run(x, n):
        handle, flow = array(4)  # only the loop tells the shape of its elements

        def turn(i, flow):
            value = x * raw_ops.Cast(x=i, DstT="float")
            flow = raw_ops.TensorArrayWriteV3(handle=handle, index=i, value=value, flow_in=flow)
            return i + np.int32(1), flow

        _, flow = while_loop(lambda i, _: raw_ops.Less(x=i, y=n), turn, [np.int32(0), flow])

        def overwritten():
            return raw_ops.TensorArrayWriteV3(
                handle=handle, index=np.int32(0), value=x, flow_in=flow
            )

        flow = cond(raw_ops.Greater(x=n, y=np.int32(2)), overwritten, lambda: flow)
        return all_of(handle, 4, flow)

    np.testing.assert_array_equal(run(VALUE, np.int32(2)), np.outer([0, 1, 0, 0], VALUE))
    np.testing.assert_array_equal(run(VALUE, np.int32(3)), np.outer([1, 1, 2, 0], VALUE))


def test_gradients_add_up():
    @opkernel.function(jit_compile=True)
    def run(x):
        handle, flow = array(2, element_shape=[2], clear_after_read=False)
        flow = raw_ops.TensorArrayWriteV3(handle=handle, index=np.int32(1), value=x, flow_in=flow)
        read = raw_ops.TensorArrayReadV3(
            handle=handle, index=np.int32(1), flow_in=flow, dtype="float"
        )
        everything = all_of(handle, 2, flow)
        loss = raw_ops.Sum(input=read * read, axis=[0]) + raw_ops.Sum(input=everything, axis=[0, 1])
        return gradients(loss, [x])[0]

    np.testing.assert_array_equal(run(VALUE), 2 * VALUE + 1)


def test_an_array_of_gradients_that_only_a_loop_makes():
    @opkernel.function(jit_compile=True)
    def run(x, n):
        handle, flow = array(2, element_shape=[2])

        def turn(i, flow):
            gradient, into = raw_ops.TensorArrayGradV3(handle=handle, flow_in=flow, source="g")
            flow = raw_ops.TensorArrayWriteV3(
                handle=gradient, index=np.int32(1), value=x, flow_in=into
            )
            return i + np.int32(1), flow

        _, flow = while_loop(lambda i, _: raw_ops.Less(x=i, y=n), turn, [np.int32(0), flow])
        gradient, _ = raw_ops.TensorArrayGradV3(handle=handle, flow_in=flow, source="g")
        return all_of(gradient, 2, flow)

    np.testing.assert_array_equal(run(VALUE, np.int32(3)), [[0, 0], 3 * VALUE])


def test_what_is_not_compiled():
    @opkernel.function(jit_compile=True)
    def growing():
        handle, flow = array(2, dynamic_size=True)
        return raw_ops.TensorArraySizeV3(handle=handle, flow_in=flow)

    @opkernel.function(jit_compile=True)
    def of_any_size(n):
        handle, flow = raw_ops.TensorArrayV3(size=n, dtype="float")
        return raw_ops.TensorArraySizeV3(handle=handle, flow_in=flow)

    @opkernel.function(jit_compile=True)
    def leaving():
        return array(2).handle

    @opkernel.function(jit_compile=True)
    def unbounded():
        return raw_ops.StackPopV2(
            handle=raw_ops.StackV2(max_size=np.int32(-1), elem_type="float"), elem_type="float"
        )

    with pytest.raises(InvalidArgumentError, match="must be a compile-time constant"):
        of_any_size(np.int32(2))
    with pytest.raises(InvalidArgumentError, match="cannot leave a compiled program"):
        leaving()
    with pytest.raises(InvalidArgumentError, match="needs a bound of the size of a stack"):
        unbounded()
    with pytest.raises(UnimplementedError, match="dynamic size"):
        growing()


def test_a_stack():
    @opkernel.function(jit_compile=True)
    def run(x, n):
        stack = raw_ops.StackV2(max_size=np.int32(5), elem_type="float")

        def push(i):
            value = x * raw_ops.Cast(x=i, DstT="float")
            raw_ops.StackPushV2(handle=stack, elem=value)
            return (i + np.int32(1),)

        (count,) = while_loop(lambda i: raw_ops.Less(x=i, y=n), push, [np.int32(0)])

        def pop(i, total):
            element = raw_ops.StackPopV2(handle=stack, elem_type="float")
            element = raw_ops.EnsureShape(input=element, shape=[2])
            return i - np.int32(1), total * np.float32(10) + element

        _, total = while_loop(
            lambda i, _: raw_ops.Greater(x=i, y=np.int32(0)), pop, [count, x * np.float32(0)]
        )
        raw_ops.StackCloseV2(handle=stack)
        return total

    np.testing.assert_array_equal(run(VALUE, np.int32(4)), 3210 * VALUE)
