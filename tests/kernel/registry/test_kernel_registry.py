import threading
import time

import pytest

from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry.kernel_def import KernelDefBuilder
from opkernel.kernel.registry.kernel_registry import KernelRegistry, global_kernel_registry
from opkernel.kernel.registry.registration import KernelRegistration
from opkernel.proto import AttrValue, NodeDef
from opkernel.types import DataType


def kernel(
    class_name,
    op="A",
    device="CPU",
    label="",
    owner="",
    types=None,
    priority=0,
    host_memory="",
    is_system=False,
):
    builder = KernelDefBuilder(op).device(device).label(label).priority(priority)
    if types is not None:
        builder.type_constraint("T", types)
    if host_memory:
        builder.host_memory(host_memory)
    return KernelRegistration(builder.build(), class_name, OpKernel, owner, is_system)


def names(registrations):
    return [one.class_name for one in registrations]


def test_kernels_are_found_by_op_device_and_label_newest_first():
    registry = KernelRegistry()
    for one in [
        kernel("first"),
        kernel("gpu", device="GPU"),
        kernel("labelled", label="x"),
        kernel("other", op="B"),
        kernel("second"),
    ]:
        registry.register(one)
    assert names(registry.candidates("A", "CPU", "")) == ["second", "first"]
    assert names(registry.candidates("A", "CPU", "x")) == ["labelled"]
    assert names(registry.candidates("A", "GPU", "x")) == []
    assert names(registry.registrations_for("A")) == ["second", "labelled", "gpu", "first"]
    assert names(registry.registrations_for("C")) == []
    assert sorted(names(registry.registrations())) == [
        "first",
        "gpu",
        "labelled",
        "other",
        "second",
    ]


class TestReplacing:
    """A module that registers a kernel again, as a notebook's cell that is run twice does."""

    def after(self, *registrations):
        registry = KernelRegistry()
        for one in registrations:
            registry.register(one)
        assert names(registry.candidates("A", "CPU", "")) == [
            one.class_name for one in registry.registrations_for("A")
        ]
        return names(registry.registrations_for("A"))

    def test_the_same_declaration_from_the_same_module(self):
        old, other = kernel("old", owner="notebook"), kernel("elsewhere", owner="plugin")
        assert self.after(old, other, kernel("new", owner="notebook")) == ["new", "elsewhere"]

    def test_the_same_constraints_with_other_memory(self):
        new = kernel("new", owner="notebook", host_memory="x")
        assert self.after(kernel("old", owner="notebook"), new) == ["new"]

    def test_the_same_name_for_some_of_the_same_types(self):
        old = kernel("add", owner="notebook", types=["float"])
        wider = kernel("add", owner="notebook", types=["float", "double"], priority=1)
        assert self.after(old, wider) == ["add"]

    def test_the_same_name_for_other_types_is_another_kernel(self):
        one, two = (kernel("add", owner="notebook", types=[t]) for t in ("float", "int32"))
        assert self.after(one, two) == ["add", "add"]

    def test_another_priority_by_another_name_is_another_kernel(self):
        fallback = kernel("plain", owner="plugin")
        assert self.after(fallback, kernel("fast", owner="plugin", priority=1)) == ["fast", "plain"]

    def test_unknown_owners_replace_nothing(self):
        assert self.after(kernel("a"), kernel("a")) == ["a", "a"]

    def test_the_same_registration_twice_is_one(self):
        one = kernel("a")
        assert self.after(one, one) == ["a"]

    def test_other_labels_and_devices_stay(self):
        registry = KernelRegistry()
        for one in [
            kernel("a", owner="notebook"),
            kernel("a", owner="notebook", label="x"),
            kernel("a", owner="notebook", device="GPU"),
        ]:
            registry.register(one)
        assert len(registry.registrations_for("A")) == 3


class TestVersion:
    """It changes where kernels that were found may be stale, and no other time."""

    def test_before_the_first_lookup_nothing_is_stale(self):
        registry = KernelRegistry()
        registry.register(kernel("a", owner="m"))
        registry.register(kernel("a", owner="m"))
        assert (registry.version, registry.version_of("A")) == (0, 0)

    def test_after_it_each_change_counts(self):
        registry = KernelRegistry()
        first = kernel("a", owner="m")
        registry.register(first)
        registry.candidates("A", "CPU", "")
        registry.register(kernel("b", op="B"))
        assert registry.version == 0
        registry.unregister(first)
        assert (registry.version, registry.version_of("A"), registry.version_of("B")) == (1, 1, 0)
        registry.register(kernel("a", owner="m"))
        assert (registry.version, registry.version_of("A")) == (2, 2)

    def test_what_a_loader_registers_for_a_lookup_does_not_count(self):
        registry = KernelRegistry()
        registry.set_loader(lambda op: registry.register(kernel("loaded", op=op)))
        assert names(registry.candidates("A", "CPU", "")) == ["loaded"]
        assert registry.version == 0


class TestSelect:
    def registry(self):
        registry = KernelRegistry()
        for one in [
            kernel("float", types=["float"]),
            kernel("int", types=["int32"]),
            kernel("gpu", device="GPU", types=["float"]),
            kernel("labelled", label="x"),
            kernel("system", op="_Send", is_system=True),
            kernel("other", op="B"),
        ]:
            registry.register(one)
        return registry

    def node(self, **attrs):
        return NodeDef(name="n", op="A", attr={"T": AttrValue(type=DataType.DT_FLOAT), **attrs})

    def test_what_the_nodes_can_have_on_any_device_and_the_systems_own(self):
        selected = self.registry().select([self.node()])
        assert sorted(names(selected.registrations())) == ["float", "gpu", "system"]
        assert names(selected.candidates("A", "CPU", "")) == ["float"]

    def test_labels(self):
        selected = self.registry().select([self.node(_kernel=AttrValue(s=b"x"))])
        assert sorted(names(selected.registrations())) == ["labelled", "system"]

    def test_without_nodes(self):
        assert names(self.registry().select([]).registrations()) == ["system"]

    def test_kernels_are_loaded(self):
        registry = KernelRegistry()
        registry.set_loader(
            lambda op: registry.register(kernel(op, op=op, is_system=op == "_Recv"))
        )
        assert sorted(names(registry.select([self.node()]).registrations())) == ["A", "_Recv"]

    def test_of_the_real_kernels(self):
        nodes = [NodeDef(name="n", op="Relu", attr={"T": AttrValue(type=DataType.DT_FLOAT)})]
        selected = global_kernel_registry().select(nodes)
        ops = {one.kernel_def.op for one in selected.registrations()}
        assert {"Relu", "NoOp", "_Arg", "_Retval"} <= ops
        assert "Conv2D" not in ops

    def test_a_node_without_the_attr(self):
        with pytest.raises(InvalidArgumentError, match="constraint on attr 'T' not in NodeDef"):
            self.registry().select([NodeDef(name="n", op="A")])


def test_unregister():
    registry = KernelRegistry()
    first, second = kernel("first"), kernel("second")
    registry.register(first)
    registry.register(second)
    registry.unregister(second)
    assert names(registry.candidates("A", "CPU", "")) == ["first"]
    assert names(registry.registrations_for("A")) == ["first"]
    with pytest.raises(NotFoundError, match="'A' OpKernel 'second' is not registered"):
        registry.unregister(second)


def test_the_loader_is_asked_once_for_each_op_before_it_is_looked_up():
    registry = KernelRegistry()
    asked = []

    def load(op):
        asked.append(op)
        if op == "A":
            registry.register(kernel("loaded"))

    registry.set_loader(load)
    assert names(registry.registrations()) == []
    assert names(registry.candidates("A", "CPU", "")) == ["loaded"]
    assert names(registry.registrations_for("A")) == ["loaded"]
    assert names(registry.registrations_for("B")) == []
    assert names(registry.registrations_for("B")) == []
    assert asked == ["A", "B"]


def test_a_loader_that_looks_up_kernels_itself_is_not_asked_again():
    registry = KernelRegistry()
    asked = []

    def load(op):
        asked.append(op)
        registry.registrations_for(op)

    registry.set_loader(load)
    registry.registrations_for("A")
    assert asked == ["A"]


def test_a_loader_that_raised_is_asked_again():
    registry = KernelRegistry()
    asked = []

    def load(op):
        asked.append(op)
        if len(asked) == 1:
            raise ImportError("not yet")

    registry.set_loader(load)
    with pytest.raises(ImportError, match="not yet"):
        registry.registrations_for("A")
    registry.registrations_for("A")
    assert asked == ["A", "A"]


def test_a_lookup_waits_for_the_loader_that_another_thread_runs():
    registry = KernelRegistry()
    begun = threading.Event()

    def load(op):
        begun.set()
        time.sleep(0.02)
        registry.register(kernel("loaded"))

    registry.set_loader(load)
    other = threading.Thread(target=registry.registrations_for, args=("A",))
    other.start()
    begun.wait()
    assert names(registry.registrations_for("A")) == ["loaded"]
    other.join()


def test_kernels_registered_by_several_threads_are_all_kept():
    registry = KernelRegistry()

    def register(thread):
        for i in range(50):
            registry.register(kernel(f"{thread}-{i}"))

    threads = [threading.Thread(target=register, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(registry.candidates("A", "CPU", "")) == 200


def test_there_is_one_global_registry():
    assert global_kernel_registry() is global_kernel_registry()
    assert isinstance(global_kernel_registry(), KernelRegistry)
