"""Floats in summaries: the shorter of two precisions that reads back as the same number.

Source: TensorFlow tsl/platform/numbers.cc (LegacyPrecision).
"""

import math
import struct


def float_text(value: float) -> str:
    """A float32 value in 6 digits or, where they do not suffice, in 9: "0.1", "0.333333343"."""
    short = _printf(value, 6)
    return short if _rounds_to(short, value) else _printf(value, 9)


def double_text(value: float) -> str:
    """A float64 value in 15 digits or, where they do not suffice, in 17."""
    short = _printf(value, 15)
    return short if float(short) == value else _printf(value, 17)


def _printf(value: float, digits: int) -> str:
    """The text of C's "%.*g"; Python's differs for negative NaNs alone."""
    if math.isnan(value) and math.copysign(1.0, value) < 0:
        return "-nan"
    return f"{value:.{digits}g}"


def _rounds_to(text: str, value: float) -> bool:
    """Whether the text, read as a float32, is `value`."""
    number = float(text)
    if not math.isfinite(number):
        return number == value
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return False
    return rounded == value
