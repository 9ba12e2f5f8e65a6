"""Scoped allocators: the fields of one array, each given once. Sizes are TensorFlow's (64-byte alignment)."""

import gc

import numpy as np
import pytest

from opkernel.device.allocator_attributes import AllocatorAttributes
from opkernel.device.local_device import LocalDevice
from opkernel.device.scoped_allocator import Field, lies_within, populate_fields
from opkernel.errors import InternalError, ResourceExhaustedError
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


def test_the_allocator_and_the_instance_of_an_id_are_told_apart(device):
    backing = announce(device)
    container = device.scoped_allocator_mgr.get_container(STEP)
    assert container.get_allocator(10).verify_tensor(backing[3:5])
    assert not container.get_allocator(10).verify_tensor(np.zeros(2, np.float32))
    assert container.get_instance(12).name == "sa_field_1"
    with pytest.raises(InternalError, match="Failed to find ScopedAllocator for 12"):
        container.get_allocator(12)
    with pytest.raises(InternalError, match="Failed to find instance 10"):
        container.get_instance(10)


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
