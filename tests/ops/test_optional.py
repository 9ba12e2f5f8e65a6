"""Optionals: values and none, their sums and zeros, their form in files, what they refuse."""

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.ops.optional import Optional
from opkernel.types import DataType, PartialTensorShape, variant_from_proto

FLOAT, INT32 = DataType.DT_FLOAT, DataType.DT_INT32
ANY = PartialTensorShape(None)
PAIR = [np.array([1, 2], np.float32), np.int32(3)]


def values(optional, types=(FLOAT, INT32), shapes=(ANY, ANY)):
    found = raw_ops.OptionalGetValue(
        optional=optional, output_types=list(types), output_shapes=list(shapes)
    )
    return [np.asarray(tensor).tolist() for tensor in found]


def test_an_optional_gives_back_its_tensors():
    optional = raw_ops.OptionalFromValue(components=PAIR)
    assert raw_ops.OptionalHasValue(optional=optional)
    assert values(optional) == [[1, 2], 3]
    assert not raw_ops.OptionalHasValue(optional=raw_ops.OptionalNone())


def test_sums_and_zeros():
    optional, none = raw_ops.OptionalFromValue(components=PAIR), raw_ops.OptionalNone()
    assert values(raw_ops.AddN(inputs=[optional, optional])) == [[2, 4], 6]
    assert values(raw_ops.ZerosLike(x=optional)) == [[0, 0], 0]
    assert not raw_ops.OptionalHasValue(optional=raw_ops.AddN(inputs=[none, none]))
    with pytest.raises(InvalidArgumentError, match="one has a value and the other doesn't"):
        raw_ops.AddN(inputs=[optional, none])
    with pytest.raises(InvalidArgumentError, match=r"numbers of components \(2 vs. 1\)"):
        raw_ops.AddN(inputs=[optional, raw_ops.OptionalFromValue(components=PAIR[:1])])


def test_the_form_in_files():
    optional = Optional(PAIR, [FLOAT, INT32])
    proto = optional.to_proto()
    assert (proto.type_name, proto.metadata) == ("tensorflow::data::Optional", b"\1")
    read = variant_from_proto(proto)
    assert isinstance(read, Optional)
    assert read.dtypes == (FLOAT, INT32)
    assert [tensor.tolist() for tensor in read.components] == [[1, 2], 3]


@pytest.mark.parametrize(
    ("optional", "types", "shape", "message"),
    [
        (raw_ops.OptionalNone(), [FLOAT, INT32], ANY, "does not have a value"),
        (raw_ops.OptionalFromValue(components=PAIR), [FLOAT, FLOAT], ANY, "type for component 1"),
        (
            raw_ops.OptionalFromValue(components=PAIR),
            [FLOAT, INT32],
            PartialTensorShape([3]),
            r"shape for component 0. Expected: \[3\]. Actual: \[2\]",
        ),
        (
            raw_ops.EmptyTensorList(
                element_shape=np.int32(-1), max_num_elements=np.int32(-1), element_dtype=FLOAT
            ),
            [FLOAT, INT32],
            ANY,
            "must be a scalar tensor containing an OptionalVariant",
        ),
    ],
)
def test_errors(optional, types, shape, message):
    with pytest.raises(InvalidArgumentError, match=message):
        values(optional, types, (shape, ANY))
