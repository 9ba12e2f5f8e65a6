"""Nodes that send and receive: by hand, and where a graph's tensors change their memory."""

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.runtime.deadlines import error_at_deadline

from opkernel import Session, float32
from opkernel.errors import (
    AbortedError,
    CancelledError,
    InternalError,
    InvalidArgumentError,
)
from opkernel.graph import Graph
from opkernel.kernel import (
    AllocatorAttributes,
    CancellationManager,
    ContextParams,
    FrameAndIter,
    KernelRegistry,
    LocalRendezvous,
    OpKernel,
    RendezvousArgs,
    Step,
    create_key,
    parse_key,
    register_kernel,
)
from opkernel.runtime import ensure_memory_types
from opkernel.testing import run_op
from opkernel.types import DataType

CPU_0 = "/job:localhost/replica:0/task:0/device:CPU:0"
CPU_1 = "/job:localhost/replica:0/task:0/device:CPU:1"
GPU_0 = "/job:localhost/replica:0/task:0/device:GPU:0"
KEY_ATTRS = {
    "tensor_name": "t",
    "send_device": CPU_0,
    "send_device_incarnation": 7,
    "recv_device": CPU_1,
}
PAIRS = [("_Send", "_Recv"), ("_HostSend", "_HostRecv"), ("Send", "Recv")]
VALUE = np.array([1, 2], np.float32)
ROOT = FrameAndIter()


class AStep(Step):
    """A step with a rendezvous."""

    rendezvous: Any
    cancellation_manager: Any

    def __init__(self, **services):
        self.rendezvous = LocalRendezvous()
        self.__dict__.update(services)


def send(step, value=VALUE, op="_Send", params=None, **attrs):
    run_op(op, [value], attrs={**KEY_ATTRS, **attrs}, step=step, params=params)


def receive(step, op="_Recv", tensor_type=float32, params=None, **attrs):
    attrs = {**KEY_ATTRS, "tensor_type": tensor_type, **attrs}
    return run_op(op, attrs=attrs, step=step, params=params).outputs[0]


def key(frame_iter=ROOT):
    return parse_key(create_key(CPU_0, 7, CPU_1, "t", frame_iter))


def raised_by(function):
    """A thread that calls the function, and the list that gets what it raises."""
    errors = []

    def call():
        try:
            function()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread, errors


class TestTransfer:
    @pytest.mark.parametrize(("send_op", "receive_op"), PAIRS)
    def test_what_is_sent_is_received(self, send_op, receive_op):
        step = AStep()
        send(step, op=send_op)
        assert receive(step, op=receive_op) is VALUE

    def test_the_receiver_may_come_first(self):
        step = AStep()
        values = []
        thread = threading.Thread(target=lambda: values.append(receive(step)))
        thread.start()
        send(step)
        thread.join()
        assert values[0] is VALUE

    def test_tensors_come_in_the_order_in_which_they_were_sent(self):
        step = AStep()
        for number in range(3):
            send(step, np.float32(number))
        assert [receive(step) for _ in range(3)] == [0, 1, 2]

    def test_the_key(self):
        step = AStep()
        send(step)
        assert step.rendezvous.recv(key(), timeout_s=0) == (VALUE, False)

    def test_the_key_of_an_iteration(self):
        step = AStep()
        params = ContextParams(frame_iter=FrameAndIter(3, 4))
        send(step, params=params)
        assert step.rendezvous.recv(key(FrameAndIter(3, 4)), timeout_s=0) == (VALUE, False)
        step.rendezvous.send(key(FrameAndIter(3, 4)), RendezvousArgs(), VALUE, False)
        assert receive(step, params=params) is VALUE

    def test_a_copy_between_memories_is_of_one_call(self):
        rendezvous = LocalRendezvous()
        calls = [AStep(rendezvous=rendezvous, call_frame=SimpleNamespace()) for _ in range(2)]
        for number, step in enumerate(calls):
            send(step, np.float32(number), _hostmem_sendrecv=True)
        numbers = [receive(step, _hostmem_sendrecv=True) for step in reversed(calls)]
        assert numbers == [1, 0]

    def test_what_the_devices_must_know_goes_along(self):
        step = AStep()
        on_host = AllocatorAttributes(on_host=True)
        send(step, params=ContextParams(op_device_context="s", input_alloc_attrs=[on_host]))
        told = []
        step.rendezvous.recv_async(key(), RendezvousArgs(), lambda *result: told.append(result))
        assert told[0][1] == RendezvousArgs("s", on_host)


class TestDeadTensors:
    def test_a_dead_input_is_sent_as_dead(self):
        step = AStep()
        send(step, params=ContextParams(is_input_dead=True))
        assert step.rendezvous.recv(key(), timeout_s=0)[1] is True

    def test_a_dead_tensor_leaves_the_output_unset(self):
        step = AStep()
        step.rendezvous.send(key(), RendezvousArgs(), None, True)
        assert receive(step, params=ContextParams(outputs_required=[False])) is None


class TestErrors:
    @pytest.mark.parametrize("node", [send, receive])
    def test_without_a_rendezvous(self, node):
        with pytest.raises(InternalError, match="needs to provide a rendezvous"):
            node(Step())

    @pytest.mark.parametrize("node", [send, receive])
    def test_a_device_that_is_none(self, node):
        with pytest.raises(InvalidArgumentError, match="Invalid  rendezvous key: here;"):
            node(AStep(), send_device="here")

    def test_a_tensor_of_another_type(self):
        step = AStep()
        send(step, np.int32(1))
        with pytest.raises(InternalError, match="output 0 must be float, the kernel set int32"):
            receive(step)

    @pytest.mark.parametrize("node", [send, receive])
    def test_after_an_abort(self, node):
        step = AStep()
        step.rendezvous.start_abort(AbortedError("the peer is gone"))
        with pytest.raises(AbortedError, match="the peer is gone"):
            node(step)

    def test_cancellation_ends_the_wait(self):
        step = AStep(cancellation_manager=CancellationManager())
        thread, errors = raised_by(lambda: receive(step))
        step.cancellation_manager.start_cancel()
        thread.join()
        assert isinstance(errors[0], CancelledError)

    def test_the_time_of_a_session_step_is_limited(self):
        graph = Graph()
        graph.create_op("_Recv", name="r", attrs={**KEY_ATTRS, "tensor_type": float32})
        with Session(graph) as session:
            error_at_deadline(lambda options: session.run("r:0", options=options), "_Recv")


@pytest.fixture
def gpu_kernels():
    """As if there were a GPU on which AddV2 reads `y`, and Neg writes, in host memory."""
    registry = KernelRegistry()
    for name, host in (
        ("AddV2", ["y"]),
        ("Neg", ["y"]),
        ("Placeholder", []),
        ("Switch", []),
        ("_Send", []),
        ("_Recv", []),
        ("_HostSend", ["tensor"]),
        ("_HostRecv", ["tensor"]),
    ):
        register_kernel(name, device="GPU", host_memory=host, registry=registry)(OpKernel)
    return registry


def arithmetic():
    """x + -x + x: x is in device memory and wanted in host memory, -x the other way round."""
    graph = Graph()
    attrs = {"dtype": float32, "shape": [2]}
    x = graph.create_op("Placeholder", name="x", attrs=attrs).outputs[0]
    negative = graph.create_op("Neg", [x], name="neg").outputs[0]
    zero = graph.create_op("AddV2", [negative, x], name="zero").outputs[0]
    graph.create_op("AddV2", [zero, x], name="sum")
    return graph


def conditional():
    """x + x on the side of a Switch that the predicate chooses."""
    graph = Graph()
    x, predicate = (
        graph.create_op("Placeholder", name=name, attrs={"dtype": dtype, "shape": shape}).outputs[0]
        for name, dtype, shape in (("x", float32, [2]), ("p", DataType.DT_BOOL, []))
    )
    switch = graph.create_op("Switch", [x, predicate], name="switch")
    for index, name in enumerate(("otherwise", "then")):
        side = switch.outputs[index]
        graph.create_op("AddV2", [side, side], name=name)
    return graph


class TestCopiesBetweenMemories:
    def test_the_graph_computes_the_same(self, gpu_kernels):
        graph = arithmetic()
        ensure_memory_types("GPU", GPU_0, graph, registry=gpu_kernels)
        types = sorted(op.type for op in graph.get_operations() if op.type.startswith("_"))
        assert types == ["_HostRecv", "_HostSend", "_Recv", "_Send"]
        with Session(graph) as session, Session(arithmetic()) as plain:
            for value in ([1, 2], [3, 4]):
                expected = plain.run(["neg:0", "sum:0"], {"x:0": value})
                np.testing.assert_array_equal(
                    session.run(["neg:0", "sum:0"], {"x:0": value}), expected
                )

    def test_steps_at_the_same_time_do_not_mix_their_tensors(self, gpu_kernels):
        graph = arithmetic()
        ensure_memory_types("GPU", GPU_0, graph, registry=gpu_kernels)
        sums: list[float] = []

        def run(number):
            sums.extend(session.run("sum:0", {"x:0": [number, 1]}) - [number, 1] for _ in range(20))

        with Session(graph) as session:
            threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(sums) == 80
        assert not np.any(sums)

    def test_on_a_branch_that_is_not_taken(self, gpu_kernels):
        graph = conditional()
        ensure_memory_types("GPU", GPU_0, graph, registry=gpu_kernels)
        with Session(graph) as session:
            assert session.run("then:0", {"x:0": [1, 2], "p:0": True}).tolist() == [2, 4]
            with pytest.raises(InvalidArgumentError, match="on a branch that was not taken"):
                session.run("then:0", {"x:0": [1, 2], "p:0": False})
