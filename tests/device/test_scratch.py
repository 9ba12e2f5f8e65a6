"""Scratch memory: a thread's own, by purpose, and used again."""

import threading

import numpy as np
import pytest

from opkernel.errors import ResourceExhaustedError
from opkernel.kernel import allocation_limit, scratch

F32 = np.dtype(np.float32)
KEPT = 8 << 20


def address(array):
    return array.ctypes.data


def test_it_has_the_shape_and_type_that_are_asked_for():
    for shape, dtype in (((3, 5), F32), ((7,), np.dtype(np.int8)), ((), np.dtype(np.float64))):
        array = scratch("forms", shape, dtype)
        assert (array.shape, array.dtype) == (shape, dtype)
        array[...] = 1
        assert array.sum() == array.size


def test_one_purpose_has_one_memory_and_another_has_another():
    first = scratch("one", (100,), F32)
    place = address(first)
    for shape in ((100,), (10,), (5, 20)):
        assert address(scratch("one", shape, F32)) == place
    assert not np.shares_memory(first, scratch("two", (100,), F32))


def test_it_grows():
    small = scratch("grows", (10,), F32)
    large = scratch("grows", (1000,), F32)
    large[:] = 1
    assert not np.shares_memory(small, large)
    assert np.shares_memory(large, scratch("grows", (10,), F32))


def test_each_thread_has_its_own():
    mine, theirs = scratch("threads", (100,), F32), []
    thread = threading.Thread(target=lambda: theirs.append(scratch("threads", (100,), F32)))
    thread.start()
    thread.join()
    assert not np.shares_memory(mine, theirs[0])


def test_8_mib_are_kept_and_more_is_not():
    kept = scratch("large", (KEPT,), np.dtype(np.uint8))
    assert np.shares_memory(kept, scratch("large", (KEPT,), np.dtype(np.uint8)))
    more = scratch("large", (KEPT + 1,), np.dtype(np.uint8))
    assert not np.shares_memory(more, scratch("large", (KEPT + 1,), np.dtype(np.uint8)))


def test_more_than_is_kept_is_within_the_limit():
    with allocation_limit(KEPT), pytest.raises(ResourceExhaustedError):
        scratch("too large", (KEPT + 1,), np.dtype(np.uint8))
