"""The hashes of strings by NumPy: FarmHash's Fingerprint64, MurmurHash64A and SipHash.

All strings of one length are hashed at once, as columns of their bytes. `opdef.core.fingerprint` and
`lookup.hash_map_order` hash single strings.

Source: TensorFlow tsl/platform/fingerprint.h, tsl/platform/hash.cc, core/lib/strong_hash (SipHash of the HighwayHash
library).
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.work_clock import array_work, in_time
from opkernel.kernel import shard
from opkernel.opdef.core.fingerprint import fingerprint64

Words = Any
"""An array of uint64, whose arithmetic is modulo 2**64."""

_TILE_BYTES, _TILE = 1 << 18, 1 << 13
"""The columns of one computation should stay in the cache: bytes, and strings."""


class Rows:
    """Strings of one length, one after the other in a buffer."""

    def __init__(self, buffer: Any, count: int, length: int) -> None:
        self._buffer = buffer
        self.count, self.length = count, length

    def column(self, at: int, dtype: str) -> Any:
        """The numbers that begin at a byte of each string, as uint64."""
        column = np.ndarray((self.count,), dtype, self._buffer, at, (max(self.length, 1),))
        return column.astype(np.uint64)

    def word(self, at: int) -> Any:
        """The eight bytes of each string from `at` on, little-endian."""
        return self.column(at, "<u8")

    def tail(self, at: int) -> Any:
        """The bytes of each string from `at` on, fewer than eight, as one number."""
        number = np.zeros(self.count, np.uint64)
        for i in range(at, self.length):
            number |= self.column(i, "u1") << np.uint64(8 * (i - at))
        return number


def _of_each_length(data: Any, splits: Any, function: Callable[[Rows], Any]) -> Words:
    """The numbers that a function gives for the rows of each length."""
    starts, lengths = splits[:-1], np.diff(splits)
    found = np.empty(lengths.size, np.uint64)
    narrow = np.uint16 if lengths.max(initial=0) < 1 << 16 else np.int64
    order = np.argsort(lengths.astype(narrow), kind="stable")  # of 16 bits NumPy sorts fastest
    sorted_lengths = lengths[order]

    def fill(tile: slice) -> None:
        chosen, length = order[tile], int(sorted_lengths[tile.start])
        rows = Rows(_gathered(data, starts[chosen], length), chosen.size, length)
        with np.errstate(over="ignore"):
            found[chosen] = function(rows)

    shard(fill, _tiles(sorted_lengths))
    return found


def _gathered(buffer: Any, starts: Any, length: int) -> Any:
    """The parts of a buffer that begin at places, one after the other."""
    if not length:
        return b""
    # Any part of the buffer, as an element of so many bytes: the elements overlap.
    parts = np.ndarray((buffer.size - length + 1,), f"V{length}", buffer, strides=(1,))
    return parts[starts]


def _tile_of(length: int) -> int:
    """How many strings of a length are computed together."""
    return min(max(_TILE_BYTES // max(length, 8), 64), _TILE)


def _tiles(lengths: Any) -> list[slice]:
    """Where runs of one length begin and end, cut where they are long."""
    edges = np.flatnonzero(np.diff(lengths)) + 1
    bounds, tiles = sorted({0, *edges.tolist(), lengths.size}), []
    for first, stop in itertools.pairwise(bounds):
        step = _tile_of(int(lengths[first]))
        tiles += [slice(at, min(at + step, stop)) for at in range(first, stop, step)]
    return tiles


_K0 = np.uint64(0xC3A5C85C97CB3127)
_K1 = np.uint64(0xB492B66FBE98F273)
_K2 = np.uint64(0x9AE16A3B2F90404F)
_MASK = (1 << 64) - 1
_OF_BLOCK, _OF_WORD = 64, 32
"""The functions of NumPy that 64 bytes of rows go through, and 8."""
_FEW = 32
"""Below it, plain Python is faster than NumPy."""


def fingerprints(data: Any, splits: Any) -> Words:
    """Fingerprint64 of each string of a buffer."""
    if splits.size <= _FEW:
        places = zip(splits.tolist(), splits[1:].tolist(), strict=False)
        found = [fingerprint64(data[a:b].tobytes(), in_time) for a, b in places]
        return np.array(found, np.uint64)
    return _of_each_length(data, splits, _fingerprint)


def _u64(value: int) -> Any:
    return np.uint64(value & _MASK)


def _rotate(value: Words, shift: int) -> Words:
    """Turned to the right."""
    return (value >> _u64(shift)) | (value << _u64(64 - shift))


def _shift_mix(value: Words) -> Words:
    return value ^ (value >> _u64(47))


def _mix(u: Words, v: Words, multiplier: Any) -> Words:
    a = _shift_mix((u ^ v) * multiplier)
    b = _shift_mix((v ^ a) * multiplier)
    return b * multiplier


def _fingerprint(rows: Rows) -> Words:
    if rows.length == 0:
        return _K2
    if rows.length <= 16:
        return _up_to_16(rows)
    if rows.length <= 32:
        return _17_to_32(rows)
    if rows.length <= 64:
        return _33_to_64(rows)
    return _long(rows)


def _up_to_16(rows: Rows) -> Words:
    length = rows.length
    multiplier = _K2 + _u64(2 * length)
    if length >= 8:
        a, b = rows.word(0) + _K2, rows.word(length - 8)
        c = _rotate(b, 37) * multiplier + a
        d = (_rotate(a, 25) + b) * multiplier
        return _mix(c, d, multiplier)
    if length >= 4:
        first, last = rows.column(0, "<u4"), rows.column(length - 4, "<u4")
        return _mix(_u64(length) + (first << _u64(3)), last, multiplier)
    y = rows.column(0, "u1") + (rows.column(length >> 1, "u1") << _u64(8))
    z = _u64(length) + (rows.column(length - 1, "u1") << _u64(2))
    return _shift_mix(y * _K2 ^ z * _K0) * _K2


def _ends(rows: Rows, first_multiplier: Any) -> tuple[Words, Words, Words, Words, Any]:
    length = rows.length
    multiplier = _K2 + _u64(2 * length)
    a, b = rows.word(0) * first_multiplier, rows.word(8)
    c, d = rows.word(length - 8) * multiplier, rows.word(length - 16) * _K2
    return a, b, c, d, multiplier


def _17_to_32(rows: Rows) -> Words:
    a, b, c, d, multiplier = _ends(rows, _K1)
    return _mix(_rotate(a + b, 43) + _rotate(c, 30) + d, a + _rotate(b + _K2, 18) + c, multiplier)


def _33_to_64(rows: Rows) -> Words:
    a, b, c, d, multiplier = _ends(rows, _K2)
    length = rows.length
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _mix(y, a + _rotate(b + _K2, 18) + c, multiplier)
    e, f = rows.word(16) * multiplier, rows.word(24)
    g = (y + rows.word(length - 32)) * multiplier
    h = (z + rows.word(length - 24)) * multiplier
    return _mix(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, multiplier)


def _absorb_32(rows: Rows, at: int, a: Words, b: Words) -> tuple[Words, Words]:
    w, x, y, z = (rows.word(at + 8 * i) for i in range(4))
    a = a + w
    b = _rotate(b + a + z, 21)
    c = a
    a = a + x + y
    b = b + _rotate(a, 44)
    return a + z, b + c


def _long(rows: Rows) -> Words:
    """Over 64 bytes: a state of 56 bytes over blocks of 64, the last of which may overlap."""
    seed = _u64(81)
    y = seed * _K1 + _u64(113)
    z = _shift_mix(y * _K2 + _u64(113)) * _K2
    zeros = np.zeros(rows.count, np.uint64)
    v, w = (zeros, zeros), (zeros, zeros)
    x = seed * _K2 + rows.word(0)
    for at in in_time(
        range(0, (rows.length - 1) // 64 * 64, 64), array_work(rows.count, _OF_BLOCK)
    ):
        x = _rotate(x + y + v[0] + rows.word(at + 8), 37) * _K1
        y = _rotate(y + v[1] + rows.word(at + 48), 42) * _K1
        x = x ^ w[1]
        y = y + v[0] + rows.word(at + 40)
        z = _rotate(z + w[0], 33) * _K1
        v = _absorb_32(rows, at, v[1] * _K1, x + w[0])
        w = _absorb_32(rows, at + 32, z + w[1], y + rows.word(at + 16))
        z, x = x, z
    return _finish_long(rows, x, y, z, v, w)


def _finish_long(
    rows: Rows, x: Words, y: Words, z: Words, v: tuple[Words, Words], w: tuple[Words, Words]
) -> Words:
    multiplier = _K1 + ((z & _u64(0xFF)) << _u64(1))
    at, nine = rows.length - 64, _u64(9)
    w = (w[0] + _u64((rows.length - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = _rotate(x + y + v[0] + rows.word(at + 8), 37) * multiplier
    y = _rotate(y + v[1] + rows.word(at + 48), 42) * multiplier
    x = x ^ w[1] * nine
    y = y + v[0] * nine + rows.word(at + 40)
    z = _rotate(z + w[0], 33) * multiplier
    v = _absorb_32(rows, at, v[1] * multiplier, x + w[0])
    w = _absorb_32(rows, at + 32, z + w[1], y + rows.word(at + 16))
    z, x = x, z
    first = _mix(v[0], w[0], multiplier) + _shift_mix(y) * _K0 + z
    return _mix(first, _mix(v[1], w[1], multiplier) + x, multiplier)


def sip_hashes(data: Any, splits: Any, k0: np.uint64, k1: np.uint64) -> Words:
    """SipHash-2-4 of each string of a buffer under a key of two words."""
    return _of_each_length(data, splits, lambda rows: _sip_hash(rows, k0, k1))


def _sip_hash(rows: Rows, k0: Any, k1: Any) -> Words:
    constants = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    state = np.empty((4, rows.count), np.uint64)
    for words, constant, key in zip(state, constants, (k0, k1, k0, k1), strict=True):
        words[:] = key ^ _u64(constant)
    spare = np.empty(rows.count, np.uint64)
    whole = rows.length - rows.length % 8
    for at in in_time(range(0, whole, 8), array_work(rows.count, _OF_WORD)):
        _sip_block(state, rows.word(at), spare)
    _sip_block(state, rows.tail(whole) | _u64(rows.length << 56), spare)
    state[2] ^= _u64(0xFF)
    for _ in range(4):
        _sip_round(state, spare)
    return np.bitwise_xor.reduce(state)


def _sip_block(state: Words, word: Words, spare: Words) -> None:
    state[3] ^= word
    _sip_round(state, spare)
    _sip_round(state, spare)
    state[0] ^= word


def _sip_round(state: Words, spare: Words) -> None:
    """Written over the state, as fresh memory would cost more than the arithmetic."""
    v0, v1, v2, v3 = state
    _sip_half(v0, v1, 51, v2, v3, 48, spare)
    _rotate_in_place(v0, 32, spare)
    _sip_half(v2, v1, 47, v0, v3, 43, spare)
    _rotate_in_place(v2, 32, spare)


def _sip_half(a: Words, b: Words, i: int, c: Words, d: Words, j: int, spare: Words) -> None:
    """Two pairs: the sum becomes the first word, and the second is turned and mixed with it."""
    a += b
    _rotate_in_place(b, i, spare)
    b ^= a
    c += d
    _rotate_in_place(d, j, spare)
    d ^= c


def _rotate_in_place(value: Words, shift: int, spare: Words) -> None:
    """Turned to the right."""
    np.left_shift(value, _u64(64 - shift), out=spare)
    np.right_shift(value, _u64(shift), out=value)
    np.bitwise_or(value, spare, out=value)


_MURMUR_SEED = 0xDECAFCAFFE
_MURMUR = _u64(0xC6A4A7935BD1E995)


def murmur_hashes(data: Any, splits: Any) -> Words:
    """MurmurHash64A of each string of a buffer with TensorFlow's seed."""
    return _of_each_length(data, splits, _murmur_hash)


def _murmur_hash(rows: Rows) -> Words:
    h = np.full(rows.count, _u64(_MURMUR_SEED ^ (rows.length * int(_MURMUR) & _MASK)))
    whole = rows.length - rows.length % 8
    for at in in_time(range(0, whole, 8), array_work(rows.count, _OF_WORD)):
        k = _shift_mix(rows.word(at) * _MURMUR) * _MURMUR
        h = (h ^ k) * _MURMUR
    if whole < rows.length:
        h = (h ^ rows.tail(whole)) * _MURMUR
    return _shift_mix(_shift_mix(h) * _MURMUR)


def concatenated(first: Words, second: Words) -> Words:
    """A hash of two hashes (FingerprintCat64)."""
    with np.errstate(over="ignore"):
        h = (first ^ _MURMUR) ^ _shift_mix(second * _MURMUR) * _MURMUR
        return _shift_mix(_shift_mix(h * _MURMUR) * _MURMUR)
