"""Fourier transforms: the sum that defines them, lengths, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkernel import libraries, raw_ops
from opkernel.errors import InvalidArgumentError
from opkernel.ops.math import fft

RNG = np.random.default_rng(4)
RANKS = pytest.mark.parametrize("rank", [1, 2, 3])


@pytest.fixture(params=["scipy", "numpy"], autouse=True)
def library(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Each test runs with SciPy and without."""
    fft._fft_library.cache_clear()
    if request.param == "scipy":
        pytest.importorskip("scipy")
    else:
        monkeypatch.setattr(fft, "library_or_none", lambda name: None)
    yield
    fft._fft_library.cache_clear()


def suffix(rank: int) -> str:
    return "" if rank == 1 else f"{rank}D"


def op(name: str, rank: int) -> Any:
    return getattr(raw_ops, f"{name}{suffix(rank)}")


def transformed(x: Any, rank: int, sign: int) -> Any:
    """By the definition: one product of matrices for each axis."""
    for axis in range(-rank, 0):
        n = x.shape[axis]
        k = np.arange(n)
        waves = np.exp(sign * 2j * np.pi * np.outer(k, k) / max(n, 1))
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ waves, -1, axis)
    return x


def drawn(*shape: int) -> Any:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


@RANKS
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_transforms_are_the_sums_that_define_them(rank: int, dtype: str) -> None:
    tolerance = 1e-5 if dtype == "complex64" else 1e-12
    for shape in ((4, 5, 6), (2, 1, 3, 7), (2, 4, 1, 1)):
        x = drawn(*shape).astype(dtype)
        forward = op("FFT", rank)(input=x)
        assert forward.dtype == dtype
        np.testing.assert_allclose(
            forward, transformed(x, rank, -1), rtol=tolerance, atol=30 * tolerance
        )
        np.testing.assert_allclose(
            op("IFFT", rank)(input=forward), x, rtol=tolerance, atol=tolerance * 30
        )


@RANKS
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_real_transforms_take_as_much_as_their_lengths_say(rank: int, dtype: str) -> None:
    wide = {"float32": "complex64", "float64": "complex128"}[dtype]
    x = drawn(2, 5, 6, 7).real.astype(dtype)
    for last in (7, 6, 1):
        lengths = [5, 4, last][-rank:]
        found = op("RFFT", rank)(input=x, fft_length=np.int32(lengths), Tcomplex=wide)
        cut = x[(..., *[slice(n) for n in lengths])]
        whole = transformed(cut, rank, -1)[..., : last // 2 + 1]
        np.testing.assert_allclose(found, whole, rtol=1e-4, atol=1e-4)
        back = op("IRFFT", rank)(input=found, fft_length=np.int32(lengths), Treal=dtype)
        assert back.dtype == dtype
        np.testing.assert_allclose(back, cut, rtol=1e-4, atol=1e-4)


def test_lengths_of_zero_and_empty_inputs_give_empty_results() -> None:
    x = np.ones((3, 4), np.float32)
    assert raw_ops.RFFT(input=x, fft_length=np.int32([0])).shape == (3, 0)
    assert raw_ops.FFT(input=np.zeros((0, 4), np.complex64)).shape == (0, 4)
    assert raw_ops.IRFFT(input=x.astype(np.complex64), fft_length=np.int32([0])).shape == (3, 0)
    none = raw_ops.RFFT(input=np.zeros((2, 0), np.float32), fft_length=np.int32([4]))
    np.testing.assert_array_equal(none, np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("name", "tensor", "length", "message"),
    [
        (
            "RFFT",
            np.ones(3, np.float32),
            [4],
            "Input dimension 0 must have length of at least 4 but got: 3",
        ),
        ("RFFT", np.ones(3, np.float32), [-1], r"fft_length\[0\] must >= 0"),
        ("RFFT", np.ones(3, np.float32), [[3]], r"fft_length must have shape \[1\]"),
        ("RFFT2D", np.ones(3, np.float32), [3, 3], "Input must have rank of at least 2"),
        (
            "IRFFT",
            np.ones(2, np.complex64),
            [4],
            "Input dimension 0 must have length of at least 3 but got: 2",
        ),
    ],
)
def test_wrong_lengths_are_refused(name: str, tensor: Any, length: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        getattr(raw_ops, name)(input=tensor, fft_length=np.int32(length))


def test_types_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="Wrong types for forward real FFT: in=1 out=18"):
        raw_ops.RFFT(input=np.ones(3, np.float32), fft_length=np.int32([3]), Tcomplex="complex128")


def test_numpy_stands_in_with_a_warning(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    fft._fft_library.cache_clear()
    libraries.warn_of_fallback.cache_clear()
    monkeypatch.setattr(fft, "library_or_none", lambda name: None)
    raw_ops.FFT(input=np.ones(3, np.complex64))
    raw_ops.FFT(input=np.ones(3, np.complex64))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "opkernel[scipy]" in caplog.text


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_few_numbers_are_transformed_as_many(monkeypatch: Any, name: str, dtype: Any) -> None:
    """NumPy transforms few, SciPy many: to the same bits."""
    pytest.importorskip("scipy")
    monkeypatch.setattr(fft, "library_or_none", libraries.library_or_none)
    for length in (1, 2, 5, 8, 12, 64, 100, 1024):
        x = (RNG.standard_normal((3, length)) + 1j * RNG.standard_normal((3, length))).astype(dtype)
        x = {"rfft": x.real.copy(), "irfft": x[:, : length // 2 + 1]}.get(name, x)
        sizes = {"n": length} if name == "irfft" else {}
        found = []
        for few in (0, x.size):
            monkeypatch.setattr(fft, "_FEW", few)
            found.append(fft._transform(name, x, length, **sizes))
        np.testing.assert_array_equal(*found, strict=True)
