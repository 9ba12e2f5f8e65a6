"""Sessions in the form of TensorFlow's C++ API; codes and texts are those of its DirectSession."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import BOOL, FLOAT, Builder

import opkernel
from opkernel.errors import (
    AlreadyExistsError,
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from opkernel.opdef import register_op, unknown_shape
from opkernel.proto import CallableOptions as CallableOptionsProto
from opkernel.proto import ConfigProto, GraphDef

EXTENSIBLE = opkernel.SessionConfig(disable_optimize_for_static_graph=True)


def example() -> GraphDef:
    """c = x + a, d = c * y with a = 2; n does nothing; sw is dead on the side 1."""
    b = Builder()
    x, y = b.placeholder("x"), b.placeholder("y")
    a = b.constant(2.0, name="a")
    c = b.op("Add", x, a, name="c")
    b.op("Mul", c, y, name="d")
    b.operation("NoOp", name="n")
    b.operation("Switch", a, b.constant(False, name="f"), name="sw")
    return b.graph.as_graph_def()


@pytest.fixture
def session():
    with opkernel.DirectSession() as session:
        session.create(example())
        yield session


def on_device(device: str) -> GraphDef:
    """Two constants, a and b; a is to be on a device."""
    b = Builder()
    b.constant(1.0, name="a").op.set_device(device)
    b.constant(3.0, name="b")
    return b.graph.as_graph_def()


class TestCreate:
    def test_the_graph_that_was_created_runs(self, session):
        assert session.run({"x": np.float32(1)}, ["c", "c:0", "a"], ["n"]) == [3, 3, 2]

    def test_a_graph_is_created_once(self, session):
        with pytest.raises(AlreadyExistsError, match="already been created for this session"):
            session.create(example())

    def test_a_graph_without_nodes_is_none(self):
        with opkernel.DirectSession() as session:
            session.create(GraphDef())
            with pytest.raises(InvalidArgumentError, match="not created with a graph before Run"):
                session.run({}, ["c"])
            session.create(example())
            assert session.run({}, ["a"]) == [2]

    def test_after_a_failed_create_there_is_no_graph(self):
        graph_def = example()
        graph_def.node.add(name="bad", op="Neg", input=["missing"])
        with opkernel.DirectSession() as session:
            with pytest.raises(InvalidArgumentError, match="Unknown input node 'missing'"):
                session.create(graph_def)
            with pytest.raises(InvalidArgumentError, match="before Run"):
                session.run({}, ["a"])
            session.create(example())
            assert session.run({}, ["a"]) == [2]

    @pytest.mark.parametrize(
        ("device", "message"),
        [
            (
                "/job:nope/task:7",
                r"to /job:nope/task:7 but .* \[ /job:localhost/.*/device:CPU:0 \]",
            ),
            ("/device:GPU:0", "appears to be a GPU, but CUDA is not enabled"),
            ("/cpu:1", "explicitly assigned to /cpu:1"),
            ("nonsense", "Malformed device specification 'nonsense'"),
        ],
    )
    def test_a_device_that_does_not_exist_is_refused(self, device, message):
        with (
            opkernel.DirectSession() as session,
            pytest.raises(InvalidArgumentError, match=message),
        ):
            session.create(on_device(device))

    @pytest.mark.parametrize("device", ["/device:GPU:0", "/cpu:7", "/device:TPU:3"])
    def test_soft_placement_takes_another_device_of_the_job(self, device):
        with opkernel.DirectSession(opkernel.SessionConfig(allow_soft_placement=True)) as session:
            session.create(on_device(device))
            assert session.run({}, ["a"]) == [1]

    def test_soft_placement_takes_no_other_job(self):
        config = opkernel.SessionConfig(allow_soft_placement=True)
        with opkernel.DirectSession(config) as session, pytest.raises(InvalidArgumentError):
            session.create(on_device("/job:worker"))

    def test_with_place_pruned_graph_only_what_runs_is_placed(self):
        with opkernel.DirectSession(opkernel.SessionConfig(place_pruned_graph=True)) as session:
            session.create(on_device("/device:GPU:0"))
            assert session.run({}, ["b"]) == [3]
            with pytest.raises(InvalidArgumentError, match="Cannot assign a device"):
                session.run({}, ["a"])

    def test_a_call_of_a_function_that_is_missing_is_refused(self):
        graph_def = example()
        call = graph_def.node.add(name="p", op="PartitionedCall", input=["x"])
        for attr in ("Tin", "Tout"):
            call.attr[attr].list.type.append(FLOAT)
        call.attr["f"].func.name = "Nope"
        with (
            opkernel.DirectSession() as session,
            pytest.raises(InvalidArgumentError, match='find function "Nope" in function library'),
        ):
            session.create(graph_def)

    def test_a_node_that_no_kernel_of_its_op_fits_is_refused(self):
        register_op("DirectTest", inputs=["x: T"], attrs=["T: type"], shape_fn=unknown_shape)
        opkernel.register_kernel("DirectTest", device="CPU", types={"T": FLOAT})(lambda x: None)
        graph_def = example()
        node = graph_def.node.add(name="bad", op="DirectTest", input=["f"])
        node.attr["T"].type = BOOL
        with (
            opkernel.DirectSession() as session,
            pytest.raises(
                InvalidArgumentError, match=r"No OpKernel .* 'DirectTest' used by .* bad"
            ),
        ):
            session.create(graph_def)


class TestExtend:
    def more(self) -> GraphDef:
        graph_def = GraphDef()
        node = graph_def.node.add(name="g", op="Neg", input=["c", "^n"])
        node.attr["T"].type = FLOAT
        return graph_def

    def test_a_graph_is_taken_to_stay_as_it_is(self, session):
        with pytest.raises(FailedPreconditionError, match="disable_optimize_for_static_graph"):
            session.extend(self.more())
        assert session.run({}, ["a"]) == [2]

    def test_what_is_added_reads_what_was_there(self):
        with opkernel.DirectSession(EXTENSIBLE) as session:
            session.extend(example())
            assert session.run({"x": 1.0}, ["c"]) == [3]
            session.extend(self.more())
            assert session.run({"x": 1.0}, ["g", "c"]) == [-3, 3]

    def test_variables_keep_their_values(self):
        b = Builder()
        v = b.op("VariableV2", name="v", dtype=FLOAT, shape=[])
        b.op("Assign", v, b.constant(5.0), name="init")
        with opkernel.DirectSession(EXTENSIBLE) as session:
            session.create(b.graph.as_graph_def())
            session.run({}, [], ["init"])
            extension = GraphDef()
            extension.node.add(name="read", op="Identity", input=["v"]).attr["T"].type = FLOAT
            session.extend(extension)
            assert session.run({}, ["read"]) == [5]

    @pytest.mark.parametrize(
        ("node", "error", "message"),
        [
            ({"name": "c", "op": "NoOp"}, InvalidArgumentError, "includes node 'c'"),
            ({"name": "z", "op": "Nope"}, NotFoundError, "not registered 'Nope'"),
            ({"name": "z", "op": "NoOp", "device": "/cpu:9"}, InvalidArgumentError, "/cpu:9"),
            ({"name": "z", "op": "NoOp", "input": ["^q"]}, InvalidArgumentError, "'.q'"),
        ],
    )
    def test_a_refused_extension_changes_nothing(self, node, error, message):
        with opkernel.DirectSession(EXTENSIBLE) as session:
            session.create(example())
            extension = self.more()
            extension.node.add(**node)
            with pytest.raises(error, match=message):
                session.extend(extension)
            with pytest.raises(InvalidArgumentError, match="g:0"):
                session.run({"x": 1.0}, ["g"])
            session.extend(self.more())
            assert session.run({"x": 1.0}, ["g"]) == [-3]


class TestRun:
    @pytest.mark.parametrize(
        ("inputs", "outputs", "targets", "error", "message"),
        [
            ([], [], [], InvalidArgumentError, "at least one target to fetch or execute"),
            ([], ["zz"], [], InvalidArgumentError, "Tensor zz:0, specified in either feed_devices"),
            ([("zz:3", 1.0)], ["a"], [], InvalidArgumentError, "Tensor zz:3"),
            (
                [],
                ["c:1"],
                [],
                OutOfRangeError,
                r"'c' \(type: 'Add', num of outputs: 1\) .* output 1",
            ),
            ([], ["n"], [], OutOfRangeError, "num of outputs: 0"),
            ([("x", 1.0), ("x", 2.0)], ["c"], [], InvalidArgumentError, '"x" fed more than once'),
            ([("x", 1.0)], ["x"], [], InvalidArgumentError, "x is both fed and fetched"),
            ([], [], ["nope"], NotFoundError, "Some target nodes not found: nope"),
            ([], ["sw:1"], [], InvalidArgumentError, "sw:1 was not valid"),
            ([], ["c"], [], InvalidArgumentError, "feed a value for placeholder tensor 'x'"),
            ([("x", np.int32(1))], ["c"], [], InvalidArgumentError, "to be float but int32"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, session, inputs, outputs, targets, error, message
    ):
        with pytest.raises(error, match=message):
            session.run(inputs, outputs, targets)
        assert session.run({"x": 1.0}, ["c"]) == [3]

    def test_targets_may_be_named_by_their_outputs(self, session):
        assert session.run({}, [], ["n:0", "^n", "a"]) == []

    def test_a_fed_reference_cannot_be_assigned_to(self):
        b = Builder()
        v = b.op("VariableV2", name="v", dtype=FLOAT, shape=[])
        b.op("Assign", v, b.constant(5.0), name="assign")
        b.op("Identity", v, name="read")
        with opkernel.DirectSession() as session:
            session.create(b.graph.as_graph_def())
            with pytest.raises(InvalidArgumentError, match="Input 0 of node assign"):
                session.run({"v": np.float32(1)}, ["assign"])
            assert session.run({"v": np.float32(1)}, ["read"]) == [1]

    def test_several_threads_run_one_session(self, session):
        failures = []

        def work(number: int) -> None:
            answers = [session.run({"x": np.float32(number)}, ["c"]) for _ in range(50)]
            if answers != [[number + 2]] * 50:
                failures.append(number)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures


class TestEnd:
    def test_after_finalize_only_known_steps_run(self, session):
        session.run({"x": 1.0}, ["c"])
        call = session.make_callable(opkernel.CallableOptions(feed=["x"], fetch=["c"]))
        session.finalize()
        assert session.run({"x": 2.0}, ["c"]) == [4]
        assert call(5.0) == [7]
        with pytest.raises(FailedPreconditionError, match="Session has been finalized"):
            session.run({"x": 2.0, "y": 1.0}, ["d"])
        with pytest.raises(FailedPreconditionError, match="Session has been finalized"):
            session.extend(example())
        with pytest.raises(FailedPreconditionError, match="already finalized"):
            session.finalize()

    def test_a_closed_session_says_so(self, session):
        session.close()
        for call in (
            lambda: session.run({}, ["a"]),
            lambda: session.extend(example()),
            lambda: session.partial_run_setup([], ["a"]),
            lambda: session.make_callable(opkernel.CallableOptions(fetch=["a"])),
        ):
            with pytest.raises(CancelledError, match="Session has been closed"):
                call()


class TestCallables:
    def test_a_callable_takes_values_in_the_order_of_its_feeds(self, session):
        options = CallableOptionsProto(feed=["y", "x"], fetch=["d", "c"], target=["n"])
        call = session.make_callable(options)
        assert call(10.0, 1.0) == [30, 3]
        with pytest.raises(InvalidArgumentError, match="Expected 2 feed values, got 0"):
            call()

    def test_a_tensor_connection_replaces_a_tensor(self, session):
        options = CallableOptionsProto(feed=["y"], fetch=["d"])
        options.tensor_connection.add(from_tensor="a", to_tensor="x")
        assert session.make_callable(options)(3.0) == [12]
        assert session.run({"x": 1.0}, ["c"]) == [3]

    @pytest.mark.parametrize(
        ("connections", "error", "message"),
        [
            ([("a:0", "x:0"), ("a:0", "x:0")], InvalidArgumentError, '"x:0" fed more than once'),
            ([("zz:0", "x:0")], InvalidArgumentError, "from unknown node"),
            ([("a:1", "x:0")], InvalidArgumentError, r"unknown edge.*\(actual number .* = 1\)"),
            ([("a:0", "zz:0")], NotFoundError, "unable to find feed output zz:0"),
            ([("d:0", "x:0")], InvalidArgumentError, '"x" and "d" would create a cycle'),
            ([("f:0", "x:0")], InvalidArgumentError, "passed bool .* incompatible with .* float"),
        ],
    )
    def test_a_connection_that_makes_no_sense_is_refused(
        self, session, connections, error, message
    ):
        options = opkernel.CallableOptions(feed=["y"], fetch=["d"], tensor_connection=connections)
        with pytest.raises(error, match=message):
            session.make_callable(options)

    def test_devices_of_tensors_must_exist(self, session):
        name = session.list_devices()[0].name
        options = opkernel.CallableOptions(feed=["x"], fetch=["c"], feed_devices={"x": name})
        assert session.make_callable(options)(1.0) == [3]
        options = opkernel.CallableOptions(feed=["x"], fetch=["c"], feed_devices={"x": "/gpu:0"})
        with pytest.raises(InvalidArgumentError, match="'/gpu:0' specified for tensor 'x'"):
            session.make_callable(options)

    def test_run_options_are_those_of_each_call(self, session):
        options = opkernel.CallableOptions(
            feed=["x"], fetch=["c"], run_options=opkernel.RunOptions(inter_op_thread_pool=-2)
        )
        call = session.make_callable(options)
        with pytest.raises(InvalidArgumentError, match="Invalid inter_op_thread_pool: -2"):
            call(1.0)


def test_two_cpus_are_listed_and_run_their_nodes():
    with opkernel.DirectSession(ConfigProto(device_count={"CPU": 2})) as session:
        first, second = session.list_devices()
        assert [first.name, second.name] == [
            f"/job:localhost/replica:0/task:0/device:CPU:{n}" for n in range(2)
        ]
        assert (first.device_type, second.device_type) == ("CPU", "CPU")
        assert first.incarnation != second.incarnation
        assert first.memory_limit_bytes > 0
        session.create(on_device("/cpu:1"))
        assert session.run({}, ["a", "b"]) == [1, 3]
