import math
import subprocess
import sys

import numpy as np
import pytest

from opkernel.device.device_factory import (
    DeviceFactory,
    register_device_factory,
    unregister_device_factory,
)
from opkernel.device.local_device import LocalDevice
from opkernel.errors import FailedPreconditionError, InternalError, InvalidArgumentError
from opkernel.graph import Graph
from opkernel.kernel import KernelRegistry, MemoryType, Name, OpKernel, register_kernel
from opkernel.opdef import OpRegistry, global_op_registry, register_op, unknown_shape
from opkernel.runtime.placement.memory_types import (
    ensure_memory_types,
    memory_type_for_output,
    validate_memory_types,
)
from opkernel.types import DataType

DEVICE = "/job:localhost/replica:0/task:0/device:GPU:0"
OPS = {
    "Source": ([], ["o: float"]),
    "HostSource": ([], ["o: float"]),
    "RefSource": ([], ["o: Ref(float)"]),
    "Sink": (["a: float", "b: float"], []),
    "ReadsOnHost": (["a: float", "b: float"], ["o: float"]),
    "RefReadsOnHost": (["a: Ref(float)"], []),
}
ON_HOST = {"HostSource": ["o"], "ReadsOnHost": ["a"], "RefReadsOnHost": ["a"]}


@pytest.fixture
def ops():
    registry = OpRegistry()
    registry.set_loader(global_op_registry().look_up)
    for name, (inputs, outputs) in OPS.items():
        register_op(name, inputs=inputs, outputs=outputs, shape_fn=unknown_shape, registry=registry)
    return registry


@pytest.fixture
def kernels():
    registry = KernelRegistry()
    for op in OPS:
        for device in ("CPU", "GPU"):
            host = ON_HOST.get(op, []) if device == "GPU" else []
            register_kernel(op, device=device, host_memory=host, registry=registry)(OpKernel)
    for op in ("_Send", "_Recv"):
        register_kernel(op, device="GPU", registry=registry)(OpKernel)
    for op in ("_HostSend", "_HostRecv"):
        register_kernel(Name(op).device("GPU").host_memory("tensor"), registry=registry)(OpKernel)
    return registry


@pytest.fixture
def graph(ops):
    """x in device memory and h in host memory, both read by several inputs of either kind."""
    graph = Graph(ops)
    x = graph.create_op("Source", name="x").outputs[0]
    h = graph.create_op("HostSource", name="h").outputs[0]
    graph.create_op("ReadsOnHost", [x, x], name="m")
    graph.create_op("ReadsOnHost", [x, h], name="m2")
    graph.create_op("Sink", [h, x], name="y")
    return graph


def inputs(graph):
    return {op.name: [tensor.name for tensor in op.inputs] for op in graph.get_operations()}


class TestValidate:
    def test_a_mismatch(self, graph, kernels):
        with pytest.raises(InternalError) as error:
            validate_memory_types("GPU", graph, registry=kernels)
        assert str(error.value) == (
            "Memory type mismatch (0 1) between :2:0 and 4:0 : from {{node x}} to {{node m}}"
        )

    def test_on_other_devices_all_memory_is_one(self, graph, kernels):
        validate_memory_types("CPU", graph, registry=kernels)

    def test_without_a_mismatch(self, ops, kernels):
        graph = Graph(ops)
        x = graph.create_op("Source", name="x").outputs[0]
        graph.create_op("Sink", [x, x])
        validate_memory_types("GPU", graph, registry=kernels)

    def test_a_wrong_registration(self, graph, kernels):
        register_kernel("Sink", device="GPU", host_memory=["zzz"], priority=1, registry=kernels)(
            OpKernel
        )
        with pytest.raises(InvalidArgumentError, match="HostMemory args 'zzz' not found"):
            validate_memory_types("GPU", graph, registry=kernels)


class TestEnsure:
    def test_each_tensor_is_copied_once(self, graph, kernels):
        ensure_memory_types("GPU", DEVICE, graph, registry=kernels)
        validate_memory_types("GPU", graph, registry=kernels)
        assert inputs(graph) == {
            "x": [],
            "h": [],
            "m": ["n/_1:0", "x:0"],
            "m2": ["n/_1:0", "n/_3:0"],
            "y": ["n/_3:0", "x:0"],
            "n/_0": ["x:0"],
            "n/_1": [],
            "n/_2": ["h:0"],
            "n/_3": [],
        }
        types = [graph.get_operation_by_name(f"n/_{i}").type for i in range(4)]
        assert types == ["_Send", "_HostRecv", "_HostSend", "_Recv"]

    def test_the_pair(self, graph, kernels):
        ensure_memory_types("GPU", DEVICE, graph, registry=kernels, tensor_numbers=iter([7, 8]))
        send, receive = (graph.get_operation_by_name(f"n/_{i}") for i in range(2))
        for op in (send, receive):
            assert op.get_attr("tensor_name") == b"memtype_7_x"
            assert op.get_attr("send_device") == op.get_attr("recv_device") == DEVICE.encode()
            assert op.get_attr("send_device_incarnation") == 0
            assert op.get_attr("client_terminated") is False
            assert op.get_attr("_hostmem_sendrecv") is True
            assert (op.get_attr("_src"), op.get_attr("_dst")) == (b"x", b"m")
            assert op.device == ""
        assert receive.control_inputs == (send,)
        assert receive.get_attr("tensor_type") == send.get_attr("T") == DataType.DT_FLOAT

    def test_keys_are_never_the_same_again(self, ops, kernels):
        names = set()
        for _ in range(2):
            graph = Graph(ops)
            h = graph.create_op("HostSource", name="h").outputs[0]
            graph.create_op("Sink", [h, h])
            ensure_memory_types("GPU", DEVICE, graph, registry=kernels)
            names.add(graph.get_operation_by_name("n/_0").get_attr("tensor_name"))
        assert len(names) == 2

    def test_again_there_is_nothing_to_do(self, graph, kernels):
        ensure_memory_types("GPU", DEVICE, graph, registry=kernels)
        before = graph.as_graph_def()
        ensure_memory_types("GPU", DEVICE, graph, registry=kernels)
        assert graph.as_graph_def() == before

    def test_names_in_use_are_left_alone(self, graph, kernels):
        graph.create_op("Source", name="n/_0/")
        ensure_memory_types("GPU", DEVICE, graph, registry=kernels)
        assert graph.get_operation_by_name("n/_1").type == "_Send"

    def test_scopes_of_the_caller_do_not_matter(self, graph, kernels):
        op = graph.get_operation_by_name("y")
        with graph.name_scope("a"), graph.device("/CPU:0"), graph.control_dependencies([op]):
            ensure_memory_types("GPU", DEVICE, graph, registry=kernels)
        send = graph.get_operation_by_name("n/_0")
        assert (send.device, send.control_inputs) == ("", ())

    def test_references_cannot_be_sent(self, ops, kernels):
        graph = Graph(ops)
        ref = graph.create_op("RefSource", name="r").outputs[0]
        graph.create_op("RefReadsOnHost", [ref])
        with pytest.raises(InvalidArgumentError, match="float_ref"):
            ensure_memory_types("GPU", DEVICE, graph, registry=kernels)

    def test_on_other_devices_nothing_is_copied(self, graph, kernels):
        before = graph.as_graph_def()
        ensure_memory_types("CPU", DEVICE, graph, registry=kernels)
        assert graph.as_graph_def() == before

    def test_a_finalized_graph(self, graph, kernels):
        graph.finalize()
        with pytest.raises(FailedPreconditionError):
            ensure_memory_types("GPU", DEVICE, graph, registry=kernels)

    def test_kernels_that_receive_elsewhere(self, graph, kernels):
        register_kernel("_HostRecv", device="GPU", priority=1, registry=kernels)(OpKernel)
        with pytest.raises(InternalError, match="Memory type mismatch"):
            ensure_memory_types("GPU", DEVICE, graph, registry=kernels)


class HostFactory(DeviceFactory):
    """Makes devices whose tensors are NumPy arrays."""

    def create_devices(self, options):
        return [LocalDevice("OnHost", np, index) for index in range(options.count or 0)]


class OwnFactory(DeviceFactory):
    """Makes devices with another array library."""

    def create_devices(self, options):
        return [LocalDevice("Apart", math, index) for index in range(options.count or 0)]


class TestDeviceTypes:
    """The factory says whether a type has memory of its own; of what nobody makes it is assumed."""

    @pytest.mark.parametrize(
        ("name", "factory", "is_apart"),
        [
            ("OnHost", HostFactory(), False),
            ("Apart", OwnFactory(), True),
            ("CPU", None, False),
            ("GPU", None, True),
        ],
    )
    def test_copies_go_where_memories_differ(self, name, factory, is_apart, ops):
        kernels = KernelRegistry()
        graph = Graph(ops)
        h = graph.create_op("HostSource", name="h").outputs[0]
        graph.create_op("Sink", [h, h], name="y")
        if factory is not None:
            register_device_factory(name, factory)
        try:
            for op in ("HostSource", "Sink", "_Send", "_Recv", "_HostSend", "_HostRecv"):
                on_host = {"HostSource": ["o"], "_HostSend": ["tensor"], "_HostRecv": ["tensor"]}
                register_kernel(op, device=name, host_memory=on_host.get(op, []), registry=kernels)(
                    OpKernel
                )
            ensure_memory_types(name, f"/device:{name}:0", graph, registry=kernels)
        finally:
            if factory is not None:
                unregister_device_factory(name)
        assert ("n/_0" in inputs(graph)) is is_apart


def test_the_cpu_has_the_memory_of_the_host_whoever_asks_first():
    code = "from opkernel.device import device_factory as d; print(d.has_own_memory('CPU'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


class TestIntegers:
    """Int32OK, Int32NotOk and MemoryTypeForOutput of TensorFlow's memory_types_test.cc."""

    def graph(self, consumer, **attrs):
        graph = Graph()
        x = graph.create_op("Placeholder", name="x", attrs={"dtype": DataType.DT_INT32}).outputs[0]
        graph.create_op(consumer, [x], name="y", attrs=attrs)
        return graph

    def kernels(self, op, *hosts):
        registry = KernelRegistry()
        register_kernel("Placeholder", device="GPU", host_memory=["output"], registry=registry)(
            OpKernel
        )
        register_kernel(op, device="GPU", host_memory=hosts, registry=registry)(OpKernel)
        for name in ("_HostSend", "_HostRecv"):
            register_kernel(Name(name).device("GPU").host_memory("tensor"), registry=registry)(
                OpKernel
            )
        for name in ("_Send", "_Recv"):
            register_kernel(name, device="GPU", registry=registry)(OpKernel)
        return registry

    def test_on_the_host_throughout(self):
        registry = self.kernels("Neg", "x", "y")
        validate_memory_types("GPU", self.graph("Neg"), registry=registry)

    def test_a_cast_on_the_device(self):
        graph, registry = self.graph("Cast", DstT=DataType.DT_FLOAT), self.kernels("Cast")
        with pytest.raises(InternalError, match=r"mismatch \(1 0\)"):
            validate_memory_types("GPU", graph, registry=registry)
        ensure_memory_types("GPU", DEVICE, graph, registry=registry)
        validate_memory_types("GPU", graph, registry=registry)

    def test_memory_type_for_output(self):
        graph = Graph()
        data = graph.create_op("Placeholder", attrs={"dtype": DataType.DT_INT32}).outputs[0]
        pred = graph.create_op("Placeholder", attrs={"dtype": DataType.DT_BOOL}).outputs[0]
        switch = graph.create_op("Switch", [data, pred])
        assert memory_type_for_output("GPU", switch, 0) == MemoryType.HOST_MEMORY
        assert memory_type_for_output("CPU", switch, 0) == MemoryType.DEVICE_MEMORY
        with pytest.raises(InternalError, match=r"2'th output of node .* that has only 2 outputs"):
            memory_type_for_output("GPU", switch, 2)
