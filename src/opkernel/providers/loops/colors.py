"""Loops that adjust colours pixel by pixel."""

import numpy as np

from opkernel.ops.image import color
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop, part_of_loops
from opkernel.types import Array

_TINY = np.finfo(np.float32).tiny


@loop(otherwise=color.adjust_contrast_of)
def adjust_contrast(images: Array, factor: np.float32, out: Array) -> None:
    """The mean of an image is that of its lines' means."""
    count, height, width, channels = images.shape
    mean, of_line = np.empty(channels, np.float32), np.empty(channels, np.float32)
    for n in range(count):
        mean[:] = 0
        for y in range(height):
            of_line[:] = 0
            for x in range(width):
                for c in range(channels):
                    of_line[c] += images[n, y, x, c]
            for c in range(channels):
                mean[c] += of_line[c] / np.float32(width)
        for c in range(channels):
            mean[c] /= np.float32(height)
        for y in range(height):
            for x in range(width):
                for c in range(channels):
                    out[n, y, x, c] = (images[n, y, x, c] - mean[c]) * factor + mean[c]


@part_of_loops
def _normal(value: np.float32) -> np.float32:
    """0 of its sign for a number too small for the normal format."""
    return value * np.float32(0) if abs(value) < _TINY else value


@part_of_loops
def _hue_in_sixths(
    red: np.float32, green: np.float32, blue: np.float32, value: np.float32, extent: np.float32
) -> np.float32:
    """The hue between 0 and 6, from the largest channel and the extent of all three."""
    if extent <= 0:
        return np.float32(0)
    sixth = np.float32(1) / (np.float32(6) * extent)
    if red == value:
        hue = sixth * (green - blue)
    elif green == value:
        hue = sixth * (blue - red) + np.float32(2 / 6)
    else:
        hue = sixth * (red - green) + np.float32(4 / 6)
    return np.float32((hue + np.float32(1) if hue < 0 else hue) * np.float32(6))


@part_of_loops
def _share(hue: np.float32, part: np.float32) -> np.float32:
    """How much of the chroma a channel has; 0 for a hue that is none."""
    if not 0 <= hue < 6:
        return np.float32(0)
    return np.float32(0) if part < 0 else min(part, np.float32(1))


@loop(otherwise=color.adjust_saturation_of)
def adjust_saturation(pixels: Array, scale: np.float32, out: Array) -> None:
    """By way of hue and saturation."""
    one, two = np.float32(1), np.float32(2)
    for n in range(len(pixels)):
        red, green, blue = _normal(pixels[n, 0]), _normal(pixels[n, 1]), _normal(pixels[n, 2])
        large = max(green, blue)
        value = max(red, large)
        small = min(green, blue)
        extent = value - (min(red, small))
        saturation = (extent / value if value > 0 else np.float32(0)) * scale
        chroma = (min(saturation, one) if saturation > 0 else np.float32(0)) * value
        hue = _hue_in_sixths(red, green, blue, value, extent)
        rest = value - chroma
        out[n, 0] = rest + _share(hue, abs(hue - np.float32(3)) - one) * chroma
        out[n, 1] = rest + _share(hue, two - abs(hue - two)) * chroma
        out[n, 2] = rest + _share(hue, two - abs(hue - np.float32(4))) * chroma


@part_of_loops
def _sector(red: np.float32, green: np.float32, blue: np.float32) -> int:
    """In which sixth of the circle of hues a colour is."""
    if red < green:
        if blue < red:
            return 1
        return 3 if blue > green else 2
    if blue < green:
        return 0
    return 4 if blue > red else 5


@part_of_loops
def _ordered(sector: int) -> tuple[int, int, int]:
    """Which channels are the largest, the middle and the smallest in a sixth of the circle."""
    largest = ((sector + 1) // 2) % 3
    smallest = ((sector // 2) + 2) % 3
    return largest, 3 - largest - smallest, smallest


@loop(otherwise=color.adjust_hue_of)
def adjust_hue(pixels: Array, delta: np.float32, out: Array) -> None:
    """The largest and the smallest channel stay; the third is between them."""
    one, six = np.float32(1), np.float32(6)
    turn = delta * six
    for n in range(len(pixels)):
        sector = _sector(pixels[n, 0], pixels[n, 1], pixels[n, 2])
        largest, middle, smallest = _ordered(sector)
        high, low = pixels[n, largest], pixels[n, smallest]
        hue = np.float32(0)
        if high != low:
            ratio = (pixels[n, middle] - low) / (high - low)
            hue = np.float32(sector) + (one - ratio if sector % 2 else ratio)
        hue += turn
        if not 0 <= hue < six:
            hue = np.float32(np.fmod(hue, six))
            hue = hue + six if hue < 0 else hue
        if hue >= six:
            hue = np.float32(0)
        sector = int(hue) if hue >= 0 else 5
        ratio = hue - np.float32(sector)
        largest, middle, smallest = _ordered(sector)
        out[n, largest] = high
        out[n, middle] = low + (one - ratio if sector % 2 else ratio) * (high - low)
        out[n, smallest] = low


color.register_adjustments(adjust_contrast, adjust_saturation, adjust_hue, registry=LOOPS.kernels)
