"""How much a kernel has to do.

`work_of` is a guess that is high rather than low; constant folding, work that the user did not ask for,
goes by it. `least_seconds` is low rather than high; steps that have little time left go by it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.opdef import OpTraits

_MOST_PER_SECOND = 1.5e11 * (os.cpu_count() or 1)
"""The most multiplications that the processors do in a second."""

_MOST_SORTED_PER_SECOND = 1e9

COSTS_WITH_LEAST_SECONDS = frozenset({"product", "sort"})
"""The costs of ops (`OpTraits.cost`) that take a time which is known to be the least."""

_OF_CALL = 1 << 14
_OF_ELEMENT = 8
_OF_ITERATION = 1000


def work_of(traits: OpTraits, inputs: Sequence[Any], outputs: int) -> int:
    """The work of an op's kernel in about a billionth of a second, for so many elements of outputs."""
    sizes = [int(np.size(value)) for value in inputs]
    elements = sum(sizes) + outputs
    if traits.cost == "series":
        work = elements * _OF_ITERATION
    elif traits.is_linear:
        work = elements * _OF_ELEMENT
    elif traits.cost == "product":
        work = math.isqrt(math.prod(sizes) * max(outputs, 1)) + elements * _OF_ELEMENT
    elif traits.cost == "convolution" and len(inputs) > 1:
        work = outputs * max(sizes[1], 1) // max(np.shape(inputs[1])[-1:] or (1,))
    else:  # it may compare all with all
        work = elements * elements
    return _OF_CALL + work


def least_seconds(traits: OpTraits, inputs: Sequence[Any]) -> float:
    """The time that a product or a sort of these inputs takes at least; 0 for other ops."""
    if traits.cost == "sort":
        return max([int(np.size(value)) for value in inputs], default=0) / _MOST_SORTED_PER_SECOND
    if traits.cost != "product" or len(inputs) != 2:
        return 0
    a, b = map(np.shape, inputs)
    shared = max({*a[-2:]} & {*b[-2:]}, default=1)  # the most that may be summed over
    number = math.prod(a) * math.prod(b) / max(shared * math.prod(a[:-2]), 1)
    return number / _MOST_PER_SECOND
