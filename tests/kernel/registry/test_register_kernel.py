import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import (
    KernelRegistry,
    Name,
    OpKernel,
    create_op_kernel,
    register_kernel,
)
from opkernel.opdef import OpRegistry, register_op, unchanged_shape
from opkernel.proto import AttrValue, NodeDef
from opkernel.runtime import CPU
from opkernel.types import DataType, float32


@pytest.fixture
def ops():
    registry = OpRegistry()
    register_op(
        "Twice",
        inputs=["x: T"],
        outputs=["y: T"],
        attrs=["T: {float, int32}", "by: int = 2"],
        shape_fn=unchanged_shape,
        registry=registry,
    )
    return registry


@pytest.fixture
def kernels():
    return KernelRegistry()


class Twice(OpKernel):
    made = 0

    def __init__(self, construction):
        super().__init__(construction)
        Twice.made += 1

    def compute(self, ctx):
        ctx.set_output(0, ctx.input(0) * 2)


def created(ops, kernels, dtype=DataType.DT_FLOAT):
    attrs = {"T": AttrValue(type=dtype), "by": AttrValue(i=2)}
    node = NodeDef(name="n", op="Twice", input=["x"], attr=attrs)
    return create_op_kernel(CPU, node, op_registry=ops, registry=kernels)


def test_a_class_by_a_chain(ops, kernels):
    chain = Name("Twice").device("CPU").type_constraint("T", float32).host_memory("x").priority(1)
    assert register_kernel(chain, registry=kernels)(Twice) is Twice
    (registered,) = kernels.registrations()
    assert registered.class_name == "Twice"
    assert registered.owner == __name__
    assert registered.kernel_def == chain.build()
    before = Twice.made
    assert isinstance(created(ops, kernels), Twice)
    assert Twice.made == before + 1


def test_a_chain_and_keywords_say_the_same(kernels):
    register_kernel(
        Name("Twice")
        .device("CPU")
        .type_constraint("T", float32)
        .attr_constraint("by", 2)
        .host_memory("x")
        .label("l")
        .priority(1),
        registry=kernels,
    )(Twice)
    register_kernel(
        "Twice",
        device="CPU",
        types={"T": float32},
        attrs={"by": 2},
        host_memory=["x"],
        label="l",
        priority=1,
        registry=(other := KernelRegistry()),
    )(Twice)
    assert kernels.registrations()[0].kernel_def == other.registrations()[0].kernel_def


def test_a_chain_with_a_function(ops, kernels):
    @register_kernel(Name("Twice").device("CPU"), registry=kernels, op_registry=ops)
    def twice(x, *, by):
        return x * by

    assert created(ops, kernels).function(np.float32(3)) == 6
    assert twice(1, by=4) == 4


def test_a_factory_makes_kernels_when_they_are_needed(ops, kernels):
    class Factory:
        def __init__(self):
            self.made = []

        def create(self, construction):
            self.made.append(construction.node_def.name)
            return Twice(construction)

    factory = Factory()
    register_kernel(Name("Twice").device("CPU"), registry=kernels)(factory)
    (registered,) = kernels.registrations()
    assert registered.class_name.endswith("Factory")
    assert registered.owner == __name__
    assert factory.made == []
    assert isinstance(created(ops, kernels), Twice)
    assert factory.made == ["n"]


def test_functions_are_checked_against_the_op(ops, kernels):
    with pytest.raises(InvalidArgumentError, match="does not fit the op Twice"):

        @register_kernel(Name("Twice").device("CPU"), registry=kernels, op_registry=ops)
        def twice(x, y):
            return x

    assert kernels.registrations() == []


@pytest.mark.parametrize(
    "keywords",
    [
        {"device": "CPU"},
        {"types": {"T": float32}},
        {"attrs": {"by": 2}},
        {"host_memory": ["x"]},
        {"label": "l"},
        {"priority": 1},
    ],
)
def test_a_declaration_is_given_one_way(keywords, kernels):
    with pytest.raises(TypeError, match="not by both"):
        register_kernel(Name("Twice").device("CPU"), registry=kernels, **keywords)


@pytest.mark.parametrize("op", ["Twice", Name("Twice")])
def test_a_device_is_needed(op, kernels):
    with pytest.raises(TypeError, match="the kernel of Twice lacks a device"):
        register_kernel(op, registry=kernels)


def test_what_is_no_kernel_is_refused(kernels):
    with pytest.raises(TypeError, match="a kernel of Twice must be callable, not 5"):
        register_kernel("Twice", device="CPU", registry=kernels)(5)  # type: ignore[type-var]
    assert kernels.registrations() == []


def test_system_kernels_are_marked(kernels):
    register_kernel("Twice", device="CPU", system=True, registry=kernels)(Twice)
    assert kernels.registrations()[0].is_system


def test_registering_again_replaces(ops, kernels):
    for _ in range(2):  # as a cell that is run twice: each time another function of this name

        @register_kernel("Twice", device="CPU", registry=kernels, op_registry=ops)
        def twice(x):
            return x * 2

        register_kernel("Twice", device="GPU", registry=kernels, op_registry=ops)(np.negative)

    assert [one.class_name for one in kernels.registrations()] == ["negative", twice.__qualname__]


def test_the_owner_is_the_module_that_registers(ops, kernels):
    register_kernel("Twice", device="CPU", registry=kernels, op_registry=ops)(np.negative)
    assert kernels.registrations()[0].owner == __name__


def test_one_function_for_several_ops_and_types(ops, kernels):
    def passed_on(x):
        return x

    for dtype in (DataType.DT_FLOAT, DataType.DT_INT32):
        register_kernel(
            "Twice", device="CPU", types={"T": dtype}, registry=kernels, op_registry=ops
        )(passed_on)
    assert len(kernels.registrations()) == 2
    assert created(ops, kernels, DataType.DT_INT32).function(np.int32(5)) == 5
