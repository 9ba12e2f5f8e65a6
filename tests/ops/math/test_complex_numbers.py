from functools import partial

import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError

f32 = partial(np.array, dtype=np.float32)
c64 = partial(np.array, dtype=np.complex64)

Z = c64([3 + 4j, -1, 1j])


def test_parts():
    assert raw_ops.Real(input=Z).tolist() == [3, -1, 0]
    assert raw_ops.Imag(input=Z).tolist() == [4, 0, 1]
    assert raw_ops.Conj(input=Z).tolist() == [3 - 4j, -1, -1j]
    assert raw_ops.ComplexAbs(x=Z).tolist() == [5, 1, 1]
    np.testing.assert_allclose(raw_ops.Angle(input=Z), [0.9272952, np.pi, np.pi / 2], rtol=1e-6)


def test_parts_have_the_type_of_the_same_precision():
    wide = Z.astype(np.complex128)
    assert raw_ops.Real(input=wide, Tout="float64").dtype == np.float64
    assert raw_ops.ComplexAbs(x=wide, Tout="float64").dtype == np.float64
    with pytest.raises(NotFoundError):
        raw_ops.Imag(input=wide)
    with pytest.raises(InvalidArgumentError, match="Signature mismatch"):
        raw_ops.ComplexAbs(x=wide)


def test_complex_broadcasts_and_keeps_infinities():
    result = raw_ops.Complex(real=f32([1, np.inf]), imag=np.float32(np.inf))
    assert result.dtype == np.complex64
    assert result.real.tolist() == [1, np.inf]
    assert result.imag.tolist() == [np.inf, np.inf]
