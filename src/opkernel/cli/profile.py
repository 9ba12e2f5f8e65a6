"""The time of steps, and where that of one step went: text, and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.cli.output import Colored, counted, echo, one_line, print_table, print_text, size_text
from opkernel.proto import StepStats

if TYPE_CHECKING:
    from opkernel.runtime.traces import ProfileRow

_SHOWN = 15
_CLUSTERS_SHOWN = 5
_HOT = 0.2
"""The share of the time from which an op or node stands out."""
_NUMBERS = ("ms", "share", "calls", "us a call", "output")


def print_times(seconds: Sequence[float]) -> None:
    """Print how long the steps took."""
    times = times_as_json(seconds)
    text = f"first step {times['first_ms']:,.2f} ms"
    if "others_ms" in times:
        found = [f"{name} {value:,.2f}" for name, value in times["others_ms"].items()]
        text += f"; the other {len(seconds) - 1:,}: {', '.join(found)} ms"
    print_text(text)


def times_as_json(seconds: Sequence[float]) -> dict[str, Any]:
    """How long the steps took, in milliseconds; of those after the first, percentiles, mean and minimum."""
    first, *others = (duration * 1e3 for duration in seconds)
    facts: dict[str, Any] = {"count": len(seconds), "first_ms": first}
    if others:
        found = np.percentile(others, [50, 90, 99], method="higher")  # so each is that of a step
        p50, p90, p99 = map(float, found)
        mean, least = float(np.mean(others)), min(others)
        facts["others_ms"] = {"p50": p50, "p90": p90, "p99": p99, "mean": mean, "min": least}
    return facts


class StepProfile:
    """Where the time of a step went: of the median one after the first, or of the first if there are no others."""

    def __init__(self, steps: Sequence[StepStats]) -> None:
        from opkernel.runtime.traces import profile_of  # of use to few runs

        self._is_of_first = len(steps) == 1
        self._profile = profile_of(steps[1:] or steps)
        self.number = 0 if self._is_of_first else 1 + self._profile.median

    def print(self) -> None:
        """Print the hottest ops and nodes, and what is in clusters."""
        profile = self._profile
        count = counted(len(profile.steps), "step")
        step = f"the median of the {count} after the first"
        if self._is_of_first:
            step = "the first step; --repeat N shows one of those after it"
        who = "Kernels and engines" if any(row.is_cluster for row in profile.nodes) else "Kernels"
        took, whole = profile.seconds * 1e3, profile.step_seconds * 1e3
        echo()
        print_text(f"{who} took {took:,.3f} ms of {whole:,.3f} ms in {step}.")
        echo()
        ops = [(*self._cells(row), row.op) for row in profile.ops]
        self._print_hottest("op", (*_NUMBERS, "op"), ops)
        echo()
        nodes = [(*self._cells(row)[:3], row.op, _node(row)) for row in profile.nodes]
        self._print_hottest("node", (*_NUMBERS[:3], "op", "node"), nodes)
        for row in [one for one in profile.nodes if one.is_cluster][:_CLUSTERS_SHOWN]:
            echo()
            _print_cluster(row)

    def as_json(self) -> dict[str, Any]:
        """All ops and nodes of the step; times in milliseconds."""
        profile = self._profile
        return {
            "steps": len(profile.steps),
            "step_ms": profile.step_seconds * 1e3,
            "kernels_ms": profile.seconds * 1e3,
            "ops": [_as_json(row) for row in profile.ops],
            "nodes": [{"node": row.name, **_as_json(row), **_parts(row)} for row in profile.nodes],
        }

    def _cells(self, row: ProfileRow) -> tuple[object, ...]:
        total = self._profile.seconds
        return (
            f"{row.seconds * 1e3:,.3f}",
            _share(row.seconds / total) if total else "",
            f"{row.calls:,}",
            f"{row.seconds / row.calls * 1e6:,.1f}",
            size_text(row.output_bytes),
        )

    def _print_hottest(
        self, what: str, columns: Sequence[str], rows: Sequence[Sequence[object]]
    ) -> None:
        title = f"{counted(len(rows), what)}, hottest first"
        print_table(title, columns, rows[:_SHOWN], _NUMBERS)
        if len(rows) > _SHOWN:
            echo(f"  and {len(rows) - _SHOWN:,} more")


def _node(row: ProfileRow) -> str:
    """The name of a node; with a cluster, how many operations it has."""
    return f"{row.name} ({counted(len(row.parts), 'operation')})" if row.is_cluster else row.name


def _print_cluster(row: ProfileRow) -> None:
    """Print what is in a cluster."""
    count, total = counted(len(row.parts), "operation"), sum(part.seconds for part in row.parts)
    if not total:
        ops = Counter(part.op for part in row.parts).most_common(_SHOWN)
        listed = ", ".join(f"{count} {op}" for op, count in ops)
        print_text(one_line(f"{row.name} has {count}, which {row.op} does not time: {listed}"))
        return
    rows = [
        (f"{part.seconds * 1e3:,.3f}", _share(part.seconds / total), part.op, part.name)
        for part in row.parts
    ]
    title = f"{row.name}: {count} timed by {row.op}, {total * 1e3:,.3f} ms together"
    print_table(title, ("ms", "share", "op", "operation"), rows[:_SHOWN], _NUMBERS)
    if len(rows) > _SHOWN:
        echo(f"  and {len(rows) - _SHOWN:,} more")


def _share(share: float) -> object:
    text = f"{share:.1%}"
    return Colored(text, {"fg": "red", "bold": True}) if share >= _HOT else text


def _parts(row: ProfileRow) -> dict[str, Any]:
    """What is in a cluster."""
    if not row.is_cluster:
        return {}
    parts = [{"node": part.name, "op": part.op, "ms": part.seconds * 1e3} for part in row.parts]
    return {"engine": row.op, "operations": parts}


def _as_json(row: ProfileRow) -> dict[str, Any]:
    return {
        "op": row.op,
        "calls": row.calls,
        "ms": row.seconds * 1e3,
        "output_bytes": row.output_bytes,
    }
