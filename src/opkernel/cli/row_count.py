"""How far a model is mapped over the rows of a data set, in words and as a bar."""

from __future__ import annotations

import time
from collections import deque

from opkernel.cli.output import counted
from opkernel.distributed import Predictions

_SHORTEST_BAR, _LONGEST_BAR = 8, 24
_LOOKS = 40
"""How many looks the rate is of; the first ones may be of parts that were there, or of processes that start."""


class RowCount:
    """Tells of predictions, each time it is asked: `: 320 of 1,000 rows, 2 failed, 64 rows/s, 11 s left`.

    Args:
        of: The predictions.
    """

    def __init__(self, of: Predictions) -> None:
        self._of = of
        self._seen: deque[tuple[float, int]] = deque(maxlen=_LOOKS)

    def __call__(self, room: int | None) -> str:
        """Look, and tell; with a bar where there is room for it."""
        rows, total, failed = self._of.rows, self._of.total, len(self._of.skipped)
        self._seen.append((time.monotonic(), rows))
        parts = [counted(rows, "row") if total is None else f"{rows:,} of {counted(total, 'row')}"]
        if failed:
            parts.append(f"{failed:,} failed")
        rate = self._rate()
        if rate:
            parts.append(f"{rate:,.0f} rows/s" if rate >= 10 else f"{rate:.2g} rows/s")
        if rate and total is not None:
            parts.append(f"{_duration((total - rows) / rate)} left")
        text = f": {', '.join(parts)}"
        width = min((room or 0) - len(text) - 3, _LONGEST_BAR)
        return f" [{_bar(rows, total, width)}]{text}" if total and width >= _SHORTEST_BAR else text

    def _rate(self) -> float:
        """Rows a second, over the last looks."""
        (first, before), (last, now) = self._seen[0], self._seen[-1]
        return (now - before) / (last - first) if last > first else 0


def _bar(done: int, total: int, width: int) -> str:
    full = width * done // total
    return f"{'#' * full}{'-' * (width - full)}"


def _duration(seconds: float) -> str:
    """`42 s`, `3 min 5 s`, `2 h 7 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
