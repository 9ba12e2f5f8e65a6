import threading
import time

import pytest

from opkernel.errors import NotFoundError
from opkernel.kernel.kernel_def import KernelDefBuilder
from opkernel.kernel.op_kernel import OpKernel
from opkernel.kernel.registry import (
    KernelRegistration,
    KernelRegistry,
    global_kernel_registry,
)


def kernel(class_name, op="A", device="CPU", label="", owner=""):
    kernel_def = KernelDefBuilder(op).device(device).label(label).build()
    return KernelRegistration(kernel_def, class_name, OpKernel, owner)


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


def test_the_same_module_replaces_its_kernel():
    registry = KernelRegistry()
    registry.register(kernel("old", owner="notebook"))
    registry.register(kernel("elsewhere", owner="plugin"))
    assert registry.version == 0
    registry.register(kernel("new", owner="notebook"))
    assert registry.version == 1
    assert names(registry.candidates("A", "CPU", "")) == ["new", "elsewhere"]


def test_another_declaration_or_an_unknown_owner_replaces_nothing():
    registry = KernelRegistry()
    registry.register(kernel("a", owner="notebook"))
    registry.register(kernel("b", owner="notebook", label="x"))
    registry.register(kernel("c"))
    registry.register(kernel("d"))
    assert registry.version == 0
    assert names(registry.registrations_for("A")) == ["d", "c", "b", "a"]


def test_unregister():
    registry = KernelRegistry()
    first, second = kernel("first"), kernel("second")
    registry.register(first)
    registry.register(second)
    registry.unregister(second)
    assert registry.version == 1
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
