"""Fingerprint64 and Fingerprint128: FarmHash fingerprints (farmhashna::Hash64, farmhashcc::Fingerprint128) of a byte string.

TensorFlow puts it into summaries in place of elided text, and into canonical function names.
Written from the published algorithm: inputs are mixed by length class (up to 16, 32, 64 bytes,
longer), all arithmetic is modulo 2**64, and words are read little-endian.
"""

import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

_MASK = (1 << 64) - 1
_K0 = 0xC3A5C85C97CB3127
_K1 = 0xB492B66FBE98F273
_K2 = 0x9AE16A3B2F90404F
_SEED = 81


Turns = Callable[[range], Iterable[int]]


def fingerprint64(data: bytes, turns: Turns = iter) -> int:
    """The fingerprint of `data`, an int in [0, 2**64). Time is linear in its length.

    Args:
        data: The string.
        turns: Gives the numbers of the loop over long strings, and may look at the clock.
    """
    length = len(data)
    if length <= 16:
        return _hash_up_to_16(data)
    if length <= 32:
        return _hash_17_to_32(data)
    if length <= 64:
        return _hash_33_to_64(data)
    return _hash_long(data, turns)


def _word64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _word32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _rotate(value: int, shift: int) -> int:
    value &= _MASK
    return (value >> shift) | (value << (64 - shift)) & _MASK


def _shift_mix(value: int) -> int:
    value &= _MASK
    return value ^ (value >> 47)


def _mix(u: int, v: int, multiplier: int) -> int:
    """Two words into one (HashLen16 with a multiplier)."""
    a = _shift_mix((u ^ v) * multiplier)
    b = _shift_mix(((v & _MASK) ^ a) * multiplier)
    return b * multiplier & _MASK


def _hash_up_to_16(data: bytes) -> int:
    length = len(data)
    multiplier = _K2 + length * 2
    if length >= 8:
        a = _word64(data, 0) + _K2 & _MASK
        b = _word64(data, length - 8)
        c = (_rotate(b, 37) * multiplier + a) & _MASK
        d = (_rotate(a, 25) + b) * multiplier & _MASK
        return _mix(c, d, multiplier)
    if length >= 4:
        return _mix(length + (_word32(data, 0) << 3), _word32(data, length - 4), multiplier)
    if length > 0:
        y = data[0] + (data[length >> 1] << 8)
        z = length + (data[-1] << 2)
        return _shift_mix(y * _K2 ^ z * _K0) * _K2 & _MASK
    return _K2


def _hash_17_to_32(data: bytes) -> int:
    length = len(data)
    multiplier = _K2 + length * 2
    a = _word64(data, 0) * _K1
    b = _word64(data, 8)
    c = _word64(data, length - 8) * multiplier
    d = _word64(data, length - 16) * _K2
    return _mix(*_cross(a, b, c, d, _K2), multiplier)


def _cross(a: int, b: int, c: int, d: int, e: int) -> tuple[int, int]:
    """Words of an input of 17 to 64 bytes into a pair, which is mixed next."""
    return (
        (_rotate(a + b, 43) + _rotate(c, 30) + d) & _MASK,
        (a + _rotate(b + e, 18) + c) & _MASK,
    )


def _hash_33_to_64(data: bytes) -> int:
    length = len(data)
    multiplier = _K2 + length * 2
    a = _word64(data, 0) * _K2
    b = _word64(data, 8)
    c = _word64(data, length - 8) * multiplier
    d = _word64(data, length - 16) * _K2
    y, crossed = _cross(a, b, c, d, _K2)
    z = _mix(y, crossed, multiplier)
    e = _word64(data, 16) * multiplier
    f = _word64(data, 24)
    g = (y + _word64(data, length - 32)) * multiplier
    h = (z + _word64(data, length - 24)) * multiplier
    return _mix(*_cross(e, f, g, h, a), multiplier)


def _absorb_32(words: tuple[int, ...], a: int, b: int) -> tuple[int, int]:
    """Four words into the running pair (WeakHashLen32WithSeeds)."""
    w, x, y, z = words
    a += w
    b = _rotate(b + a + z, 21)
    c = a
    a += x + y
    b += _rotate(a, 44)
    return (a + z) & _MASK, (b + c) & _MASK


class _State(NamedTuple):
    """The 56 bytes that blocks of long inputs are mixed into."""

    x: int
    y: int
    z: int
    v: tuple[int, int]
    w: tuple[int, int]

    def after(self, data: bytes, at: int, multiplier: int, times: int) -> "_State":
        """The state with a block of 64 bytes mixed in; `times` is 9 for the last block, else 1."""
        x, y, z, v, w = self
        block = struct.unpack_from("<8Q", data, at)
        x = _rotate(x + y + v[0] + block[1], 37) * multiplier
        y = _rotate(y + v[1] + block[6], 42) * multiplier
        x = (x ^ w[1] * times) & _MASK
        y = (y + v[0] * times + block[5]) & _MASK
        z = _rotate(z + w[0], 33) * multiplier & _MASK
        v = _absorb_32(block[:4], v[1] * multiplier, x + w[0])
        w = _absorb_32(block[4:], z + w[1], y + block[2])
        return _State(z, y, x, v, w)


def _hash_long(data: bytes, turns: Turns) -> int:
    """Inputs over 64 bytes, in blocks of 64, the last of which may overlap with the one before."""
    y = (_SEED * _K1 + 113) & _MASK
    z = _shift_mix(y * _K2 + 113) * _K2 & _MASK
    state = _State((_SEED * _K2 + _word64(data, 0)) & _MASK, y, z, (0, 0), (0, 0))
    for at in turns(range(0, (len(data) - 1) // 64 * 64, 64)):
        state = state.after(data, at, _K1, 1)
    x, y, z, v, w = state
    multiplier = (_K1 + ((z & 0xFF) << 1)) & _MASK
    w = ((w[0] + ((len(data) - 1) & 63)) & _MASK, w[1])
    v = ((v[0] + w[0]) & _MASK, v[1])
    w = ((w[0] + v[0]) & _MASK, w[1])
    x, y, z, v, w = _State(x, y, z, v, w).after(data, len(data) - 64, multiplier, 9)
    return _mix(
        (_mix(v[0], w[0], multiplier) + _shift_mix(y) * _K0 + z) & _MASK,
        (_mix(v[1], w[1], multiplier) + x) & _MASK,
        multiplier,
    )


_K_MUL = 0x9DDFEA08EB382D69
_BLOCKS = 128


def fingerprint128(data: bytes, turns: Turns = iter) -> tuple[int, int]:
    """The lower and the higher half of the fingerprint of 128 bits, each an int in [0, 2**64).

    Args:
        data: The string.
        turns: As for `fingerprint64`.
    """
    if len(data) < 16:
        return _murmur(data, _K0, _K1, turns)
    low, high, rest = _word64(data, 0), _word64(data, 8) + _K0 & _MASK, data[16:]
    return (_murmur if len(rest) < _BLOCKS else _city)(rest, low, high, turns)


def _pair(u: int, v: int) -> int:
    """Two words into one (HashLen16)."""
    return _mix(u & _MASK, v & _MASK, _K_MUL)


def _murmur(data: bytes, a: int, b: int, turns: Turns) -> tuple[int, int]:
    """Strings below 128 bytes (CityMurmur)."""
    length = len(data)
    if length <= 16:
        a = _shift_mix(a * _K1) * _K1
        c = b * _K1 + _hash_up_to_16(data)
        d = _shift_mix(a + (_word64(data, 0) if length >= 8 else c))
    else:
        c = _pair(_word64(data, length - 8) + _K1, a)
        d = _pair(b + length, c + _word64(data, length - 16))
        a += d
        for at in turns(range(0, length - 16, 16)):
            a = (a ^ _shift_mix(_word64(data, at) * _K1) * _K1) * _K1 & _MASK
            b ^= a
            c = (c ^ _shift_mix(_word64(data, at + 8) * _K1) * _K1) * _K1 & _MASK
            d ^= c
    a, b = _pair(a, c), _pair(d, b)
    return a ^ b, _pair(b, a)


def _city(data: bytes, x: int, y: int, turns: Turns) -> tuple[int, int]:
    """Strings of 128 bytes and more (CityHash128WithSeed): blocks, then the last bytes, which may overlap."""
    length = len(data)
    z = length * _K1 & _MASK
    v0 = _rotate(y ^ _K1, 49) * _K1 + _word64(data, 0)
    v = v0 & _MASK, _rotate(v0, 42) * _K1 + _word64(data, 8) & _MASK
    w0 = _rotate(y + z, 35) * _K1 + x
    w = w0 & _MASK, _rotate(x + _word64(data, 88), 53) * _K1 & _MASK
    state = _State(x, y, z, v, w)
    whole = length // _BLOCKS * _BLOCKS
    for at in turns(range(0, whole, 64)):
        state = state.after(data, at, _K1, 1)
    return _finish_city(data, length - whole, state)


def _finish_city(data: bytes, rest: int, state: _State) -> tuple[int, int]:
    x, y, z, (v0, v1), (w0, w1) = state
    x += _rotate(v0 + z, 49) * _K0
    y = y * _K0 + _rotate(w1, 37)
    z = z * _K0 + _rotate(w0, 27)
    w0, v0 = w0 * 9, v0 * _K0
    for done in range(32, rest + 32, 32):
        block = struct.unpack_from("<4Q", data, len(data) - done)
        y = _rotate(x + y, 42) * _K0 + v1
        w0 += block[2]
        x = x * _K0 + w0
        z += w1 + block[0]
        w1 += v0
        v0, v1 = _absorb_32(block, v0 + z, v1)
        v0 *= _K0
    x, y = _pair(x, v0), _pair(y + z, w0)
    return _pair(x + v1, w1) + y & _MASK, _pair(x + w1, y + v1)
