"""Where nodes are put: what they ask for, with whom they must be, what has kernels."""

import logging

import numpy as np
import pytest
from tests.runtime.dataflow.loop_builders import Builder

import opkernel
from opkernel import raw_ops as r
from opkernel.errors import InvalidArgumentError
from opkernel.proto import RunMetadata

THREE = {"CPU": 3}


def placed(graph, fetches, feeds=None, soft=False, **counts):
    """The device of each node of a graph that a step runs, in short."""
    config = opkernel.SessionConfig(
        device_count=counts or THREE, allow_soft_placement=soft, optimize=False
    )
    metadata, options = RunMetadata(), opkernel.RunOptions(output_partition_graphs=True)
    with opkernel.Session(graph, config=config) as session:
        session.run(fetches, feeds, options, metadata)
    nodes = [node for part in metadata.partition_graphs for node in part.node]
    return {node.name: node.device.rpartition("device:")[2] for node in nodes}


def chain():
    b = Builder()
    x = b.placeholder("x")
    for name in ("one", "two", "three"):
        x = b.op("Neg", x, name=name)
    return b


@pytest.mark.parametrize(
    "asked", ["/cpu:1", "/device:CPU:1", "/job:localhost/device:CPU:1", "/replica:0/cpu:1"]
)
def test_a_node_is_where_it_asks_to_be(asked):
    b = chain()
    b.graph.get_operation_by_name("two").set_device(asked)
    found = placed(b.graph, "three:0", {"x:0": 1.0})
    assert (found["one"], found["two"], found["three"]) == ("CPU:0", "CPU:1", "CPU:0")


@pytest.mark.parametrize("asked", ["/cpu:3", "/device:GPU:0", "/job:worker", "/task:1/cpu:0"])
def test_a_device_that_is_not_there_is_refused(asked):
    b = chain()
    b.graph.get_operation_by_name("two").set_device(asked)
    with pytest.raises(InvalidArgumentError, match=r"Cannot assign a device for operation two"):
        placed(b.graph, "three:0", {"x:0": 1.0})


def test_soft_placement_takes_another():
    b = chain()
    b.graph.get_operation_by_name("two").set_device("/device:GPU:5")
    assert placed(b.graph, "three:0", {"x:0": 1.0}, soft=True)["two"] == "CPU:0"


def test_colocated_nodes_are_together():
    b = chain()
    one, _, three = (b.graph.get_operation_by_name(n) for n in ("one", "two", "three"))
    with b.graph.as_default(), b.graph.colocate_with(three):
        beside = r.Neg(x=one.outputs[0], name="beside")
    three.set_device("/cpu:2")
    found = placed(b.graph, ["three:0", beside], {"x:0": 1.0})
    assert (found["three"], found["beside"], found["one"]) == ("CPU:2", "CPU:2", "CPU:0")


def test_colocated_nodes_that_ask_for_two_devices_are_refused():
    b = chain()
    three = b.graph.get_operation_by_name("three")
    with b.graph.as_default(), b.graph.colocate_with(three, ignore_existing=True):
        beside = r.Neg(x=three.outputs[0], name="beside")
    three.set_device("/cpu:2")
    beside.op.set_device("/cpu:1")
    with pytest.raises(InvalidArgumentError, match="Cannot colocate nodes 'three' and 'beside'"):
        placed(b.graph, beside, {"x:0": 1.0})


def test_what_uses_a_resource_is_beside_it_in_every_step():
    graph = opkernel.Graph()
    with graph.as_default():
        with graph.device("/cpu:1"):
            variable = r.VarHandleOp(dtype="float", shape=[], shared_name="v", name="v")
        write = r.AssignVariableOp(resource=variable, value=np.float32(3), name="write")
        read = r.ReadVariableOp(resource=variable, dtype="float", name="read")
    with opkernel.Session(graph, config=opkernel.SessionConfig(device_count=THREE)) as session:
        session.run(write)
        assert session.run(read) == 3
        managers = [device.resource_manager for device in session._devices.mgr.all]
        assert [len(list(manager.debug_string().splitlines())) > 0 for manager in managers] == [
            False,
            True,
            False,
        ]
    assert placed(graph, write)["write"] == "CPU:1"


def test_references_stay_on_one_device():
    b = Builder()
    v = b.op("VariableV2", shape=[], dtype="float", name="v")
    v.op.set_device("/cpu:2")
    assign = b.op("Assign", v, b.constant(np.float32(2)), name="assign")
    assert placed(b.graph, assign)["assign"] == "CPU:2"


def test_a_node_that_only_looks_at_a_shape_is_beside_what_it_looks_at():
    b = chain()
    b.graph.get_operation_by_name("two").set_device("/cpu:1")
    shape = b.op("Shape", b.graph.get_tensor_by_name("two:0"), name="shape")
    assert placed(b.graph, shape, {"x:0": 1.0})["shape"] == "CPU:1"


def test_a_constant_with_one_consumer_is_beside_it():
    b = Builder()
    added = b.op("AddV2", b.constant(1.0, name="c"), b.placeholder("x"), name="added")
    added.op.set_device("/cpu:1")
    found = placed(b.graph, added, {"x:0": 1.0})
    assert found["c"] == found["added"] == "CPU:1"


def test_the_log_has_tensorflows_form(caplog):
    b = chain()
    b.graph.get_operation_by_name("two").set_device("/cpu:1")
    caplog.set_level(logging.INFO, logger="opkernel.placement")
    config = opkernel.SessionConfig(device_count=THREE, log_device_placement=True)
    with opkernel.Session(b.graph, config=config) as session:
        session.run("three:0", {"x:0": 1.0})
        session.run("two:0", {"x:0": 1.0})
    lines = [record.getMessage() for record in caplog.records]
    assert lines.count("two: (Neg): /job:localhost/replica:0/task:0/device:CPU:1") == 1


class TestAnotherType:
    def test_nodes_prefer_the_type_of_the_higher_priority(self, toy):
        assert placed(chain().graph, "three:0", {"x:0": 1.0}, CPU=1)["two"] == "CPU:0"
        opkernel_factory = toy.register_device_factory
        opkernel_factory("TOY", toy.ToyFactory(), priority=10)  # its own class may come again
        from opkernel.device.device_factory import unregister_device_factory

        unregister_device_factory("TOY")
        opkernel_factory("TOY", toy.ToyFactory(), priority=200)
        assert placed(chain().graph, "three:0", {"x:0": 1.0}, CPU=1)["two"] == "TOY:0"

    def test_a_type_without_a_kernel_is_refused_unless_placement_is_soft(self, toy):
        b = chain()
        y = b.op("Exp", b.graph.get_tensor_by_name("three:0"), name="y")
        y.op.set_device("/device:TOY:0")
        with pytest.raises(
            InvalidArgumentError,
            match=r"specification '/device:TOY:0' because no supported kernel for TOY devices",
        ):
            placed(b.graph, y, {"x:0": 1.0}, CPU=1)
        assert placed(b.graph, y, {"x:0": 1.0}, soft=True, CPU=1)["y"] == "CPU:0"

    def test_calls_stay_with_the_caller(self, toy):
        graph = opkernel.Graph()
        with graph.as_default(), graph.device("/device:TOY:0"):
            x = opkernel.placeholder(opkernel.float32, [])
            y = opkernel.while_loop(lambda v: v < 10.0, lambda v: [v * 2.0], [x])[0]
        assert placed(graph, y, {x: 3.0}, CPU=1)[y.op.name] == "CPU:0"
