"""Memory that a kernel keeps, memory of the host, and what a device tells its kernels."""

from typing import Any

import numpy as np
import pytest
from tests.kernel.kernels import make_kernel

from opkernel.errors import InvalidArgumentError, ResourceExhaustedError
from opkernel.kernel import (
    AllocatorAttributes,
    ContextParams,
    KernelRegistry,
    MemoryType,
    OpKernel,
    OpKernelConstruction,
    OpKernelContext,
    PersistentTensor,
    Step,
    allocation_limit,
    create_op_kernel,
    register_kernel,
)
from opkernel.opdef import OpRegistry, register_op, unknown_shape
from opkernel.proto import NodeDef
from opkernel.runtime import LocalDevice
from opkernel.types import float32

ON_HOST = AllocatorAttributes(on_host=True)


class Accelerator(LocalDevice):
    """A device with a context of its own."""

    context = object()

    def try_get_device_context(self) -> object:
        return self.context


class Tracked(Step):
    """A step that tracks allocations."""

    track_allocations = True


class Idle(OpKernel):
    """A kernel whose context the test works on."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Do nothing."""


def kernel_on(device: Any, kernel: type[OpKernel] = Idle) -> OpKernel:
    ops, kernels = OpRegistry(), KernelRegistry()
    handle = register_op("Test", inputs=["x: float"], shape_fn=unknown_shape, registry=ops)
    register_kernel(handle, device="GPU", registry=kernels, op_registry=ops)(kernel)
    node = NodeDef(name="n", op="Test", input=["x"])
    return create_op_kernel(device, node, op_registry=ops, registry=kernels)


@pytest.fixture
def accelerated() -> OpKernel:
    return kernel_on(Accelerator("GPU", np))


def test_a_kernel_keeps_a_tensor_from_its_construction_and_counts_in_it() -> None:
    class Count(OpKernel):
        def __init__(self, construction: OpKernelConstruction) -> None:
            super().__init__(construction)
            self.count = construction.allocate_persistent(float32, [2], ON_HOST)
            self.count.access_tensor(construction)[:] = 0

        def compute(self, ctx: OpKernelContext) -> None:
            count = self.count.access_tensor(ctx)
            count += 1
            ctx.set_output(0, count.copy())

    kernel = make_kernel(Count, outputs=["n: float"])
    for expected in (1, 2, 3):
        assert OpKernelContext(kernel, [], Step()).run()[0].tolist() == [expected, expected]


def test_what_it_is_and_what_none_is() -> None:
    ctx = OpKernelContext(make_kernel(Idle), [], Step())
    kept, none = ctx.allocate_persistent(float32, [3, 4]), PersistentTensor()
    assert (kept.is_initialized, kept.num_elements, kept.allocated_bytes) == (True, 12, 48)
    assert (none.is_initialized, none.num_elements, none.allocated_bytes) == (False, 0, 0)


def test_a_context_that_records_memory_is_told_of_each_access() -> None:
    kernel = make_kernel(Idle)
    kept = OpKernelContext(kernel, [], Step()).allocate_persistent(float32, [3])
    ctx = OpKernelContext(kernel, [], Tracked())
    tensor = kept.access_tensor(ctx)
    assert [id(one) for one in ctx.retrieve_accessed_tensors()] == [id(tensor)]


def test_sizes_are_checked_as_of_any_memory() -> None:
    ctx = OpKernelContext(make_kernel(Idle), [], Step())
    with pytest.raises(InvalidArgumentError):
        ctx.allocate_persistent(float32, [-1])
    with allocation_limit(100), pytest.raises(ResourceExhaustedError):
        ctx.allocate_persistent(float32, [26])


def test_memory_is_on_the_host_by_its_kind_or_by_its_device(accelerated: OpKernel) -> None:
    there = OpKernelContext(accelerated, [np.float32(1)], Step())
    here = OpKernelContext(make_kernel(Idle), [], Step())
    assert not there.allocate_on_host(AllocatorAttributes())
    assert there.allocate_on_host(ON_HOST)
    assert here.allocate_on_host(AllocatorAttributes())
    seen: list[bool] = []

    class Looks(Idle):
        def __init__(self, construction: OpKernelConstruction) -> None:
            super().__init__(construction)
            seen.extend(map(construction.allocate_on_host, (AllocatorAttributes(), ON_HOST)))

    kernel_on(Accelerator("GPU", np), Looks)
    assert seen == [False, True]


def test_persistent_memory_is_counted_where_it_is(accelerated: OpKernel) -> None:
    ctx = OpKernelContext(accelerated, [np.float32(1)], Tracked())
    ctx.allocate_persistent(float32, [10])
    ctx.allocate_persistent(float32, [1], ON_HOST)
    assert ctx.persistent_memory_allocated(MemoryType.DEVICE_MEMORY) == 40
    assert ctx.persistent_memory_allocated(MemoryType.HOST_MEMORY) == 4
    assert ctx.persistent_memory_allocated() == 44


def test_the_device_context_is_the_devices_unless_the_executor_has_another(
    accelerated: OpKernel,
) -> None:
    ctx = OpKernelContext(accelerated, [np.float32(1)], Step())
    assert ctx.op_device_context is ctx.input_device_context(0) is Accelerator.context
    own, producers = object(), object()
    params = ContextParams(op_device_context=own)
    ctx = OpKernelContext(accelerated, [np.float32(1)], Step(), params)
    assert ctx.op_device_context is ctx.input_device_context(0) is own
    params = ContextParams(op_device_context=own, input_device_contexts=[producers])
    ctx = OpKernelContext(accelerated, [np.float32(1)], Step(), params)
    assert (ctx.op_device_context, ctx.input_device_context(0)) == (own, producers)
    assert OpKernelContext(make_kernel(Idle), [], Step()).op_device_context is None
