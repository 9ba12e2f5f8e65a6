"""Ops that tell where and with what they run, and constants of hosts; expected values are TensorFlow's."""

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import AbortedError, InvalidArgumentError, NotFoundError


@pytest.mark.parametrize(
    ("names", "index"), [(["GPU", "CPU"], 1), (["GPU"], 1), (["cpu", "/device:CPU:0"], 2), ([], 0)]
)
def test_the_place_of_the_type_of_the_device(names: list[str], index: int) -> None:
    found = raw_ops.DeviceIndex(device_names=names)
    assert (found.dtype, found.tolist()) == (np.int32, index)


def test_the_name_of_a_type() -> None:
    assert raw_ops.DtypeWithDefaultOp(in_=np.float32(1)) == b"float"
    assert raw_ops.DtypeWithDefaultOp(in_=np.array([True])) == b"bool"


def test_nothing_to_wait_for() -> None:
    assert raw_ops.SyncDevice() is None


def test_a_fact() -> None:
    assert raw_ops.Fact() == b"0! == 1"


@pytest.mark.parametrize("exits", [True, False])
def test_an_abort_ends_the_step_only(exits: bool) -> None:
    with pytest.raises(AbortedError, match="enough of it"):
        raw_ops.Abort(error_msg="enough of it", exit_without_error=exits)


def test_tensors_that_nobody_looks_at() -> None:
    found = raw_ops.FakeParam(dtype="float32", shape=[2, None])
    assert (found.shape, found.dtype) == ((2, 0), np.float32)
    assert raw_ops.FakeParam(dtype="string", shape=[2]).tolist() == [b"", b""]
    with pytest.raises(InvalidArgumentError):
        raw_ops.FakeParam(dtype="float64", shape=[2**40, 2**30])


def test_a_constant_of_the_host() -> None:
    assert raw_ops.HostConst(value=np.float32([1, 2]), dtype="float32").tolist() == [1, 2]
    with pytest.raises(InvalidArgumentError, match="Type mismatch"):
        raw_ops.HostConst(value=np.float32([1, 2]), dtype="int32")


def test_a_weak_handle_finds_what_has_a_name() -> None:
    handle = raw_ops.VarHandleOp(dtype="float32", shape=[], shared_name="of_a_weak_handle")
    raw_ops.AssignVariableOp(resource=handle, value=np.float32(3))
    weak = raw_ops.MakeWeakResourceHandle(handle=handle)
    assert raw_ops.ReadVariableOp(resource=weak, dtype="float32") == 3
    raw_ops.DestroyResourceOp(resource=handle)


def test_a_weak_handle_does_not_find_what_its_handles_own() -> None:
    table = raw_ops.AnonymousHashTable(key_dtype="int64", value_dtype="int64")
    weak = raw_ops.MakeWeakResourceHandle(handle=table)
    with pytest.raises(NotFoundError):
        raw_ops.LookupTableSizeV2(table_handle=weak)
    assert raw_ops.LookupTableSizeV2(table_handle=table) == 0
    assert raw_ops.IsResourceHandleRefCounting(handle=table)
    assert not raw_ops.IsResourceHandleRefCounting(handle=weak)
