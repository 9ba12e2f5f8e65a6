import numpy as np
import pytest

from opkernel import float64, kernel_function, raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.types import PartialTensorShape

VALUE = np.array([[1.0, 2.0]])


@pytest.mark.parametrize("op", ["Identity", "StopGradient", "PreventGradient", "GuaranteeConst"])
def test_the_input_is_passed_on(op):
    assert kernel_function(op, T=float64)(VALUE) is VALUE
    assert getattr(raw_ops, op)(input=VALUE).tolist() == [[1, 2]]


def test_identity_n_passes_tensors_of_different_types():
    first, second = raw_ops.IdentityN(input=[VALUE, np.array([b"a"], object)])
    assert first.tolist() == [[1, 2]]
    assert second.tolist() == [b"a"]


def test_copies_share_no_memory():
    for copy in (raw_ops.Snapshot(input=VALUE), raw_ops.DeepCopy(x=VALUE)):
        np.testing.assert_array_equal(copy, VALUE)
        assert not np.shares_memory(copy, VALUE)


def test_ensure_shape():
    ensure_shape = kernel_function("EnsureShape", T=float64, shape=PartialTensorShape([None, 2]))
    assert ensure_shape(VALUE) is VALUE
    message = r"tensor input \[1,2\] is not compatible with expected shape \[\?,3\]"
    with pytest.raises(InvalidArgumentError, match=message):
        raw_ops.EnsureShape(input=VALUE, shape=PartialTensorShape([None, 3]))
