"""Fingerprint; expected values are TensorFlow's."""

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

ROWS = [[122, 64, 59, 169, 136, 60, 55, 83], [52, 252, 224, 38, 64, 226, 155, 60]]


def test_rows_of_numbers() -> None:
    found = raw_ops.Fingerprint(data=np.arange(1, 10).reshape(1, 9), method="farmhash64")
    assert found.tolist() == [[11, 65, 212, 63, 134, 206, 177, 112]]
    assert found.dtype == np.uint8
    bools = raw_ops.Fingerprint(data=np.array([True]), method="farmhash64")
    assert bools.tolist() == [[62, 88, 126, 177, 19, 76, 162, 71]]
    assert raw_ops.Fingerprint(data=np.zeros(0), method="farmhash64").shape == (0, 8)


def test_rows_of_several_strings_are_hashed_twice() -> None:
    data = np.array([[b"a", b"b"], [b"c", b"d"]], object)
    assert raw_ops.Fingerprint(data=data, method="farmhash64").tolist() == ROWS
    nested = data.reshape(2, 2, 1)
    assert raw_ops.Fingerprint(data=nested, method="farmhash64").tolist() == ROWS
    hello = np.array([b"hello world"], object)
    for strings in (hello, hello.reshape(1, 1)):
        found = raw_ops.Fingerprint(data=strings, method="farmhash64")
        assert found.tolist() == [[27, 176, 214, 139, 71, 183, 143, 88]]


def test_errors() -> None:
    with pytest.raises(InvalidArgumentError, match="Unsupported fingerprint method: md5"):
        raw_ops.Fingerprint(data=np.zeros(2), method="md5")
    with pytest.raises(InvalidArgumentError, match="at least one dimension"):
        raw_ops.Fingerprint(data=np.float32(1), method="farmhash64")
    with pytest.raises(InvalidArgumentError, match=r"scalar string: \[1\]"):
        raw_ops.Fingerprint(data=np.zeros(2), method=["farmhash64"])


def test_many_rows_are_hashed_as_one_is() -> None:
    data = np.array([[b"a", b"b"], [b"c", b"d"]] * 50, object)
    assert raw_ops.Fingerprint(data=data, method="farmhash64").tolist() == ROWS * 50
    numbers = raw_ops.Fingerprint(data=np.tile(np.arange(1, 10), (60, 1)), method="farmhash64")
    assert numbers.tolist() == [[11, 65, 212, 63, 134, 206, 177, 112]] * 60
