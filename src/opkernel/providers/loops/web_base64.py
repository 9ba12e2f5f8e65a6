"""Loops for base64: three bytes become four digits, and back."""

import numpy as np

from opkernel.ops.strings import web_base64
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.providers.loops.made_strings import strings_between
from opkernel.types import Array

_DIGITS = np.frombuffer(web_base64.DIGITS, np.uint8).copy()
_NONE = 64
_VALUES = np.full(256, _NONE, np.int64)
_VALUES[_DIGITS] = np.arange(_NONE)
_FILL = web_base64.FILL
_LENGTH_FAULT, _DIGIT_FAULT = web_base64.LENGTH_FAULT, web_base64.DIGIT_FAULT


@loop(otherwise=web_base64.encode)
def encode(data: Array, splits: Array, pad: bool) -> tuple[Array, Array, Array]:
    """As `web_base64.encode`."""
    count = splits.size - 1
    found = np.empty((data.size + 2 * count) // 3 * 4 + 4, np.uint8)
    begins, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    to = 0
    for i in range(count):
        begins[i] = to
        for at in range(splits[i], splits[i + 1], 3):
            left = splits[i + 1] - at
            bits = np.int64(data[at]) << 16
            if left > 1:
                bits |= np.int64(data[at + 1]) << 8
            if left > 2:
                bits |= np.int64(data[at + 2])
            found[to] = _DIGITS[bits >> 18]
            found[to + 1] = _DIGITS[bits >> 12 & 63]
            found[to + 2] = _DIGITS[bits >> 6 & 63] if left > 1 else _FILL
            found[to + 3] = _DIGITS[bits & 63] if left > 2 else _FILL
            to += 4 if pad or left > 2 else left + 1
        ends[i] = to
    return found[:to], begins, ends


@part_of_loops
def _end_of_digits(data: Array, at: int, end: int) -> int:
    """The end of a string without up to two = where these fill up a group."""
    last = max(end - 2, at) if (end - at) % 4 == 0 else end
    while end > last and data[end - 1] == _FILL:
        end -= 1
    return end


@loop(otherwise=web_base64.decode)
def decode(data: Array, splits: Array) -> tuple[Array, Array, Array, int]:
    """As `web_base64.decode`."""
    count = splits.size - 1
    found = np.empty(data.size + 4, np.uint8)
    begins, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    to, bits, odd = 0, 0, 0
    for i in range(count):
        end = _end_of_digits(data, splits[i], splits[i + 1])
        begins[i] = to
        whole = (end - splits[i]) // 4
        left = end - splits[i] - 4 * whole
        if left == 1:
            return found[:0], begins, ends, _LENGTH_FAULT
        odd, bits = 0, 0
        for at in range(splits[i], end):
            value = _VALUES[data[at]]
            odd |= value
            bits = bits << 6 | value
            if (at - splits[i]) % 4 == 3:
                found[to], found[to + 1], found[to + 2] = (
                    bits >> 16 & 255,
                    bits >> 8 & 255,
                    bits & 255,
                )
                to += 3
                bits = 0
        if odd & _NONE:
            return found[:0], begins, ends, _DIGIT_FAULT
        if left == 2:
            found[to] = bits >> 4 & 255
            to += 1
        elif left == 3:
            found[to], found[to + 1] = bits >> 10 & 255, bits >> 2 & 255
            to += 2
        ends[i] = to
    return found[:to], begins, ends, 0


web_base64.register_base64(encode, decode, strings_between, LOOPS.kernels)
