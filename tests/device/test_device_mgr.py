"""The devices of a session by name, and how many there are of each type."""

from typing import Any

import numpy as np
import pytest

from opkernel.device.device_factory import (
    DeviceFactory,
    DeviceOptions,
    register_device_factory,
    unregister_device_factory,
)
from opkernel.device.local_device import DeviceMgr, LocalDevice, new_devices
from opkernel.errors import InvalidArgumentError, NotFoundError
from opkernel.opdef import DeviceName

TASK = "/job:localhost/replica:0/task:0"


def devices(*names: str) -> list[LocalDevice]:
    return [LocalDevice(name[:-1], np, int(name[-1])) for name in names]


def names(found: list[LocalDevice]) -> list[str]:
    return [f"{one.device_type}:{one.index}" for one in found]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (f"{TASK}/device:CPU:1", "CPU:1"),
        ("/device:CPU:0", "CPU:0"),
        ("/CPU:1", "CPU:1"),
        ("CPU:1", "CPU:1"),
        ("TOY:0", "TOY:0"),
        ("/device:TOY:*", "TOY:0"),
    ],
)
def test_a_device_has_a_full_and_a_local_name(name: str, found: str) -> None:
    mgr = DeviceMgr(devices("CPU0", "CPU1", "TOY0"))
    for _ in range(2):
        assert names([mgr.look_up(name)]) == [found]


@pytest.mark.parametrize(
    "name", ["CPU:2", "GPU:0", "/device:CPU:*", f"{TASK.replace('task:0', 'task:1')}/device:CPU:0"]
)
def test_no_device_and_several_devices_are_refused(name: str) -> None:
    mgr = DeviceMgr(devices("CPU0", "CPU1"))
    with pytest.raises(InvalidArgumentError) as raised:
        mgr.look_up(name)
    assert raised.value.message == (
        f"{name} unknown device; there are: {TASK}/device:CPU:0, {TASK}/device:CPU:1"
    )


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(InvalidArgumentError):
        DeviceMgr(devices("CPU0")).look_up("the first")


def test_devices_that_have_every_part_of_a_name_match() -> None:
    mgr = DeviceMgr(devices("CPU0", "CPU1", "TOY0"))
    for asked, found in {
        "/device:CPU:*": ["CPU:0", "CPU:1"],
        "/device:TOY:0": ["TOY:0"],
        "/device:TOY:1": [],
        "/job:localhost": ["CPU:0", "CPU:1", "TOY:0"],
        "/job:worker": [],
    }.items():
        for _ in range(2):
            assert names(mgr.matching(DeviceName.parse_full_name(asked))) == found


def test_devices_may_come_later() -> None:
    first, later = devices("CPU0"), devices("TOY0", "TOY1")
    mgr, asked = DeviceMgr(first), DeviceName.parse_full_name("/device:TOY:*")
    assert mgr.matching(asked) == []
    mgr.add(later)
    assert mgr.all == (*first, *later)
    assert mgr.matching(asked) == later
    assert mgr.look_up("TOY:1") is later[1]
    assert mgr.client_device is first[0]
    assert mgr.device_types == ["CPU", "TOY"]


class Containers:
    """Takes the place of a device's resources: notes which containers were dropped."""

    default_container = "localhost"

    def __init__(self) -> None:
        self.dropped: list[str] = []

    def cleanup(self, container: str) -> None:
        self.dropped.append(container)

    def clear(self) -> None:
        self.dropped.append("all")


@pytest.mark.parametrize(
    ("drop", "dropped"),
    [
        (lambda mgr: mgr.cleanup("a"), ["a"]),
        (lambda mgr: mgr.clear_containers(["a", "b"]), ["a", "b"]),
        (lambda mgr: mgr.clear_containers([]), ["localhost"]),
        (lambda mgr: mgr.close(), ["all"]),
    ],
)
def test_containers_are_dropped_on_all_devices(drop: Any, dropped: list[str]) -> None:
    given = devices("CPU0", "TOY0")
    containers = [Containers(), Containers()]
    for device, resources in zip(given, containers, strict=True):
        vars(device)["resource_manager"] = resources
    drop(DeviceMgr(given))
    assert [one.dropped for one in containers] == [dropped, dropped]


class ToyFactory(DeviceFactory):
    """Makes two devices unless it is told how many."""

    def __init__(self, *, is_offered_unasked: bool = True) -> None:
        self.is_offered_unasked = is_offered_unasked
        self.options: list[DeviceOptions] = []

    def create_devices(self, options: DeviceOptions) -> list[LocalDevice]:
        self.options.append(options)
        count = 2 if options.count is None else options.count
        return [LocalDevice("TOY", np, index) for index in range(count)]


@pytest.fixture
def register() -> Any:
    """Registers a factory of TOY devices for the test."""
    yield lambda factory, **options: register_device_factory("TOY", factory, **options)
    unregister_device_factory("TOY")


def test_cpus_come_first_whatever_nodes_prefer(register: Any) -> None:
    register(ToyFactory(), priority=1000)
    assert names(new_devices({})) == ["CPU:0", "TOY:0", "TOY:1"]
    assert names(new_devices({"CPU": 2, "TOY": 1})) == ["CPU:0", "CPU:1", "TOY:0"]
    assert names(new_devices({"TOY": 0})) == ["CPU:0"]
    assert names(new_devices({}, but=["TOY"])) == ["CPU:0"]


def test_a_type_that_is_not_offered_unasked_has_devices_for_who_asks(register: Any) -> None:
    register(ToyFactory(is_offered_unasked=False))
    assert names(new_devices({})) == ["CPU:0"]
    assert names(new_devices({}, asked=["TOY"])) == ["CPU:0", "TOY:0", "TOY:1"]
    assert names(new_devices({"TOY": 1})) == ["CPU:0", "TOY:0"]
    assert names(new_devices({"TOY": 0})) == ["CPU:0"]


def test_a_factory_is_told_the_options(register: Any) -> None:
    factory = ToyFactory()
    register(factory)
    cpu, *_ = new_devices(
        {"TOY": 3}, name_prefix="/job:worker/replica:0/task:7", intra_op_threads=5
    )
    assert factory.options == [DeviceOptions(3, "/job:worker/replica:0/task:7", 5)]
    assert (cpu.name, cpu.intra_op_threads) == ("/job:worker/replica:0/task:7/device:CPU:0", 5)


def test_a_factory_that_is_told_nothing_chooses_for_itself(register: Any) -> None:
    factory = ToyFactory()
    register(factory)
    new_devices({})
    assert factory.options == [DeviceOptions(None, TASK, 0)] == [DeviceOptions()]


def test_a_session_without_a_cpu_is_refused(register: Any) -> None:
    register(ToyFactory())
    with pytest.raises(NotFoundError, match="No CPU devices are available in this process"):
        new_devices({"CPU": 0})


def test_a_session_has_1024_devices_of_a_type_at_most(register: Any) -> None:
    register(ToyFactory())
    assert len(new_devices({"TOY": 1024})) == 1025
    with pytest.raises(InvalidArgumentError, match=r"1025 devices of type 'TOY'; .* at most 1024"):
        new_devices({"TOY": 1025})


def test_a_type_that_nobody_makes_is_passed_over() -> None:
    assert names(new_devices({"ABSENT": 2}, asked=["ABSENT"])) == ["CPU:0"]
