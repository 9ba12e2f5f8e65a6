"""The generator of a kernel: a stream of its own, of which each call takes the next part.

Source: TensorFlow core/util/guarded_philox_random.h.
"""

import threading

from opkernel.kernel import OpKernelConstruction
from opkernel.ops.philox import Philox
from opkernel.ops.random.filling import BLOCKS_PER_OUTPUT

__all__ = ["GuardedPhilox"]


class GuardedPhilox:
    """A stream that the attrs `seed` and `seed2` of a node choose; both 0: the system does."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        self._lock = threading.Lock()
        self._next = Philox.seeded(construction.get_attr("seed"), construction.get_attr("seed2"))

    def reserve(self, blocks: int) -> Philox:
        """The place where so many blocks begin, which no other call gets."""
        with self._lock:
            place = self._next
            self._next = place.skip(blocks)
        return place

    def reserve_outputs(self, count: int) -> Philox:
        """The place of the blocks of so many numbers."""
        return self.reserve(count * BLOCKS_PER_OUTPUT)

    def reserve_words(self, count: int) -> Philox:
        """The place of at least so many words."""
        return self.reserve(-(-count // 4))
