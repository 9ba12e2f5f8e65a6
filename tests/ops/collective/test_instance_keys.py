import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InternalError

KEYS = {"group_size": 1, "group_key": 7701}  # of no other test


def reduce_(key, dtype=np.float32, size=2):
    attrs = {"merge_op": "Add", "final_op": "Id", "subdiv_offsets": [0]}
    return raw_ops.CollectiveReduce(input=np.ones(size, dtype), instance_key=key, **KEYS, **attrs)


def gather(key):
    x = np.ones(2, np.float32)
    return raw_ops.CollectiveGather(input=x, instance_key=key, shape=[2], **KEYS)


def test_a_key_is_for_one_kind_of_collective():
    reduce_(1)
    with pytest.raises(InternalError, match="instance 1 of group 7701 was used for"):
        gather(1)
    with pytest.raises(InternalError, match="instance 1 of group 7701 was used for"):
        reduce_(1, np.float64)
    assert reduce_(1, size=3).tolist() == [1, 1, 1]  # sizes may change
    assert gather(2).tolist() == [1, 1]
