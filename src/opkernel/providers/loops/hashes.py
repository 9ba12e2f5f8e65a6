"""Loops that hash strings: FarmHash's Fingerprint64, MurmurHash64A and SipHash, one string after the other.

The algorithms are those of `opkernel.ops.strings.hash_columns`, for one string.
"""

import numpy as np

from opkernel.ops.sparse import cross, ragged_cross
from opkernel.ops.strings import hash_columns, hashes
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array

_Word = np.uint64

_K0 = np.uint64(0xC3A5C85C97CB3127)
_K1 = np.uint64(0xB492B66FBE98F273)
_K2 = np.uint64(0x9AE16A3B2F90404F)
_SEED_Y = np.uint64((81 * 0xB492B66FBE98F273 + 113) % 2**64)
_SEED_X = np.uint64(81 * 0x9AE16A3B2F90404F % 2**64)
_MURMUR = np.uint64(0xC6A4A7935BD1E995)
_MURMUR_SEED = np.uint64(0xDECAFCAFFE)


@part_of_loops
def _half(data: Array, at: _Word) -> _Word:
    """The four bytes from a place on, little-endian."""
    return np.uint64(
        np.uint64(data[at])
        | np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
    )


@part_of_loops
def _word(data: Array, at: _Word) -> _Word:
    """The eight bytes from a place on, little-endian."""
    return np.uint64(
        np.uint64(data[at])
        | np.uint64(data[at + np.uint64(1)]) << np.uint64(8)
        | np.uint64(data[at + np.uint64(2)]) << np.uint64(16)
        | np.uint64(data[at + np.uint64(3)]) << np.uint64(24)
        | np.uint64(data[at + np.uint64(4)]) << np.uint64(32)
        | np.uint64(data[at + np.uint64(5)]) << np.uint64(40)
        | np.uint64(data[at + np.uint64(6)]) << np.uint64(48)
        | np.uint64(data[at + np.uint64(7)]) << np.uint64(56)
    )


@part_of_loops
def _tail(data: Array, at: _Word, end: _Word) -> _Word:
    """The bytes between two places, fewer than eight, as one number."""
    number, shift = np.uint64(0), np.uint64(0)
    while at < end:
        number |= np.uint64(data[at]) << shift
        shift += np.uint64(8)
        at += np.uint64(1)
    return number


@part_of_loops
def _rotate(value: _Word, shift: int) -> _Word:
    """Turned to the right."""
    return np.uint64(value >> np.uint64(shift) | value << np.uint64(64 - shift))


@part_of_loops
def _shift_mix(value: _Word) -> _Word:
    return np.uint64(value ^ value >> np.uint64(47))


@part_of_loops
def _mix(u: _Word, v: _Word, multiplier: _Word) -> _Word:
    a = _shift_mix((u ^ v) * multiplier)
    return np.uint64(_shift_mix((v ^ a) * multiplier) * multiplier)


@part_of_loops
def _up_to_16(data: Array, at: _Word, length: _Word) -> _Word:
    multiplier = _K2 + np.uint64(2) * length
    if length >= np.uint64(8):
        a, b = _word(data, at) + _K2, _word(data, at + length - np.uint64(8))
        return _mix(_rotate(b, 37) * multiplier + a, (_rotate(a, 25) + b) * multiplier, multiplier)
    if length >= np.uint64(4):
        first, last = _half(data, at), _half(data, at + length - np.uint64(4))
        return _mix(length + (first << np.uint64(3)), last, multiplier)
    if length == np.uint64(0):
        return _K2
    middle, end = at + (length >> np.uint64(1)), at + length - np.uint64(1)
    y = np.uint64(data[at]) + (np.uint64(data[middle]) << np.uint64(8))
    z = length + (np.uint64(data[end]) << np.uint64(2))
    return np.uint64(_shift_mix(y * _K2 ^ z * _K0) * _K2)


@part_of_loops
def _17_to_64(data: Array, at: _Word, length: _Word) -> _Word:
    is_short = length <= np.uint64(32)
    multiplier, end = _K2 + np.uint64(2) * length, at + length
    a = _word(data, at) * (_K1 if is_short else _K2)
    b = _word(data, at + np.uint64(8))
    c = _word(data, end - np.uint64(8)) * multiplier
    d = _word(data, end - np.uint64(16)) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = a + _rotate(b + _K2, 18) + c
    if is_short:
        return _mix(y, z, multiplier)
    z = _mix(y, z, multiplier)
    e, f = _word(data, at + np.uint64(16)) * multiplier, _word(data, at + np.uint64(24))
    g = (y + _word(data, end - np.uint64(32))) * multiplier
    h = (z + _word(data, end - np.uint64(24))) * multiplier
    return _mix(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, multiplier)


@part_of_loops
def _absorb_32(data: Array, at: _Word, a: _Word, b: _Word) -> tuple[_Word, _Word]:
    a = a + _word(data, at)
    x, y = _word(data, at + np.uint64(8)), _word(data, at + np.uint64(16))
    z = _word(data, at + np.uint64(24))
    b = _rotate(b + a + z, 21)
    c = a
    a = a + x + y
    b = b + _rotate(a, 44)
    return a + z, b + c


@part_of_loops
def _block(
    data: Array,
    at: _Word,
    state: tuple[_Word, _Word, _Word, _Word, _Word, _Word, _Word],
    multiplier: _Word,
    nine: _Word,
) -> tuple[_Word, _Word, _Word, _Word, _Word, _Word, _Word]:
    """The state (x, y, z, v, w) after 64 bytes; the last block multiplies by another number, and by nine."""
    x, y, z, v0, v1, w0, w1 = state
    x = _rotate(x + y + v0 + _word(data, at + np.uint64(8)), 37) * multiplier
    y = _rotate(y + v1 + _word(data, at + np.uint64(48)), 42) * multiplier
    x = x ^ w1 * nine
    y = y + v0 * nine + _word(data, at + np.uint64(40))
    z = _rotate(z + w0, 33) * multiplier
    v0, v1 = _absorb_32(data, at, v1 * multiplier, x + w0)
    w0, w1 = _absorb_32(data, at + np.uint64(32), z + w1, y + _word(data, at + np.uint64(16)))
    return z, y, x, v0, v1, w0, w1


@part_of_loops
def _long(data: Array, at: _Word, length: _Word) -> _Word:
    """Over 64 bytes: a state of 56 bytes over blocks of 64, the last of which may overlap."""
    zero, one = np.uint64(0), np.uint64(1)
    z = _shift_mix(_SEED_Y * _K2 + np.uint64(113)) * _K2
    state = (_SEED_X + _word(data, at), _SEED_Y, z, zero, zero, zero, zero)
    last = at + (length - one) // np.uint64(64) * np.uint64(64)
    end = at + length
    while at < last:
        state = _block(data, at, state, _K1, one)
        at += np.uint64(64)
    x, y, z, v0, v1, w0, w1 = state
    multiplier = _K1 + ((z & np.uint64(0xFF)) << one)
    w0 = w0 + ((length - one) & np.uint64(63))
    v0 = v0 + w0
    w0 = w0 + v0
    state = x, y, z, v0, v1, w0, w1
    x, y, z, v0, v1, w0, w1 = _block(data, end - np.uint64(64), state, multiplier, np.uint64(9))
    first = _mix(v0, w0, multiplier) + _shift_mix(y) * _K0 + z
    return _mix(first, _mix(v1, w1, multiplier) + x, multiplier)


@loop(otherwise=hash_columns.fingerprints)
def fingerprints(data: Array, splits: Array) -> Array:
    """As `hash_columns.fingerprints`."""
    found = np.empty(splits.size - 1, np.uint64)
    for i in range(found.size):
        at = np.uint64(splits[i])
        length = np.uint64(splits[i + 1]) - at
        if length <= np.uint64(16):
            found[i] = _up_to_16(data, at, length)
        elif length <= np.uint64(64):
            found[i] = _17_to_64(data, at, length)
        else:
            found[i] = _long(data, at, length)
    return found


@loop(otherwise=hash_columns.murmur_hashes)
def murmur_hashes(data: Array, splits: Array) -> Array:
    """As `hash_columns.murmur_hashes`."""
    found = np.empty(splits.size - 1, np.uint64)
    for i in range(found.size):
        at, end = np.uint64(splits[i]), np.uint64(splits[i + 1])
        h = _MURMUR_SEED ^ (end - at) * _MURMUR
        while at + np.uint64(8) <= end:
            k = _shift_mix(_word(data, at) * _MURMUR) * _MURMUR
            h = (h ^ k) * _MURMUR
            at += np.uint64(8)
        if at < end:
            h = (h ^ _tail(data, at, end)) * _MURMUR
        found[i] = _shift_mix(_shift_mix(h) * _MURMUR)
    return found


@part_of_loops
def _sip_rounds(
    v0: _Word, v1: _Word, v2: _Word, v3: _Word, count: int
) -> tuple[_Word, _Word, _Word, _Word]:
    for _ in range(count):
        v0 = v0 + v1
        v1 = _rotate(v1, 51) ^ v0
        v2 = v2 + v3
        v3 = _rotate(v3, 48) ^ v2
        v0 = _rotate(v0, 32)
        v2 = v2 + v1
        v1 = _rotate(v1, 47) ^ v2
        v0 = v0 + v3
        v3 = _rotate(v3, 43) ^ v0
        v2 = _rotate(v2, 32)
    return v0, v1, v2, v3


@loop(otherwise=hash_columns.sip_hashes)
def sip_hashes(data: Array, splits: Array, k0: np.uint64, k1: np.uint64) -> Array:
    """As `hash_columns.sip_hashes`."""
    found = np.empty(splits.size - 1, np.uint64)
    for i in range(found.size):
        at, end = np.uint64(splits[i]), np.uint64(splits[i + 1])
        length = end - at
        v0, v1 = k0 ^ np.uint64(0x736F6D6570736575), k1 ^ np.uint64(0x646F72616E646F6D)
        v2, v3 = k0 ^ np.uint64(0x6C7967656E657261), k1 ^ np.uint64(0x7465646279746573)
        while at + np.uint64(8) <= end:
            word = _word(data, at)
            v0, v1, v2, v3 = _sip_rounds(v0, v1, v2, v3 ^ word, 2)
            v0 = v0 ^ word
            at += np.uint64(8)
        word = _tail(data, at, end) | length << np.uint64(56)
        v0, v1, v2, v3 = _sip_rounds(v0, v1, v2, v3 ^ word, 2)
        v0, v1, v2, v3 = _sip_rounds(v0 ^ word, v1, v2 ^ np.uint64(0xFF), v3, 4)
        found[i] = v0 ^ v1 ^ v2 ^ v3
    return found


_BY_LOOPS = hashes.StringHashes(fingerprints, murmur_hashes, sip_hashes)

hashes.register_hashes(_BY_LOOPS, LOOPS.kernels)
cross.register_crosses(_BY_LOOPS, LOOPS.kernels)
ragged_cross.register_ragged_cross(_BY_LOOPS, LOOPS.kernels)
