"""Where sessions allocate: kernels are told, and a device's own allocator serves every step."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.device import (
    Device,
    DeviceFactory,
    register_device_factory,
    unregister_device_factory,
)
from opkernel.kernel import (
    AllocatorAttributes,
    CpuAllocator,
    OpKernel,
    global_kernel_registry,
    register_kernel,
)
from opkernel.proto import AttrValue, RunMetadata

FULL_TRACE = opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE)


def test_arguments_in_host_memory_are_allocated_on_the_host(toy):
    told: dict[str, Any] = {}

    @register_kernel("Tile", device="TOY", host_memory=["multiples"])
    class Tile(OpKernel):
        def compute(self, ctx):
            told["inputs"] = [ctx.input_alloc_attr(i).on_host for i in range(2)]
            told["output"] = ctx.output_alloc_attr("output").on_host
            value, multiples = ctx.input(0)._values, ctx.input(1)
            assert isinstance(multiples, np.ndarray)
            work = ctx.allocate_temp(opkernel.float32, [1])
            made = ctx.allocate_output(0, np.tile(value, multiples).shape)
            assert type(made) is type(work) is toy.ToyArray
            assert type(ctx.allocate_persistent(opkernel.float32, [2]).access_tensor(ctx)) is type(
                work
            )
            made._values[...] = np.tile(value, multiples)

    @register_kernel("Size", device="TOY", host_memory=["output"])
    class Size(OpKernel):
        def compute(self, ctx):
            told["size"] = ctx.output_alloc_attr(0).on_host
            ctx.allocate_output(0, [])[...] = np.prod(ctx.input(0).shape)

    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [2], name="x")
        with graph.device("/device:TOY:0"):
            tiled = opkernel.tile(x, [3])
            size = opkernel.raw_ops.Size(input=tiled)
        with graph.device("/device:CPU:0"):  # what arrives there was sent
            total = opkernel.reduce_sum(tiled)
    config = opkernel.SessionConfig(device_count={"CPU": 1, "TOY": 1}, allow_soft_placement=False)
    with opkernel.Session(graph, config=config, optimize=False) as session:
        for options, metadata in ((None, None), (FULL_TRACE, RunMetadata())):
            told.clear()
            found = session.run([tiled, size, total], {x: [1, 2]}, options, metadata)
            assert [one.tolist() for one in found] == [[1, 2, 1, 2, 1, 2], 6, 9]
            assert told == {"inputs": [False, True], "output": False, "size": True}


class CountingAllocator(CpuAllocator):
    name = "counting"


class OwnMemory(Device):
    """A CPU with an allocator of its own."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.allocator = CountingAllocator()

    def get_allocator(self, attr: AllocatorAttributes) -> Any:
        return self.allocator


@pytest.fixture
def made() -> Iterator[list[OwnMemory]]:
    """The devices of sessions, and of eager calls."""
    devices: list[OwnMemory] = []

    class Factory(DeviceFactory):
        def create_devices(self, options: Any) -> Any:
            devices.append(OwnMemory("CPU", np, name_prefix=options.name_prefix))
            return devices[-1:]

    registry = global_kernel_registry()
    before = registry.registrations_for("Expm1")

    @register_kernel("Expm1", device="CPU", label="allocates")
    class Allocates(OpKernel):
        def compute(self, ctx: Any) -> None:
            work = ctx.allocate_temp(self.input_type(0), ctx.input(0).shape)
            np.expm1(ctx.input(0), out=work)
            ctx.allocate_output(0, work.shape)[...] = work

    register_device_factory("CPU", Factory(), priority=70)
    yield devices
    unregister_device_factory("CPU")
    for one in set(registry.registrations_for("Expm1")).difference(before):
        registry.unregister(one)


@pytest.mark.parametrize("options", [None, FULL_TRACE], ids=["plain", "traced"])
@pytest.mark.parametrize("executor", ["", "DATAFLOW"])
def test_the_allocator_of_a_device_serves_every_step(made, executor, options):
    graph = opkernel.Graph()
    with graph.as_default():
        x = opkernel.placeholder(opkernel.float32, [3], name="x")
        label = AttrValue(s=b"allocates")
        y = graph.create_op("Expm1", [x], attrs={"_kernel": label}).outputs[0]
    config = opkernel.SessionConfig(executor_type=executor)
    with opkernel.Session(graph, config=config) as session:
        session.run(y, {x: [0, 1, 2]}, options, RunMetadata() if options else None)
    assert sum(one.allocator.get_stats().num_allocs for one in made) == 2
