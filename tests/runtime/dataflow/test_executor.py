"""What TensorFlow's executor_test says of executors, and which nodes are dead.

Source: TensorFlow core/common_runtime/executor_test.cc.
"""

import threading

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, Builder
from tests.runtime.deadlines import error_at_deadline

import opkernel
from opkernel.device.local_device import CPU
from opkernel.errors import AbortedError, InternalError, InvalidArgumentError
from opkernel.kernel import (
    FrameAndIter,
    OpKernel,
    RendezvousArgs,
    TensorRef,
    create_key,
    parse_key,
    register_kernel,
)
from opkernel.opdef import register_op, scalar_shape
from opkernel.runtime import DataflowExecutor
from opkernel.runtime.calls.function_library_runtime import CalledFunctions, FunctionLibraryRuntime
from opkernel.runtime.program.executors import new_executor
from opkernel.runtime.program.kernels import KernelCache
from opkernel.runtime.program.request import ExecutorArgs, Subgraph
from opkernel.runtime.program.run_step import RunStep

ALICE, BOB = "/job:j/replica:0/task:0/cpu:0", "/job:j/replica:0/task:0/cpu:1"


class Rig:
    """A graph between a sender and a receiver, without a session."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.step = RunStep()

    def key(self, name):
        return parse_key(create_key(ALICE, 1, BOB, name, FrameAndIter()))

    def attrs(self, name):
        return {
            "tensor_name": name,
            "send_device": ALICE,
            "send_device_incarnation": 1,
            "recv_device": BOB,
        }

    def recv(self, name, dtype=FLOAT):
        return self.builder.op("_Recv", name=f"recv_{name}", tensor_type=dtype, **self.attrs(name))

    def send(self, tensor, name):
        return self.builder.operation("_Send", tensor, name=f"send_{name}", **self.attrs(name))

    def give(self, name, value, is_dead=False):
        self.step.rendezvous.send(self.key(name), RendezvousArgs(), value, is_dead)

    def take(self, name):
        return self.step.rendezvous.recv(self.key(name))

    def run(self, *targets, fetches=()):
        graph = self.builder.graph
        version = graph.graph_def_versions.producer
        kernels = KernelCache(version, graph.op_registry)
        library = CalledFunctions(FunctionLibraryRuntime(graph.function_library, version, CPU))
        args = ExecutorArgs(Subgraph([], fetches, targets), kernels, library)
        return new_executor("DATAFLOW", args).run(self.step)


def test_simple_add():
    rig = Rig()
    total = rig.builder.op("AddV2", rig.recv("a"), rig.recv("b"))
    target = rig.send(total, "c")
    rig.give("a", np.float32(1))
    rig.give("b", np.float32(1))
    rig.run(target)
    assert rig.take("c") == (2, False)


def test_self_add_doubles_ten_times():
    rig = Rig()
    value = rig.recv("a")
    for _ in range(10):
        value = rig.builder.op("AddV2", value, value)
    target = rig.send(value, "b")
    rig.give("a", np.float32(1))
    rig.run(target)
    assert rig.take("b") == (1024, False)


def test_random_tree_sums_4096_leaves():
    rig = Rig()
    random = np.random.default_rng(7)
    nodes = [rig.builder.op("Identity", leaf) for leaf in [rig.recv("a")] * 4096]
    while len(nodes) > 1:
        a, b = (nodes.pop(int(random.integers(len(nodes)))) for _ in range(2))
        nodes.append(rig.builder.op("AddV2", a, b))
    target = rig.send(nodes[0], "b")
    rig.give("a", np.float32(1))
    rig.run(target)
    assert rig.take("b") == (4096, False)


@pytest.mark.parametrize(("predicate", "is_dead"), [(False, False), (True, True)])
def test_deadness_of_a_switch_goes_through_add_to_the_receiver(predicate, is_dead):
    rig = Rig()
    switch = rig.builder.operation("Switch", rig.recv("a"), rig.recv("p", BOOL))
    target = rig.send(rig.builder.op("AddV2", rig.recv("c"), switch.outputs[0]), "d")
    for name in "ac":
        rig.give(name, np.float32(1))
    rig.give("p", np.bool_(predicate))
    rig.run(target)
    value, dead = rig.take("d")
    assert dead is is_dead
    assert dead or value == 2


def test_a_dead_tensor_that_is_received_is_dead():
    rig = Rig()
    merged = rig.builder.operation("Merge", [rig.recv("a"), rig.recv("b")])
    rig.give("a", None, is_dead=True)
    rig.give("b", np.float32(5))
    assert rig.run(fetches=merged.outputs) == [5, 1]


@pytest.mark.parametrize("when", ["before", "during", "late"])
def test_an_abort_of_the_rendezvous_is_the_error_of_the_step(when):
    rig = Rig()
    total = rig.builder.op("AddV2", rig.recv("a"), rig.recv("b"))
    target = rig.send(rig.builder.op("AddV2", total, rig.recv("c")), "d")
    rig.give("a", np.float32(1))

    def abort():
        if when == "late":  # only one is missing by then
            rig.give("b", np.float32(1))
        rig.step.rendezvous.start_abort(AbortedError("gone"))

    if when == "before":
        abort()
    else:
        threading.Timer(0.05, abort).start()
    with pytest.raises(AbortedError, match="gone"):
        rig.run(target)


def test_an_abort_after_the_step_changes_nothing():
    rig = Rig()
    target = rig.send(rig.recv("a"), "b")
    rig.give("a", np.float32(1))
    rig.run(target)
    assert rig.take("b") == (1, False)
    rig.step.rendezvous.start_abort(AbortedError("gone"))


@pytest.mark.parametrize("threads", [0, 3])
def test_unsynchronised_assignments_of_a_variable_lose_updates_but_nothing_else(threads):
    b = Builder()
    ref = b.op("Variable", shape=[], dtype=FLOAT, name="v")
    init = b.operation("Assign", ref, b.constant(1.0), name="init")
    assigns = []
    for _ in range(100):
        total = b.operation("Add", ref, b.constant(1.0), after=[init]).outputs[0]
        assigns.append(b.operation("Assign", ref, total))
    result = b.operation("Identity", ref, after=assigns).outputs[0]
    with opkernel.Session(b.graph, executor_type="DATAFLOW", inter_op_threads=threads) as session:
        for _ in range(16):
            assert 2 <= session.run(result) <= 101


def test_a_graph_without_input_tensors():
    rig = Rig()
    assert rig.run(fetches=[rig.builder.constant(1.0)]) == [1]
    rig.run(rig.builder.operation("NoOp", name="nothing"))


def test_a_reference_to_another_type_than_declared_is_an_internal_error():
    class Wrong(OpKernel):
        def compute(self, ctx):
            ctx.set_output_ref(0, TensorRef(np.zeros((), np.float64)))

    register_op("DataflowWrongRef", outputs=["y: Ref(float)"], shape_fn=scalar_shape)
    register_kernel("DataflowWrongRef", device="CPU")(Wrong)
    rig = Rig()
    target = rig.send(rig.builder.op("DataflowWrongRef", name="wrong"), "out")
    with pytest.raises(InternalError, match=r"float_ref.*float64.*node 'wrong'"):
        rig.run(target)


def test_receiving_another_type_is_an_internal_error():
    rig = Rig()
    target = rig.send(rig.recv("a"), "b")
    rig.give("a", np.int32(1))
    with pytest.raises(InternalError, match="_Recv"):
        rig.run(target)


def test_a_receiver_may_come_before_its_sender_in_a_session():
    rig = Rig()
    b = rig.builder
    received = rig.recv("a")
    sent = rig.send(b.placeholder("x"), "a")
    with opkernel.Session(b.graph) as session:
        assert session.run([received, sent], {"x:0": 3.0}) == [3, None]
        error_at_deadline(
            lambda options: session.run(received, options=options),
            r"waiting for _Recv \(node 'recv_a'\)",
        )
        assert session.run([received, sent], {"x:0": 4.0}) == [4, None]


def test_merge_waits_for_its_control_inputs_and_control_triggers_are_never_dead():
    b = Builder()
    x, p = b.placeholder("x"), b.placeholder("p", BOOL)
    switch = b.operation("Switch", x, p)
    dead = b.op("Identity", switch.outputs[0])
    merged = b.operation("Merge", [switch.outputs[0], switch.outputs[1]], after=[dead.op])
    trigger = b.operation("ControlTrigger", after=[dead.op])
    behind_dead = b.operation("Identity", x, after=[dead.op]).outputs[0]
    behind_trigger = b.operation("Identity", x, after=[trigger]).outputs[0]
    feeds = {"x:0": 2.0, "p:0": True}
    for executor in ("COMPILED_PLAN", "DATAFLOW"):
        assert b.run([*merged.outputs, behind_trigger], feeds, executor) == [2, 1, 2]
        with pytest.raises(InvalidArgumentError, match="was not valid"):
            b.run(behind_dead, feeds, executor)


def test_counts_of_runs():
    b = Builder()
    (y,) = b.while_loop(
        lambda x: b.op("Less", x, b.constant(10.0)),
        lambda x: [b.op("AddV2", x, x, name="double")],
        [b.placeholder("x")],
    )
    with opkernel.Session(b.graph, executor_type="DATAFLOW") as session:
        plan = session.plan(y, ["x:0"])
        assert isinstance(plan, DataflowExecutor)
        values, counts = plan.run_counting(RunStep(), np.float32(1))
    assert values == [16]
    assert (counts["double"], counts["Merge"], counts["Exit"]) == (4, 5, 1)


def test_nodes_with_inputs_from_different_frames_are_refused():
    b = Builder()
    x = b.placeholder("x")
    inside = b.op("Enter", x, frame_name="f", name="enter")
    for make in (lambda: b.op("AddV2", x, inside), lambda: b.op("Exit", x)):
        with pytest.raises(InvalidArgumentError, match=r"different frames|in no loop"):
            b.run(make(), {"x:0": 1.0})
    with pytest.raises(InvalidArgumentError, match="inside the loop 'f'"):
        b.run(inside, {"x:0": 1.0})


def test_a_step_that_cannot_finish_says_what_waits_for_what_and_where():
    b = Builder()
    no = b.constant(False)
    _, lost = b.while_loop(
        lambda i, x, no: b.op("Less", i, b.constant(3)),
        lambda i, x, no: [
            b.op("AddV2", i, b.constant(1)),
            b.operation("Switch", x, no).outputs[1],  # dead: there is no x for the next turn
        ],
        [b.constant(0), b.placeholder("x")],
        [no],
    )
    with pytest.raises(
        InvalidArgumentError,
        match=r"without a value for Exit_1:0: Merge \(node 'Merge_1'\) waits for "
        r"NextIteration_1:0 in turn 3 of the loop 'loop_1'; the fetches wait for Exit_1:0",
    ):
        b.run(lost, {"x:0": 1.0})


def test_a_dead_fetch_is_an_invalid_argument():
    b = Builder()
    switch = b.operation("Switch", b.placeholder("x"), b.placeholder("p", BOOL), name="s")
    with pytest.raises(InvalidArgumentError, match="s:1"):
        b.run(switch.outputs[1], {"x:0": 1.0, "p:0": False}, "DATAFLOW")


def test_a_predicate_must_be_a_scalar():
    b = Builder()
    switch = b.operation("Switch", b.placeholder("x"), b.placeholder("p", BOOL), name="s")
    for executor in ("COMPILED_PLAN", "DATAFLOW"):
        with pytest.raises(InvalidArgumentError, match=r"must be a scalar.*node 's'"):
            b.run(switch.outputs[1], {"x:0": 1.0, "p:0": [True]}, executor)


def test_fed_tensors_replace_their_producers():
    b = Builder()
    x = b.placeholder("x")
    double = b.op("AddV2", x, x, name="double")
    y = b.op("AddV2", double, b.constant(1.0))
    assert b.run([y, double, x], {"double:0": 10.0, "x:0": 1.0}, "DATAFLOW") == [11, 10, 1]
    assert b.run(y, {double: 20.0}, "DATAFLOW") == 21
    assert b.run(b.constant(3), None, "DATAFLOW") == 3
