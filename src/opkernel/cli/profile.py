"""Where the time of steps went: text, and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.cli.output import (
    Colored,
    counted,
    echo,
    print_table,
    print_text,
    size_text,
)
from opkernel.proto import StepStats

if TYPE_CHECKING:
    from opkernel.runtime.traces import Profile, ProfileRow

_SHOWN = 15
_HOT = 0.2
"""The share of the time from which an op or node stands out."""
_NUMBERS = ("ms", "share", "calls", "us a call", "output")


def traced_seconds(steps: Sequence[StepStats]) -> list[float]:
    """How long steps took, from the first node to the last; the record is written later."""
    return _profile_of(steps).steps


def print_times(seconds: Sequence[float]) -> None:
    """Print how long the steps took."""
    first, *others = (duration * 1e3 for duration in seconds)
    text = f"first step {first:,.2f} ms"
    if others:
        found = [f"{name} {value:,.2f}" for name, value in _latencies(others).items()]
        text += f"; the other {len(others):,}: {', '.join(found)} ms"
    print_text(text)


def times_as_json(seconds: Sequence[float]) -> dict[str, Any]:
    """How long the steps took, in milliseconds."""
    first, *others = (duration * 1e3 for duration in seconds)
    latencies = {"others_ms": _latencies(others)} if others else {}
    return {"count": len(seconds), "first_ms": first, **latencies}


def _latencies(times: Sequence[float]) -> dict[str, float]:
    """The percentiles, mean and minimum of the times of steps."""
    p50, p90, p99 = map(float, np.percentile(times, [50, 90, 99]))
    mean, least = float(np.mean(times)), float(np.min(times))
    return {"p50": p50, "p90": p90, "p99": p99, "mean": mean, "min": least}


class StepProfile:
    """Where the time of steps went: of all after the first, which compiles functions, or of the first."""

    def __init__(self, steps: Sequence[StepStats]) -> None:
        self._is_of_first = len(steps) == 1
        self._profile = _profile_of(steps[1:] or steps)

    def print(self) -> None:
        """Print the hottest ops and nodes."""
        profile = self._profile
        of_steps = f"in the median of the {counted(len(profile.steps), 'step')} after the first"
        if self._is_of_first:
            of_steps = "in the first step; --repeat N tells of those after it"
        echo()
        print_text(f"Kernels took {profile.seconds * 1e3:,.3f} ms {of_steps}.")
        echo()
        total = sum(row.seconds for row in profile.ops)
        ops = [(*_cells(row, total), row.op) for row in profile.ops]
        self._print_hottest("op", (*_NUMBERS, "op"), ops)
        echo()
        nodes = [(*_cells(row, total)[:3], row.op, row.name) for row in profile.nodes]
        self._print_hottest("node", (*_NUMBERS[:3], "op", "node"), nodes)

    def as_json(self) -> dict[str, Any]:
        """All ops and nodes; times in milliseconds, all of it a step."""
        profile = self._profile
        return {
            "steps": len(profile.steps),
            "kernels_ms": profile.seconds * 1e3,
            "ops": [_as_json(row) for row in profile.ops],
            "nodes": [{"node": row.name, **_as_json(row)} for row in profile.nodes],
        }

    def _print_hottest(
        self, what: str, columns: Sequence[str], rows: Sequence[Sequence[object]]
    ) -> None:
        title = f"{counted(len(rows), what)}, hottest first"
        print_table(title, columns, rows[:_SHOWN], _NUMBERS)
        if len(rows) > _SHOWN:
            echo(f"  and {len(rows) - _SHOWN:,} more")


def _profile_of(steps: Sequence[StepStats]) -> Profile:
    from opkernel.runtime.traces import profile_of  # of use to few runs

    return profile_of(steps)


def _cells(row: ProfileRow, total: float) -> tuple[object, ...]:
    return (
        f"{row.seconds * 1e3:,.3f}",
        _share(row.seconds / total) if total else "",
        f"{row.calls:,.10g}",
        f"{row.seconds / row.calls * 1e6:,.1f}",
        size_text(row.output_bytes),
    )


def _share(share: float) -> object:
    text = f"{share:.1%}"
    return Colored(text, {"fg": "red", "bold": True}) if share >= _HOT else text


def _as_json(row: ProfileRow) -> dict[str, Any]:
    return {
        "op": row.op,
        "calls": row.calls,
        "ms": row.seconds * 1e3,
        "output_bytes": row.output_bytes,
    }
