"""A device of this process: its name, its memory, its threads, its clock, how it computes."""

import threading
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opkernel.device.device_factory import (
    DeviceFactory,
    DeviceOptions,
    device_factory,
    register_device_factory,
    unregister_device_factory,
)
from opkernel.device.local_device import CPU, Env, LocalDevice, eager_device
from opkernel.errors import InternalError
from opkernel.kernel import AllocatorAttributes, cpu_allocator
from opkernel.types import tensor_to_proto


def test_a_device_has_a_full_name() -> None:
    device = LocalDevice("CPU", np, 3, name_prefix="/job:worker/replica:0/task:2")
    assert device.name == "/job:worker/replica:0/task:2/device:CPU:3"
    assert repr(device) == "<device /job:worker/replica:0/task:2/device:CPU:3>"
    assert LocalDevice("TOY", np).intra_op_threads == 0
    assert LocalDevice("TOY", np).name == "/job:localhost/replica:0/task:0/device:TOY:0"


def test_no_two_devices_have_one_incarnation() -> None:
    devices = [LocalDevice("CPU", np) for _ in range(50)]
    assert len({device.incarnation for device in devices}) == 50
    assert all(0 < device.incarnation < 2**64 for device in devices)
    assert devices[0].incarnation == devices[0].incarnation


def test_devices_with_arrays_of_numpy_have_the_memory_of_the_host() -> None:
    assert not LocalDevice("TOY", np).has_own_memory
    assert LocalDevice("TOY", ModuleType("arrays")).has_own_memory
    array = np.ones(2)
    assert CPU.to_host(CPU.to_device(array)) is array
    assert CPU.try_get_device_context() is None


def test_it_makes_tensors_of_messages_where_they_are_wanted() -> None:
    class Device(LocalDevice):
        def to_device(self, array: Any) -> Any:
            return SimpleNamespace(values=array)

    proto = tensor_to_proto(np.array([1, 2], np.int32))
    device = Device("TOY", ModuleType("arrays"))
    assert device.make_tensor_from_proto(proto).values.tolist() == [1, 2]
    on_host = AllocatorAttributes(on_host=True)
    assert device.make_tensor_from_proto(proto, on_host).tolist() == [1, 2]
    assert CPU.make_tensor_from_proto(proto).tolist() == [1, 2]


class Computes(LocalDevice):
    def compute(self, op_kernel: Any, ctx: Any) -> None:
        super().compute(op_kernel, ctx)


class ComputesLater(LocalDevice):
    def compute_async(self, op_kernel: Any, ctx: Any, done: Any) -> None:
        super().compute_async(op_kernel, ctx, done)


class ComputesNothing(LocalDevice):
    def to_device(self, array: Any) -> Any:
        return array


@pytest.mark.parametrize(
    ("kind", "overrides"),
    [(LocalDevice, False), (ComputesNothing, False), (Computes, True), (ComputesLater, True)],
)
def test_a_class_that_overrides_how_kernels_are_computed(kind: Any, overrides: bool) -> None:
    assert kind("CPU", np).overrides_compute is overrides


@pytest.mark.parametrize("kind", [LocalDevice, Computes, ComputesLater])
def test_a_device_computes_by_calling_the_kernel(kind: Any) -> None:
    called: list[Any] = []

    def compute_async(ctx: Any, done: Any) -> None:
        called.append(ctx)
        done()

    kernel = SimpleNamespace(compute=called.append, compute_async=compute_async)
    device = kind("CPU", np)
    device.compute(kernel, "synchronous")
    device.compute_async(kernel, "asynchronous", lambda: called.append("done"))
    assert called == ["synchronous", "asynchronous", "done"]


@pytest.mark.parametrize(("asked", "threads"), [(3, 3), (1, 1)])
def test_kernels_spread_their_work_over_as_many_threads_as_asked(asked: int, threads: int) -> None:
    device = LocalDevice("CPU", np, intra_op_threads=asked)
    meeting = threading.Barrier(threads, timeout=300)
    names: set[str] = set()

    def work(_: int) -> None:
        meeting.wait()
        names.add(threading.current_thread().name.rpartition("_")[0])

    list(device.intra_op_pool.map(work, range(threads)))
    assert names == {"opkernel intra-op"}
    assert device.intra_op_pool._max_workers == threads
    device.close()


def test_fewer_threads_than_none_are_as_many_as_there_are_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for processors, threads in ((7, 7), (None, 1)):
        monkeypatch.setattr("os.cpu_count", lambda processors=processors: processors)
        for asked in (0, -3):
            device = LocalDevice("CPU", np, intra_op_threads=asked)
            assert device.intra_op_threads == 0
            assert device.intra_op_pool._max_workers == threads
            device.close()


def test_a_closed_device_has_no_resources_and_no_threads() -> None:
    device = LocalDevice("CPU", np)
    pool, resources = device.intra_op_pool, device.resource_manager
    before = resources.removals
    device.close()
    assert resources.removals == before + 1
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.submit(int)


def test_a_device_that_nobody_used_makes_nothing_to_be_closed() -> None:
    device = LocalDevice("CPU", np)
    device.close()
    assert not {"intra_op_pool", "resource_manager"} & vars(device).keys()


def test_the_clock_counts_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    env = Env()
    assert env.now_micros() == 1_700_000_000_123_456
    env.sleep_for_microseconds(2_500_000)
    assert slept == [2.5]


def test_the_factory_makes_as_many_cpus_as_are_asked_for() -> None:
    factory = device_factory("CPU")
    for count, indices in ((None, [0]), (0, []), (3, [0, 1, 2])):
        made = factory.create_devices(DeviceOptions(count, "/job:a/replica:0/task:0", 2))
        assert [one.index for one in made] == indices
        assert {one.name.partition("/device")[0] for one in made} <= {"/job:a/replica:0/task:0"}
        assert {one.intra_op_threads for one in made} <= {2}


def test_eager_calls_are_computed_by_the_cpu_of_the_process() -> None:
    assert eager_device() is CPU


def test_eager_calls_are_computed_by_the_first_cpu_of_another_factory() -> None:
    class Factory(DeviceFactory):
        def create_devices(self, options: DeviceOptions) -> list[LocalDevice]:
            return made[: options.count]

    made = [LocalDevice("CPU", np, index) for index in range(2)]
    register_device_factory("CPU", Factory(), priority=70)
    try:
        assert eager_device() is made[0]
        assert eager_device() is made[0]
    finally:
        unregister_device_factory("CPU")
    assert eager_device() is CPU


def test_a_device_has_one_allocator_for_all_memory() -> None:
    allocator = CPU.get_allocator(AllocatorAttributes())
    assert allocator is CPU.get_allocator(AllocatorAttributes(on_host=True)) is cpu_allocator()


def test_a_device_with_its_own_memory_has_no_scoped_allocators() -> None:
    device = LocalDevice("TOY", ModuleType("arrays"))
    assert device.scoped_allocator_mgr is None
    with pytest.raises(InternalError, match=f"not supported on device {device.name}"):
        device.get_scoped_allocator(AllocatorAttributes(scope_id=1), 1)
