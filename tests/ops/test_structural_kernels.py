"""Kernels of the ops that the runtime executes itself: what they declare, and what they compute."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkernel.errors import InternalError, InvalidArgumentError, OpError, UnimplementedError
from opkernel.kernel import (
    LocalRendezvous,
    OpKernel,
    OpKernelContext,
    Step,
    create_op_kernel,
    get_registered_kernels_for_op,
)
from opkernel.kernel.context.inputs import ContextParams, FrameAndIter, TensorRef
from opkernel.opdef import NodeDefBuilder, global_op_registry
from opkernel.proto import AttrValue, KernelDef
from opkernel.runtime import CPU, execute
from opkernel.types import DataType

FLOAT = DataType.DT_FLOAT
OPS = [
    *("Switch", "RefSwitch", "_SwitchN", "Merge", "RefMerge", "Enter", "RefEnter", "Exit"),
    *("RefExit", "NextIteration", "RefNextIteration", "LoopCond", "NoOp", "ControlTrigger"),
    *("If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"),
    *("PartitionedCall", "StatefulPartitionedCall"),
    *("_Arg", "_Retval", "_DeviceArg", "_DeviceRetval"),
    *("_Send", "_Recv", "_HostSend", "_HostRecv"),
]
Declared = set[tuple[str, int | None, frozenset[str]]]


@pytest.fixture(scope="module")
def of_tensorflow(shared: Path) -> dict[str, Declared]:
    """For each op the device, type and host memory of each kernel, on CPU and DEFAULT."""
    found: dict[str, Declared] = defaultdict(set)
    for file in ("tf_kernels_cpu.jsonl", "tf_kernels_other.jsonl"):
        for kernel in map(json.loads, (shared / "facts" / file).read_text().splitlines()):
            if kernel["device_type"] not in ("CPU", "DEFAULT"):
                continue
            types = [t for c in kernel["constraint"] for t in c.get("type", ())]
            host = frozenset(kernel["host_memory_arg"])
            numbers: list[int | None] = [int(getattr(DataType, t)) for t in types]
            for number in numbers or [None]:
                found[kernel["op"]].add((kernel["device_type"], number, host))
    return found


def declared(kernel: KernelDef) -> Declared:
    numbers: list[int | None] = [t for c in kernel.constraint for t in c.allowed_values.list.type]
    host = frozenset(kernel.host_memory_arg)
    return {(kernel.device_type, number, host) for number in numbers or [None]}


@pytest.mark.shared
@pytest.mark.parametrize("op", OPS)
def test_types_and_memory_are_those_of_tensorflow(
    op: str, of_tensorflow: dict[str, Declared]
) -> None:
    ours = get_registered_kernels_for_op(op).kernel
    assert set().union(*map(declared, ours)) == of_tensorflow[op]


def kernel_of(op: str, inputs: list[DataType], **attrs: AttrValue) -> OpKernel:
    builder = NodeDefBuilder("n", op, global_op_registry())
    if op.endswith("Merge"):
        builder.input_list([("x", i, dtype) for i, dtype in enumerate(inputs)])
    else:
        for i, dtype in enumerate(inputs):
            builder.input("x", i, dtype)
    for name, value in attrs.items():
        builder.attr(name, value)
    return create_op_kernel(CPU, builder.finalize())


def outputs(kernel: OpKernel, *inputs: Any, step: Step | None = None, **params: Any) -> list[Any]:
    """The outputs that the kernel sets, None for the others."""
    required = [False] * kernel.num_outputs
    context_params = ContextParams(outputs_required=required, **params)
    return OpKernelContext(kernel, inputs, step or Step(), context_params).run()


def step_with(**services: Any) -> Step:
    """A step that offers some services."""
    step = Step()
    for name, service in services.items():
        setattr(step, name, service)
    return step


class TestSwitch:
    @pytest.mark.parametrize(("pred", "expected"), [(False, [5.0, None]), (True, [None, 5.0])])
    def test_the_output_that_is_chosen(self, pred: bool, expected: list[Any]) -> None:
        kernel = kernel_of("Switch", [FLOAT, DataType.DT_BOOL])
        assert outputs(kernel, np.float32(5), np.bool_(pred)) == expected

    def test_references(self) -> None:
        kernel = kernel_of("RefSwitch", [DataType.DT_FLOAT_REF, DataType.DT_BOOL])
        ref = TensorRef(np.float32(5))
        assert outputs(kernel, ref, np.bool_(True)) == [None, ref]

    def test_the_predicate_is_a_scalar(self) -> None:
        kernel = kernel_of("Switch", [FLOAT, DataType.DT_BOOL])
        with pytest.raises(InvalidArgumentError, match=r"must be a scalar, but it has shape \[1\]"):
            outputs(kernel, np.float32(5), np.array([True]))

    @pytest.mark.parametrize(("index", "chosen"), [(0, 0), (2, 2), (3, 2), (-1, 2)])
    def test_of_n(self, index: int, chosen: int) -> None:
        kernel = kernel_of("_SwitchN", [FLOAT, DataType.DT_INT32], num_outs=AttrValue(i=3))
        expected = [5.0 if i == chosen else None for i in range(3)]
        assert outputs(kernel, np.float32(5), np.int32(index)) == expected

    def test_the_index_is_a_scalar(self) -> None:
        kernel = kernel_of("_SwitchN", [FLOAT, DataType.DT_INT32], num_outs=AttrValue(i=3))
        with pytest.raises(InvalidArgumentError, match=r"must be a scalar, but it has shape \[2\]"):
            outputs(kernel, np.float32(5), np.int32([0, 1]))


class TestMerge:
    @pytest.mark.parametrize(
        ("inputs", "expected"),
        [
            ([None, np.float32(5)], [5.0, 1]),
            ([np.float32(4), None], [4.0, 0]),
            ([np.float32(4), np.float32(5)], [4.0, 0]),
            ([None, None], [None, None]),
        ],
    )
    def test_the_first_that_is_alive(self, inputs: list[Any], expected: list[Any]) -> None:
        assert outputs(kernel_of("Merge", [FLOAT, FLOAT]), *inputs) == expected

    def test_references(self) -> None:
        ref = TensorRef(np.float32(5))
        kernel = kernel_of("RefMerge", [DataType.DT_FLOAT_REF] * 2)
        assert outputs(kernel, None, ref) == [ref, 1]


class TestPassingOn:
    @pytest.mark.parametrize(
        ("op", "inputs"),
        [
            ("Enter", {"data": np.float32(5)}),
            ("Exit", {"data": np.float32(5)}),
            ("NextIteration", {"data": np.float32(5)}),
            ("LoopCond", {"input": np.bool_(True)}),
        ],
    )
    def test_eager_calls(self, op: str, inputs: dict[str, Any]) -> None:
        attrs = {"frame_name": "f"} if op == "Enter" else {}
        assert execute(op, inputs, attrs) == next(iter(inputs.values()))

    @pytest.mark.parametrize("op", ["RefEnter", "RefExit", "RefNextIteration"])
    def test_references(self, op: str) -> None:
        attrs = {"frame_name": AttrValue(s=b"f")} if op == "RefEnter" else {}
        ref = TensorRef(np.float32(5))
        assert outputs(kernel_of(op, [DataType.DT_FLOAT_REF], **attrs), ref) == [ref]

    def test_control_trigger(self) -> None:
        assert execute("ControlTrigger", {}, {}) is None


def test_ops_that_call_functions_are_run_by_the_executor() -> None:
    with pytest.raises(UnimplementedError, match="If is run by the executor"):
        execute(
            "If",
            {"cond": True, "input": [1.0]},
            {"Tout": [FLOAT], "then_branch": "f", "else_branch": "g"},
        )


class Frame:
    """The call frame of a function of one argument and one result."""

    def __init__(self, argument: Any) -> None:
        self.argument = argument
        self.results: dict[int, Any] = {}

    def get_arg(self, index: int) -> Any:
        return self.argument if index == 0 else None

    def set_retval(self, index: int, value: Any) -> None:
        self.results[index] = value


class TestFunctionEnds:
    def attrs(self, index: int) -> dict[str, AttrValue]:
        return {"T": AttrValue(type=FLOAT), "index": AttrValue(i=index)}

    def test_argument_and_result(self) -> None:
        frame = Frame(np.float32(5))
        step = step_with(call_frame=frame)
        assert outputs(kernel_of("_Arg", [], **self.attrs(0)), step=step) == [5.0]
        outputs(kernel_of("_Retval", [FLOAT], **self.attrs(2)), np.float32(6), step=step)
        assert frame.results == {2: 6.0}

    def test_outside_of_a_function(self) -> None:
        with pytest.raises(InternalError, match="no call frame"):
            outputs(kernel_of("_Arg", [], **self.attrs(0)))


class TestSendAndReceive:
    def pair(self, host: str = "", **attrs: AttrValue) -> tuple[OpKernel, OpKernel]:
        device = b"/job:localhost/replica:0/task:0/device:CPU:0"
        shared = {
            "tensor_name": AttrValue(s=b"t"),
            "send_device": AttrValue(s=device),
            "send_device_incarnation": AttrValue(i=1),
            "recv_device": AttrValue(s=device),
            **attrs,
        }
        types = {"tensor_type": AttrValue(type=FLOAT)}
        return (
            kernel_of(f"_{host}Send", [FLOAT], **shared),
            kernel_of(f"_{host}Recv", [], **types, **shared),
        )

    @pytest.mark.parametrize("host", ["", "Host"])
    def test_what_is_sent_is_received(self, host: str) -> None:
        send, receive = self.pair(host)
        step = step_with(rendezvous=LocalRendezvous())
        outputs(send, np.float32(5), step=step)
        assert outputs(receive, step=step) == [5.0]
        assert (send.as_async(), receive.as_async()) == (None, receive)

    def test_the_receiver_waits(self) -> None:
        send, receive = self.pair()
        step = step_with(rendezvous=LocalRendezvous())
        ctx = OpKernelContext(receive, [], step)
        done: list[bool] = []
        kernel = receive.as_async()
        assert kernel is not None
        kernel.start(ctx, lambda: done.append(True))
        assert done == []
        outputs(send, np.float32(5), step=step)
        assert done == [True]
        assert ctx.finish() == [5.0]

    def test_dead_tensors(self) -> None:
        send, receive = self.pair()
        step = step_with(rendezvous=LocalRendezvous())
        outputs(send, None, step=step, is_input_dead=True)
        assert outputs(receive, step=step) == [None]

    def test_iterations_are_told_apart(self) -> None:
        send, receive = self.pair()
        step = step_with(rendezvous=LocalRendezvous())
        for i in (1, 0):
            outputs(send, np.float32(i), step=step, frame_iter=FrameAndIter(7, i))
        for i in (0, 1):
            assert outputs(receive, step=step, frame_iter=FrameAndIter(7, i)) == [float(i)]

    def test_copies_between_memories_belong_to_their_call(self) -> None:
        send, receive = self.pair(_hostmem_sendrecv=AttrValue(b=True))
        rendezvous = LocalRendezvous()
        calls = [step_with(rendezvous=rendezvous, call_frame=Frame(None)) for _ in range(2)]
        for value, step in enumerate(calls):
            outputs(send, np.float32(value), step=step)
        for value, step in reversed(list(enumerate(calls))):
            assert outputs(receive, step=step) == [float(value)]

    def test_an_aborted_rendezvous(self) -> None:
        send, receive = self.pair()
        step = step_with(rendezvous=LocalRendezvous())
        assert step.rendezvous is not None
        step.rendezvous.start_abort(OpError("stop"))
        with pytest.raises(OpError, match="stop"):
            outputs(send, np.float32(5), step=step)
        with pytest.raises(OpError, match="stop"):
            outputs(receive, step=step)

    def test_the_wrong_type(self) -> None:
        _, receive = self.pair()
        send, _ = self.pair()
        step = step_with(rendezvous=LocalRendezvous())
        outputs(send, np.float64(5), step=step)
        with pytest.raises(InternalError, match="output 0 must be float"):
            outputs(receive, step=step)

    def test_without_a_rendezvous(self) -> None:
        send, receive = self.pair()
        with pytest.raises(InternalError, match="needs to provide a rendezvous"):
            outputs(send, np.float32(5))
        with pytest.raises(InternalError, match="needs to provide a rendezvous"):
            outputs(receive)
