"""The global seed, and the seeds that operations get from it.

Source: TensorFlow python/framework/random_seed.py, python/eager/context.py.
"""

from __future__ import annotations

import operator
import random
import threading
from typing import Any

from opkernel.endpoints.tensors import is_symbolic
from opkernel.graph.core.default_graph import graph_of_call, innermost_default
from opkernel.graph.core.tensor import tensors_in
from opkernel.messages import short_repr
from opkernel.runtime.calls.eager import forget_random_kernels

_DEFAULT_SEED = 87654321
_MOST = 2**31 - 1


class _GlobalSeed:
    """The seed of `set_seed`, and the generator of seeds for operations that have none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value: int | None = None
        self.generator = random.Random()


_global = _GlobalSeed()


def set_global_seed(seed: int) -> None:
    """Set the seed; random operations outside of graphs begin anew."""
    with _global.lock:
        _global.value = int(seed)
        _global.generator = random.Random(seed)
        forget_random_kernels()


def seeds_of(seed: int | None, *inputs: Any) -> dict[str, Any]:
    """The attrs `seed` and `seed2` of an operation: 0 and 0 for numbers that differ in each run.

    Raises:
        TypeError: the seed is no integer.
    """
    if seed is not None:
        try:
            seed = operator.index(seed)
        except TypeError:
            raise TypeError(f"A seed is an integer, not {short_repr(seed)}") from None
    with _global.lock:
        if _global.value is None:
            first, second = (0, 0) if seed is None else (_DEFAULT_SEED, seed)
        else:
            first, second = _global.value, _operation_seed(inputs) if seed is None else seed
    if seed is None and _global.value is None:
        return {"seed": 0, "seed2": 0}
    first, second = first % _MOST, second % _MOST
    return {"seed": first, "seed2": second if first or second else _MOST}


def _operation_seed(inputs: Any) -> int:
    if not is_symbolic(*inputs) and innermost_default() is None:
        return _global.generator.randint(0, _MOST)
    graph = graph_of_call(tensors_in([*inputs]))
    return 0 if graph is None else len(graph.get_operations())
