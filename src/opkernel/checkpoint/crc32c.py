"""CRC-32C, the checksum of checkpoints, and its masked form.

`google-crc32c` (the extra `checksums`) computes it as fast as memory is read. Without that library, NumPy
computes the checksums of many stretches side by side, and combines them: a checksum is a linear function of the data,
so that what a stretch adds is shifted by the length of what follows.

Source: TensorFlow tsl/lib/hash/crc32c.h; RFC 3720, appendix B.4.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_ALL = 0xFFFFFFFF
_SHORT = 2048
"""Fewer bytes than these are taken one by one."""
_STRETCH = 1024
"""The bytes of a stretch, about."""
_MOST_AT_ONCE = 1 << 24

_Words = np.ndarray[Any, np.dtype[np.uint32]]
Buffer = bytes | bytearray | memoryview


def crc32c(data: Buffer, before: int = 0) -> int:
    """The checksum of data that follows data with the checksum `before`."""
    extend = _extend_of_library()
    return extend(before, data) if extend is not None else _extended(before, memoryview(data))


def mask(crc: int) -> int:
    """A checksum in the form that is stored beside data which may hold checksums itself."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & _ALL


def unmask(masked: int) -> int:
    """The checksum of a masked one."""
    rotated = (masked - _MASK_DELTA) & _ALL
    return ((rotated >> 17) | (rotated << 15)) & _ALL


def masked_crc32c(data: Buffer) -> int:
    """The masked checksum of data."""
    return mask(crc32c(data))


@functools.cache
def _extend_of_library() -> Callable[[int, Buffer], int] | None:
    """`google_crc32c.extend`, where that is compiled; None where it is not."""
    try:
        import google_crc32c
    except ImportError:
        return None

    def extended(before: int, data: Buffer) -> int:
        """The library takes bytes, or arrays without a copy."""
        buffer = data if isinstance(data, bytes) else np.frombuffer(data, np.uint8)
        return int(google_crc32c.extend(before, buffer))

    return extended if google_crc32c.implementation == "c" else None


def _extended(before: int, data: memoryview) -> int:
    """The checksum, without the library."""
    data = data.cast("B")
    state = before ^ _ALL
    for start in range(0, len(data), _MOST_AT_ONCE):
        state = _state_after(state, data[start : start + _MOST_AT_ONCE])
    return state ^ _ALL


def _state_after(state: int, data: memoryview) -> int:
    """The register after data."""
    if len(data) >= _SHORT:
        stretches = 1 << (len(data) // _STRETCH).bit_length() - 1
        length = len(data) // stretches & ~3
        done = stretches * length
        words = np.frombuffer(data[:done], "<u4").reshape(stretches, length // 4)
        state = _combined(_states_of_stretches(state, words), length)
        data = data[done:]
    table = _byte_table()
    for byte in data:
        state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state


def _states_of_stretches(state: int, words: _Words) -> _Words:
    """The registers after each row, the first of which begins with `state`."""
    by_byte = _word_tables()
    states = np.zeros(len(words), np.uint32)
    states[0] = state
    for column in np.ascontiguousarray(words.T):
        states ^= column
        states = (
            by_byte[0][states & 0xFF]
            ^ by_byte[1][(states >> 8) & 0xFF]
            ^ by_byte[2][(states >> 16) & 0xFF]
            ^ by_byte[3][states >> 24]
        )
    return states


def _combined(states: _Words, length: int) -> int:
    """The register after all stretches of a length, whose number is a power of two."""
    while len(states) > 1:
        states = _applied(_zeros(length), states[0::2]) ^ states[1::2]
        length *= 2
    return int(states[0])


def _applied(columns: _Words, states: _Words) -> _Words:
    """A linear function of registers, given by what it makes of each bit."""
    result = np.zeros_like(states)
    for bit in range(32):
        result ^= np.where((states >> np.uint32(bit)) & 1, columns[bit], np.uint32(0))
    return result


@functools.lru_cache(256)
def _zeros(length: int) -> _Words:
    """What so many zero bytes make of each bit of the register."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    if length == 0:
        return bits
    if length == 1:
        tables: _Words = np.array(_byte_table(), np.uint32)[bits & 0xFF]
        return tables ^ (bits >> np.uint32(8))
    half = _zeros(length // 2)
    twice = _applied(half, half)
    return _applied(_zeros(1), twice) if length % 2 else twice


@functools.cache
def _byte_table() -> list[int]:
    """The register after each byte, from an empty register."""
    table = []
    for byte in range(256):
        state = byte
        for _ in range(8):
            state = (state >> 1) ^ (_POLYNOMIAL if state & 1 else 0)
        table.append(state)
    return table


@functools.cache
def _word_tables() -> list[_Words]:
    """What each byte of the register, the lowest first, is after four bytes."""
    table = np.array(_byte_table(), np.uint32)
    return [_applied(_zeros(3 - place), table) for place in range(4)]
