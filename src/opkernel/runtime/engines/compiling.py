"""What engines compile at the moment, for those who show it; what took long is logged.

State: `_under_way` has a description of each cluster that is being compiled.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from opkernel.interrupts import contextmanager
from opkernel.logs import logger

_LONG_S = 1.0
_under_way: dict[object, str] = {}


@contextmanager
def compiling(engine: str, cluster: str, num_operations: int) -> Iterator[None]:
    """Within the block, an engine compiles a cluster. More than a second is logged at the level INFO."""
    what = f"{cluster} ({num_operations:,} operations) with {engine}"
    key, start = object(), time.monotonic()
    try:
        _under_way[key] = what
        yield
    finally:
        _under_way.pop(key, None)
        took = time.monotonic() - start
        if took > _LONG_S:
            logger("opkernel.engines").info("Compiling %s took %.1f s", what, took)


def compiled_now() -> list[str]:
    """Which clusters are being compiled, by which engines."""
    return [*_under_way.values()]
