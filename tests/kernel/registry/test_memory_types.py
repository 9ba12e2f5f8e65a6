import pytest

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.graph import func, node_def
from opkernel.kernel.node_properties import MemoryType, mtype_from_dtype
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry.kernel_def import KernelDefBuilder
from opkernel.kernel.registry.kernel_registry import KernelRegistry
from opkernel.kernel.registry.lookup import memory_types_for_node
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.opdef import NodeDefBuilder, OpDefBuilder, OpRegistry, fake_input
from opkernel.types import DataType

D, H = MemoryType.DEVICE_MEMORY, MemoryType.HOST_MEMORY


def op_registry(*builders):
    registry = OpRegistry()
    for builder in builders:
        registry.register(builder.finalize())
    return registry


def one_op():
    return op_registry(OpDefBuilder("One").attr("T: type").input("a: T").output("o: T"))


def kernels(op, *devices, host=()):
    registry = KernelRegistry()
    for device in devices:
        builder = KernelDefBuilder(op).device(device)
        for arg in host:
            builder.host_memory(arg)
        registry.register(KernelRegistration(builder.build(), "K", OpKernel))
    return registry


def one(dtype, **attrs):
    return node_def("n", "One", ["x"], T=dtype, **attrs)


class TestArguments:
    """MemoryTypesForNode.Simple of TensorFlow's memory_types_test.cc."""

    def ops(self):
        return op_registry(
            OpDefBuilder("HostMemoryTest")
            .input("a: float")
            .input("b: T")
            .input("c: N * string")
            .input("d: Tlist")
            .output("o: N * T")
            .output("p: Tlist")
            .attr("T: type")
            .attr("N: int")
            .attr("Tlist: list(type)")
        )

    def node(self):
        builder = NodeDefBuilder("n", "HostMemoryTest", self.ops()).input(fake_input())
        builder.input(fake_input(DataType.DT_BOOL)).input(fake_input(3))
        types = [DataType.DT_INT32, DataType.DT_FLOAT, DataType.DT_INT32]
        return builder.input(fake_input(types)).finalize()

    def test_only_strings_are_on_the_host_by_themselves(self):
        found = memory_types_for_node(
            self.ops(), "CPU", self.node(), registry=kernels("HostMemoryTest", "CPU")
        )
        assert found == ([D, D, H, H, H, D, D, D], [D, D, D, D, D, D])

    def test_a_host_memory_argument_takes_its_whole_list(self):
        registry = kernels("HostMemoryTest", "GPU", host=["a", "c", "d", "o"])
        found = memory_types_for_node(self.ops(), "GPU", self.node(), registry=registry)
        assert found == ([H, D, H, H, H, H, H, H], [H, H, H, D, D, D])

    def test_unknown_host_memory_arguments(self):
        registry = kernels("HostMemoryTest", "GPU", host=["a", "zzz", "qq"])
        with pytest.raises(
            InvalidArgumentError, match="HostMemory args 'zzz', 'qq' not found in OpDef: "
        ):
            memory_types_for_node(self.ops(), "GPU", self.node(), registry=registry)


@pytest.mark.parametrize(
    ("dtype", "with_kernel", "without"),
    [
        (DataType.DT_FLOAT, D, D),
        (DataType.DT_INT32, D, H),
        (DataType.DT_INT64, D, D),
        (DataType.DT_UINT32, D, D),
        (DataType.DT_STRING, H, H),
        (DataType.DT_RESOURCE, H, H),
        (DataType.DT_VARIANT, D, D),
        (DataType.DT_QINT8, D, D),
    ],
)
def test_types(dtype, with_kernel, without):
    registry = kernels("One", "GPU")
    assert memory_types_for_node(one_op(), "GPU", one(dtype), registry=registry) == (
        [with_kernel],
        [with_kernel],
    )
    assert memory_types_for_node(one_op(), "GPU", one(dtype), registry=KernelRegistry()) == (
        [without],
        [without],
    )
    assert mtype_from_dtype(dtype) == without
    assert mtype_from_dtype(dtype, int32_on_device=True) == with_kernel


def test_two_kernels_to_choose_from_count_as_none():
    registry = kernels("One", "GPU", "GPU", host=["a"])
    assert memory_types_for_node(one_op(), "GPU", one(DataType.DT_FLOAT), registry=registry) == (
        [D],
        [D],
    )


def test_a_default_kernel_counts():
    registry = kernels("One", "DEFAULT", host=["a"])
    assert memory_types_for_node(one_op(), "GPU", one(DataType.DT_INT32), registry=registry) == (
        [H],
        [D],
    )


@pytest.mark.parametrize(
    ("device", "must_compile", "expected"), [("TPU", False, D), ("GPU", True, D), ("GPU", False, H)]
)
def test_compiled_integers_stay_on_the_device(device, must_compile, expected):
    node = one(DataType.DT_INT32, _XlaMustCompile=must_compile)
    found = memory_types_for_node(one_op(), device, node, registry=KernelRegistry())
    assert found == ([expected], [expected])


@pytest.mark.parametrize(
    "op",
    ["PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient", "While", "StatelessWhile"],
)
def test_function_calls_are_judged_by_their_types_alone(op):
    ops = op_registry(
        OpDefBuilder(op)
        .input("args: Tin")
        .output("output: Tout")
        .attr("Tin: list(type) >= 0")
        .attr("Tout: list(type) >= 0")
        .attr("f: func")
    )
    types = [DataType.DT_INT32, DataType.DT_FLOAT]
    node = node_def("n", op, ["x", "y"], Tin=types, Tout=types, f=func("f"))
    found = memory_types_for_node(ops, "CPU", node, registry=kernels(op, "CPU", host=["output"]))
    assert found == ([H, D], [H, D])


@pytest.mark.parametrize(
    ("attr", "expected"),
    [([0], H), ([-1], D), ([5], D), ([], D), (0, D)],
)
def test_indices_in_attrs_force_host_memory(attr, expected):
    registry = kernels("One", "GPU")
    node = one(DataType.DT_FLOAT, _input_hostmem=attr)
    assert memory_types_for_node(one_op(), "GPU", node, registry=registry) == ([expected], [D])
    node = one(DataType.DT_FLOAT, _output_hostmem=attr)
    assert memory_types_for_node(one_op(), "GPU", node, registry=KernelRegistry()) == (
        [D],
        [expected],
    )


def test_an_unknown_op_and_a_missing_attr():
    with pytest.raises(NotFoundError, match="'NotAnOp'"):
        memory_types_for_node(OpRegistry(), "CPU", node_def("n", "NotAnOp"))
    with pytest.raises(NotFoundError, match="No attr named 'T' in NodeDef"):
        memory_types_for_node(one_op(), "CPU", node_def("n", "One", ["x"]))
