"""Composite tensors in variants. Expected values are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.ops.composite_tensor import CompositeTensorVariant
from opkernel.types import DataType, OpaqueVariant, object_scalar, variant_from_proto

RAGGED, UNNAMED = "\x0a\x02\x08\x03", "\x0a\x02\x08\x77"
TYPES = [DataType.DT_INT32, DataType.DT_FLOAT]


def encoded(metadata: str = RAGGED) -> Any:
    return raw_ops.CompositeTensorVariantFromComponents(
        components=[np.int32(1), np.float32(2)], metadata=metadata
    )


def decoded(value: Any, metadata: str = RAGGED, types: Any = TYPES) -> Any:
    return raw_ops.CompositeTensorVariantToComponents(
        encoded=value, metadata=metadata, Tcomponents=types
    )


@pytest.mark.parametrize("metadata", ["", RAGGED, UNNAMED])
def test_the_components_come_back(metadata: str) -> None:
    value = encoded(metadata)
    assert list(decoded(value, metadata)) == [1, 2]
    assert list(decoded(np.array([value] * 2, object), metadata)) == [1, 2]
    proto = value.to_proto()
    assert (proto.type_name, proto.metadata) == ("CompositeTensorVariant", metadata.encode())
    assert isinstance(variant_from_proto(proto), CompositeTensorVariant)
    assert list(decoded(object_scalar(OpaqueVariant(proto)), metadata)) == [1, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decoded(encoded(), ""), "Expected a UNKNOWN .* contains a RAGGED_TENSOR_SPEC"),
        (lambda: decoded(encoded(), types=TYPES[:1]), "has 2 tensor components; expected 1"),
        (lambda: decoded(encoded(), types=TYPES[::-1]), "0 had dtype DT_INT32; expected .*FLOAT"),
        (lambda: decoded(np.zeros(0, object)), "must not be an empty variant tensor"),
        (lambda: decoded(raw_ops.EmptyTensorMap()), "not a valid CompositeTensorVariant"),
        (lambda: encoded("\xff\xff"), "Error parsing metadata"),
        (lambda: decoded(encoded(), "\xff\xff"), "Error parsing metadata"),
    ],
)
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()


def test_the_gradient() -> None:
    x = np.array([1, 2, 3], np.float32)
    with opkernel.Graph().as_default() as graph:
        p = opkernel.constant(x)
        value = raw_ops.CompositeTensorVariantFromComponents(components=[p, p * p, 1], metadata="")
        a, b, _ = raw_ops.CompositeTensorVariantToComponents(
            encoded=value, metadata="", Tcomponents=[TYPES[1], TYPES[1], TYPES[0]]
        )
        (found,) = opkernel.gradients(a * b, p)
    assert opkernel.Session(graph).run(found).tolist() == (3 * x * x).tolist()
