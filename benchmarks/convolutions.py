"""How fast the convolution and pooling kernels are, layer by layer.

    python benchmarks/convolutions.py [--threads N ...] [--batch N]

Prints, for the layers of ResNet-50 and MobileNetV2, the time and GFLOP/s of each convolution and
the ratio of its time to that of one matrix product with as many operations (bound: 1.15 x over all
layers of ResNet-50); for depthwise convolutions and pools, the ratio to the same sum or maximum
written as one NumPy expression for each element of the window.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from measure import clean_environment, interleaved

from opkernel import kernel_function
from opkernel.ops.nn.max_pool import max_pool
from opkernel.state.lasting_values import note_lasting
from opkernel.types import float32

Array = np.ndarray[Any, Any]
Contenders = dict[str, Callable[[], object]]

# (layers of this kind, rows and columns, channels in, channels out, window, stride)
RESNET_50 = [
    (1, 224, 3, 64, 7, 2),
    (1, 56, 64, 64, 1, 1),
    (3, 56, 64, 64, 3, 1),
    (4, 56, 64, 256, 1, 1),
    (2, 56, 256, 64, 1, 1),
    (1, 56, 256, 128, 1, 2),
    (4, 28, 128, 128, 3, 1),
    (4, 28, 128, 512, 1, 1),
    (1, 56, 256, 512, 1, 2),
    (3, 28, 512, 128, 1, 1),
    (1, 28, 512, 256, 1, 2),
    (6, 14, 256, 256, 3, 1),
    (6, 14, 256, 1024, 1, 1),
    (1, 28, 512, 1024, 1, 2),
    (5, 14, 1024, 256, 1, 1),
    (1, 14, 1024, 512, 1, 2),
    (3, 7, 512, 512, 3, 1),
    (3, 7, 512, 2048, 1, 1),
    (1, 14, 1024, 2048, 1, 2),
    (2, 7, 2048, 512, 1, 1),
]
MOBILENET_V2_DEPTHWISE = [
    (1, 112, 32, 3, 1),
    (1, 112, 96, 3, 2),
    (1, 56, 144, 3, 1),
    (1, 56, 144, 3, 2),
    (2, 28, 192, 3, 1),
    (1, 28, 192, 3, 2),
    (4, 14, 384, 3, 1),
    (2, 14, 576, 3, 1),
    (1, 14, 576, 3, 2),
    (3, 7, 960, 3, 1),
]
POOLS = [(1, 112, 64, 3, 2), (1, 56, 64, 2, 2), (1, 35, 192, 3, 1), (1, 13, 512, 5, 1)]
ATTRS: dict[str, Any] = {"padding": "SAME", "explicit_paddings": [], "data_format": "NHWC"}


def random(*shape: int) -> Array:
    return np.random.default_rng(0).random(shape, np.float32)


def constant(array: Array) -> Array:
    """The array, known to be constant as that of a Const: kernels prepare such filters once."""
    note_lasting(array)
    return array


def padded_slices(x: Array, window: int, stride: int) -> Iterator[Array]:
    """What the elements of windows see, one after the other, of images padded as for SAME."""
    size = -(-x.shape[1] // stride)
    total = max(0, (size - 1) * stride + window - x.shape[1])
    sides = (total // 2, total - total // 2)
    padded = np.pad(x, ((0, 0), sides, sides, (0, 0)))
    reach = (size - 1) * stride + 1
    for i in range(window):
        for j in range(window):
            yield padded[:, i : i + reach : stride, j : j + reach : stride]


def convolution(
    batch: int, size: int, channels: int, depth: int, window: int, stride: int
) -> tuple[float, Contenders]:
    """The operations of a convolution, and the kernel beside a matrix product."""
    x = random(batch, size, size, channels)
    filters = constant(random(window, window, channels, depth))
    positions = batch * (-(-size // stride)) ** 2
    rows, matrix = random(positions, filters[..., 0].size), filters.reshape(-1, depth)
    kernel = kernel_function("Conv2D", T=float32, strides=[1, stride, stride, 1], padding="SAME")
    operations = 2 * positions * filters.size
    return operations, {"kernel": lambda: kernel(x, filters), "reference": lambda: rows @ matrix}


def depthwise(
    batch: int, size: int, channels: int, window: int, stride: int
) -> tuple[float, Contenders]:
    """The operations of a depthwise convolution, and the kernel beside a sum of products."""
    x, filters = random(batch, size, size, channels), random(window, window, channels, 1)
    strides = [1, stride, stride, 1]
    kernel = kernel_function("DepthwiseConv2dNative", T=float32, strides=strides, padding="SAME")
    weights = filters.reshape(-1, channels)

    def in_numpy() -> Array:
        terms = zip(padded_slices(x, window, stride), weights, strict=True)
        total: Array = sum(part * weight for part, weight in terms)
        return total

    operations = 2 * batch * (-(-size // stride)) ** 2 * filters.size
    return operations, {"kernel": lambda: kernel(x, filters), "reference": in_numpy}


def pool(
    batch: int, size: int, channels: int, window: int, stride: int
) -> tuple[float, Contenders]:
    """The comparisons of a maximum over windows, and the kernel beside NumPy's maximum."""
    x = random(batch, size, size, channels)
    sizes: dict[str, Any] = {"ksize": [1, window, window, 1], "strides": [1, stride, stride, 1]}
    kernel = max_pool(**sizes, **ATTRS)

    def in_numpy() -> Array:
        first, *others = padded_slices(x, window, stride)
        for part in others:
            first = np.maximum(first, part)
        return first

    operations = batch * (-(-size // stride)) ** 2 * channels * window**2
    return operations, {"kernel": lambda: kernel(x), "reference": in_numpy}


def measure(
    title: str,
    layers: Sequence[tuple[int, ...]],
    make: Callable[..., tuple[float, Contenders]],
    batch: int,
) -> None:
    """Print each kind of layer and the sum over all layers."""
    print(f"{title}, batch {batch}")
    total = dict.fromkeys(("kernel", "reference", "operations"), 0.0)
    for count, *layer in layers:
        operations, contenders = make(batch, *layer)
        seconds = interleaved(contenders, 5)
        print(line(f"{count} x {tuple(layer)}", seconds, operations))
        for name, value in seconds.items():
            total[name] += count * value
        total["operations"] += count * operations
    print(line("all", total, total["operations"]))


def line(name: str, seconds: dict[str, float], operations: float) -> str:
    speed = operations / seconds["kernel"] / 1e9
    ratio = seconds["kernel"] / seconds["reference"]
    return f"  {name:30s} {seconds['kernel'] * 1e3:9.3f} ms {speed:8.1f} GFLOP/s {ratio:7.3f} x"


def measure_here(batch: int) -> None:
    measure("Conv2D, ResNet-50, against a matrix product", RESNET_50, convolution, batch)
    measure(
        "DepthwiseConv2dNative, MobileNetV2, against NumPy",
        MOBILENET_V2_DEPTHWISE,
        depthwise,
        batch,
    )
    measure("MaxPool, against NumPy", POOLS, pool, batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, os.cpu_count() or 1])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--here", action="store_true", help="measure in this process")
    options = parser.parse_args()
    if options.here:
        measure_here(options.batch)
        return
    for threads in options.threads:
        print(f"OPENBLAS_NUM_THREADS={threads}", flush=True)
        command = [sys.executable, __file__, "--here", "--batch", str(options.batch)]
        environment = {**clean_environment(), "OPENBLAS_NUM_THREADS": str(threads)}
        subprocess.run(command, env=environment, check=True)


if __name__ == "__main__":
    main()
