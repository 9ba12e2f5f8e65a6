"""The loop that finds the classes of random numbers."""

from opkernel.ops.random import multinomial
from opkernel.providers import LOOPS
from opkernel.providers.loops.compiled_loop import loop
from opkernel.types import Array


@loop(otherwise=multinomial.find_classes)
def find_classes(sums: Array, numbers: Array, begin: int, count: int, classes: Array) -> None:
    """By halves."""
    for row in range(len(sums)):
        first = begin + row * count
        for place in range(max(first, 0), min(first + count, len(numbers))):
            limit = numbers[place] * sums[row, -1]
            low, high = 0, sums.shape[1]
            while low < high:
                middle = (low + high) // 2
                if sums[row, middle] <= limit:
                    low = middle + 1
                else:
                    high = middle
            classes[place] = low


multinomial.register_multinomial(find_classes, registry=LOOPS.kernels)
