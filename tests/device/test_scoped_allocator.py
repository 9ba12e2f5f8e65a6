"""Scoped allocators: the fields of one array, each given once. Sizes are TensorFlow's (64-byte alignment)."""

import gc

import numpy as np
import pytest

from opkernel.device.local_device import AllocatorAttributes, LocalDevice
from opkernel.device.scoped_allocator import Field, lies_within, populate_fields
from opkernel.errors import InternalError, ResourceExhaustedError
from opkernel.kernel import AllocatorMemoryType
from opkernel.types import DataType

FLOAT, HALF = DataType.DT_FLOAT, DataType.DT_HALF
SHAPES = [(2,), (3, 5), ()]
STEP = 7


@pytest.fixture
def device():
    return LocalDevice("CPU", np)


def announce(device, *, calls=3, scope_id=10, num_elements=48):
    backing = np.zeros(num_elements, np.float32)
    fields = populate_fields(scope_id, SHAPES, FLOAT)
    container = device.scoped_allocator_mgr.get_container(STEP)
    container.add_scoped_allocator(backing, scope_id, "sa", fields, calls)
    return backing


def instance(device, scope_id):
    return device.get_scoped_allocator(AllocatorAttributes(scope_id=scope_id), STEP)


def test_fields_are_aligned_and_their_ids_follow():
    assert populate_fields(10, SHAPES, FLOAT) == (
        Field(11, 0, 8, 64),
        Field(12, 64, 60, 64),
        Field(13, 128, 4, 64),
    )
    assert populate_fields(0, [(32,), (33,), (0,)], HALF) == (
        Field(1, 0, 64, 64),
        Field(2, 64, 66, 128),
        Field(3, 192, 0, 0),
    )


def test_tensors_are_slices_of_the_backing_array(device):
    backing = announce(device)
    for scope_id, shape, value in zip((11, 12, 13), SHAPES, (1, 2, 3), strict=True):
        tensor = instance(device, scope_id).allocate(shape, FLOAT)
        assert tensor.shape == shape
        assert tensor.base is backing
        tensor[...] = value
    expected = np.zeros(48, np.float32)
    expected[:2], expected[16:31], expected[32] = 1, 2, 3
    np.testing.assert_array_equal(backing, expected)


def test_a_field_is_refused_to_a_tensor_of_another_size(device):
    announce(device)
    with pytest.raises(
        ResourceExhaustedError, match=r"16 bytes from field 0 .* size 8 and offset 0"
    ):
        instance(device, 11).allocate((4,), FLOAT)
    assert instance(device, 11).allocate((2,), FLOAT).shape == (2,)


def test_after_the_expected_calls_it_is_forgotten(device):
    announce(device, calls=2)
    kept = instance(device, 13)
    instance(device, 11).allocate((2,), FLOAT)
    instance(device, 12).allocate((3, 5), FLOAT)
    with pytest.raises(InternalError, match="Failed to find instance 11 in container for step 7"):
        instance(device, 11)
    with pytest.raises(ResourceExhaustedError, match="expected uses exhausted"):
        kept.allocate((), FLOAT)
    announce(device)  # its ids are free again


def test_ids_of_a_step_are_taken_once(device):
    announce(device)
    with pytest.raises(InternalError, match="because scope_id 11 for name sa already exists"):
        announce(device, scope_id=11)
    with pytest.raises(InternalError, match="because field scope_id 10 for name sa already exists"):
        announce(device, scope_id=9)


def test_a_backing_array_that_is_too_small_is_refused(device):
    with pytest.raises(InternalError, match=r"needs 132 bytes .* has 128"):
        announce(device, num_elements=32)


def test_steps_are_apart_and_end(device):
    announce(device)
    attr, mgr = AllocatorAttributes(scope_id=11), device.scoped_allocator_mgr
    with pytest.raises(InternalError, match="step 8"):
        device.get_scoped_allocator(attr, 8)
    mgr.cleanup(STEP)
    with pytest.raises(InternalError, match="step 7"):
        instance(device, 11)


def test_the_array_lives_as_long_as_its_slices(device):
    announce(device, calls=1)
    tensor = instance(device, 12).allocate((3, 5), FLOAT)
    gc.collect()
    tensor[...] = 4
    assert tensor.base[16:31].tolist() == [4] * 15


def test_an_allocator_of_several_fields_is_not_the_instance_of_one(device):
    announce(device)
    assert instance(device, 12).name == "sa_field_1"
    with pytest.raises(InternalError, match="Failed to find instance 10"):
        instance(device, 10)


def test_what_lies_within():
    backing = np.zeros(8)
    assert lies_within(backing[2:4], backing)
    assert lies_within(backing, backing)
    assert not lies_within(np.zeros(8)[:0], np.ones(8))
    assert not lies_within(backing, backing[:7])


def test_devices_with_memory_of_their_own_have_none():
    device = LocalDevice("TOY", gc)
    assert device.scoped_allocator_mgr is None
    with pytest.raises(InternalError, match="ScopedAllocatorMgr not supported on device"):
        device.get_scoped_allocator(AllocatorAttributes(scope_id=1), STEP)


def test_bytes_of_a_field_are_given_as_they_are(device):
    backing = announce(device)
    field = instance(device, 12)
    assert field.memory_type is AllocatorMemoryType.DEVICE
    memory = field.allocate_raw(64, 60)
    assert (memory.dtype, memory.shape) == (np.uint8, (60,))
    memory.view(np.float32)[:] = 5
    assert backing[16:31].tolist() == [5] * 15
    for size in (field.requested_size, field.allocated_size, field.allocation_id):
        assert size(memory) == 0
    with pytest.raises(
        ResourceExhaustedError,
        match="OOM when allocating tensor with 8 bytes by allocator sa_field_1: ScopedAllocator sa got",
    ):
        field.allocate_raw(64, 8)


def test_the_array_that_a_tensor_lies_in_is_found(device):
    backing, mgr = announce(device), device.scoped_allocator_mgr
    other = np.zeros(48, np.float32)
    container = mgr.get_container(STEP)
    container.add_scoped_allocator(other, 20, "sb", populate_fields(20, SHAPES, FLOAT), 3)
    for array in (backing, other):
        assert mgr.backing_of(STEP, array[16:31]) is array
        assert mgr.backing_of(STEP + 1, array) is None
    assert mgr.backing_of(STEP, np.zeros(4)) is None
    assert mgr.get_container(STEP) is container
    del backing, array
    gc.collect()
    assert mgr.backing_of(STEP, other) is other


def test_the_end_of_a_step_ends_its_allocators(device):
    announce(device)
    device.scoped_allocator_mgr.get_container(STEP).on_destroy()
    with pytest.raises(InternalError, match="step 7"):
        instance(device, 11)


def test_no_fields_need_no_memory(device):
    container = device.scoped_allocator_mgr.get_container(STEP)
    container.add_scoped_allocator(np.zeros(0, np.float32), 10, "sa", (), 1)
    with pytest.raises(InternalError, match="because scope_id 10 for name sa already exists"):
        container.add_scoped_allocator(np.zeros(0, np.float32), 10, "sa", (), 1)


def test_an_array_that_just_fits_is_large_enough(device):
    assert announce(device, num_elements=33).size == 33
