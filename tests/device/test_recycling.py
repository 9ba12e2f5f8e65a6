"""Large arrays get the memory of dead ones, and never of one that anybody can see."""

import gc
import os
import platform
import subprocess
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from opkernel.kernel import forget_recycled, is_recycled, recycled

F32 = np.dtype(np.float32)
LARGE = (8 << 20,)
"""32 MiB."""


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    forget_recycled()
    yield
    forget_recycled()


def address(array: Any) -> int:
    return int(array.ctypes.data)


def test_a_dead_array_is_given_out_again() -> None:
    first = recycled(LARGE, F32)
    place = address(first)
    first.setflags(write=False)
    del first
    again = recycled(LARGE, F32)
    assert address(again) == place
    assert again.flags.writeable
    assert again.base is None
    assert again.shape == LARGE


@pytest.mark.parametrize(
    "kept",
    [
        lambda array: array,
        lambda array: array[5:9],
        lambda array: array.reshape(2, -1)[1].T,
        lambda array: memoryview(array)[:4],
        lambda array: array.view(np.uint8),
    ],
)
def test_an_array_that_anybody_sees_is_not(kept: Any) -> None:
    array = recycled(LARGE, F32)
    array[:] = 1
    seen = kept(array)
    del array
    recycled(LARGE, F32)[:] = 2
    np.testing.assert_array_equal(np.asarray(seen).view(F32), np.float32(1))


def test_a_weak_reference_counts() -> None:
    array = recycled(LARGE, F32)
    array[:] = 1
    weak = weakref.ref(array)
    del array
    recycled(LARGE, F32)[:] = 2
    seen = weak()
    assert seen is None or seen[0] == 1


def test_other_shapes_and_types_get_arrays_of_their_own() -> None:
    place = address(recycled(LARGE, F32))
    others = [recycled((2, 4 << 20), F32), recycled(LARGE, np.dtype(np.int32))]
    assert place not in map(address, others)
    assert [other.shape for other in others] == [(2, 4 << 20), LARGE]


def test_small_arrays_are_not_remembered() -> None:
    assert not is_recycled(recycled((1 << 20,), F32))
    assert is_recycled(recycled(LARGE, F32))


def test_no_more_than_256_mib_is_remembered() -> None:
    arrays = [recycled(LARGE, F32) for _ in range(10)]
    assert [is_recycled(array) for array in arrays] == [False] * 2 + [True] * 8


def test_what_is_forgotten_is_freed() -> None:
    array = recycled(LARGE, F32)
    weak = weakref.ref(array)
    del array
    assert weak() is not None
    forget_recycled()
    gc.collect()
    assert weak() is None


_FAULTS = """
import resource
import numpy as np
from opkernel.runtime import Session
def step():
    arrays = [np.ones(1 << 18, np.float32) for _ in range(8)]
step()
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc alone")
def test_smaller_arrays_get_no_fresh_pages() -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", _FAULTS]
    output = subprocess.run(command, env=environment, check=True, capture_output=True).stdout
    assert int(output) < 2048  # the pages of one step
