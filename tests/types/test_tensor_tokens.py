"""Protos that stand for arrays of this process."""

import gc

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.proto import TensorProto
from opkernel.types import DataType, tensor_from_proto
from opkernel.types.tensor_tokens import held_proto


def test_a_proto_stands_for_an_array_without_a_copy() -> None:
    array = np.arange(2048, dtype=np.float32).reshape(32, 64)
    proto = TensorProto.FromString(held_proto(array, DataType.DT_FLOAT).SerializeToString())
    assert proto.ByteSize() < 100
    found = tensor_from_proto(proto)
    assert np.shares_memory(found, array)
    assert found.tolist() == array.tolist()
    assert not found.flags.writeable


def test_a_proto_of_an_array_that_is_gone_is_refused() -> None:
    array = np.zeros(2048, np.float32)
    proto = held_proto(array, DataType.DT_FLOAT)
    del array
    gc.collect()
    with pytest.raises(InvalidArgumentError, match="32 bytes"):
        tensor_from_proto(proto)


@pytest.mark.parametrize("change", ["dtype", "shape"])
def test_a_proto_of_another_type_or_shape_is_refused(change: str) -> None:
    array = np.zeros(2048, np.float32)
    proto = held_proto(array, DataType.DT_FLOAT)
    if change == "dtype":
        proto.dtype = DataType.DT_INT32
    else:
        proto.tensor_shape.dim[0].size = 4096
    with pytest.raises(InvalidArgumentError):
        tensor_from_proto(proto)
