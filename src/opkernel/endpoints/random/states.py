"""States of random number generators.

Source: TensorFlow python/ops/stateful_random_ops.py, random_ops_util.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import cast_to
from opkernel.types import DataType

_SIZES = {"philox": 3, "threefry": 2, "auto_select": 3}
_NAMES = {1: "philox", 2: "threefry", 3: "auto_select"}
_WORD = 1 << 64


def create_rng_state(seed: Any, alg: Any) -> Any:
    """The state of a random number generator: a vector of int64, 3 for "philox", 2 for "threefry".

    Args:
        seed: an integer of any size, or a vector of them, of which the first ones count.
        alg: "philox", "threefry", "auto_select", or 1, 2, 3.

    Raises:
        ValueError: `alg` is another one.
    """
    size = _SIZES.get(_NAMES.get(alg, "") if isinstance(alg, int) else str(alg))
    if size is None:
        raise ValueError(f'alg is "philox", "threefry" or "auto_select", and not {alg!r}')
    words = raw_ops.Reshape(tensor=_words(seed, size), shape=np.array([-1], np.int32))[:size]
    more = raw_ops.Maximum(x=np.int32(size) - raw_ops.Size(input=words), y=np.int32(0))
    zeros = raw_ops.Fill(
        dims=raw_ops.Reshape(tensor=more, shape=np.array([1], np.int32)), value=np.int64(0)
    )
    return raw_ops.ConcatV2(values=[zeros, words], axis=0)


def _words(seed: Any, size: int) -> Any:
    """The seed as int64; a number of Python in pieces of 64 bits, the lowest first."""
    if isinstance(seed, int):
        seed = [(seed >> 64 * i) % _WORD for i in range(size)]
    if isinstance(seed, list | tuple):
        seed = [one - _WORD if isinstance(one, int) and one >= _WORD // 2 else one for one in seed]
        if all(isinstance(one, int) for one in seed):
            seed = np.array(seed, np.int64)
    return cast_to(seed, DataType.DT_INT64)
