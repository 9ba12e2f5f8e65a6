"""Who makes the devices of a type, which type nodes prefer, and what takes whose place."""

import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from opkernel.device import device_factory as factories
from opkernel.device.device_factory import (
    DeviceFactory,
    DeviceOptions,
    check_device_type,
    device_factory,
    device_types,
    has_own_memory,
    offered_device_types,
    register_device_factory,
    unregister_device_factory,
    why_missing,
)
from opkernel.device.local_device import LocalDevice
from opkernel.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError


class Factory(DeviceFactory):
    """Makes devices of the type TOY, with an array library."""

    def __init__(self, namespace: ModuleType = np, *, is_offered_unasked: bool = True) -> None:
        self.namespace = namespace
        self.is_offered_unasked = is_offered_unasked

    def create_devices(self, options: DeviceOptions) -> list[LocalDevice]:
        return [LocalDevice("TOY", self.namespace, index) for index in range(options.count or 0)]


class Other(Factory):
    """Another class of factories."""


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    while "TOY" in device_types():
        unregister_device_factory("TOY")


def register(factory: DeviceFactory, module: str = "", **options: Any) -> DeviceFactory:
    """Registers a factory by code of a module that runs now: of another module each, unless it is named."""
    code = "register_device_factory('TOY', factory, **options)"
    names = {"__name__": module or f"of_{id(factory)}", "factory": factory, "options": options}
    exec(code, {"register_device_factory": register_device_factory, **names})
    return factory


def test_a_factory_makes_the_devices_of_its_type() -> None:
    factory = register(Factory())
    assert device_factory("TOY") is factory
    assert "TOY" in device_types()
    unregister_device_factory("TOY")
    with pytest.raises(NotFoundError) as raised:
        device_factory("TOY")
    assert raised.value.message.startswith("No device factory is registered for 'TOY'; registered")
    assert "CPU" in raised.value.message


def test_nodes_prefer_the_type_of_the_highest_priority() -> None:
    for priority, is_first in ((1000, True), (1, False)):
        register(Factory(), priority=priority)
        assert (device_types()[0] == "TOY") is is_first
        unregister_device_factory("TOY")


def test_types_of_one_priority_stand_in_the_order_of_their_names() -> None:
    register(Factory(), priority=60)  # that of the CPU
    kept = [name for name in device_types() if name in ("CPU", "TOY")]
    assert kept == ["CPU", "TOY"]
    register_device_factory("ABC", Factory(), priority=60)
    try:
        assert [name for name in device_types() if name in ("ABC", "CPU")] == ["ABC", "CPU"]
    finally:
        unregister_device_factory("ABC")


def test_a_factory_of_higher_priority_takes_the_place_until_it_is_gone() -> None:
    first = register(Factory(), priority=10)
    second = register(Other(), priority=11)
    assert device_factory("TOY") is second
    unregister_device_factory("TOY")
    assert device_factory("TOY") is first


def test_a_factory_of_lower_priority_changes_nothing() -> None:
    first = register(Factory(), priority=10)
    register(Other(), priority=9)
    assert device_factory("TOY") is first


def test_a_factory_that_names_no_priority_has_50() -> None:
    first = register(Factory(), priority=49)
    second = register(Other())
    assert device_factory("TOY") is second
    unregister_device_factory("TOY")
    unregister_device_factory("TOY")
    first = register(Factory(), priority=51)
    register(Other())
    assert device_factory("TOY") is first


def test_a_second_factory_of_the_same_priority_is_refused() -> None:
    first = register(Factory(), priority=10)
    with pytest.raises(AlreadyExistsError, match="for type TOY with the same priority 10"):
        register(Other(), priority=10)
    assert device_factory("TOY") is first


def test_a_factory_of_the_same_class_takes_the_place_for_good() -> None:
    register(Factory(), priority=10)
    second = register(Factory(), priority=10)
    assert device_factory("TOY") is second
    unregister_device_factory("TOY")
    assert "TOY" not in device_types()


def test_a_module_that_runs_again_registers_in_place_of_its_earlier_run() -> None:
    register(Factory(), "module", priority=10)
    second = register(Other(), "module", priority=10)
    assert device_factory("TOY") is second
    unregister_device_factory("TOY")
    assert "TOY" not in device_types()


def test_who_takes_the_place_of_the_second_has_the_first_come_back() -> None:
    first = register(Factory(), "a", priority=10)
    register(Other(), "b", priority=11)
    register(Other(), "b", priority=12)
    unregister_device_factory("TOY")
    assert device_factory("TOY") is first


def test_a_change_is_noticed_by_whoever_counts_them() -> None:
    seen = [factories.version]
    register(Factory())
    seen.append(factories.version)
    unregister_device_factory("TOY")
    seen.append(factories.version)
    assert len({*seen}) == 3


def test_types_that_are_offered_unasked() -> None:
    register(Factory(is_offered_unasked=False), priority=1000)
    assert "TOY" in device_types()
    assert "TOY" not in offered_device_types()
    assert "CPU" in offered_device_types()
    unregister_device_factory("TOY")
    register(Factory(), priority=1000)
    assert offered_device_types()[0] == "TOY"


def test_a_device_that_has_an_array_library_of_its_own_has_its_own_memory() -> None:
    register(Factory(np))
    assert not has_own_memory("TOY")
    unregister_device_factory("TOY")
    register(Factory(ModuleType("arrays")))
    assert has_own_memory("TOY")
    assert not has_own_memory("CPU")
    assert has_own_memory("ABSENT")  # a graph may be made ready for another process


def test_one_device_tells_what_memory_a_type_has() -> None:
    class Counts(Factory):
        def create_devices(self, options: DeviceOptions) -> list[LocalDevice]:
            counts.append(options.count)
            return super().create_devices(options)

    counts: list[int | None] = []
    register(Counts())
    assert not has_own_memory("TOY")
    assert counts == [1]


def test_plugins_are_loaded_for_a_type_that_nobody_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[bool] = []

    def load_plugins() -> None:
        loaded.append(True)
        register(Factory())

    monkeypatch.setattr(factories, "load_plugins", load_plugins)
    assert isinstance(device_factory("TOY"), Factory)
    for present in ("TOY", "CPU"):
        device_factory(present)
    assert loaded == [True]


def test_a_factory_tells_the_devices_of_the_machine() -> None:
    assert Factory().list_physical_devices() == []
    assert device_factory("CPU").list_physical_devices() == ["/physical_device:CPU:0"]


@pytest.mark.parametrize("device_type", ["CPU", "GPU", "TPU", "XLA_CPU_JIT", "DEFAULT"])
def test_kernels_may_be_for_the_types_of_tensorflow(device_type: str) -> None:
    check_device_type(device_type, "the kernel of Neg")


def test_kernels_may_be_for_types_that_have_a_factory() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        check_device_type("TOY", "the kernel of Neg")
    message = raised.value.message
    assert message.startswith(
        "the kernel of Neg is for devices of type 'TOY', which no factory makes;"
    )
    assert "known are CPU, DEFAULT, GPU" in message
    register(Factory())
    check_device_type("TOY", "the kernel of Neg")
    for name in ("toy", "cpu"):
        with pytest.raises(InvalidArgumentError, match=f"perhaps you mean '{name.upper()}'"):
            check_device_type(name, "the kernel of Neg")


class Finds:
    """Finds the devices of the type TOY, which need a library."""

    def __init__(self, *, is_installed: bool) -> None:
        self.is_installed = is_installed
        self.offers = 0

    def get(self, device_type: str) -> Any:
        return self if device_type == "TOY" else None

    def offer(self, device_type: str) -> None:
        self.offers += 1
        if self.is_installed:
            register(Factory())

    def why_missing(self, device_type: str) -> str:
        return f"{device_type} needs a library"


@pytest.fixture
def provided(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has TOY be a type that comes with opkernel, with the library installed or not."""

    def made(*, is_installed: bool) -> Finds:
        finds = Finds(is_installed=is_installed)
        monkeypatch.setattr(factories, "PROVIDED", finds)
        monkeypatch.setattr(factories, "_asked", set())
        return finds

    return made


def test_a_type_that_comes_with_opkernel_is_offered_when_it_is_asked_for(provided: Any) -> None:
    finds = provided(is_installed=True)
    assert "TOY" not in device_types()
    assert isinstance(device_factory("TOY"), Factory)
    assert why_missing("TOY") == ""
    assert device_factory("TOY") is device_factory("TOY")
    assert finds.offers == 1


def test_of_a_type_that_comes_with_opkernel_it_is_said_why_there_is_none(provided: Any) -> None:
    finds = provided(is_installed=False)
    for _ in range(2):
        with pytest.raises(NotFoundError, match=r"registered are: .*CPU.*\. TOY needs a library$"):
            device_factory("TOY")
    assert finds.offers == 1  # a library that is not there is looked for once
    assert why_missing("TOY") == "TOY needs a library"
    assert why_missing("ABSENT") == ""


def test_the_cpu_is_there_whoever_asks_first() -> None:
    code = (
        "from opkernel.device import device_factory as d; "
        "print(d.device_types(), d.has_own_memory('CPU'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'CPU'" in done.stdout
    assert done.stdout.endswith("False\n")
